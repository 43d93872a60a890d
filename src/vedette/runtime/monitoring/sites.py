"""The console's pages on sites, URLs and results, over a data folder and its keeper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vedette.adapters.crawl_store import reader as state_view
from vedette.adapters.crawl_store.reader import SiteCount
from vedette.adapters.crawl_store.site_reader import SiteView, open_site_view
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.crawl_store.unlisted_host_store import left_out
from vedette.adapters.crawl_store.url_list import UrlPage, Which, open_url_list
from vedette.adapters.net.ipc import Gone
from vedette.discover.urls.scope import SiteIndex, in_scope
from vedette.errors import StoreError
from vedette.model import Site, origin_of, partition_of
from vedette.runtime.commands.rpc import Call
from vedette.runtime.explain.url import explained
from vedette.runtime.monitoring.site_preview import Scout, addresses_in_words, from_state, warnings_of
from vedette.runtime.processes.settings import LiveSettings, schedule_for
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.runtime.processes.throttle import Kept
from vedette.web.commands.commands import Rule
from vedette.web.console.ports.sites import KeptRule, KeptSite, Leaving, Mishap, SiteLine, SiteLook, SiteState, Stranger

__all__ = ["FolderSiteDesk"]

Told = dict[str, Any]

FRESH_S = 5.0


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What was counted for the list of sites."""

    counts: dict[str, SiteCount]
    fetches: dict[str, float]
    mishaps: dict[str, state_view.Mishap]

    def last_mishap(self, site: Site) -> Mishap | None:
        """The latest of the site's own host."""
        found = self.mishaps.get(origin_of(site.start).host)
        if found is None or in_scope(found.url, site) is not None:
            return None
        return Mishap(found.url, found.why, found.at_s)


class FolderSiteDesk:
    """Answers what the console asks; safe to be asked by several threads."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._folder = settings.folder
        self._scout = Scout(settings)
        self._numbers = Kept[_Numbers](FRESH_S)

    def sites(self) -> list[SiteLine]:
        """All sites, the oldest first."""
        status = self._status()
        with open_site_view(self._folder) as view:
            rows = view.book.sites()
            numbers = self._counted(view, rows)
            troubles = view.troubles()
        if status is not None:
            troubles = status["hosts_in_trouble"]
        return [self._line(row, numbers, troubles, runs=status is not None) for row in rows]

    def site(self, start: str) -> KeptSite | None:
        """One of them, by its start."""
        with open_site_view(self._folder) as view:
            rows = view.book.sites()
        return next((KeptSite(row.site, row.paused) for row in rows if row.site.start == start), None)

    def look(self, site: Site, asked_s: float | None = None) -> SiteLook:
        """A site before it is added. Whoever is crawled already is not asked again."""
        origin = origin_of(site.start)
        with open_site_view(self._folder) as view:
            others = [row.site for row in view.book.sites()]
            rules = [each.rule for each in _rules(view)]
            known, host = view.book.robots_of(origin), view.host(origin.host)
        if known is not None:
            found = self._scout.lookup(origin), from_state(site, known, self._settings.clock.now())
        else:
            may_ask = host is None and asked_s is None and not SiteIndex(others).of_host(origin.host)
            found = self._scout.look(site, asked_s, may_ask=may_ask)
        warnings = warnings_of(site, others, rules, found, self._settings)
        return SiteLook(origin.host, addresses_in_words(found[0]), found[1], warnings)

    def urls(self, which: Which, after: int, most: int) -> UrlPage:
        """The URLs behind a count, from an id on; so many at most."""
        with open_url_list(self._folder) as urls:
            return urls.page(which, after, most)

    def leaving(self, start: str) -> Leaving:
        """What would go with a site: what it takes and no other site does."""
        with open_site_view(self._folder) as view:
            sites = [row.site for row in view.book.sites()]
            own = next((site for site in sites if site.start == start), None)
            if own is None:
                return Leaving(0, 0)
            others = SiteIndex([site for site in sites if site is not own])
            urls = view.urls_with_pages(partition_of(origin_of(start).host))
            pages = [page for url, page in urls if in_scope(url, own) is None and others.site_of(url) is None]
        return Leaving(len(pages), sum(pages))

    def explain(self, url: str) -> Told:
        """All that is known of a URL."""
        now_s = self._settings.clock.now()
        return explained(url, self._folder, schedule_for(self._settings), self._ask, now_s)

    def strangers(self, most: int) -> list[Stranger]:
        """Hosts that pages link to and no site takes, the most linked first."""
        with open_site_view(self._folder) as view:
            known = left_out([row.site for row in view.book.sites()], view.book.search_rules())
            rows = view.book.strangers(most, known)
        return [Stranger(row.host, row.pages, row.domains, row.first_s, row.example) for row in rows]

    def rules(self) -> list[KeptRule]:
        """The operator's rules for results, the oldest first."""
        with open_site_view(self._folder) as view:
            return _rules(view)

    def _line(self, row: SiteRow, numbers: _Numbers, troubles: dict[str, str], *, runs: bool) -> SiteLine:
        site, host = row.site, origin_of(row.site.start).host
        count = numbers.counts.get(site.start, SiteCount(0, 0))
        trouble = troubles.get(host, "")
        return SiteLine(
            site,
            row.paused,
            _state(row, trouble, count, runs=runs),
            trouble,
            count.pages,
            count.known,
            numbers.last_mishap(site),
            numbers.fetches.get(host),
            self._settings.config.crawl.delay_s if site.delay_s is None else site.delay_s,
        )

    def _counted(self, view: SiteView, rows: Sequence[SiteRow]) -> _Numbers:
        """Numbers that may be a little old; a new site is counted at once."""

        def counted() -> _Numbers:
            return _Numbers(view.counts_of([row.site for row in rows]), view.last_fetches(), view.last_mishaps())

        return self._numbers.get(counted, lambda kept: all(row.site.start in kept.counts for row in rows))

    def _status(self) -> Told | None:
        try:
            return self._ask(Call("status"))
        except StoreError:
            return None

    def _ask(self, call: Call) -> Told | None:
        """What the keeper answers; None where none runs."""
        try:
            return ask_keeper(self._folder, call)
        except OSError:
            return None
        except Gone:
            raise StoreError("the crawl did not answer: it is ending or very busy; try again") from None


def _rules(view: SiteView) -> list[KeptRule]:
    rows: list[Any] = view.book.search_rules()
    return [KeptRule(Rule(row.kind, row.query, row.value), row.added_s) for row in rows]


def _state(row: SiteRow, trouble: str, count: SiteCount, *, runs: bool) -> SiteState:
    if row.paused:
        return "paused"
    if not runs:
        return "still"
    if trouble:
        return "robots" if trouble.startswith("robots.txt") else "trouble"
    return "crawled" if count.pages else "new"
