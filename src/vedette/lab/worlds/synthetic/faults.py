"""Faults and crawler traps of the synthetic web: slow, broken, endless, mislabeled, looping, overloaded servers.

Some hosts show them all below ``/odd/``, one page for each. A few hosts are faulty as a whole, some of the time or
always.
"""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from vedette.lab.worlds.synthetic.grammar import Prose
from vedette.lab.worlds.synthetic.hashing import fraction, hash_key, lcg_stream, mix
from vedette.lab.worlds.synthetic.listings import simple_page
from vedette.lab.worlds.synthetic.page_template import strip_canonical
from vedette.lab.worlds.synthetic.pages import HTML
from vedette.lab.worlds.synthetic.sites import LINK_FARM, Site
from vedette.lab.worlds.synthetic.topics import MONTHS
from vedette.lab.worlds.synthetic.web import PageRequest, SyntheticWeb
from vedette.lab.worlds.world import NORMAL_DELIVERY, Delivery, Reply
from vedette.model import Headers
from vedette.timeutil import HOUR_S

# A calendar with a next month forever, members' pages with a new session id in every link, folders within folders, and
# a farm of hosts that link to one another. They are below separate paths, linked from the foot of every page.


_CALENDAR = re.compile(r"/calendar/([1-9][0-9]{0,3})/([1-9]|1[0-2])(?:/([1-9]|[12][0-9]|3[01]))?")
_SESSION = re.compile(r"sid=[0-9a-f]{16}")
_PATHS = re.compile(r"/browse/(?:[a-z]+/){0,400}")
_FOLDER_NAMES = ("north", "south", "upper", "lower", "old", "new")
_MEMBER_PAGES = ("lobby", "orders", "messages", "profile", "wishes", "friends")
_FARM_LINKS = 25


def _link(target: str, label: str) -> bytes:
    return f'<li><a href="{target}">{label}</a></li>\n'.encode()


def _site_prose(visit: PageRequest) -> Prose:
    return visit.site.sections[0].prose


def calendar_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return a page of the endless calendar trap: a month with its days and neighbors, or an empty day."""
    match = _CALENDAR.fullmatch(visit.path)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2])
    text = _site_prose(visit).paragraph(hash_key(visit.site.key, visit.path))
    title = " ".join(filter(None, (match[3], MONTHS[month - 1], str(year))))
    days = [] if match[3] else [_link(f"/calendar/{year}/{month}/{day}", str(day)) for day in range(1, 29)]
    return simple_page(
        web, visit, title.encode(), (text, b"<ul>\n", *_neighbour_months(year, month), *days, b"</ul>\n")
    )


def _neighbour_months(year: int, month: int) -> Iterator[bytes]:
    for label, step in (("Previous month", -1), ("Next month", 1)):
        ahead, place = divmod(month - 1 + step, 12)
        if 1 <= year + ahead <= 9999:
            yield _link(f"/calendar/{year + ahead}/{place + 1}", label)


def members_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return a page of the session-id trap: every link in the members' area hands out another session id."""
    room = visit.path.removeprefix("/members/")
    if room not in _MEMBER_PAGES:
        return None
    fresh = lcg_stream(hash_key(visit.site.key, visit.path, visit.query, int(visit.now_s)))
    if not _SESSION.fullmatch(visit.query):
        return Reply(302, (("location", f"{visit.path}?sid={_new_session_id(fresh)}"),), b"")
    links = [_link(f"/members/{name}?sid={_new_session_id(fresh)}", name.title()) for name in _MEMBER_PAGES]
    text = _site_prose(visit).paragraph(hash_key(visit.site.key, room))
    return simple_page(web, visit, room.title().encode(), (text, b"<ul>\n", *links, b"</ul>\n"))


def _new_session_id(numbers: Iterator[int]) -> str:
    return f"{next(numbers):08x}{next(numbers):08x}"


