"""Sitemaps of a host in the coordinator: those that robots.txt names, and guesses where it names none.

Many sites have a sitemap that their robots.txt does not mention. So ``/sitemap.xml`` is tried once per host, then
``/sitemap_index.xml`` if the first is no sitemap. A host without a start URL is tried only after it has yielded good
pages. A failed guess is no page: it leaves no row, no trap debt and no failure, only a note on its URL.
"""

from collections.abc import Callable, Mapping, Sequence

from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import list_sitemaps
from vedette.engine.coordinator.hosts import HostTable
from vedette.engine.coordinator.results import LISTS, LinkGroup
from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.engine.coordinator.url_states import UrlStates
from vedette.engine.messages import FetchResult, FetchSuccess
from vedette.engine.ports import CrawlStore, PageRow, UrlFrontier
from vedette.fetch.robots.state import RobotsState, RobotsStatus
from vedette.model import Origin, Refusal, Site, origin_of

GUESSES = ("/sitemap.xml", "/sitemap_index.xml")
# With these a server says "try again later", which says nothing about what is there.
_COME_AGAIN = frozenset({429, 503})
_NO_LINKS: LinkGroup = (), FoundUrl("", 0)

Normalize = Callable[[str], str | None]


class SitemapGuesser:
    """Find the sitemaps of hosts, by robots.txt or by guessing; ``normalize_url`` applies the rules of their site."""

    def __init__(
        self,
        hosts: HostTable,
        urls: UrlFrontier,
        store: CrawlStore,
        states: UrlStates,
        traps: TrapFilter,
        normalize_url: Normalize,
    ) -> None:
        self._hosts, self._urls, self._store, self._url_states = hosts, urls, store, states
        self._trap_filter, self._normalize_url = traps, normalize_url

    def find_sitemaps(self, origin: Origin, state: RobotsState) -> LinkGroup:
        """Return the sitemaps of an origin whose robots.txt arrived, for admission; relative URLs count."""
        if not state.sitemaps:
            return self._build_guess(str(origin), 0) if self._may_guess(origin, state) else _NO_LINKS
        named = (resolve(line, origin.robots_url) for line in state.sitemaps)
        found = (self._normalize_url(url) for url in named if url is not None)
        return [url for url in found if url is not None], FoundUrl("", 0, front=0)

    def list_unfetched(self, site: Site) -> list[str]:
        """List the sitemaps named in a site's settings that are not stored yet."""
        urls = list_sitemaps(site)
        ids: list[int] = self._urls.find_ids(urls).tolist()
        rows = self._store.get_pages([id_ for id_ in ids if id_])
        return [url for url, id_ in zip(urls, ids, strict=True) if id_ not in rows]

    def end_misses(
        self, results: Sequence[FetchResult], rows: Mapping[int, PageRow], fetcher: int
    ) -> dict[int, LinkGroup]:
        """End the tasks of guesses that found no sitemap; return what to admit instead, by task id.

        ``rows`` are the pages known before.
        """
        missed: dict[int, LinkGroup] = {}
        for result in results if self._hosts.rules.guess_sitemaps else ():
            if not isinstance(result, FetchSuccess) or not result.task.url.endswith(GUESSES):
                continue
            if result.task.id not in rows and self._is_miss(result):
                why = f"{Refusal.NO_SITEMAP}: {_describe_miss(result)}"
                self._trap_filter.on_dropped([result.task.id])
                self._url_states.dismiss(result.task.id, why, fetcher, result.ended_s)
                missed[result.task.id] = self._find_next(result)
        return missed

    def _may_guess(self, origin: Origin, state: RobotsState) -> bool:
        rules, host = self._hosts.rules, self._hosts.by_name[origin.host]
        if not rules.guess_sitemaps or rules.only_requested:
            return False
        if state.status not in {RobotsStatus.READ, RobotsStatus.UNAVAILABLE}:
            return False
        sites = self._hosts.sites.find_by_host(host.name)
        if any(site.sitemap for site in sites) or not self._is_proven(origin, sites):
            return False
        tried = self._urls.find_ids([f"{other}{GUESSES[0]}" for other in host.origins if other != origin])
        return not tried.any()

    def _is_proven(self, origin: Origin, sites: Sequence[Site]) -> bool:
        """Check that a host has a start URL or has yielded good pages, so that host farms cost no guesses."""
        account = self._trap_filter.traps.hosts.get(str(origin).partition("://")[2])
        starts = {origin_of(site.start).host.removeprefix("www.") for site in sites}
        return origin.host.removeprefix("www.") in starts or (account is not None and not account.is_poor)

    def _is_miss(self, result: FetchSuccess) -> bool:
        """Check whether an answer is no sitemap, and its URL a guess: no one named it."""
        origin, task = origin_of(result.task.url), result.task
        if result.kind in LISTS or result.status in _COME_AGAIN or task.url.removeprefix(str(origin)) not in GUESSES:
            return False
        is_named = bool(self._hosts.robots.get(origin).sitemaps)
        is_wished = task.id in self._hosts.by_name[task.host].requested
        return not (task.robots_of or is_named or is_wished or self._hosts.sites.is_sitemap(task.url))

    def _find_next(self, result: FetchSuccess) -> LinkGroup:
        """Return what to try after a failed guess: its redirect target if that may be a sitemap, or the next guess."""
        if result.location is not None:
            target = self._normalize_url(result.location) if "sitemap" in result.location else None
            return ([target], FoundUrl("", 0, result.task.hops + 1, 0, from_list=True)) if target else _NO_LINKS
        origin = str(origin_of(result.task.url))
        return self._build_guess(origin, GUESSES.index(result.task.url.removeprefix(origin)) + 1)

    def _build_guess(self, origin: str, number: int) -> LinkGroup:
        url = self._normalize_url(f"{origin}{GUESSES[number]}") if number < len(GUESSES) else None
        return ([url], FoundUrl("", 0, front=0, from_list=True)) if url is not None else _NO_LINKS


def _describe_miss(result: FetchSuccess) -> str:
    if result.location is not None:
        return f"it redirects to {result.location[:200]}"
    return "not a sitemap" if result.status < 300 else f"status {result.status}"
