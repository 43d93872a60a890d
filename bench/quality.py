"""What does it cost to measure what fetches bring, while they are indexed, and does it tell the right thing?

Cost: pages come from the git histories of real web sites where VEDETTE_HISTORIES names the folder of bare repositories,
else they are made. All are indexed first; curves are made for 60 000 queries, which pages themselves suggest: all of
their words are found. Then all pages are fetched again: of 30 % an older version comes, the others are the same and
bring no text. The share is processor time in the gauge and for renewing curves, of all that indexing takes in this
process with all its threads; also for first fetches alone, and for changed pages alone, which is the worst case. The
same fetches are indexed without a gauge in the same run.

Truth: pages of a real history (``--world``) that changed within half a year; what a fetch of each would bring, exactly
(eq. 4.6, real lists of all queries, with what pages say now) and as measured here, compared by Spearman's correlation.
It is left out without histories. The last line is one JSON object; the bench fails above 8 %.

    VEDETTE_HISTORIES=FOLDER python bench/quality.py [--pages N] [--queries N] [--world NAME] [--sample N]
"""

import argparse
import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from bench.peers.git_pages import bodies_of, versions

from vedette.decide import Floats, Ints, rng_for
from vedette.discover.normalize import resolve
from vedette.edges.gain_book import Brought, GainBook
from vedette.edges.generations import Generations
from vedette.edges.news_view import Known
from vedette.index.gains import Change, forward_of, measure
from vedette.index.stored import Stored, pack
from vedette.index.term_curves import Gathered, TermCurves, idf_of_terms
from vedette.index.watched_terms import NO_WORDS, Words, answers_of, named_terms, text_scores, watched_terms
from vedette.lab.asking import drawn_queries
from vedette.lab.corpus import Corpus, corpus_of
from vedette.lab.experiments.importance import spearman
from vedette.lab.open_world import open_history
from vedette.lab.quality import ideal
from vedette.lab.quality_change import delta_q_exact
from vedette.lab.query_files import Queries, single_terms
from vedette.lab.scoring import Found, Scoring, Text, text_scoring
from vedette.lab.workload import workload_of
from vedette.lab.worlds.history import History
from vedette.learn.workload import Workload, learned_from
from vedette.live.gauging import Fetch, Gauge
from vedette.live.indexing import Builder
from vedette.live.term_curves import RENEWED_SHARE, keep_curves, make_curves
from vedette.parse.charsets import decode
from vedette.parse.page import read_page
from vedette.words import numbers_of, spaced

SEED = 1
NOW_S = 1_800_000_000.0
HALF_YEAR_S = 182 * 86_400.0
CHANGED_SHARE = 0.3
MOST_SHARE = 0.08
AT_ONCE = 256
MOST_LINKS = 100
MADE_WORDS, MADE_VOCABULARY = 500, 50_000


class Page(NamedTuple):
    """A version of a page, read."""

    stored: Stored
    links: tuple[tuple[str, str], ...]


# --- Which pages ---


def pairs(pages: int) -> list[tuple[Page, Page]]:
    """So many pages, each with a version that it had and the one that it has."""
    return list(islice(_real(pages) if "VEDETTE_HISTORIES" in os.environ else _made(), pages))


def _real(most: int) -> Iterator[tuple[Page, Page]]:
    folder = Path(os.environ["VEDETTE_HISTORIES"])
    every = versions(folder)
    older = dict.fromkeys(version.url for version in every if version.age == 1)
    wanted = frozenset(islice(older, most))
    newest: dict[str, Page] = {}
    for version, body in bodies_of(folder, [one for one in every if one.age <= 1 and one.url in wanted]):
        page = read_page(decode(body, "text/html").text)
        headings = tuple(heading for _, heading in page.headings)
        stored = Stored(version.url, page.title, headings=headings, body=page.main)
        resolved = ((resolve(link.href, version.url), link.text) for link in page.links[:MOST_LINKS])
        links = tuple((url, text) for url, text in resolved if url)
        if version.age == 0:
            newest[version.url] = Page(stored, links)
        elif version.url in newest:
            yield Page(stored, links), newest.pop(version.url)


