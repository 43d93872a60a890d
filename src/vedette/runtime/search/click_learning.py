"""Click learning, run by the indexer: recorded clicks become page reputations in a file that searches read.

python -m vedette.runtime.search.click_learning FOLDER CLOCK

It reads the event store in a low-priority process, and writes two files: ``reputation`` in the serving generation, and
``ranking.json`` beside it with the ranking status. If there is too little to learn from, or a rollback guard is active,
there is no reputation, and results are ordered by relevance.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import numpy as np

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.event_store.reader import load_counted_clicks, load_latest_searches
from vedette.adapters.event_store.schema import EVENTS_NAME
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.search.scoring import build_reputation
from vedette.errors import StoreError
from vedette.learn.clicks.impressions import Bools, Impressions, build_impressions
from vedette.learn.clicks.off_policy import OrderEstimate, estimate_orders
from vedette.learn.clicks.reputations import LearnedQuality, learn_reputations
from vedette.learn.clicks.rollback_guard import RollbackGuard, Z, compare_groups, update_guard
from vedette.runtime.commands.setting_commands import is_learning_on
from vedette.runtime.processes.background import BackgroundJob, run_in_background
from vedette.runtime.search.reputation_store import (
    MAX_EXPLORED,
    drop_reputation,
    load_ranking_status,
    save_ranking_status,
    save_reputation,
)
from vedette.serve.rank.reranking import POLICY, UNPROVEN_NOTES, is_learned_policy
from vedette.timeutil import DAY_S
from vedette.web.console.ports.monitoring import ExploredPage, RankingReport

WINDOW_S = 90 * DAY_S
MAX_SLATES = 50_000
# Interval if people searched, in wall time whatever the world clock says.
EVERY_S = 30.0
CHECK_EVERY_S = 2.0  # whether it is switched off
SWITCHED_OFF = -1  # the other place of the last record's time


class LearningJob:
    """Schedule the click learning process; ``configured`` applies unless the operator chose otherwise since."""

    def __init__(self, folder: Path, clock: Clock, *, configured: bool) -> None:
        self._job = BackgroundJob("vedette.runtime.search.click_learning")
        self._folder, self._clock, self._configured = folder, clock, configured
        self._last_run: tuple[str, int] = ("", 0)
        self._next_s = self._next_check_s = 0.0

    def step(self, generation: Path, now_s: float) -> None:
        """Start click learning when there are new searches or another generation serves; end it when switched off."""
        # Checked each time: the duration of a run ends when it is first seen to have exited.
        is_free = self._job.is_ready(now_s)
        if now_s >= self._next_check_s:
            self._next_check_s = now_s + CHECK_EVERY_S
            if not self._is_on():
                self._switch_off(generation)
                self._next_s = self._next_check_s
        if not is_free or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        now = (generation.name, get_events_mtime_ns(self._folder))
        if now != self._last_run:
            self._last_run = now
            self._job.start(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """Stop the click learning process; its work starts over next time."""
        self._job.close()

    def _is_on(self) -> bool:
        with suppress(StoreError), read_state(self._folder) as db:
            return is_learning_on(CrawlStore(db), configured=self._configured)
        return self._configured

    def _switch_off(self, generation: Path) -> None:
        """Switch off click learning: drop what was learned and reset the rollback guard.

        An operator who switches it on again wants it to be tried.
        """
        off = (generation.name, SWITCHED_OFF)
        if self._last_run != off:
            self._last_run = off
            self._job.close()  # it might leave a file that was just learned
            switch_off(generation, generation.parent, self._clock.now())


class PageFacts(Protocol):
    """What click learning must know of pages besides the record."""

    def find_hosts(self, ids: Sequence[int]) -> dict[int, int]:
        """Find the number of each page's host."""

    def find_url(self, id_: int) -> str:
        """Find the URL of a page; empty if there is none."""


class IndexedPages:
    """The ``PageFacts`` of an index generation."""

    def __init__(self, generation: Path) -> None:
        self._table = PageTable(generation)

    def find_hosts(self, ids: Sequence[int]) -> dict[int, int]:
        """Find the number of each page's host."""
        rows = self._table.get_rows(np.array(ids, np.int64))["host"].tolist() if len(ids) else []
        return dict(zip(ids, rows, strict=True))

    def find_url(self, id_: int) -> str:
        """Find the URL of a page; empty if it is not indexed."""
        stored = self._table.read_stored(id_)
        return stored.url if stored else ""


def get_events_mtime_ns(folder: Path) -> int:
    """Return when the event store was last written, for click learning; its write-ahead log comes first."""
    newest = 0
    for name in (EVENTS_NAME, f"{EVENTS_NAME}-wal"):
        with suppress(OSError):
            newest = max(newest, (folder / name).stat().st_mtime_ns)
    return newest


def switch_off(generation: Path, index: Path, now_s: float) -> None:
    """Drop what was learned, and start the rollback guard over for when learning is switched on again."""
    drop_reputation(generation)
    before = load_ranking_status(index) or RankingReport()
    if before.is_on:
        save_ranking_status(index, before._replace(is_on=False, guard=RollbackGuard(since_s=now_s)))


