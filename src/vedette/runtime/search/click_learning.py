"""Learning from clicks, beside the indexer: what people made of pages becomes a file that searches read.

python -m vedette.runtime.search.click_learning FOLDER CLOCK

It reads the record of searches in a process that gives way, and leaves two files: ``reputation`` in the generation
that serves, and ``ranking.json`` beside it, which says how it stands. Where there is too little to learn from, or a
guard holds, there is no reputation, and results stand by relevance.
"""

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from vedette.adapters.clock import Clock, read_clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.event_store.reader import latest_slates, undoubted_events
from vedette.adapters.event_store.store import RECORD
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.page_table import PageTable
from vedette.engine.search.learned_order import group_number
from vedette.errors import StoreError
from vedette.learn.clicks.impressions import DAY_S, Bools, Impressions, joined
from vedette.learn.clicks.off_policy import OtherOrder, other_orders
from vedette.learn.clicks.reputations import Taught, taught_by
from vedette.learn.clicks.rollback_guard import Guarded, Z, judged, measured
from vedette.policy import Floats
from vedette.runtime.commands.setting_commands import learns
from vedette.runtime.processes.background import Aside, give_way
from vedette.runtime.search.reputation_store import (
    MOST_PROMOTED,
    drop_reputation,
    keep_reputation,
    keep_told,
    read_told,
)
from vedette.serve.rank.explore.candidates import Candidates, Crowd
from vedette.serve.rank.explore.prospect import Prospect
from vedette.serve.rank.reputation import Reputation, pair_key
from vedette.serve.rank.reranking import POLICY, UNPROVEN, is_by_learning
from vedette.web.console.ports.monitoring import Promoted, RankingTold

__all__ = ["Learning", "learn", "reputation_of"]

LEARNED_S = 90 * DAY_S
MOST_SLATES = 50_000
# It is done again after so long where people searched, whatever the clock of the world says.
EVERY_S = 30.0
ASK_EVERY_S = 2.0  # whether it is switched off
OFF = -1  # where else the time of the last record is
LIST = 100  # pages on the list that a young page is thought to stand on


