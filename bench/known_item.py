"""Does a search find a page that the user knows to exist?

Pages are the built HTML of real sites, read from git (``VEDETTE_HISTORIES`` names the folder of bare repositories) and
passed under their own host names through the live code for parsing, indexing and searching. Of 500 pages, drawn by a
fixed seed among all different texts, each is searched in four ways:

title    by its own title
anchor   by what a link to it says; that link is taken out of the index
heading  by one of its headings that is found on at most ten pages
span     by four words in a row out of its text

A fifth kind, *section*, searches for another heading of the main text, and only counts if the first section shown with
the page is the one under that heading; rivals have no sections.

The score is the reciprocal of the rank among the first ten (MRR@10). A page with the same text is as good; the column
*near* takes near-duplicates too. A page that is folded under a newer version of it counts if the result lists it; the
row *vedette_strict* counts only the results themselves, and *vedette_unfolded* searches without folding. Rivals get the
same titles and, whichever is better for them, the main text or all that is visible: tantivy and SQLite's FTS5 as they
are (BM25 of title and body), and tantivy with the query as a phrase on top, title and phrase weighted as is best on 200
other pages. Intervals are those of a paired bootstrap over pages.

    VEDETTE_HISTORIES=FOLDER python bench/known_item.py [--pages N] [--strict]

With ``--strict`` all links of the same words to a page are removed together with the searched one.
"""

import argparse
import json
import os
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script

from bench.peers.known_pages import NOW_S, KnownPage, Link, known_pages
from bench.peers.known_rivals import Rival, fts5, tantivy_plain, tantivy_with_phrase

from vedette.adapters.crawl_store.index_queue import PageRecord
from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.search import Searcher
from vedette.index.fields import MAX_INDEXED_HEADINGS
from vedette.index.sections import Section, split_sections
from vedette.parse.similarity.minhash import estimate_similarity
from vedette.policy import Floats, rng_for
from vedette.runtime.indexing.embedding import make_vectors
from vedette.runtime.indexing.index_builder import IndexBuilder
from vedette.runtime.indexing.pagerank import compute_importance
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.runtime.search.lexicon import write_lexicon
from vedette.runtime.search.meaning import LEARNED, MeaningComparer
from vedette.serve.slate import SearchRequest
from vedette.text import split_words

SEED = 5
KINDS = ("title", "anchor", "heading", "span")
MOST_BEARERS = 10
SPAN_WORDS = 4
TUNING_PAGES = 200
TITLE_BOOSTS = (0.5, 1.0, 2.0, 4.0)
PHRASE_BOOSTS = (2.0, 4.0, 8.0, 16.0, 32.0)
ALIKE = 0.8
DRAWS = 2000
RENAMED_AT_ONCE = 500
# What the comparison must show: this much better than plain rivals on average, and as a lower bound.
GAIN, GAIN_LOW = 0.10, 0.05


class Query(NamedTuple):
    """The query, its kind, and the wanted page, by its position."""

    kind: str
    page: int
    text: str


class Credit(NamedTuple):
    """The reciprocal ranks of all queries: of the same text, and of near-duplicates."""

    same: Floats
    near: Floats


# --- Queries ---


def drawn(pages: Sequence[KnownPage], many: int) -> tuple[list[int], list[int]]:
    """Pages to be searched and pages to tune by, each text once.

    The weights of ranking were fitted to pages that come later in this order than the first 500. Another order would
    measure them on the pages they were fitted to, so it may not change without fitting them again.
    """
    firsts = list({page.print: place for place, page in reversed(list(enumerate(pages)))}.values())
    order = random.Random(SEED).sample(sorted(firsts), len(firsts))  # noqa: S311 -- the same each time, no secret
    return order[:many], order[many : many + TUNING_PAGES]


