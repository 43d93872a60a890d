"""Fetch budget statistics for the console, from what the coordinator saves every minute."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.engine.scheduling.first_fetch import load_held_summary
from vedette.engine.scheduling.price_controller import load_price
from vedette.engine.scheduling.spending import (
    FETCH_KINDS,
    OTHER_SITES,
    DaySpending,
    FetchStats,
    StatsByKind,
    load_all_time,
    load_days,
)
from vedette.timeutil import DAY_S
from vedette.web.console.ports.monitoring import BudgetReport, DeferredLine, SpendingLine


def load_budget_report(folder: Path, per_s: float, budget: str, days: int, now_s: float) -> BudgetReport:
    """Load the fetch budget report of the last ``days`` days from a data folder, for the console.

    ``per_s`` is 0 if no budget is set.
    """
    with read_state(folder) as db:
        store = CrawlStore(db)
        budget_days, waiting = load_days(store, now_s, days), load_held_summary(store, now_s)
        parts = {row.site.start: row.site.share for row in store.list_sites()}
        return BudgetReport(
            per_s=per_s or None,
            budget=budget,
            price=load_price(store) if per_s else None,
            since_s=(now_s // DAY_S - days + 1) * DAY_S,
            kinds=_sum_by_kind([kinds for day in budget_days for kinds in day.sites.values()]),
            sites=_sum_by_site(budget_days, parts),
            ever=_sum_by_kind([load_all_time(store)]),
            held_urls=waiting.urls if per_s else 0,
            held=tuple(DeferredLine(one.url, one.worth, one.price) for one in waiting.best) if per_s else (),
        )


def count_site_today(store: CrawlStore, start: str, now_s: float) -> tuple[float, float]:
    """Count today's fetches of a site, and of all sites, from the stored budget spending."""
    by_site = _sum_by_site(load_days(store, now_s, 1), {})
    own = sum(line.fetches for line in by_site if line.name == start)
    return own, sum(line.fetches for line in by_site)


def _sum_by_kind(rows: list[StatsByKind]) -> tuple[SpendingLine, ...]:
    sums = {kind: sum((kinds.get(kind, FetchStats()) for kinds in rows), FetchStats()) for kind in FETCH_KINDS}
    total = sum(spent.fetches for spent in sums.values())
    return tuple(_build_line(kind, spent, total) for kind, spent in sums.items() if spent.fetches)


def _sum_by_site(days: list[DaySpending], parts: Mapping[str, float | None]) -> tuple[SpendingLine, ...]:
    sums: dict[str, FetchStats] = {}
    for day in days:
        for site, kinds in day.sites.items():
            sums[site] = sum(kinds.values(), sums.get(site, FetchStats()))
    total = sum(spent.fetches for spent in sums.values())
    lines = [_build_line(site, spent, total, parts.get(site)) for site, spent in sums.items()]
    return tuple(sorted(lines, key=lambda line: (line.name == OTHER_SITES, -line.fetches, line.name)))


def _build_line(name: str, spent: FetchStats, total: float, part: float | None = None) -> SpendingLine:
    return SpendingLine(name, share=spent.fetches / total if total else 0.0, part=part, **asdict(spent))
