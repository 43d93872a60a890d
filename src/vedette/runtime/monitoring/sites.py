"""Sites, URLs and rules of a data folder, read for the console."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from vedette.adapters.crawl_store import reader as state_view
from vedette.adapters.crawl_store.reader import SiteCount, StateReader, open_state_reader
from vedette.adapters.crawl_store.status_file import read_live_status
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.crawl_store.unlisted_host_store import build_host_filter
from vedette.adapters.crawl_store.url_list import UrlFilter, UrlPage, open_url_list
from vedette.discover.urls.scope import SiteIndex, check_scope
from vedette.model import Site, origin_of, partition_of
from vedette.runtime.commands.client import ask_briefly
from vedette.runtime.commands.setting_commands import load_current
from vedette.runtime.explain.url import collect_explanation
from vedette.runtime.monitoring.site_preview import (
    RobotsPreviewer,
    collect_warnings,
    describe_addresses,
    preview_from_state,
)
from vedette.runtime.processes.settings import RuntimeSettings, build_schedule
from vedette.runtime.processes.throttle import CachedValue
from vedette.web.commands.commands import Rule
from vedette.web.console.ports.sites import (
    FetchFailure,
    RemovalImpact,
    SiteLine,
    SitePreview,
    SiteState,
    StoredRule,
    StoredSite,
    UnlistedHost,
)

JsonObject = dict[str, Any]

CACHE_TTL_S = 5.0


@dataclass(frozen=True, slots=True)
class _SiteNumbers:
    """Cached numbers for the console's list of sites: counts, last fetches and last failures."""

    counts: dict[str, SiteCount]
    fetches: dict[str, float]
    mishaps: dict[str, state_view.FailedFetch]

    def last_mishap(self, site: Site) -> FetchFailure | None:
        """Return the last failed fetch on the site's own host, if it is in the site's scope."""
        found = self.mishaps.get(origin_of(site.start).host)
        if found is None or check_scope(found.url, site) is not None:
            return None
        return FetchFailure(found.url, found.why, found.at_s)


class FolderSiteService:
    """The console's ``SiteService`` port implemented over a data folder; thread-safe."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self._folder = settings.folder
        self._robots_previewer = RobotsPreviewer(settings)
        self._numbers = CachedValue[_SiteNumbers](CACHE_TTL_S)

    def list_sites(self) -> list[SiteLine]:
        """List all sites of the data folder with their counts and state, oldest first."""
        live = read_live_status(self._folder)
        with open_state_reader(self._folder) as view:
            rows = view.store.list_sites()
            numbers = self._load_numbers(view, rows)
            troubles = view.list_troubled_hosts()
        if live is not None and live.numbers:
            troubles = live.numbers["hosts_in_trouble"]
        return [self._build_line(row, numbers, troubles, runs=live is not None) for row in rows]

    def find_site(self, start: str) -> StoredSite | None:
        """Find a site of the data folder by its start URL."""
        with open_state_reader(self._folder) as view:
            rows = view.store.list_sites()
        return next((StoredSite(row.site, row.paused) for row in rows if row.site.start == start), None)

    def preview_site(self, site: Site, asked_s: float | None = None) -> SitePreview:
        """Preview a site before it is added; a host that is already crawled is not contacted again."""
        origin = origin_of(site.start)
        with open_state_reader(self._folder) as view:
            others = [row.site for row in view.store.list_sites()]
            rules = [each.rule for each in _load_rules(view)]
            robots, host = view.store.get_robots(origin), view.find_host(origin.host)
        if robots is not None:
            found = self._robots_previewer.look_up(origin), preview_from_state(site, robots, self._settings.clock.now())
        else:
            may_ask = host is None and asked_s is None and not SiteIndex(others).find_by_host(origin.host)
            found = self._robots_previewer.preview(site, asked_s, may_ask=may_ask)
        warnings = collect_warnings(site, others, rules, found, load_current(self._settings))
        return SitePreview(origin.host, describe_addresses(found[0]), found[1], warnings)

    def list_urls(self, which: UrlFilter, after: int, most: int) -> UrlPage:
        """List the data folder's URLs behind a count, from id ``after`` on, at most ``most``."""
        with open_url_list(self._folder) as urls:
            return urls.read_page(which, after, most)

    def preview_removal(self, start: str) -> RemovalImpact:
        """Count the URLs and pages that removing a site would delete: those that no other site covers."""
        with open_state_reader(self._folder) as view:
            sites = [row.site for row in view.store.list_sites()]
            own = next((site for site in sites if site.start == start), None)
            if own is None:
                return RemovalImpact(0, 0)
            others = SiteIndex([site for site in sites if site is not own])
            urls = view.iter_urls_with_pages(partition_of(origin_of(start).host))
            pages = [page for url, page in urls if check_scope(url, own) is None and others.find_site(url) is None]
        return RemovalImpact(len(pages), sum(pages))

    def explain_url(self, url: str) -> JsonObject:
        """Explain a URL for the console from the data folder and its coordinator."""
        now_s = self._settings.clock.now()
        ask = partial(ask_briefly, self._folder)
        return collect_explanation(url, self._folder, build_schedule(self._settings), ask, now_s)

    def list_unlisted_hosts(self, most: int) -> list[UnlistedHost]:
        """List the data folder's unlisted hosts, to which pages link but no site covers, most linked first."""
        with open_state_reader(self._folder) as view:
            host_filter = build_host_filter(
                [row.site for row in view.store.list_sites()], view.store.list_search_rules()
            )
            rows = view.store.list_unlisted_hosts(most, host_filter)
        return [UnlistedHost(row.host, row.pages, row.domains, row.first_s, row.example) for row in rows]

    def list_rules(self) -> list[StoredRule]:
        """List the operator's search rules stored in the data folder, oldest first."""
        with open_state_reader(self._folder) as view:
            return _load_rules(view)

    def _build_line(self, row: SiteRow, numbers: _SiteNumbers, troubles: dict[str, str], *, runs: bool) -> SiteLine:
        site, host = row.site, origin_of(row.site.start).host
        count = numbers.counts.get(site.start, SiteCount(0, 0))
        trouble = troubles.get(host, "")
        return SiteLine(
            site,
            row.paused,
            _get_state(row, trouble, count, runs=runs),
            trouble,
            count.pages,
            count.known,
            numbers.last_mishap(site),
            numbers.fetches.get(host),
            self._settings.config.crawl.delay_s if site.delay_s is None else site.delay_s,
        )

    def _load_numbers(self, view: StateReader, rows: Sequence[SiteRow]) -> _SiteNumbers:
        """Load the numbers for the list of sites; they may be cached, but a new site is counted at once."""

        def count_urls() -> _SiteNumbers:
            return _SiteNumbers(
                view.count_sites([row.site for row in rows]), view.find_last_fetches(), view.find_last_failures()
            )

        return self._numbers.get(count_urls, lambda numbers: all(row.site.start in numbers.counts for row in rows))


def _load_rules(view: StateReader) -> list[StoredRule]:
    rows: list[Any] = view.store.list_search_rules()
    return [StoredRule(Rule(row.kind, row.query, row.value), row.added_s) for row in rows]


def _get_state(row: SiteRow, trouble: str, count: SiteCount, *, runs: bool) -> SiteState:
    if row.paused:
        return "paused"
    if not runs:
        return "still"
    if trouble:
        return "robots" if trouble.startswith("robots.txt") else "trouble"
    return "crawled" if count.pages else "new"
