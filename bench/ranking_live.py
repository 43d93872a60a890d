"""How soon does a very good page that is born today reach the top three, when the order of results learns from clicks?

Pages are those of a synthetic web that ``vedette demo --data DIR`` has crawled and indexed; results are found, scored
and ordered by the live search. Visitors are simulated: they read from the top, open results with the words of their
need in the title, and are satisfied by a quality that no feature knows (``lab.visitors.population``); of the others,
some search again within seconds. Twice a day everything recorded is learned from, as on the live server.

For each query one page is missing until day ``--born``: a *top page*, one that would be among the first three with full
knowledge, and is not by relevance. With ``--any`` it is the best of those at positions 5 to 20 by relevance, wherever
it belongs. All orders of a seed have the same pages, queries and people:

- ``relevance``: nothing is learned.
- ``popularity``: relevance, and how many liked a page, whatever the number who saw it; nothing is tried.
- ``learned``: learned quality counts, and nothing is tried.
- ``default``: learned quality counts, and unproven pages are tried.

Reported: days from birth until a new page is first among the first three of the order without trials, counted as the
remaining days if it never is; the share that was; and the mean quality of the opened pages, before and after the
births.

With ``--cost`` it measures instead what it takes to order a thousand results: milliseconds of CPU and wall time, median
of 1000, and the minimum.

    python bench/ranking_live.py --cost
    python bench/ranking_live.py --data DIR [--first-seed 11] [--seeds 8] [--days 15] [--born 5] [--searches 300]
"""

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.ports import PageSignals
from vedette.engine.search.scoring import (
    ALL_FEATURES,
    ScoredCandidates,
    build_reputation,
    hash_query,
    order_by_learning,
)
from vedette.engine.search.search import Searcher
from vedette.lab.core.statistics import Interval, PairedDifference, bootstrap_interval, compare_paired
from vedette.lab.visitors.habits import Habits, Hit
from vedette.lab.visitors.population import VisitorPopulation, estimate_appeal, page_quality, simulate_reading
from vedette.lab.visitors.queries import zipf_shares
from vedette.learn.clicks.impressions import build_impressions
from vedette.learn.clicks.reputations import learn_reputations
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult
from vedette.policy import Ints, rng_for
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.rank.explore.prospect import MAX_AWARE, MAX_LIKES
from vedette.serve.rank.reputation import Reputation, pair_keys
from vedette.serve.rank.reranking import MAX_POINTS, POINTS
from vedette.serve.slate import Audience, SearchRequest, SearchResult
from vedette.text import split_words
from vedette.timeutil import DAY_S

ORDERS = ("relevance", "popularity", "learned", "default")
HABITS = Habits()
FEWEST, MOST = 20, 60  # results of a query
BEHIND = 4  # places that no newborn page has by relevance
TOP, SHOWN = 3, 10
MANY = 1000
LEARN_EVERY_D = 0.5
AGAIN = 0.4  # of unsatisfied ones
START_D = 20_000.0


class Told(NamedTuple):
    """The result of one order of one seed."""

    days: float
    reached: float
    before: float
    after: float


class Query(NamedTuple):
    """A query with its results in the order of relevance, and the row that is born late."""

    words: str
    results: tuple[SearchResult, ...]
    weighed: ScoredCandidates
    newborn: int