class Asking:
    """Makes the queries, and remembers the links that must not give them away."""

    def __init__(self, pages: Sequence[KnownPage], links: Sequence[Link]) -> None:
        self._pages = pages
        self._bearers = Counter(heading for page in pages for heading in dict.fromkeys(_headings(page)))
        self._to: dict[bytes, list[Link]] = defaultdict(list)
        for link in links:
            if split_words(link.text):
                self._to[pages[link.target].print].append(link)
        self.taken_out: set[Link] = set()

    def queries(self, places: Sequence[int], salt: str) -> list[Query]:
        """Up to four for each page."""
        chance = random.Random(f"{SEED} {salt}")  # noqa: S311 -- the same each time, no secret
        return [
            Query(kind, place, text)
            for place in places
            for kind, text in self._of(self._pages[place], chance)
            if split_words(text)
        ]

    def _of(self, page: KnownPage, chance: random.Random) -> Iterator[tuple[str, str]]:
        yield "title", page.stored.title
        if links := self._to[page.print]:
            link = chance.choice(links)
            self.taken_out.add(link)
            yield "anchor", link.text
        if headings := [text for text in _headings(page) if self._bearers[text] <= MOST_BEARERS]:
            yield "heading", chance.choice(headings)
        words = split_words(page.stored.body)
        if len(words) >= SPAN_WORDS:
            at = chance.randrange(len(words) - SPAN_WORDS + 1)
            yield "span", " ".join(words[at : at + SPAN_WORDS])

    def section_queries(self, places: Sequence[int]) -> list[tuple[Query, Section]]:
        """Return a heading of the main text of each page that has one, and the section under it."""
        chance = random.Random(f"{SEED} section")  # noqa: S311 -- the same each time, no secret
        found = []
        for place in places:
            stored = self._pages[place].stored
            parts = split_sections(stored, stored.body)
            rare = [part for part in parts if part.heading and self._bearers[part.heading] <= MOST_BEARERS]
            if rare:
                part = chance.choice(rare)
                found.append((Query("section", place, part.heading), part))
        return found


def _headings(page: KnownPage) -> Sequence[str]:
    return page.stored.headings[:MAX_INDEXED_HEADINGS]


# --- Vedette ---


def vedette(folder: Path, pages: Sequence[KnownPage], links: Sequence[Link]) -> tuple[Searcher, LiveIndexSnapshot]:
    """The index as the indexer makes it of fetched pages, and the search over it."""
    generations = Generations(folder)
    generation = generations.begin()
    builder = IndexBuilder(folder, generation)
    known = {row.id: row for row in _known(pages, links)}
    texts = {place + 1: page.content.stored for place, page in enumerate(pages)}
    builder.update_pages(known, texts, known, NOW_S)
    while builder.reindex_renamed(RENAMED_AT_ONCE):
        pass
    builder.commit(1)
    builder.close()
    compute_importance(generation)
    write_lexicon(generation)
    shelf = LiveIndexSnapshot(generation)
    return Searcher(shelf), shelf


def _known(pages: Sequence[KnownPage], links: Sequence[Link]) -> Iterator[PageRecord]:
    """What the coordinator would report about each page."""
    first: dict[bytes, int] = {}
    hosts = list(dict.fromkeys(page.host for page in pages))
    out: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for link in links:
        out[link.source].append((pages[link.target].url, link.text))
    for place, page in enumerate(pages):
        content = page.content
        group = first.setdefault(page.print, place + 1)
        yield PageRecord(
            id=place + 1,
            url=page.url,
            host=hosts.index(page.host) + 1,
            found_s=NOW_S,
            status=200,
            kind="page",
            fetched_s=NOW_S,
            location="",
            links=tuple(out[place]),
            place=None,
            group=group,
            canonical="",
            marks=content.directives,
            words=content.words,
            spam=content.spam,
            objections=(),
            private="",
            canonical_page=group,
        )


# --- Measuring ---


class Judge:
    """Credits rankings."""

    def __init__(self, pages: Sequence[KnownPage]) -> None:
        self._pages = pages

    def credit(self, rival: Callable[[str], Sequence[int | tuple[int, ...]]], queries: Sequence[Query]) -> Credit:
        """The reciprocal rank of the first right page of each query, 0 if it is not among ten."""
        found = [(rival(query.text), query.page) for query in queries]
        return Credit(
            np.array(
                [_reciprocal([self._has(self._is_same, each, page) for each in places]) for places, page in found]
            ),
            np.array(
                [_reciprocal([self._has(self._is_near, each, page) for each in places]) for places, page in found]
            ),
        )

    def _has(self, is_right: Callable[[int, int], bool], each: int | tuple[int, ...], page: int) -> bool:
        return any(is_right(place, page) for place in (each if isinstance(each, tuple) else (each,)))

    def credit_sections(self, searcher: Searcher, queries: Sequence[tuple[Query, Section]]) -> float:
        """Return the mean reciprocal rank of the right page with the right section first."""
        ranks = []
        for query, part in queries:
            results = searcher.search(SearchRequest(query.text), NOW_S).results
            right = [
                self._is_same(result.id - 1, query.page)
                and bool(result.sections)
                and result.sections[0].url == part.build_url(self._pages[result.id - 1].stored)
                for result in results
            ]
            ranks.append(_reciprocal(right))
        return float(np.mean(ranks))

    def _is_same(self, place: int, page: int) -> bool:
        return self._pages[place].print == self._pages[page].print

    def _is_near(self, place: int, page: int) -> bool:
        one, other = self._pages[place].sketch, self._pages[page].sketch
        if self._is_same(place, page) or one is None or other is None:
            return self._is_same(place, page)
        return estimate_similarity(one.mins, other.mins) >= ALIKE