def _made() -> Iterator[tuple[Page, Page]]:
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
        before, after = (Page(Stored(url, f"w{number} w{drawn[0]}", body=body), links) for body in bodies)
        yield before, after


def known(id_: int, page: Page, fetched_s: float) -> Known:
    """As the state tells it."""
    count = len(page.stored.body.split())
    about = (id_, page.stored.url, 1, NOW_S, 200, "page", fetched_s, "", page.links, None, id_)
    return Known(*about, canonical="", marks="", words=count, spam=0.0, objections=(), private="", stands=0)


# --- What it costs ---


class Timed(Gauge):
    """A gauge that knows how long it took."""

    spent_s = 0.0
    _inside = False

    @contextmanager
    def _clocked(self) -> Iterator[None]:
        """One thing may do another, which is not counted twice."""
        outer, self._inside, began_s = self._inside, True, thread_time()
        yield
        self._inside = outer
        self.spent_s += 0.0 if outer else thread_time() - began_s

    def remember(self, ids: Sequence[int]) -> None:
        """As any gauge."""
        with self._clocked():
            super().remember(ids)

    def words_of(self, id_: int) -> Words:
        """As any gauge."""
        with self._clocked():
            return super().words_of(id_)

    def fetched(self, page: Fetch, before: Words, after: Words, what: Brought) -> None:
        """As any gauge."""
        with self._clocked():
            super().fetched(page, before, after, what)

    def named(self, by: Fetch, page: Fetch, before: Words, after: Words) -> None:
        """As any gauge."""
        with self._clocked():
            super().named(by, page, before, after)

    def measure(self) -> None:
        """As any gauge."""
        with self._clocked():
            super().measure()

    def commit(self) -> None:
        """As any gauge."""
        with self._clocked():
            super().commit()


class Cost(NamedTuple):
    """Processor seconds of indexing in all, and of the gauge in it; and how many texts were taken in."""

    all_s: float
    gauge_s: float
    texts: int

    @property
    def share(self) -> float:
        """What the gauge has of it."""
        return self.gauge_s / max(self.all_s, 1e-9)


