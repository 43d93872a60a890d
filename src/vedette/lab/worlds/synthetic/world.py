"""The synthetic web as a world: route a request to its handler, and know the truth about every URL.

The response of a URL is a pure function of seed, URL and time. Caches store computed values; there is no other state.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Literal
from urllib.parse import parse_qsl

from vedette.errors import UsageError
from vedette.lab.worlds.synthetic import faults, listings, robots_sitemaps_feeds
from vedette.lab.worlds.synthetic import page_traits as traits
from vedette.lab.worlds.synthetic.change_times import START_S
from vedette.lab.worlds.synthetic.grammar import Prose, build_library
from vedette.lab.worlds.synthetic.listings import current_path, live_numbers
from vedette.lab.worlds.synthetic.page_template import strip_canonical
from vedette.lab.worlds.synthetic.page_traits import PageTruth, page_truth
from vedette.lab.worlds.synthetic.pages import HTML, page_reply, page_state
from vedette.lab.worlds.synthetic.sites import BLOG_HOST, LINK_FARM, SIZES, Site, build_sites, loopback_address
from vedette.lab.worlds.synthetic.web import PageRequest, SyntheticWeb, build_web
from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest

UrlKind = Literal["page", "copy", "listing", "aside", "robots", "sitemap", "feed", "trap", "fault", "unknown"]
Handler = Callable[[SyntheticWeb, PageRequest], Reply | None]

_COPY_KEYS = ("utm_source", "utm_medium", "utm_campaign", "ref", "sort", "print")


def _favicon(_web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    if visit.path != "/favicon.ico" or visit.site.index % 2:
        return None
    return Reply(200, (("content-type", "image/gif"),), b"GIF89a\1\0\1\0\0\0\0;")


def _answer_page(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    site, now_s = visit.site, visit.now_s
    number = traits.parse_number(site, visit.path)
    if number is None or not site.births.is_born(number, now_s):
        return None
    first = traits.page_hash(site, number)
    second, birth_s = traits.life_hash(first), site.births.birth_s(number)
    moved = traits.move_s(site, second, birth_s) <= now_s
    path, old = visit.path.encode("utf-8", "replace"), traits.page_path(site, number, first)
    new = traits.moved_path(site, number, first) if moved else old
    if path not in (old, new):
        return None
    if traits.death_s(site, second, birth_s) <= now_s:
        return Reply(site.gone_status, (("content-type", "text/plain"),), b"This page is gone.\n")
    if path != new:
        return Reply(site.move_status, (("location", new.decode()),), b"")
    plain = bool(visit.query) and "print=1" in visit.query and "print" in site.features
    return page_reply(web, visit, page_state(site, number, first, now_s), path=new, plain=plain)


_ROUTES: Mapping[str, tuple[UrlKind, Handler]] = {
    "": ("listing", listings.home_page),
    "section": ("listing", listings.section_listing),
    "tag": ("listing", listings.tag_listing),
    "tags": ("listing", listings.tag_index),
    "archive": ("listing", listings.archive_page),
    "about": ("aside", listings.about_page),
    "private": ("aside", listings.private_page),
    "robots.txt": ("robots", robots_sitemaps_feeds.robots_reply),
    "sitemap.xml": ("sitemap", robots_sitemaps_feeds.sitemap_reply),
    "feed.xml": ("feed", robots_sitemaps_feeds.feed_reply),
    "favicon.ico": ("aside", _favicon),
    "calendar": ("trap", faults.calendar_page),
    "members": ("trap", faults.members_page),
    "browse": ("trap", faults.nested_folder_page),
    "odd": ("fault", faults.odd_page),
}
_PAGE_ROUTE: tuple[UrlKind, Handler] = ("page", _answer_page)
_REQUIRED_FEATURES = {"calendar": "calendar", "members": "sessions", "browse": "paths", "odd": "odd"}


def find_route(site: Site, path: str) -> tuple[UrlKind, Handler]:
    """Find the route of a path on a synthetic site: the kind of URL, and its handler."""
    head = path[1:].partition("/")[0]
    if head.startswith("sitemap-"):
        head = "sitemap.xml"
    if head in _REQUIRED_FEATURES and _REQUIRED_FEATURES[head] not in site.features:
        return "unknown", lambda _web, _visit: None
    return _ROUTES.get(head, _PAGE_ROUTE)


def is_copy_query(query: str) -> bool:
    """Check whether a query only makes a copy URL of the same synthetic page: tracking, sorting or printing."""
    if len(query) > 200:
        return False
    pairs = parse_qsl(query, keep_blank_values=True)
    return all(key in _COPY_KEYS for key, _ in pairs) and bool(pairs)


def answer(web: SyntheticWeb, visit: PageRequest) -> Reply | None:
    """Answer a request to the synthetic world with the handler of its path, or None if there is none."""
    kind, handler = find_route(visit.site, visit.path)
    if visit.query and kind != "trap" and not is_copy_query(visit.query):
        return None
    return handler(web, visit)


def find_page_number(site: Site, path: str) -> int | None:
    """Find the number of the synthetic page whose path, before or after a move, this is; born yet or not."""
    number = traits.parse_number(site, path)
    if number is None or find_route(site, path) is not _PAGE_ROUTE:
        return None
    first, wanted = traits.page_hash(site, number), path.encode("utf-8", "replace")
    paths = (traits.page_path(site, number, first), traits.moved_path(site, number, first))
    return number if wanted in paths else None


_NOT_FOUND = Reply(404, (HTML,), b'<!doctype html>\n<html lang="en">\n<title>Not found</title>\n<h1>Not found</h1>\n')
_UNKNOWN_HOST = Reply(421, (("content-type", "text/plain"),), b"No such host here.\n")


class SyntheticWorld:
    """A synthetic world generated from a seed; see ``open_synthetic_world``.

    ``name`` opens it on a command line, ``start_s`` is the world time at which it opens. ``sites`` are the ordinary
    hosts, largest first, without mirrors and farms.
    """

    def __init__(self, name: str, web: SyntheticWeb, proses: tuple[Prose, ...], *, calm: bool) -> None:
        self.name, self.start_s = name, START_S
        self._web = web
        self._proses = proses
        self._calm = calm
        self.sites: Mapping[str, Site] = {site.name: site for site in web.sites}
        self._host_sites: dict[str, tuple[Site, bool]] = {site.name: (site, False) for site in web.sites}
        self._host_sites |= {mirror: (web.sites[index], True) for index, mirror in web.mirrors.items()}
        self._hosts = tuple(_assign_addresses(web.seed, tuple(self._host_sites), calm=calm))

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return every host of the synthetic world, in a fixed order."""
        return self._hosts

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return the synthetic world's reply to a request at this world time."""
        host = question.host.partition(":")[0].lower()
        path, _, query = question.target.partition("?")
        door = self._host_sites.get(host)
        if door is None:
            return faults.link_farm_page(self._proses, host, path) if self._is_farm(host) else _UNKNOWN_HOST
        site, mirror = door
        visit = PageRequest(site, path, query, now_s, question)
        reply = faults.outage_reply(visit) or answer(self._web, visit) or self._reply_not_found(visit)
        if mirror and site.index % 2 == 0:
            reply = replace(reply, body=strip_canonical(reply.body))
        return faults.slow_down(visit, reply)

    def _reply_not_found(self, visit: PageRequest) -> Reply:
        if "soft404" in visit.site.features and visit.path not in ("/robots.txt", "/sitemap.xml", "/favicon.ico"):
            return faults.soft_404_page(self._web, visit)
        return _NOT_FOUND

    def _is_farm(self, host: str) -> bool:
        return host.endswith("." + LINK_FARM) and not self._calm

    def classify_url(self, url: str) -> UrlKind:
        """Classify a URL of the synthetic world by its spelling alone, for all times."""
        host, path, query = _split_url(url)
        if host not in self._host_sites:
            return "trap" if self._is_farm(host) else "unknown"
        site, mirror = self._host_sites[host]
        kind, _ = find_route(site, path)
        if kind == "page" and find_page_number(site, path) is None:
            return "unknown"
        return "copy" if kind == "page" and (mirror or query) else kind

    def live_pages(self, host: str, now_s: float) -> list[str]:
        """Return the URLs of all ordinary pages of a synthetic host with status 200 now, in order of birth."""
        site = self._host_sites[host][0]
        numbers = live_numbers(site, 0, site.births.count_born(now_s), now_s).tolist()
        words = ((number, traits.page_hash(site, number)) for number in numbers)
        return [f"http://{host}{current_path(site, number, first, now_s).decode()}" for number, first in words]

    def truth(self, url: str) -> PageTruth | None:
        """Return the truth about an ordinary page of the synthetic world by either of its URLs; None for other URLs."""
        host, path, _ = _split_url(url)
        door = self._host_sites.get(host)
        number = find_page_number(door[0], path) if door else None
        return None if door is None or number is None else page_truth(door[0], number)