def main() -> None:
    """Run all orders of all seeds, and print the progress."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder that vedette demo left")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--any", action="store_true")
    parser.add_argument("--first-seed", type=int, default=11)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--days", type=int, default=15)
    parser.add_argument("--born", type=int, default=5)
    parser.add_argument("--searches", type=int, default=300, help="a day, of all queries")
    asked = parser.parse_args()
    if asked.cost or asked.data is None:
        print(json.dumps({"results": MANY} | {name: round(took, 3) for name, took in _cost_ms().items()}))
        return
    generation = Generations(asked.data).current()
    assert generation is not None, "there is no index in this folder"
    shelf = LiveIndexSnapshot(generation)
    found: dict[str, list[Told]] = {name: [] for name in ORDERS}
    for seed in range(asked.first_seed, asked.first_seed + asked.seeds):
        queries = _queries(shelf, seed, asked.queries, is_any=asked.any)
        for name in ORDERS:
            found[name].append(Run(name, seed, queries, asked.days, asked.born, asked.searches).measured())
    _print(found)


def _queries(shelf: LiveIndexSnapshot, seed: int, count: int, *, is_any: bool) -> list[Query]:
    """Queries that have enough results and name no site."""
    interests, searcher = VisitorPopulation(seed).interests, Searcher(shelf)
    chosen: dict[str, Query] = {}
    for number in range(100 * count):
        wish = interests.topic_need(number % len(interests.topics), number // len(interests.topics))
        results = searcher.search(SearchRequest(wish, n=MOST), START_D * DAY_S).results
        if len(results) < FEWEST or len(chosen) == count or any("home" in dict(r.features) for r in results):
            continue
        newborn = _best_behind(results, seed) if is_any else _top_page(wish, results, seed)
        if newborn is not None:
            chosen[wish] = _query(shelf, wish, results, newborn)
    assert len(chosen) == count, f"only {len(chosen)} queries have {FEWEST} results"
    return list(chosen.values())


def _best_behind(results: tuple[SearchResult, ...], seed: int) -> int:
    return BEHIND + int(np.argmax([page_quality(seed, result.url) for result in results[BEHIND:FEWEST]]))


def _top_page(wish: str, results: tuple[SearchResult, ...], seed: int) -> int | None:
    """Of the first three by all that is true, whom relevance puts furthest behind; None if they are the same."""
    appeals = [estimate_appeal(HABITS, seed, wish, Hit(result.id, result.url, result.title)) for result in results]
    liked = np.array([each.attraction * each.satisfaction for each in appeals])
    points = np.clip(POINTS * np.log(liked / liked.mean()), -MAX_POINTS, MAX_POINTS)
    first = np.argsort(-(np.array([result.score for result in results]) + points), kind="stable")[:TOP]
    return int(first.max()) if first.max() >= TOP else None


def _query(shelf: LiveIndexSnapshot, wish: str, results: tuple[SearchResult, ...], newborn: int) -> Query:
    ids = np.array([result.id for result in results], np.int64)
    nothing = np.zeros((len(ids), len(ALL_FEATURES)))
    scores = np.array([result.score for result in results])
    return Query(wish, results, ScoredCandidates(ids, shelf.get_signals(ids), nothing, nothing, scores), newborn)


@dataclass
class Run:
    """One order over all days of one seed."""

    name: str
    seed: int
    queries: list[Query]
    days: int
    born: int
    searches: int
    slates: list[SearchEvent] = field(default_factory=list)
    events: list[ClickEvent] = field(default_factory=list)
    reputation: Reputation | None = None
    opened: list[tuple[float, float]] = field(default_factory=list)  # day, quality
    reached: dict[str, float] = field(default_factory=dict)

    def measured(self) -> Told:
        """Mean days to the top three, the share that got there, and quality per click before and after the births."""
        rng = rng_for(self.seed, "bench/ranking-live")
        next_learning = LEARN_EVERY_D
        for number in range(self.days * self.searches):
            day = number / self.searches
            if day >= next_learning:
                next_learning += LEARN_EVERY_D
                self._learn(day)
            self._search(day, number, rng)
        waits = [self.reached.get(query.words, float(self.days - self.born)) for query in self.queries]
        parts = ([q for day, q in self.opened if (day >= self.born) == late] for late in (False, True))
        before, after = (float(np.mean(part)) for part in parts)
        return Told(float(np.mean(waits)), len(self.reached) / len(self.queries), before, after)

    def _order(self, query: Query, day: float, audience: Audience) -> Ints:
        rows = np.arange(len(query.results))
        if day < self.born:
            rows = rows[rows != query.newborn]
        return order_by_learning(rows, query.weighed, query.words, self.reputation, audience).rows

    def _search(self, day: float, number: int, rng: np.random.Generator) -> None:
        query = self.queries[int(rng.choice(len(self.queries), p=zipf_shares(len(self.queries), 0.8)))]
        person, reading = int(rng.integers(1 << 62)), np.random.default_rng(rng.integers(1 << 62))
        audience = Audience(unproven=2 if self.name == "default" else 0, seed=person)
        rows = self._order(query, day, audience)[:SHOWN].tolist()
        hits = [query.results[row] for row in rows]
        appeals = [estimate_appeal(HABITS, self.seed, query.words, Hit(hit.id, hit.url, hit.title)) for hit in hits]
        done = simulate_reading(appeals, HABITS.perseverance, reading)
        self._record(query, hits, done.opened, number, person, back=not done.satisfied and reading.random() < AGAIN)
        self.opened += [(day, page_quality(self.seed, hits[place].url)) for place in done.opened]

    def _record(
        self, query: Query, hits: list[SearchResult], opened: tuple[int, ...], number: int, person: int, *, back: bool
    ) -> None:
        at_s, mark, id_ = (START_D + number / self.searches) * DAY_S, f"{person:016x}", f"{number:032x}"
        words = " ".join(split_words(query.words))
        shown = tuple(ShownResult(hit.id, place, hit.score) for place, hit in enumerate(hits, 1))
        self.slates.append(SearchEvent(id_, at_s, query.words, words, len(query.results), mark, results=shown))
        self.events.append(ClickEvent(id_, "view", 0, at_s, 0.4, mark))
        after_s = 0.0
        for place in opened:
            after_s += HABITS.page_s
            self.events.append(ClickEvent(id_, "click", hits[place].id, at_s + after_s, after_s, mark))
        if back:
            self.slates.append(SearchEvent(f"{id_}b", at_s + after_s + HABITS.page_s, "", "", 0, mark))

    def _learn(self, day: float) -> None:
        if self.name == "relevance":
            self._look(day)
            return
        seen = build_impressions(self.slates, self.events)
        hosts = {
            int(id_): int(host)
            for query in self.queries
            for id_, host in zip(query.weighed.ids, query.weighed.signals.host, strict=True)
        }
        taught = learn_reputations(seen, hosts, START_D + day)
        if taught is not None:
            self.reputation = build_reputation(taught, seen.groups)
            if self.name == "popularity":
                self.reputation = _popular(self.reputation, sorted(hosts))
        self._look(day)

    def _look(self, day: float) -> None:
        """Record which new pages are among the first three without trials."""
        for query in self.queries:
            if day >= self.born and query.words not in self.reached:
                rows = self._order(query, day, Audience())[:TOP].tolist()
                if query.newborn in rows:
                    self.reached[query.words] = day - self.born


def _popular(known: Reputation, ids: list[int]) -> Reputation:
    """The same if a page is worth as much as it has likes: an unseen one has none."""
    likes = dict(zip(known.page.tolist(), known.likes.tolist(), strict=True))
    many = np.array([likes.get(id_, 0.0) for id_ in ids])
    worth = known.general * (many + 0.5) / (float(known.likes.mean()) + 0.5)
    no_pairs = known._replace(pair=known.pair[:0])
    return no_pairs._replace(page=np.array(ids, np.int64), likes=many, looks=many, mean=worth)


def _cost_ms() -> dict[str, float]:
    """Of looking up a thousand results, half of them known, and dealing them with trials."""
    rng = rng_for(1, "bench/ranking-live/cost")
    ids, nothing = np.arange(1, MANY + 1), np.zeros((MANY, len(ALL_FEATURES)))
    looks = rng.exponential(20.0, MANY // 2)
    likes = looks * rng.beta(1.0, 5.0, MANY // 2)
    pairs = np.sort(pair_keys(hash_query("kites"), ids[::4]))
    teaching, ahead = np.full((2, MAX_AWARE + 1, MAX_LIKES + 1), [[[0.001]], [[5.0]]])
    query = (np.array([hash_query("kites")]), np.array([0.15]), np.array([500.0]))
    mean = (likes + 0.75) / (looks + 5.0)
    hosts = (np.arange(50), np.full(50, 0.15))
    seen = (ids[::2], likes, looks, mean, pairs, mean[::2], likes[::2], looks[::2])
    known = Reputation(*seen, *query, *hosts, teaching, ahead, 0.15, 900.0)
    zeros = np.zeros(MANY)
    signals = PageSignals(ids % 50, ids * 0, zeros, zeros, zeros, ids, ids, zeros, zeros, zeros, zeros)
    weighed = ScoredCandidates(ids, signals, nothing, nothing, -np.sort(rng.exponential(3.0, MANY)))
    cpu, wall, rows = [], [], np.arange(MANY)
    for seed in range(1000):
        began, began_wall = process_time(), perf_counter()
        found = order_by_learning(rows, weighed, "kites", known, Audience(unproven=2, seed=seed))
        cpu.append(1000 * (process_time() - began))
        wall.append(1000 * (perf_counter() - began_wall))
        assert len(found.unproven) == 2, "there is nothing to be dealt"
    return {"cpu_ms": median(cpu), "least_cpu_ms": min(cpu), "wall_ms": median(wall)}


def _print(found: dict[str, list[Told]]) -> None:
    for name, rows in found.items():
        print(
            name,
            *(f"{part} {_said(bootstrap_interval([getattr(row, part) for row in rows]))}" for part in Told._fields),
            sep="  ",
        )
    for name in ORDERS[:-1]:
        for part in Told._fields:
            ours, theirs = ([getattr(row, part) for row in found[each]] for each in (ORDERS[-1], name))
            print(f"{ORDERS[-1]} less {name}, {part}: {_said(compare_paired(ours, theirs))}")
    print(json.dumps(found))


def _said(each: Interval | PairedDifference) -> str:
    return f"{each.mean:.3f} [{each.low:.3f}, {each.high:.3f}]"


if __name__ == "__main__":
    main()
