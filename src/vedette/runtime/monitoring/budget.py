"""Where the fetch budget went, read off a data folder beside the keeper, which writes it down every minute."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.engine.scheduling.first_fetch import waiting_kept
from vedette.engine.scheduling.price_controller import price_kept
from vedette.engine.scheduling.spending import KINDS, OTHERS, Day, Kinds, Spent, days_kept, ever_kept
from vedette.web.console.ports.monitoring import BudgetTold, HeldLine, SpentLine

__all__ = ["look_at_budget", "site_today"]

DAY_S = 86_400.0


def look_at_budget(folder: Path, per_s: float, budget: str, days: int, now_s: float) -> BudgetTold:
    """All that the console shows of the last so many days; ``per_s`` is 0 where no budget is set."""
    with read_state(folder) as db:
        book = StateBook(db)
        kept, waiting = days_kept(book, now_s, days), waiting_kept(book, now_s)
        parts = {row.site.start: row.site.share for row in book.sites()}
        return BudgetTold(
            per_s=per_s or None,
            budget=budget,
            price=price_kept(book) if per_s else None,
            since_s=(now_s // DAY_S - days + 1) * DAY_S,
            kinds=_by_kind([kinds for day in kept for kinds in day.sites.values()]),
            sites=_by_site(kept, parts),
            ever=_by_kind([ever_kept(book)]),
            held_urls=waiting.urls if per_s else 0,
            held=tuple(HeldLine(one.url, one.worth, one.price) for one in waiting.best) if per_s else (),
        )


def site_today(book: StateBook, start: str, now_s: float) -> tuple[float, float]:
    """How many fetches of today went to a site, and how many there were in all."""
    by_site = _by_site(days_kept(book, now_s, 1), {})
    own = sum(line.fetches for line in by_site if line.name == start)
    return own, sum(line.fetches for line in by_site)


def _by_kind(rows: list[Kinds]) -> tuple[SpentLine, ...]:
    sums = {kind: sum((kinds.get(kind, Spent()) for kinds in rows), Spent()) for kind in KINDS}
    total = sum(spent.fetches for spent in sums.values())
    return tuple(_line(kind, spent, total) for kind, spent in sums.items() if spent.fetches)


def _by_site(days: list[Day], parts: Mapping[str, float | None]) -> tuple[SpentLine, ...]:
    sums: dict[str, Spent] = {}
    for day in days:
        for site, kinds in day.sites.items():
            sums[site] = sum(kinds.values(), sums.get(site, Spent()))
    total = sum(spent.fetches for spent in sums.values())
    lines = [_line(site, spent, total, parts.get(site)) for site, spent in sums.items()]
    return tuple(sorted(lines, key=lambda line: (line.name == OTHERS, -line.fetches, line.name)))


def _line(name: str, spent: Spent, total: float, part: float | None = None) -> SpentLine:
    return SpentLine(name, share=spent.fetches / total if total else 0.0, part=part, **asdict(spent))