def _split_url(url: str) -> tuple[str, str, str]:
    """Split an http URL of the synthetic world into host, path and query."""
    authority, _, rest = url.partition("://")[2].partition("/")
    path, _, query = rest.partition("?")
    return authority.partition(":")[0].lower(), "/" + path, query


def _assign_addresses(seed: int, names: tuple[str, ...], *, calm: bool) -> Iterator[WorldHost]:
    """Assign loopback addresses to the synthetic world's hosts: one each, but one shared by the blog hoster's."""
    for index, name in enumerate(names):
        yield WorldHost(name, loopback_address(seed, 0 if name.endswith("." + BLOG_HOST) else index + 2))
    if not calm:
        yield WorldHost("*." + LINK_FARM, loopback_address(seed, 1))


def open_synthetic_world(name: str, seed: int = 1, *, calm: bool = False) -> SyntheticWorld:
    """Open the synthetic web of this size and seed as a world; a calm one has neither traps nor faults."""
    if name not in SIZES:
        raise UsageError(f'there is no world "made:{name}": choose made:{", made:".join(SIZES)}')
    proses = build_library(seed)
    web = build_web(seed, build_sites(SIZES[name], seed, proses, calm=calm))
    return SyntheticWorld(f"made:{name}:{seed}" + (":calm" if calm else ""), web, proses, calm=calm)
