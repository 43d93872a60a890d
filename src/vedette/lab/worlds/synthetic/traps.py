"""Places without end, as the real web has them: each looks like content, links to more of itself, and never stops.

A calendar with a next month for ever, members' pages whose session id is new in every link, folders within folders,
and a farm of hosts that link to one another. They stand below paths of their own, linked from the foot of every page.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from vedette.lab.worlds.synthetic.grammar import Prose
from vedette.lab.worlds.synthetic.hashing import draws, key_of
from vedette.lab.worlds.synthetic.listings import simple_page
from vedette.lab.worlds.synthetic.names import FARM
from vedette.lab.worlds.synthetic.page_frame import without_canonical
from vedette.lab.worlds.synthetic.pages import HTML
from vedette.lab.worlds.synthetic.shared import Visit, Web
from vedette.lab.worlds.synthetic.topics import MONTHS
from vedette.lab.worlds.world import Reply

__all__ = ["calendar", "farm", "members", "not_found_in_disguise", "paths"]

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