class Learning:
    """When to learn, and the process that does. ``configured`` holds where the operator chose nothing else since."""

    def __init__(self, folder: Path, clock: Clock, *, configured: bool) -> None:
        self._aside = Aside("vedette.runtime.search.click_learning")
        self._folder, self._clock, self._configured = folder, clock, configured
        self._was: tuple[str, int] = ("", 0)
        self._next_s = self._asked_s = 0.0

    def step(self, generation: Path, now_s: float) -> None:
        """Begin where it is time: people searched since, or another generation serves; or end it."""
        # It is asked for each time: what a run took is known by when it was first seen to have ended.
        is_free = self._aside.is_free(now_s)
        if now_s >= self._asked_s:
            self._asked_s = now_s + ASK_EVERY_S
            if not self._is_on():
                self._switch_off(generation)
                self._next_s = self._asked_s
        if not is_free or now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        now = (generation.name, _written_ns(self._folder))
        if now != self._was:
            self._was = now
            self._aside.begin(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """What it was at is begun anew next time."""
        self._aside.close()

    def _is_on(self) -> bool:
        with suppress(StoreError), read_state(self._folder) as db:
            return learns(StateBook(db), configured=self._configured)
        return self._configured

    def _switch_off(self, generation: Path) -> None:
        """What was learned before is not used. A guard is let go: who switches it on again wants it to be tried."""
        off = (generation.name, OFF)
        if self._was != off:
            self._was = off
            self._aside.close()  # it might leave one that was just learned
            drop_reputation(generation)
            before = read_told(generation.parent) or RankingTold()
            keep_told(generation.parent, before._replace(is_on=False, guard=Guarded(since_s=self._clock.now())))


def _written_ns(folder: Path) -> int:
    """When the record was last written; its log of changes is written first."""
    newest = 0
    for name in (RECORD, f"{RECORD}-wal"):
        with suppress(OSError):
            newest = max(newest, (folder / name).stat().st_mtime_ns)
    return newest


def learn(folder: Path, generation: Path, now_s: float, speed: float = 1.0) -> RankingTold:
    """Do it once, and keep both files; what is told of it."""
    since_s = now_s - LEARNED_S
    seen = joined(latest_slates(folder, since_s, MOST_SLATES), undoubted_events(folder, since_s), speed)
    table = PageTable(generation)
    hosts = table.at(np.unique(seen.page))["host"].tolist() if len(seen.page) else []
    taught = taught_by(seen, dict(zip(np.unique(seen.page).tolist(), hosts, strict=True)), now_s / DAY_S)
    before = read_told(generation.parent) or RankingTold()
    told = _told(seen, taught, table, before.guard, now_s)
    if taught is None or told.guard.holds(now_s):
        drop_reputation(generation)
    else:
        keep_reputation(generation, reputation_of(taught, seen.groups))
    keep_told(generation.parent, told)
    return told


def reputation_of(taught: Taught, groups: Sequence[str]) -> Reputation:
    """What searches look up, sorted as they need it; and by the default policy what views of young pages teach."""
    numbers = np.array([group_number(words) for words in groups], np.int64)
    by_number = np.argsort(numbers, kind="stable")
    keys = [
        pair_key(int(numbers[group]), int(taught.page[page]))
        for group, page in zip(taught.pair_group.tolist(), taught.pair_page.tolist(), strict=True)
    ]
    pairs = np.array(keys, np.int64)
    by_pair = np.argsort(pairs, kind="stable")
    teaching, ahead = _lessons(taught)
    return Reputation(
        taught.page,
        taught.likes,
        taught.looks,
        taught.mean,
        pairs[by_pair],
        taught.pair_mean[by_pair],
        taught.pair_likes[by_pair],
        taught.pair_looks[by_pair],
        numbers[by_number],
        taught.group_mean[by_number],
        taught.group_views[by_number],
        taught.host,
        taught.host_mean,
        teaching,
        ahead,
        taught.general,
        taught.people,
    )


def _lessons(taught: Taught) -> tuple[Floats, Floats]:
    """The default policy's table for one view a day and one day of life, on a list as long as people look at."""
    ones = np.ones(len(taught.page))
    crowd = Crowd(taught.people, 1.0, 1.0)
    policy = Prospect()
    all_pages = Candidates(ones, taught.likes, taught.looks, taught.looks, ones, crowd)
    law = policy.observe(policy.start(None), all_pages, 0.0)
    # The list among which a page would stand is a search's, and has every kind of page that there is.
    some = np.argsort(taught.mean, kind="stable")[np.linspace(0, len(ones) - 1, min(LIST, len(ones))).astype(np.int64)]
    likes, looks = taught.likes[some], taught.looks[some]
    part = Candidates(ones[some], likes, looks, looks, ones[some], crowd)
    table = policy.observe(law, part, 0.0).table
    assert table is not None
    return table.teaching, table.ahead


def _told(seen: Impressions, taught: Taught | None, table: PageTable, before: Guarded, now_s: float) -> RankingTold:
    is_learned = np.array([is_by_learning(name) for name in seen.by_policy], bool)
    is_tried = np.array([reason == UNPROVEN for reason in seen.reason], bool)
    # Both groups are compared over the hours in which something learned was shown, since a guard let go.
    hour = np.floor(24 * seen.at_days)
    is_grouped = np.array([bool(name) for name in seen.by_policy], bool)
    lately = is_grouped & np.isin(hour, hour[is_learned]) & (seen.at_days >= before.since_s / DAY_S)
    found = measured(seen, is_learned, lately)
    return RankingTold(
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
        guard=judged(before, found, now_s),
        promoted=_promoted(seen, is_tried, taught, table),
        orders=_orders(seen, taught, lately, is_tried),
    )


def _orders(seen: Impressions, taught: Taught | None, lately: Bools, is_tried: Bools) -> tuple[OtherOrder, ...]:
    """What each order would have brought. Who got which is known of hours in which this version alone ranked.

    Before its first search and after its last one everybody had the same order, so these say nothing.
    """
    is_ours = np.array([name == POLICY for name in seen.by_policy], bool)
    if taught is None or not is_ours.any():
        return ()
    hour, at = np.floor(24 * seen.at_days), seen.at_days[is_ours]
    lately = lately & (seen.at_days >= at.min()) & (seen.at_days <= at.max())
    is_older = np.array([is_by_learning(name) for name in seen.by_policy], bool) & ~is_ours
    among = lately & np.isin(hour, hour[is_ours]) & ~np.isin(hour, hour[is_older])
    return other_orders(seen, among, is_tried)


def _promoted(seen: Impressions, is_tried: Bools, taught: Taught | None, table: PageTable) -> tuple[Promoted, ...]:
    """The pages that were tried most often, and what is known of them now."""
    pages, shown = np.unique(seen.page[is_tried], return_counts=True)
    chosen = pages[np.argsort(-shown, kind="stable")[:MOST_PROMOTED]].tolist()
    return tuple(_one(id_, seen, is_tried & (seen.page == id_), taught, table) for id_ in chosen)


def _one(
    id_: int,
    seen: Impressions,
    rows: Bools,
    taught: Taught | None,
    table: PageTable,
) -> Promoted:
    stored = table.stored(id_)
    first_s = float(seen.at_days[rows].min()) * DAY_S
    known = (0.0, 0.0, 0.0)
    if taught is not None:
        at = int(np.searchsorted(taught.page, id_))
        known = (float(taught.likes[at]), float(taught.looks[at]), float(taught.mean[at]))
    url = stored.url if stored else ""
    return Promoted(url, first_s, int(rows.sum()), int((rows & seen.clicked).sum()), *known)


if __name__ == "__main__":
    give_way()
    data_folder, world = Path(sys.argv[1]), read_clock(sys.argv[2])
    current = Generations(data_folder).current()
    with suppress(StoreError, FileNotFoundError):  # another generation took its place meanwhile
        if current is not None:
            learn(data_folder, current, world.now(), world.speed)