def cpu_s() -> float:
    """User and system time of this process so far, of all its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def index(builder: Builder, pages: Sequence[tuple[int, Page, bool]], fetched_s: float) -> Cost:
    """Take in what fetches brought: pages, and whether each has a text; with all that follows, and a commit a batch."""
    packed = {id_: pack(page.stored) for id_, page, is_text in pages if is_text}
    states = {id_: known(id_, page, fetched_s) for id_, page, _ in pages}
    ids, before_s, gauge_s = list(states), cpu_s(), _spent_s(builder)
    for at in range(0, len(ids), AT_ONCE):
        some = ids[at : at + AT_ONCE]
        builder.take(states, packed, some, fetched_s)
        while builder.rename(AT_ONCE):
            pass
        builder.commit(at)
    return Cost(cpu_s() - before_s, _spent_s(builder) - gauge_s, len(packed))


def _spent_s(builder: Builder) -> float:
    return builder.gauge.spent_s if isinstance(builder.gauge, Timed) else 0.0


def opened(folder: Path, *, gauged: bool) -> Builder:
    """A builder of a new index."""
    generations = Generations(folder)
    builder = Builder(folder, generations.begin())
    if gauged:
        builder.gauge = Timed(builder.table, GainBook(generations.folder))
    return builder


def suggested(pages: Sequence[Page], queries: int) -> Workload:
    """Searches for two neighbouring words of pages, drawn evenly."""
    rng = rng_for(SEED, "bench/quality/queries")
    texts = [spaced(page.stored.body).decode().split() for page in pages]
    texts = [text for text in texts if len(text) > 1]
    rows = []
    for at, place in zip(rng.integers(len(texts), size=queries).tolist(), rng.random(queries).tolist(), strict=True):
        begin = int(place * (len(texts[at]) - 1))
        rows.append((NOW_S, " ".join(texts[at][begin : begin + 2]), 1.0))
    return learned_from(rows)


def costs(pages: Sequence[tuple[Page, Page]], queries: int, *, gauged: bool) -> dict[str, Cost]:
    """What first fetches, a mix of fetches and changed pages alone take, and the renewal of curves (as ``all_s``)."""
    first = [(id_, before, True) for id_, (before, _) in enumerate(pages, 1)]
    changed = [id_ % 100 < 100 * CHANGED_SHARE for id_ in range(1, len(pages) + 1)]
    mix = [(at, pair[now], now) for at, (pair, now) in enumerate(zip(pages, changed, strict=True), 1)]
    rest = [(id_, after, True) for id_, (_, after) in enumerate(pages, 1) if not changed[id_ - 1]]
    with TemporaryDirectory(prefix="vedette-bench-") as name:
        builder = opened(Path(name), gauged=gauged)
        half = len(first) // 2
        found = {"warm": index(builder, first[:half], NOW_S)}
        workload = suggested([page for page, _ in pages], queries)
        found["renewal"] = renewed(builder, workload) if gauged else Cost(0.0, 0.0, 0)
        found["first"] = index(builder, first[half:], NOW_S + 1)
        found["renewal"] = renewed(builder, workload) if gauged else Cost(0.0, 0.0, 0)
        found["mix"] = index(builder, mix, NOW_S + 2)
        found["changed"] = index(builder, rest, NOW_S + 3)
        builder.close()
    return found


def renewed(builder: Builder, workload: Workload) -> Cost:
    """Make the curves of what is indexed."""
    before_s = cpu_s()
    keep_curves(builder.generation, make_curves(builder.table, workload, NOW_S))
    return Cost(cpu_s() - before_s, 0.0, len(builder.table.indexed))


# --- Whether it is right ---


class Weighed(NamedTuple):
    """Our own score by text for whole queries: the mean over words, each by how telling it is."""

    text: Text

    def scores(self, found: Found) -> Floats:
        """The score of each version found."""
        at = np.searchsorted(self.text.terms, found.terms)
        df = np.where(np.isin(found.terms, self.text.terms), self.text.df[np.minimum(at, len(self.text.df) - 1)], 0)
        idf = idf_of_terms(df, self.text.n)
        each = np.stack([text_scores(times, found.lengths) for times in found.times.astype(np.float64)])
        return np.asarray((idf[:, None] * each).sum(axis=0))


class Truth(NamedTuple):
    """A world at two moments: what is known of each page, what it says now, and some pages that differ."""

    history: History
    local: Ints
    live: Ints
    sample: Ints


def truth_of(world: str, sample: int) -> Truth:
    """Half a year of a world, up to its end."""
    history = open_history(world)
    pages, end_s = np.arange(history.pages), history.end_s - 1.0
    local, live = history.version_at(pages, end_s - HALF_YEAR_S), history.version_at(pages, end_s)
    both = np.flatnonzero((local >= 0) & (live >= 0))
    differs = both[history.digest[local[both]] != history.digest[live[both]]]
    drawn = rng_for(SEED, "bench/quality/sample").permutation(differs)[:sample]
    return Truth(history, local, live, np.sort(drawn))


def exact_gains(truth: Truth, corpus: Corpus, queries: Queries, scoring: Scoring) -> Floats:
    """What a fetch of each page of the sample would bring, by real lists."""
    workload = workload_of(corpus, queries, scoring)
    best = ideal(truth.live, workload)
    return np.array(
        [delta_q_exact(page, truth.local, truth.live, workload, best=best) for page in truth.sample.tolist()]
    )


def measured_gains(truth: Truth, queries: Queries) -> Floats:
    """The same as the indexer measures it: single words, curves of three buckets, the scores of copies."""
    apart = single_terms(queries)
    asked = list(zip(apart.texts, apart.frequency.tolist(), strict=True))
    nobody = named_terms(forward_of([]))
    watched = watched_terms(asked, float(queries.frequency.sum()), nobody)
    words = {version: body_of(truth.history, version) for version in truth.local[truth.local >= 0].tolist()}
    gathered = Gathered(watched)
    some = list(words.values())
    answers = answers_of(watched, forward_of([NO_WORDS] * len(some)), forward_of(some))
    gathered.add(answers, np.full(len(some), 0.5))
    curves: TermCurves = gathered.curves(len(some))
    changes = [
        Change(words[int(truth.local[page])], body_of(truth.history, int(truth.live[page])))
        for page in truth.sample.tolist()
    ]
    return measure(curves, changes).gain


def body_of(history: History, version: int) -> Words:
    """The words of a version, all in its body."""
    numbers = numbers_of(spaced(history.texts.text(version)))
    return numbers, (0, 0, 0, 0, len(numbers))


def correlations(world: str, sample: int) -> dict[str, float]:
    """Spearman's correlation with exact gains, by our own scores and by TF-IDF."""
    truth = truth_of(world, sample)
    known_then = truth.local[truth.local >= 0]
    queries = drawn_queries(truth.history, known_then, SEED)
    corpus = corpus_of(truth.history, queries.term)
    text = text_scoring(corpus, known_then)
    ours = measured_gains(truth, queries)
    found = {
        name: spearman(ours, exact_gains(truth, corpus, queries, scoring))
        for name, scoring in (("spearman", Weighed(text)), ("spearman_tfidf", text))
    }
    print(f"{world}: {len(truth.sample)} changed pages, {len(queries)} queries, {found}", flush=True)
    return {name: round(float(value), 3) for name, value in found.items()}


