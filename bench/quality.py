"""What does it cost to measure the gains of fetches while they are indexed, and are they right?

Cost: pages come from the git histories of real web sites if VEDETTE_HISTORIES names the folder of bare repositories,
otherwise they are generated; each has two different versions. 60 000 queries are imported, from the pages themselves:
all of their words are found. Then, with commits and new curves when the indexer would have them:

    first     all pages are fetched for the first time, into an empty index
    mix       all pages are fetched again and again: 30% have changed, the others are the same and bring no text
    changed   all pages have changed

The mix goes from one computation of curves to another (``--renewals``), so that they count as often as they happen; if
it ends before (``--most-s``), they count as often as their rule allows (``indexing.query_curves``), not less. The share
is the CPU time of the meter and of the processes that compute curves, of everything that indexing takes with all its
threads and those processes. The cost of reading the clock is subtracted from the meter's time. The interval (95%) is
by bootstrap over rounds of the mix.

Truth: see ``peers/gain_truth.py``; it is left out without histories. The last line is one JSON object; the bench fails
above 8%.

    VEDETTE_HISTORIES=FOLDER python bench/quality.py [--pages N] [--queries N] [--renewals N] [--most-s S]
                                              [--world NAME] [--sample N]
"""

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.peers.gain_truth import correlations
from bench.peers.git_pages import bodies_of, versions

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.index_queue import PageRecord
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.index_store.gain_store import GainKind, GainStore
from vedette.adapters.index_store.generations import Generations
from vedette.discover.urls.normalize import resolve
from vedette.index.fields import StoredPage, pack_page
from vedette.index.quality.watched_queries import PageWords
from vedette.parse.html.page import parse_page
from vedette.parse.text.charsets import decode_page
from vedette.policy import rng_for
from vedette.runtime.indexing.gain_meter import FetchRef, GainMeter
from vedette.runtime.indexing.index_builder import IndexBuilder
from vedette.runtime.indexing.indexer import COMMIT_EVERY_S, MAX_NEWS, MAX_PENDING
from vedette.runtime.indexing.query_curves import CPU_SHARE, CurvesJob
from vedette.text import normalize_words

SEED = 1
NOW_S = 1_800_000_000.0
CHANGED_OF_TEN = 3
MOST_SHARE = 0.08
WORST_ROUNDS = 3
RESAMPLES = 2000
CLOCK_READINGS = 200
MOST_LINKS = 100
MADE_WORDS, MADE_VOCABULARY = 500, 50_000


class Page(NamedTuple):
    """A version of a page, read."""

    stored: StoredPage
    links: tuple[tuple[str, str], ...]


Pair = tuple[Page, Page]


# --- Which pages ---


def pairs(pages: int) -> list[Pair]:
    """This many pages, each with its previous and its current version."""
    every = _real(pages) if "VEDETTE_HISTORIES" in os.environ else _made()
    return list(islice((pair for pair in every if pair[0].stored != pair[1].stored), pages))


def _real(most: int) -> Iterator[Pair]:
    folder = Path(os.environ["VEDETTE_HISTORIES"])
    every = versions(folder)
    older = dict.fromkeys(version.url for version in every if version.age == 1)
    wanted = frozenset(islice(older, 2 * most))  # in some versions nothing has changed that people read
    newest: dict[str, Page] = {}
    for version, body in bodies_of(folder, [one for one in every if one.age <= 1 and one.url in wanted]):
        page = parse_page(decode_page(body, "text/html").text)
        headings = tuple(heading for _, heading in page.headings)
        stored = StoredPage(version.url, page.title, headings=headings, body=page.main)
        resolved = ((resolve(link.href, version.url), link.text) for link in page.links[:MOST_LINKS])
        links = tuple((url, text) for url, text in resolved if url)
        if version.age == 0:
            newest[version.url] = Page(stored, links)
        elif version.url in newest:
            yield Page(stored, links), newest.pop(version.url)