def _reciprocal(right: Sequence[bool]) -> float:
    return 1 / (right.index(True) + 1) if True in right[:10] else 0.0


def by_kind(scores: Floats, queries: Sequence[Query]) -> dict[str, float]:
    """The mean of each kind, and the mean of these."""
    means = {
        kind: float(np.mean([score for score, query in zip(scores, queries, strict=True) if query.kind == kind]))
        for kind in KINDS
    }
    return {**means, "": float(np.mean(list(means.values())))}


def best_of(judge: Judge, rivals: Mapping[str, Rival], queries: Sequence[Query]) -> tuple[str, Rival]:
    """The rival that does best on the tuning pages."""
    scores = {name: by_kind(judge.credit(rival, queries).same, queries)[""] for name, rival in rivals.items()}
    name = max(scores, key=lambda each: scores[each])
    return name, rivals[name]


def tuned_rivals(pages: Sequence[KnownPage], judge: Judge, queries: Sequence[Query]) -> dict[str, tuple[str, Rival]]:
    """Each rival on the texts, and with the weights, that are best for it."""
    titles = [page.stored.title for page in pages]
    bodies = {"main text": [page.stored.body for page in pages], "all text": [page.text for page in pages]}
    phrased = {body: tantivy_with_phrase(titles, texts) for body, texts in bodies.items()}
    return {
        "tantivy": best_of(judge, {body: tantivy_plain(titles, texts) for body, texts in bodies.items()}, queries),
        "fts5": best_of(judge, {body: fts5(titles, texts) for body, texts in bodies.items()}, queries),
        "tantivy_phrase": best_of(
            judge,
            {
                f"{body}, title x {title:g}, phrase x {phrase:g}": tuned(title, phrase)
                for body, tuned in phrased.items()
                for title in TITLE_BOOSTS
                for phrase in PHRASE_BOOSTS
            },
            queries,
        ),
    }


def resampled(ours: Floats, theirs: Floats, queries: Sequence[Query]) -> dict[str, tuple[Floats, Floats]]:
    """Means of both under draws of pages with replacement, of each kind and (under "") on average."""
    pages = {page: row for row, page in enumerate(dict.fromkeys(query.page for query in queries))}
    draws = rng_for(SEED, "bench/known_item").multinomial(len(pages), np.full(len(pages), 1 / len(pages)), DRAWS)
    found = {}
    for kind in KINDS:
        rows = [at for at, query in enumerate(queries) if query.kind == kind]
        weights = draws[:, [pages[queries[at].page] for at in rows]]
        total = np.maximum(weights.sum(axis=1), 1)
        found[kind] = weights @ ours[rows] / total, weights @ theirs[rows] / total
    means = [np.mean([found[kind][side] for kind in KINDS], axis=0) for side in (0, 1)]
    return {**found, "": (means[0], means[1])}


def verdicts(credited: Mapping[str, Credit], queries: Sequence[Query]) -> dict[str, float | bool]:
    """The results of the comparison, by the names of the last line."""
    ours = credited["vedette"].same
    plain = max(("tantivy", "fts5"), key=lambda name: by_kind(credited[name].same, queries)[""])
    mean, other = by_kind(ours, queries)[""], by_kind(credited[plain].same, queries)[""]
    one, two = resampled(ours, credited[plain].same, queries)[""]
    phrase = by_kind(credited["tantivy_phrase"].same, queries)[""]
    worse = [
        f"{kind} than {name}"
        for name in ("tantivy", "fts5", "tantivy_phrase")
        for kind, (mine, theirs) in resampled(ours, credited[name].same, queries).items()
        if np.quantile(mine - theirs, 0.975) < 0
    ]
    for each in worse:
        print(f"significantly worse: {each}")
    gain, low = mean / other - 1, float(np.quantile(one / two, 0.025)) - 1
    mine, theirs = resampled(ours, credited["tantivy_phrase"].same, queries)[""]
    return {
        "gain": round(gain, 4),
        "gain_low": round(low, 4),
        "gain_over_phrase": round(mean / phrase - 1, 4),
        "gain_over_phrase_low": round(float(np.quantile(mine / theirs, 0.025)) - 1, 4),
        "worse_kinds": len(worse),
        "passed": gain >= GAIN and low >= GAIN_LOW and mean > phrase and not worse,
    }