# --- All of it ---


def main() -> int:
    """Costs first, then the truth; print the table and the JSON line."""
    asked = _asked()
    pages = pairs(asked.pages)
    with_gauge, without = costs(pages, asked.queries, gauged=True), costs(pages, asked.queries, gauged=False)
    print(f"{len(pages)} pages; CPU ms a text:   in all   of it gauge   without a gauge", flush=True)
    for name in ("first", "mix", "changed"):
        cost, plain = with_gauge[name], without[name]
        each = [1000 * value / max(cost.texts, 1) for value in (cost.all_s, cost.gauge_s, plain.all_s)]
        print(f"{name:12} {cost.texts:6} texts {each[0]:14.2f} {each[1]:12.3f} {each[2]:14.2f}")
    renewal = with_gauge["renewal"]
    # Curves are made anew when so many pages have changed as this share of all.
    each_s = renewal.all_s / (RENEWED_SHARE * renewal.texts)
    print(f"renewal of curves: {1000 * each_s:.3f} ms a change", flush=True)
    shares = {name: _share(with_gauge[name], each_s) for name in ("first", "mix", "changed")}
    told: dict[str, object] = {"share_of_indexing": shares["mix"], "worst_share": max(shares.values())}
    told |= {f"share_{name}": share for name, share in shares.items()}
    told["gauge_alone"] = round(with_gauge["mix"].share, 4)
    if "VEDETTE_HISTORIES" in os.environ and asked.sample:
        told |= correlations(asked.world, asked.sample)
    else:
        print("no VEDETTE_HISTORIES, or no sample: nothing is compared with the truth")
    print(json.dumps(told))
    return int(shares["mix"] > MOST_SHARE)


def _share(cost: Cost, renewal_s: float) -> float:
    """Gauge and renewals, of indexing with both."""
    more_s = renewal_s * cost.texts
    return round((cost.gauge_s + more_s) / (cost.all_s + more_s), 4)


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=4000)
    parser.add_argument("--queries", type=int, default=60_000)
    parser.add_argument("--world", default="git:python/peps#main")
    parser.add_argument("--sample", type=int, default=300)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