def nested_folder_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return a page of the nested-folder trap: a folder that contains more folders of the same names."""
    if not _PATHS.fullmatch(visit.path):
        return None
    text = _site_prose(visit).paragraph(hash_key(visit.site.key, visit.path))
    links = [_link(f"{turn}/", turn.title()) for turn in _FOLDER_NAMES]
    title = visit.path.removeprefix("/browse/").rstrip("/").rpartition("/")[2].title() or "Browse"
    return simple_page(web, visit, title.encode(), (text, b"<ul>\n", *links, b"</ul>\n"))


def soft_404_page(web: SyntheticWeb, visit: PageRequest) -> Reply:
    """Return a soft-404 fault: a page that says it does not exist, with status 200."""
    reply = simple_page(web, visit, b"Page not found", [b"<p>Sorry, the page that you asked for is not here.</p>\n"])
    return replace(reply, body=strip_canonical(reply.body))


def link_farm_page(proses: tuple[Prose, ...], host: str, path: str) -> Reply:
    """Return a page of the link farm trap: any host name and any path below it is one."""
    key = hash_key("farm", host, path)
    numbers = lcg_stream(key)
    prose = proses[key % len(proses)]
    links = b"".join(_farm_link(prose, next(numbers), next(numbers)) for _ in range(_FARM_LINKS))
    title = prose.heads[key % len(prose.heads)].text
    head = (
        b'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Best %b</title>\n</head>\n' % title
    )
    body = b"<body>\n<h1>Best %b</h1>\n%b<ul>\n%b</ul>\n</body>\n</html>\n" % (title, prose.paragraph(key), links)
    return Reply(200, (HTML,), head + body)


def _farm_link(prose: Prose, number: int, place: int) -> bytes:
    words = prose.heads[number % len(prose.heads)]
    return _link(f"http://{words.slug.decode()}-{number % 977}.{LINK_FARM}/{place % 50}", words.text.decode())


_CHAIN_LENGTH = 12
_BOMB_BYTES = 12 * 1024 * 1024
_ACCENTS = "Café, Zürich, naïve, smörgåsbord, jalapeño, São Paulo, crème brûlée. "

Fault = Callable[[PageRequest], Reply]


def _odd_html(visit: PageRequest, charset: str = "utf-8", extra: str = "") -> bytes:
    """Build the plain HTML page of about six kilobytes that a synthetic fault is shown on."""
    prose = visit.site.sections[0].prose
    key = hash_key(visit.site.key, visit.path)
    text = b"".join(prose.paragraph(key + turn) for turn in range(12)).decode()
    page = f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="{charset}">\n<title>Odd page</title>\n</head>\n'
    return (page + f"<body>\n<h1>Odd page</h1>\n<p>{extra}</p>\n{text}</body>\n</html>\n").encode(charset)


def _delivery_fault(delivery: Delivery) -> Fault:
    return lambda visit: Reply(200, (HTML,), _odd_html(visit), delivery)


def _status_fault(code: int, *headers: tuple[str, str]) -> Fault:
    return lambda _: Reply(code, (HTML, *headers), b"<!doctype html>\n<title>%d</title>\n<h1>%d</h1>\n" % (code, code))


def _redirect_fault(location: str, code: int = 302) -> Fault:
    return lambda _: Reply(code, (("location", location),), b"")


def _charset_fault(declared: str, meant: str, meta: str) -> Fault:
    """Build a charset fault: the header says one encoding, the bytes are in another, and the meta says a third."""

    def fault(visit: PageRequest) -> Reply:
        body = _odd_html(visit, meant, _ACCENTS * 3).replace(
            f'charset="{meant}"'.encode(), f'charset="{meta}"'.encode(), 1
        )
        return Reply(200, (("content-type", f"text/html; charset={declared}"),), body)

    return fault


@cache
def _gzip_bomb() -> bytes:
    return gzip.compress(b"\0" * _BOMB_BYTES, mtime=0)


@cache
def _deep_html() -> bytes:
    return b"<!doctype html>\n<title>Deep</title>\n" + b"<div>" * 20_000 + b"bottom" + b"</div>" * 20_000


def _flaky_reply(visit: PageRequest) -> Reply:
    """Return the flaky-server fault: 503 in about half of all hours."""
    if mix(visit.site.key + int(visit.now_s // HOUR_S)) & 1:
        return _status_fault(503, ("retry-after", "3600"))(visit)
    return Reply(200, (HTML,), _odd_html(visit))


def _static_fault(headers: Headers, body: Callable[[], bytes]) -> Fault:
    return lambda _: Reply(200, headers, body())


_FAULTS: Mapping[str, Fault] = {
    "late": _delivery_fault(Delivery(wait_s=0.4)),
    "slow": _delivery_fault(Delivery(wait_s=2.5)),
    "drip": _delivery_fault(Delivery(bytes_per_s=3000.0)),
    "reset": _delivery_fault(Delivery(stop_after_bytes=600, then="reset")),
    "reset-at-once": _delivery_fault(Delivery(stop_after_bytes=0, then="reset")),
    "hang": _delivery_fault(Delivery(stop_after_bytes=300, then="hang")),
    "truncated": _delivery_fault(Delivery(stop_after_bytes=2000, then="close")),
    "chunked": _delivery_fault(Delivery(chunked=True)),
    "cut-chunks": _delivery_fault(Delivery(chunked=True, stop_after_bytes=1500, then="close")),
    "endless": _delivery_fault(Delivery(endless=True, bytes_per_s=4_000_000.0)),
    "server-error": _status_fault(500),
    "bad-gateway": _status_fault(502),
    "unavailable": _status_fault(503, ("retry-after", "120")),
    "too-many": _status_fault(429, ("retry-after", "30")),
    "sometimes": _flaky_reply,
    "teapot": _status_fault(418),
    "latin-said-utf8": _charset_fault("utf-8", "latin-1", "latin-1"),
    "utf8-said-latin": _charset_fault("iso-8859-1", "utf-8", "utf-8"),
    "meta-differs": _charset_fault("utf-8", "utf-8", "windows-1251"),
    "unknown-charset": _charset_fault("klingon-8", "utf-8", "utf-8"),
    "bomb": _static_fault((HTML, ("content-encoding", "gzip")), _gzip_bomb),
    "not-gzip": _static_fault(
        (HTML, ("content-encoding", "gzip")), lambda: b"<p>These bytes were never compressed.</p>"
    ),
    "nested": _static_fault((HTML,), _deep_html),
    "empty": _static_fault((HTML,), lambda: b""),
    "binary": _static_fault((("content-type", "application/octet-stream"),), lambda: bytes(range(256)) * 16),
    "untyped": _static_fault((), lambda: b"<!doctype html>\n<title>No type</title>\n<p>Guess what this is.</p>"),
    "self": _redirect_fault("/odd/self"),
    "loop": _redirect_fault("/odd/loop-back", 301),
    "loop-back": _redirect_fault("/odd/loop", 301),
    "no-location": _status_fault(302),
    "bad-location": _redirect_fault("http://[broken"),
    "lost": _redirect_fault("http://no-such-name.test/"),
    "end": lambda visit: Reply(200, (HTML,), _odd_html(visit)),
    **{
        f"chain-{link}": _redirect_fault(f"/odd/chain-{link + 1}" if link < _CHAIN_LENGTH else "/odd/end")
        for link in range(1, _CHAIN_LENGTH + 1)
    },
}


def odd_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Return the ``/odd/`` page that links to every fault of a synthetic host, or one of the faults."""
    if visit.path == "/odd/":
        links = (f'<li><a href="/odd/{name}">{name.replace("-", " ")}</a></li>\n'.encode() for name in _FAULTS)
        return simple_page(web, visit, b"Odd things", (b"<ul>\n", *links, b"</ul>\n"))
    fault = _FAULTS.get(visit.path.removeprefix("/odd/"))
    return fault(visit) if fault else None