def learn(
    folder: Path, generation: Path, index: Path, pages: PageFacts, now_s: float, speed: float = 1.0
) -> RankingReport:
    """Learn page reputations from a folder's recorded clicks once; return the ranking status.

    They are saved in ``generation``, and the status in ``index``.
    """
    since_s = now_s - WINDOW_S
    seen = build_impressions(
        load_latest_searches(folder, since_s, MAX_SLATES), load_counted_clicks(folder, since_s), speed
    )
    shown: list[int] = np.unique(seen.page).tolist()
    taught = learn_reputations(seen, pages.find_hosts(shown), now_s / DAY_S)
    before = load_ranking_status(index) or RankingReport()
    told = _build_status(seen, taught, pages, before.guard, now_s)
    if taught is None or told.guard.is_active(now_s):
        drop_reputation(generation)
    else:
        save_reputation(generation, build_reputation(taught, seen.groups))
    save_ranking_status(index, told)
    return told


def _build_status(
    seen: Impressions, taught: LearnedQuality | None, facts: PageFacts, before: RollbackGuard, now_s: float
) -> RankingReport:
    is_learned = np.array([is_learned_policy(name) for name in seen.by_policy], bool)
    is_tried = np.array([reason in UNPROVEN_NOTES for reason in seen.reason], bool)
    # Both groups are compared over the hours in which learned results were shown, since a guard was released.
    hour = np.floor(24 * seen.at_days)
    is_grouped = np.array([bool(name) for name in seen.by_policy], bool)
    lately = is_grouped & np.isin(hour, hour[is_learned]) & (seen.at_days >= before.since_s / DAY_S)
    found = compare_groups(seen, is_learned, lately)
    return RankingReport(
        at_s=now_s,
        is_learned=taught is not None,
        searches=len(np.unique(seen.slate)),
        clicks=int(seen.clicked.sum()),
        results=len(seen.page),
        tried=int(is_tried.sum()),
        trying=len(np.unique(seen.slate[is_tried])),
        general=taught.general if taught else 0.0,
        examined=tuple(taught.examined.tolist()) if taught else (),
        taken_off=tuple(taught.taken_off.items()) if taught else (),
        learned=found.learned,
        plain=found.plain,
        difference=found.difference,
        difference_give_or_take=Z * found.error,
        is_enough=found.is_enough,
        guard=update_guard(before, found, now_s),
        promoted=_list_explored(seen, is_tried, taught, facts),
        orders=_compare_rankings(seen, taught, lately, is_tried),
    )


def _compare_rankings(
    seen: Impressions, taught: LearnedQuality | None, lately: Bools, is_tried: Bools
) -> tuple[OrderEstimate, ...]:
    """Estimate what each ranking order would have achieved, from recorded clicks.

    Which user got which order is known for hours in which only this version ranked. Before its first search and after
    its last one everyone had the same order, so these are no evidence.
    """
    is_ours = np.array([name == POLICY for name in seen.by_policy], bool)
    if taught is None or not is_ours.any():
        return ()
    hour, at = np.floor(24 * seen.at_days), seen.at_days[is_ours]
    lately = lately & (seen.at_days >= at.min()) & (seen.at_days <= at.max())
    is_older = np.array([is_learned_policy(name) for name in seen.by_policy], bool) & ~is_ours
    among = lately & np.isin(hour, hour[is_ours]) & ~np.isin(hour, hour[is_older])
    return estimate_orders(seen, among, is_tried)


def _list_explored(
    seen: Impressions, is_tried: Bools, taught: LearnedQuality | None, facts: PageFacts
) -> tuple[ExploredPage, ...]:
    """List the pages explored most often in results, with what click learning knows about them."""
    pages, shown = np.unique(seen.page[is_tried], return_counts=True)
    chosen = pages[np.argsort(-shown, kind="stable")[:MAX_EXPLORED]].tolist()
    return tuple(_build_explored(id_, seen, is_tried & (seen.page == id_), taught, facts) for id_ in chosen)


def _build_explored(
    id_: int,
    seen: Impressions,
    rows: Bools,
    taught: LearnedQuality | None,
    facts: PageFacts,
) -> ExploredPage:
    first_s = float(seen.at_days[rows].min()) * DAY_S
    known = (0.0, 0.0, 0.0)
    if taught is not None:
        at = int(np.searchsorted(taught.page, id_))
        known = (float(taught.likes[at]), float(taught.looks[at]), float(taught.mean[at]))
    return ExploredPage(facts.find_url(id_), first_s, int(rows.sum()), int((rows & seen.clicked).sum()), *known)


if __name__ == "__main__":
    with run_in_background():
        data_folder, world = Path(sys.argv[1]), parse_clock(sys.argv[2])
        current = Generations(data_folder).current()
        if current is not None:
            learn(data_folder, current, current.parent, IndexedPages(current), world.now(), world.speed)