def _made() -> Iterator[Pair]:
    rng = rng_for(SEED, "bench/quality")
    number = 0
    while True:
        number += 1
        url = f"http://made.example/{number}"
        drawn = np.minimum(rng.zipf(1.2, MADE_WORDS), MADE_VOCABULARY)
        later = np.where(rng.random(MADE_WORDS) < 0.1, rng.permutation(drawn), drawn)
        later[: MADE_WORDS // 20] = np.minimum(rng.zipf(1.2, MADE_WORDS // 20), MADE_VOCABULARY)
        links = tuple((f"http://made.example/{at}", f"w{at}") for at in range(max(1, number - 20), number))
        bodies = (" ".join(f"w{word}" for word in each.tolist()) for each in (drawn, later))
        before, after = (Page(StoredPage(url, f"w{number} w{drawn[0]}", body=body), links) for body in bodies)
        yield before, after


def known(id_: int, page: Page, fetched_s: float) -> PageRecord:
    """As the state tells it."""
    count = len(page.stored.body.split())
    about = (id_, page.stored.url, 1, NOW_S, 200, "page", fetched_s, "", page.links, None, id_)
    return PageRecord(
        *about, canonical="", marks="", words=count, spam=0.0, objections=(), private="", canonical_page=0
    )


def suggested(pages: Sequence[Page], queries: int) -> list[tuple[str, float, int]]:
    """Searches for two neighboring words of pages, drawn evenly."""
    rng = rng_for(SEED, "bench/quality/queries")
    texts = [normalize_words(page.stored.body).decode().split() for page in pages]
    texts = [text for text in texts if len(text) > 1]
    rows = []
    for at, place in zip(rng.integers(len(texts), size=queries).tolist(), rng.random(queries).tolist(), strict=True):
        begin = int(place * (len(texts[at]) - 1))
        rows.append((" ".join(texts[at][begin : begin + 2]), NOW_S, 1))
    return rows


# --- Cost ---


class Stopwatch:
    """Processor time of this thread inside of ``with``; one inside of another is not counted twice."""

    def __init__(self) -> None:
        self._depth = self._readings = 0
        self._began_s = self._all_s = 0.0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._began_s = thread_time()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._all_s += thread_time() - self._began_s
            self._readings += 1

    def taken_s(self) -> float:
        """The time since the last call, without the clock's own cost: on a busy machine that varies."""
        own = Stopwatch()
        for _ in range(CLOCK_READINGS):
            with own:
                pass
        net_s = self._all_s - self._readings * own._all_s / CLOCK_READINGS
        self._readings, self._all_s = 0, 0.0
        return net_s


class Timed(GainMeter):
    """A gauge that knows how long it took."""

    def __init__(self, builder: IndexBuilder, book: GainStore) -> None:
        super().__init__(builder.table, book)
        self.watch = Stopwatch()

    def prefetch_words(self, ids: Sequence[int]) -> None:
        """As any gauge."""
        with self.watch:
            super().prefetch_words(ids)

    def get_words(self, id_: int) -> PageWords:
        """As any gauge."""
        with self.watch:
            return super().get_words(id_)

    def on_fetch(self, page: FetchRef, before: PageWords, after: PageWords, what: GainKind) -> None:
        """As any gauge."""
        with self.watch:
            super().on_fetch(page, before, after, what)

    def on_new_names(self, fetch: FetchRef, targets: Sequence[int]) -> None:
        """As any gauge."""
        with self.watch:
            super().on_new_names(fetch, targets)

    def on_renamed(self, print_: int, page: FetchRef, after: PageWords) -> None:
        """As any gauge."""
        with self.watch:
            super().on_renamed(print_, page, after)

    def measure(self) -> None:
        """As any gauge."""
        with self.watch:
            super().measure()

    def commit(self) -> None:
        """As any gauge."""
        with self.watch:
            super().commit()


class Cost(NamedTuple):
    """CPU seconds of indexing, of the meter in it, and of computing curves beside it; and how many texts came in."""

    indexing_s: float
    gauge_s: float
    curves_s: float
    texts: int

    @property
    def share(self) -> float:
        """Gauge and curves, of all."""
        return (self.gauge_s + self.curves_s) / max(self.indexing_s + self.curves_s, 1e-9)


def total(costs: Sequence[Cost]) -> Cost:
    """All of them."""
    return Cost(*(sum(column) for column in zip(*costs, strict=True)))


class Indexing:
    """A new index, into which pages are fetched, each again and again with its other version."""

    def __init__(self, folder: Path, pages: Sequence[Pair], queries: int) -> None:
        with closing(EventStore(folder)) as record:
            record.import_queries(suggested([page for page, _ in pages], queries))
        generations = Generations(folder)
        self._builder = IndexBuilder(folder, generations.begin())
        generations.activate(self._builder.generation)
        self._gauge = self._builder.gain_meter = Timed(self._builder, GainStore(generations.folder))
        # Like the indexer, commit the first pages at once.
        self._spent_s, self._committed_s = 0.0, -COMMIT_EVERY_S
        self._curving = CurvesJob(folder, start_clock(NOW_S, 1.0), lambda: self._spent_s)
        self._pages, self._version, self._rounds = pages, [1] * len(pages), 0
        self.renewals = 0

    def close(self) -> None:
        """Let go of it."""
        self._curving.close()
        self._builder.close()

    def fetch(self, changed: Callable[[int], bool]) -> Cost:
        """Fetch every page once, some of them with another text."""
        self._rounds += 1
        fetched_s = NOW_S + self._rounds
        ids = range(1, len(self._pages) + 1)
        texts = {id_: b"" for id_ in ids if changed(id_)}
        for id_ in texts:
            self._version[id_ - 1] ^= 1
        now = {id_: self._pages[id_ - 1][self._version[id_ - 1]] for id_ in ids}
        texts = {id_: pack_page(now[id_].stored) for id_ in texts}
        states = {id_: known(id_, page, fetched_s) for id_, page in now.items()}
        pieces = [ids[at : at + MAX_NEWS] for at in range(0, len(ids), MAX_NEWS)]
        return total([self._take(states, texts, piece, fetched_s) for piece in pieces])

    def _take(
        self, states: dict[int, PageRecord], texts: dict[int, bytes], ids: Sequence[int], fetched_s: float
    ) -> Cost:
        began_s = cpu_s()
        self._builder.update_pages(states, texts, ids, fetched_s)
        while self._builder.reindex_renamed(MAX_NEWS):
            pass
        # As on a separate core: a second of work later.
        so_far_s = self._spent_s + cpu_s() - began_s
        if so_far_s - self._committed_s >= COMMIT_EVERY_S or self._builder.pending >= MAX_PENDING:
            self._builder.commit(self._rounds)
            self._committed_s = so_far_s
        indexing_s = cpu_s() - began_s
        self._spent_s += indexing_s
        count = len([id_ for id_ in ids if id_ in texts])
        return Cost(indexing_s, self._gauge.watch.taken_s(), self._renew(), count)

    def _renew(self) -> float:
        """Compute curves if it is time, in their process, and wait for it; return the time it took."""
        if not self._curving.step(self._builder.table, self._gauge.changes, time.monotonic()):
            return 0.0
        _, failed, used = os.wait4(-1, 0)
        self._curving._process = None  # noqa: SLF001 - it was waited for here
        if failed:
            raise SystemExit("The process that makes curves failed.")
        self.renewals += 1
        return used.ru_utime + used.ru_stime


def cpu_s() -> float:
    """User and system time of this process so far, of all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def costs(pages: Sequence[Pair], queries: int, renewals: int, most_s: float) -> tuple[dict[str, list[Cost]], int]:
    """The rounds of first fetches, of the mix and of changed pages alone; and how many renewals came in the mix."""
    with TemporaryDirectory(prefix="vedette-bench-") as name, closing(Indexing(Path(name), pages, queries)) as indexing:
        first = [indexing.fetch(lambda _: True)]
        warm = until_renewed(indexing, 1, most_s / 4)
        begun = indexing.renewals
        mix = until_renewed(indexing, renewals, most_s)
        seen = indexing.renewals - begun
        changed = allowed([indexing.fetch(lambda _: True) for _ in range(WORST_ROUNDS)])
        told = f"curves were made {begun} times before, then {seen} times"
        print(f"{len(warm)} rounds to warm up, {len(mix)} of the mix; {told}", flush=True)
        if seen < renewals:
            print(f"Too short for {renewals} renewals: they count as much as the rule allows.", flush=True)
            mix = allowed(mix)
        return {"first": first, "mix": mix, "changed": changed}, seen


def until_renewed(indexing: Indexing, times: int, most_s: float) -> list[Cost]:
    """Rounds of the mix until curves were computed this often, or indexing has taken this long; at least one."""
    found: list[Cost] = []
    until = indexing.renewals + times
    while not found or (indexing.renewals < until and total(found).indexing_s < most_s):
        found.append(indexing.fetch(partial(is_changed, len(found))))
    return found


def allowed(rounds: Sequence[Cost]) -> list[Cost]:
    """The same with renewals of curves as often as the rule has them at most."""
    return [one._replace(curves_s=max(one.curves_s, CPU_SHARE * one.indexing_s)) for one in rounds]


def is_changed(round_: int, id_: int) -> bool:
    """Whether a page has changed in a round of the mix; each has in its turn."""
    return (id_ + CHANGED_OF_TEN * round_) % 10 < CHANGED_OF_TEN


def interval(rounds: Sequence[Cost]) -> tuple[float, float]:
    """The interval of the share of many such rounds, by bootstrap (95%)."""
    drawn = rng_for(SEED, "bench/quality/interval").integers(len(rounds), size=(RESAMPLES, len(rounds)))
    table = np.array([(one.gauge_s + one.curves_s, one.indexing_s + one.curves_s) for one in rounds])
    sums = table[drawn].sum(axis=1)
    low, high = np.quantile(sums[:, 0] / sums[:, 1], (0.025, 0.975)).tolist()
    return round(low, 4), round(high, 4)


# --- All of it ---


def main() -> int:
    """Costs first, then the truth; print the table and the JSON line."""
    asked = _asked()
    pages = pairs(asked.pages)
    found, seen = costs(pages, asked.queries, asked.renewals, asked.most_s)
    print(f"{len(pages)} pages; CPU ms a text:   indexing   gauge in it   curves beside it   share")
    for name, rounds in found.items():
        cost = total(rounds)
        each = [1000 * value / cost.texts for value in cost[:3]]
        print(f"{name:8} {cost.texts:7} texts {each[0]:20.2f} {each[1]:13.3f} {each[2]:18.3f} {cost.share:7.2%}")
    shares = {name: round(total(rounds).share, 4) for name, rounds in found.items()}
    told: dict[str, object] = {"share_of_indexing": shares["mix"], "interval": interval(found["mix"])}
    mix = total(found["mix"])
    told |= {"gauge_alone": round(mix.gauge_s / mix.indexing_s, 4), "worst_share": max(shares.values())}
    told |= {f"share_{name}": share for name, share in shares.items()} | {"rounds": len(found["mix"])}
    told["renewals_seen"] = seen
    if "VEDETTE_HISTORIES" in os.environ and asked.sample:
        told |= correlations(asked.world, asked.sample)
    else:
        print("no VEDETTE_HISTORIES, or no sample: nothing is compared with the truth")
    print(json.dumps(told))
    return int(shares["mix"] > MOST_SHARE)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=60_000)
    parser.add_argument("--renewals", type=int, default=1)
    parser.add_argument("--most-s", type=float, default=300.0, help="processor time of the mix at most")
    parser.add_argument("--world", default="git:python/peps#main")
    parser.add_argument("--sample", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