def _window_hash(site: Site, now_s: float, hours: float) -> int:
    """Return a hash that stays the same for a whole window of time, to time a host's outages."""
    return mix(site.key ^ int(now_s // (hours * HOUR_S)))


def outage_reply(visit: PageRequest) -> Reply | None:
    """Return the error that a faulty synthetic host answers during an outage; None if it is up."""
    if not visit.site.host_fault:
        return None
    site, now_s, is_robots = visit.site, visit.now_s, visit.path == "/robots.txt"
    match site.host_fault:
        case "outage" if _window_hash(site, now_s, 4.0) % 12 == 0:
            return _status_fault(503, ("retry-after", "3600"))(visit)
        case "limited" if not is_robots and _window_hash(site, now_s, 0.25) % 6 == 0:
            return _status_fault(429, ("retry-after", str(int(900 - now_s % 900) + 1)))(visit)
        case "robots-outage" if is_robots and _window_hash(site, now_s, 6.0) % 3 == 0:
            return _status_fault(503)(visit)
        case _:
            return None


def slow_down(visit: PageRequest, reply: Reply) -> Reply:
    """Slow down a reply if the synthetic host has the slow fault; otherwise return it unchanged."""
    if visit.site.host_fault != "slow" or reply.delivery is not NORMAL_DELIVERY:
        return reply
    wait_s = 0.2 + 2.8 * fraction(hash_key(visit.site.key, visit.path)) ** 3
    return replace(reply, delivery=Delivery(wait_s=wait_s, bytes_per_s=50_000.0))