def print_table(credited: Mapping[str, Credit], queries: Sequence[Query]) -> dict[str, float]:
    """For people; the figures for machines."""
    counts = Counter(query.kind for query in queries)
    print(
        f"{'MRR@10':16}"
        + "".join(f"{kind + ' ' + str(counts[kind]):>14}" for kind in KINDS)
        + f"{'mean':>10}{'near':>10}"
    )
    figures: dict[str, float] = {}
    for name, credit in credited.items():
        same, near = by_kind(credit.same, queries), by_kind(credit.near, queries)
        print(f"{name:16}" + "".join(f"{same[kind]:14.3f}" for kind in KINDS) + f"{same['']:10.3f}{near['']:10.3f}")
        key = "mrr" if name == "vedette" else f"mrr_{name}"
        figures |= {"_".join(filter(None, (key, kind))): round(mean, 4) for kind, mean in same.items()}
        figures |= {"_".join(filter(None, (key, "near", kind))): round(mean, 4) for kind, mean in near.items()}
    return figures


def main() -> None:
    """Read, query, index, search, compare; print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    if "VEDETTE_HISTORIES" not in os.environ:
        sys.exit("VEDETTE_HISTORIES must name a folder of bare repositories, such as apache+kafka-site/repo")
    pages, links = known_pages(Path(os.environ["VEDETTE_HISTORIES"]))
    asking = Asking(pages, links)
    wanted, others = drawn(pages, arguments.pages)
    queries, tuning = asking.queries(wanted, "test"), asking.queries(others, "tuning")
    away = {(link.target, link.text) for link in asking.taken_out} if arguments.strict else set()
    left = [link for link in links if link not in asking.taken_out and (link.target, link.text) not in away]
    print(f"{len(pages)} pages with {len({page.print for page in pages})} different texts, {len(links)} links\n")
    judge = Judge(pages)
    with tempfile.TemporaryDirectory() as folder:
        searcher, shelf = vedette(Path(folder), pages, left)

        places = {page.url: place for place, page in enumerate(pages)}

        def search(text: str, *, folded: bool = True) -> list[tuple[int, ...]]:
            results = searcher.search(SearchRequest(text, folded=folded), NOW_S).results
            return [(each.id - 1, *(places[other.url] for other in each.other_versions)) for each in results]

        before_s = process_time()
        found = {query.text: search(query.text) for query in queries}
        search_ms = (process_time() - before_s) * 1000 / len(found)
        credited = {
            "vedette": judge.credit(found.__getitem__, queries),
            "vedette_strict": judge.credit(lambda text: [each[:1] for each in found[text]], queries),
            "vedette_unfolded": judge.credit(partial(search, folded=False), queries),
        }
        print(f"{len(shelf.finder)} pages in the index; a search takes {search_ms:.1f} ms of CPU time")
        index = shelf.generation.parent
        make_vectors(index, shelf.generation, LEARNED)
        learned = Searcher(LiveIndexSnapshot(shelf.generation, MeaningComparer(index, LEARNED)))
        credited["learned"] = judge.credit(
            lambda text: [result.id - 1 for result in learned.search(SearchRequest(text), NOW_S).results], queries
        )
        sections = asking.section_queries(wanted)
        mrr_section = judge.credit_sections(searcher, sections)
        print(f"section {len(sections)}: MRR@10 {mrr_section:.3f} of the right page with the right section first\n")
    for name, (how, rival) in tuned_rivals(pages, judge, tuning).items():
        credited[name] = judge.credit(rival, queries)
        print(f"{name}: {how}")
    figures = print_table(credited, queries)
    shown = verdicts(credited, queries)
    print(json.dumps({**figures, **shown, "mrr_section": round(mrr_section, 4), "search_ms": round(search_ms, 2)}))
    sys.exit(0 if shown["passed"] else 1)


if __name__ == "__main__":
    main()
