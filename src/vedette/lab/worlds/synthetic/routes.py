"""Who answers which path. The first segment decides; everything else is a page's path or nobody's."""

from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import parse_qsl

from vedette.lab.worlds.synthetic import addresses, faults, listings, traps
from vedette.lab.worlds.synthetic import machine_files as signposts
from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.pages import page_reply, page_state
from vedette.lab.worlds.synthetic.shared import Visit, Web
from vedette.lab.worlds.synthetic.sites import Site
from vedette.lab.worlds.world import Reply

__all__ = ["UrlKind", "answer", "is_copy", "route", "settled_path"]

UrlKind = Literal["page", "copy", "listing", "aside", "robots", "sitemap", "feed", "trap", "fault", "unknown"]
Handler = Callable[[Web, Visit], Reply | None]

_COPY_KEYS = ("utm_source", "utm_medium", "utm_campaign", "ref", "sort", "print")


def _favicon(_web: Web, visit: Visit) -> Reply | None:
    if visit.path != "/favicon.ico" or visit.site.index % 2:
        return None
    return Reply(200, (("content-type", "image/gif"),), b"GIF89a\1\0\1\0\0\0\0;")


def _nobody(_web: Web, _visit: Visit) -> Reply | None:
    return None


def _page(web: Web, visit: Visit) -> Reply | None:
    site, now_s = visit.site, visit.now_s
    number = addresses.number_in(site, visit.path)
    if number is None or not site.births.is_born(number, now_s):
        return None
    first = traits.first_word(site, number)
    second, birth_s = traits.second_word(first), site.births.birth_s(number)
    moved = traits.move_s(site, second, birth_s) <= now_s
    asked, old = visit.path.encode("utf-8", "replace"), addresses.path(site, number, first)
    new = addresses.moved_path(site, number, first) if moved else old
    if asked not in (old, new):
        return None
    if traits.death_s(site, second, birth_s) <= now_s:
        return Reply(site.gone_status, (("content-type", "text/plain"),), b"This page is gone.\n")
    if asked != new:
        return Reply(site.move_status, (("location", new.decode()),), b"")
    plain = bool(visit.query) and "print=1" in visit.query and "print" in site.features
    return page_reply(web, visit, page_state(site, number, first, now_s), path=new, plain=plain)


_ROUTES: Mapping[str, tuple[UrlKind, Handler]] = {
    "": ("listing", listings.home),
    "section": ("listing", listings.section_listing),
    "tag": ("listing", listings.tag_listing),
    "tags": ("listing", listings.tag_index),
    "archive": ("listing", listings.archive),
    "about": ("aside", listings.about),
    "private": ("aside", listings.private),
    "robots.txt": ("robots", signposts.robots),
    "sitemap.xml": ("sitemap", signposts.sitemap),
    "feed.xml": ("feed", signposts.feed),
    "favicon.ico": ("aside", _favicon),
    "calendar": ("trap", traps.calendar),
    "members": ("trap", traps.members),
    "browse": ("trap", traps.paths),
    "odd": ("fault", faults.odd),
}
_ELSE: tuple[UrlKind, Handler] = ("page", _page)
_NEEDED = {"calendar": "calendar", "members": "sessions", "browse": "paths", "odd": "odd"}


def route(site: Site, path: str) -> tuple[UrlKind, Handler]:
    """Who answers a path on a site, and what kind of thing stands there."""
    head = path[1:].partition("/")[0]
    if head.startswith("sitemap-"):
        head = "sitemap.xml"
    if head in _NEEDED and _NEEDED[head] not in site.features:
        return "unknown", _nobody
    return _ROUTES.get(head, _ELSE)


def is_copy(query: str) -> bool:
    """Whether a query makes another spelling of the same page: tracking, sorting, printing, and nothing else."""
    if len(query) > 200:
        return False
    pairs = parse_qsl(query, keep_blank_values=True)
    return all(key in _COPY_KEYS for key, _ in pairs) and bool(pairs)


def answer(web: Web, visit: Visit) -> Reply | None:
    """The reply of whoever answers this path, or None where nobody does."""
    kind, handler = route(visit.site, visit.path)
    if visit.query and kind != "trap" and not is_copy(visit.query):
        return None
    return handler(web, visit)


def settled_path(site: Site, path: str) -> int | None:
    """The number of the page whose path, before or after a move, this is; born yet or not."""
    number = addresses.number_in(site, path)
    if number is None or route(site, path) is not _ELSE:
        return None
    first, asked = traits.first_word(site, number), path.encode("utf-8", "replace")
    known = (addresses.path(site, number, first), addresses.moved_path(site, number, first))
    return number if asked in known else None
