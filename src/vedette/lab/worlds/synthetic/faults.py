"""What servers do wrong, each as a reply: slow, broken, endless, mislabelled, looping, overloaded.

Some hosts show them all below ``/odd/``, one page for each. A few hosts are ill as a whole, some of the time or always.
"""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

from vedette.lab.worlds.synthetic.change_times import HOUR_S
from vedette.lab.worlds.synthetic.grammar import Prose
from vedette.lab.worlds.synthetic.hashing import draws, fraction, key_of, mix
from vedette.lab.worlds.synthetic.listings import simple_page
from vedette.lab.worlds.synthetic.page_frame import without_canonical
from vedette.lab.worlds.synthetic.pages import HTML
from vedette.lab.worlds.synthetic.shared import Visit, Web
from vedette.lab.worlds.synthetic.sites import FARM, Site
from vedette.lab.worlds.synthetic.topics import MONTHS
from vedette.lab.worlds.world import WHOLE, Delivery, Reply
from vedette.model import Headers

__all__ = ["afflicted", "calendar", "farm", "members", "not_found_in_disguise", "odd", "paths", "refused"]

# A calendar with a next month for ever, members' pages whose session id is new in every link, folders within folders,
# and a farm of hosts that link to one another. They stand below paths of their own, linked from the foot of every page.


_CALENDAR = re.compile(r"/calendar/([1-9][0-9]{0,3})/([1-9]|1[0-2])(?:/([1-9]|[12][0-9]|3[01]))?")
_SESSION = re.compile(r"sid=[0-9a-f]{16}")
_PATHS = re.compile(r"/browse/(?:[a-z]+/){0,400}")
_TURNS = ("north", "south", "upper", "lower", "old", "new")
_ROOMS = ("lobby", "orders", "messages", "profile", "wishes", "friends")
_FARM_LINKS = 25


def _link(target: str, label: str) -> bytes:
    return f'<li><a href="{target}">{label}</a></li>\n'.encode()


def _prose(visit: Visit) -> Prose:
    return visit.site.sections[0].prose


def calendar(web: Web, visit: Visit) -> Reply | None:
    """A month with its days and neighbours, or a day on which nothing happens."""
    match = _CALENDAR.fullmatch(visit.path)
    if match is None:
        return None
    year, month = int(match[1]), int(match[2])
    text = _prose(visit).paragraph(key_of(visit.site.key, visit.path))
    title = " ".join(filter(None, (match[3], MONTHS[month - 1], str(year))))
    days = [] if match[3] else [_link(f"/calendar/{year}/{month}/{day}", str(day)) for day in range(1, 29)]
    return simple_page(web, visit, title.encode(), (text, b"<ul>\n", *_neighbours(year, month), *days, b"</ul>\n"))


def _neighbours(year: int, month: int) -> Iterator[bytes]:
    for label, step in (("Previous month", -1), ("Next month", 1)):
        ahead, place = divmod(month - 1 + step, 12)
        if 1 <= year + ahead <= 9999:
            yield _link(f"/calendar/{year + ahead}/{place + 1}", label)


def members(web: Web, visit: Visit) -> Reply | None:
    """A room for members: without a session id one is given, and every link hands out another."""
    room = visit.path.removeprefix("/members/")
    if room not in _ROOMS:
        return None
    fresh = draws(key_of(visit.site.key, visit.path, visit.query, int(visit.now_s)))
    if not _SESSION.fullmatch(visit.query):
        return Reply(302, (("location", f"{visit.path}?sid={_session(fresh)}"),), b"")
    links = [_link(f"/members/{name}?sid={_session(fresh)}", name.title()) for name in _ROOMS]
    text = _prose(visit).paragraph(key_of(visit.site.key, room))
    return simple_page(web, visit, room.title().encode(), (text, b"<ul>\n", *links, b"</ul>\n"))


def _session(numbers: Iterator[int]) -> str:
    return f"{next(numbers):08x}{next(numbers):08x}"


