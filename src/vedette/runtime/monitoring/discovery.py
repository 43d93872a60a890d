"""Discovery statistics for the console: the yield of discovery sources, and how soon new pages are found.

They are read from a data folder while the coordinator runs, which saves its estimates of sources every few minutes.
"""

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from statistics import median

from vedette.adapters.alerts.alert_store import AlertReader
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.discover.push.promises import describe_promise
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.ports import KnownPage
from vedette.engine.scheduling.polling import WAITS, SourcePoller, SourceYield
from vedette.errors import StoreError
from vedette.timeutil import DAY_S
from vedette.web.console.crawl.discovery import compute_delays
from vedette.web.console.ports.monitoring import DiscoveryReport, FoundPage, SourceLine

WINDOW_S = 30 * 86_400.0
MAX_PAGES = 20_000
MAX_SOURCES = 1_000
HOURS_A_DAY = 24.0


def load_discovery_report(folder: Path, now_s: float) -> DiscoveryReport:
    """Load the discovery report from a data folder for the console, with the sources of the highest yield."""
    pages = _load_found(folder, now_s - WINDOW_S)
    with read_state(folder) as db:
        store = CrawlStore(db)
        poller = SourcePoller(store)
        counts = poller.counts
        return DiscoveryReport(pages, _build_sources(poller, store, now_s), counts.polls, counts.found, counts.wasted)


def measure_discovery_delay(folder: Path, now_s: float) -> dict[str, float]:
    """Measure the median discovery delay of the last day's new pages, as a number; empty if there were none."""
    delays_s = compute_delays(_load_found(folder, now_s - DAY_S))
    return {"birth_to_found_s": median(delays_s)} if delays_s else {}


def _load_found(folder: Path, since_s: float) -> tuple[FoundPage, ...]:
    try:
        return tuple(FoundPage(*row) for row in AlertReader(folder).list_births(since_s, MAX_PAGES))
    except StoreError:  # its writers report and repair it
        return ()


def _build_sources(poller: SourcePoller, store: CrawlStore, now_s: float) -> tuple[SourceLine, ...]:
    rows = poller.list_yields(now_s)[:MAX_SOURCES]
    looks = {look.page.id: look for look in store.get_known_pages([row.id for row in rows])}
    explained = poller.explain(list(looks), now_s)
    sites = SiteIndex([row.site for row in store.list_sites()])
    reasons = _find_reasons(list(looks.values()), explained, sites)
    return tuple(_build_line(row, looks[row.id], reasons[row.id]) for row in rows if row.id in looks)


def _find_reasons(looks: Sequence[KnownPage], explained: Mapping[int, str], sites: SiteIndex) -> dict[int, str]:
    """Find why each discovery source is polled when it is: a promise, or the policy's reason."""
    found = {}
    for look in looks:
        site = sites.find_site(look.url)
        promised = describe_promise(site, look.url) if site else ""
        found[look.page.id] = promised or (WAITS if look.page.due_s == inf else explained.get(look.page.id, ""))
    return found


def _build_line(row: SourceYield, look: KnownPage, why: str) -> SourceLine:
    return SourceLine(
        url=look.url,
        rate_d=HOURS_A_DAY * row.an_hour,
        low_d=HOURS_A_DAY * row.low,
        high_d=HOURS_A_DAY * row.high,
        expected=row.expected,
        looks=row.counts.polls,
        found=row.counts.found,
        wasted=row.counts.wasted,
        due_s=look.page.due_s if isfinite(look.page.due_s) else None,
        why=why,
    )
