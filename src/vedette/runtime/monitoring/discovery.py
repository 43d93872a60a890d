"""How new pages are found, read off a data folder beside the keeper: what sources bring, and how soon pages are found.

The keeper writes down every few minutes what it believes of sources, so that much may be behind.
"""

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from statistics import median

from vedette.adapters.alerts.alert_store import WatchView
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.discover.push.promises import promised_words
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.ports import Look
from vedette.engine.scheduling.polling import Looking, SourceYield
from vedette.engine.scheduling.price_controller import price_kept
from vedette.engine.scheduling.schedule import Schedule
from vedette.errors import StoreError
from vedette.runtime.explain.decisions import look_reason
from vedette.web.console.crawl.discovery import delays_of
from vedette.web.console.ports.monitoring import Discovery, FoundPage, SourceLine

__all__ = ["discovery_numbers", "look_at_discovery"]

KEPT_S = 30 * 86_400.0
DAY_S = 86_400.0
MOST_PAGES = 20_000
MOST_SOURCES = 1_000
HOURS_A_DAY = 24.0


def look_at_discovery(folder: Path, schedule: Schedule, now_s: float) -> Discovery:
    """All that the console shows of it; of many sources those that bring most."""
    pages = _found_since(folder, now_s - KEPT_S)
    with read_state(folder) as db:
        book = StateBook(db)
        looking = Looking(book)
        counts = looking.counts
        return Discovery(pages, _sources(looking, book, schedule, now_s), counts.looks, counts.found, counts.wasted)


def discovery_numbers(folder: Path, now_s: float) -> dict[str, float]:
    """How long pages of the last day were born when they were found, the middle one; nothing where none was."""
    delays_s = delays_of(_found_since(folder, now_s - DAY_S))
    return {"birth_to_found_s": median(delays_s)} if delays_s else {}


def _found_since(folder: Path, since_s: float) -> tuple[FoundPage, ...]:
    try:
        return tuple(FoundPage(*row) for row in WatchView(folder).births(since_s, MOST_PAGES))
    except StoreError:  # its writers say so, and mend it
        return ()


def _sources(looking: Looking, book: StateBook, schedule: Schedule, now_s: float) -> tuple[SourceLine, ...]:
    rows = looking.yields(now_s)[:MOST_SOURCES]
    looks = {look.page.id: look for look in book.looks([row.id for row in rows])}
    times = looking.due_s(list(looks), price_kept(book), now_s)
    sites = SiteIndex([row.site for row in book.sites()])
    reasons = _reasons(list(looks.values()), times, sites, schedule)
    return tuple(_line(row, looks[row.id], reasons[row.id]) for row in rows if row.id in looks)


def _reasons(looks: Sequence[Look], times: Mapping[int, float], sites: SiteIndex, schedule: Schedule) -> dict[int, str]:
    """Why each is due when it is: promised, by the policy, or at a fixed pace."""
    found = {}
    for look in looks:
        site = sites.site_of(look.url)
        promised = promised_words(site, look.url) if site else ""
        by_price = look_reason(look, times.get(look.page.id, inf), schedule)
        found[look.page.id] = promised or by_price or schedule.reason(look.url, look.page)
    return found


def _line(row: SourceYield, look: Look, why: str) -> SourceLine:
    return SourceLine(
        url=look.url,
        rate_d=HOURS_A_DAY * row.an_hour,
        low_d=HOURS_A_DAY * row.low,
        high_d=HOURS_A_DAY * row.high,
        expected=row.expected,
        looks=row.counted.looks,
        found=row.counted.found,
        wasted=row.counted.wasted,
        due_s=look.page.due_s if isfinite(look.page.due_s) else None,
        why=why,
    )