def paths(web: Web, visit: Visit) -> Reply | None:
    """A folder that contains more folders of the same names."""
    if not _PATHS.fullmatch(visit.path):
        return None
    text = _prose(visit).paragraph(key_of(visit.site.key, visit.path))
    links = [_link(f"{turn}/", turn.title()) for turn in _TURNS]
    title = visit.path.removeprefix("/browse/").rstrip("/").rpartition("/")[2].title() or "Browse"
    return simple_page(web, visit, title.encode(), (text, b"<ul>\n", *links, b"</ul>\n"))


def not_found_in_disguise(web: Web, visit: Visit) -> Reply:
    """A page that says it does not exist, with status 200."""
    reply = simple_page(web, visit, b"Page not found", [b"<p>Sorry, the page that you asked for is not here.</p>\n"])
    return replace(reply, body=without_canonical(reply.body))


def farm(proses: tuple[Prose, ...], host: str, path: str) -> Reply:
    """A page of the link farm: any name and any path below it is one."""
    key = key_of("farm", host, path)
    numbers = draws(key)
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
    return _link(f"http://{words.slug.decode()}-{number % 977}.{FARM}/{place % 50}", words.text.decode())


_CHAIN = 12
_BOMB_BYTES = 12 * 1024 * 1024
_ACCENTS = "Café, Zürich, naïve, smörgåsbord, jalapeño, São Paulo, crème brûlée. "

Fault = Callable[[Visit], Reply]


def _html(visit: Visit, charset: str = "utf-8", extra: str = "") -> bytes:
    """A plain page of about six kilobytes about nothing in particular."""
    prose = visit.site.sections[0].prose
    key = key_of(visit.site.key, visit.path)
    text = b"".join(prose.paragraph(key + turn) for turn in range(12)).decode()
    page = f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="{charset}">\n<title>Odd page</title>\n</head>\n'
    return (page + f"<body>\n<h1>Odd page</h1>\n<p>{extra}</p>\n{text}</body>\n</html>\n").encode(charset)


def _sent(delivery: Delivery) -> Fault:
    return lambda visit: Reply(200, (HTML,), _html(visit), delivery)


def _status(code: int, *headers: tuple[str, str]) -> Fault:
    return lambda _: Reply(code, (HTML, *headers), b"<!doctype html>\n<title>%d</title>\n<h1>%d</h1>\n" % (code, code))


def _to(location: str, code: int = 302) -> Fault:
    return lambda _: Reply(code, (("location", location),), b"")


def _labelled(said: str, meant: str, meta: str) -> Fault:
    """A page whose header says one encoding, whose bytes are in another, and whose meta says a third thing."""

    def fault(visit: Visit) -> Reply:
        body = _html(visit, meant, _ACCENTS * 3).replace(f'charset="{meant}"'.encode(), f'charset="{meta}"'.encode(), 1)
        return Reply(200, (("content-type", f"text/html; charset={said}"),), body)

    return fault


@cache
def _bomb() -> bytes:
    return gzip.compress(b"\0" * _BOMB_BYTES, mtime=0)


@cache
def _nested() -> bytes:
    return b"<!doctype html>\n<title>Deep</title>\n" + b"<div>" * 20_000 + b"bottom" + b"</div>" * 20_000


def _sometimes(visit: Visit) -> Reply:
    """503 in about half of all hours."""
    if mix(visit.site.key + int(visit.now_s // HOUR_S)) & 1:
        return _status(503, ("retry-after", "3600"))(visit)
    return Reply(200, (HTML,), _html(visit))


def _with(headers: Headers, body: Callable[[], bytes]) -> Fault:
    return lambda _: Reply(200, headers, body())


_FAULTS: Mapping[str, Fault] = {
    "late": _sent(Delivery(wait_s=0.4)),
    "slow": _sent(Delivery(wait_s=2.5)),
    "drip": _sent(Delivery(bytes_per_s=3000.0)),
    "reset": _sent(Delivery(stop_after_bytes=600, then="reset")),
    "reset-at-once": _sent(Delivery(stop_after_bytes=0, then="reset")),
    "hang": _sent(Delivery(stop_after_bytes=300, then="hang")),
    "truncated": _sent(Delivery(stop_after_bytes=2000, then="close")),
    "chunked": _sent(Delivery(chunked=True)),
    "cut-chunks": _sent(Delivery(chunked=True, stop_after_bytes=1500, then="close")),
    "endless": _sent(Delivery(endless=True, bytes_per_s=4_000_000.0)),
    "server-error": _status(500),
    "bad-gateway": _status(502),
    "unavailable": _status(503, ("retry-after", "120")),
    "too-many": _status(429, ("retry-after", "30")),
    "sometimes": _sometimes,
    "teapot": _status(418),
    "latin-said-utf8": _labelled("utf-8", "latin-1", "latin-1"),
    "utf8-said-latin": _labelled("iso-8859-1", "utf-8", "utf-8"),
    "meta-differs": _labelled("utf-8", "utf-8", "windows-1251"),
    "unknown-charset": _labelled("klingon-8", "utf-8", "utf-8"),
    "bomb": _with((HTML, ("content-encoding", "gzip")), _bomb),
    "not-gzip": _with((HTML, ("content-encoding", "gzip")), lambda: b"<p>These bytes were never compressed.</p>"),
    "nested": _with((HTML,), _nested),
    "empty": _with((HTML,), lambda: b""),
    "binary": _with((("content-type", "application/octet-stream"),), lambda: bytes(range(256)) * 16),
    "untyped": _with((), lambda: b"<!doctype html>\n<title>No type</title>\n<p>Guess what this is.</p>"),
    "self": _to("/odd/self"),
    "loop": _to("/odd/loop-back", 301),
    "loop-back": _to("/odd/loop", 301),
    "no-location": _status(302),
    "bad-location": _to("http://[broken"),
    "lost": _to("http://no-such-name.test/"),
    "end": lambda visit: Reply(200, (HTML,), _html(visit)),
    **{
        f"chain-{link}": _to(f"/odd/chain-{link + 1}" if link < _CHAIN else "/odd/end") for link in range(1, _CHAIN + 1)
    },
}


def odd(web: Web, visit: Visit) -> Reply | None:
    """The page that links to every fault, or one of them."""
    if visit.path == "/odd/":
        links = (f'<li><a href="/odd/{name}">{name.replace("-", " ")}</a></li>\n'.encode() for name in _FAULTS)
        return simple_page(web, visit, b"Odd things", (b"<ul>\n", *links, b"</ul>\n"))
    fault = _FAULTS.get(visit.path.removeprefix("/odd/"))
    return fault(visit) if fault else None


def _window(site: Site, now_s: float, hours: float) -> int:
    """A word that is the same for the whole of a window of time."""
    return mix(site.key ^ int(now_s // (hours * HOUR_S)))


def refused(visit: Visit) -> Reply | None:
    """What a host that is ill just now answers instead of its page; None when it is well."""
    if not visit.site.affliction:
        return None
    site, now_s, is_robots = visit.site, visit.now_s, visit.path == "/robots.txt"
    match site.affliction:
        case "outage" if _window(site, now_s, 4.0) % 12 == 0:
            return _status(503, ("retry-after", "3600"))(visit)
        case "limited" if not is_robots and _window(site, now_s, 0.25) % 6 == 0:
            return _status(429, ("retry-after", str(int(900 - now_s % 900) + 1)))(visit)
        case "robots-outage" if is_robots and _window(site, now_s, 6.0) % 3 == 0:
            return _status(503)(visit)
        case _:
            return None


def afflicted(visit: Visit, reply: Reply) -> Reply:
    """The reply as a slow host sends it; from other hosts as it is."""
    if visit.site.affliction != "slow" or reply.delivery is not WHOLE:
        return reply
    wait_s = 0.2 + 2.8 * fraction(key_of(visit.site.key, visit.path)) ** 3
    return replace(reply, delivery=Delivery(wait_s=wait_s, bytes_per_s=50_000.0))
