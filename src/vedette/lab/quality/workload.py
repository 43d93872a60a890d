"""What is asked of a world while a policy refreshes it: some queries, how often each, and how pages score for them.

Queries are those of the TREC Million Query file where VEDETTE_DATA names a folder that has it (``queries_from`` 0).
It does not say how often each is asked, so Zipf's law does, over an order that the seed draws (``query_files``).
Without it they are two neighbouring words of a page that the seed draws, each asked as often as it is drawn (1).

Of all that, the most frequent 1 000 are asked which some page of the span answers at some time. Pages score by their
text, by TF-IDF. How rare words are, and what can be drawn, is read off what is first known of each page of the span:
what it says at the begin, or at its birth. So scores and queries are fixed for a run, and do not depend on who runs.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.lab.quality.corpus import corpus_of, ranges
from vedette.lab.quality.query_files import Queries, occurring, queries_of, read_query_file
from vedette.lab.quality.scoring import text_scoring
from vedette.lab.quality.workload_part import Workload, workload_of
from vedette.lab.worlds.history import History
from vedette.policy import Ints, rng_for
from vedette.text import words_of

__all__ = ["DRAWN", "FILE", "Asking", "asking_of", "drawn_queries", "first_known"]

NAME = "trec-million-query.txt"
FILE, DRAWN = 0, 1
MOST_QUERIES = 1000
MOST_TRIED = 10_000
DRAWS = 3000
KEPT = 2  # of a world, and of the same world without its waves


class Asking(NamedTuple):
    """The queries with all that answers them, and where they come from."""

    workload: Workload
    queries_from: int


_kept: list[tuple[History, tuple[float, float, int, str], Asking | None]] = []


def asking_of(history: History, begin_s: float, end_s: float, seed: int) -> Asking | None:
    """What is asked of a part of a history; None where its pages have no texts, or none that a query finds.

    Those that were worked out last are kept: the cells of an experiment ask for the same again and again.
    """
    which = (begin_s, end_s, seed, os.environ.get("VEDETTE_DATA", ""))
    for kept_history, kept_which, asking in _kept:
        if kept_history is history and kept_which == which:
            return asking
    made = _asking(history, begin_s, end_s, seed)
    _kept[:] = [(history, which, made), *_kept[: KEPT - 1]]
    return made


def _asking(history: History, begin_s: float, end_s: float, seed: int) -> Asking | None:
    known = first_known(history, begin_s, end_s)
    if not any(map(history.texts.text, known.tolist())):
        return None
    read = _from_file(seed)
    queries = drawn_queries(history, known, seed) if read is None else read
    corpus = corpus_of(history, queries.term)
    scoring = text_scoring(corpus, known)
    tried = _most_frequent(occurring(queries, corpus), MOST_TRIED)
    there = np.flatnonzero((history.version_at_s <= end_s) & (history.version_end_s > begin_s))
    answered = tried.some(_answered(workload_of(corpus, tried, scoring), there))
    if not len(answered):
        return None
    workload = workload_of(corpus, _most_frequent(answered, MOST_QUERIES), scoring)
    return Asking(workload, DRAWN if read is None else FILE)


def _most_frequent(queries: Queries, most: int) -> Queries:
    return queries.some(np.argsort(-queries.frequency, kind="stable")[:most])


def _answered(workload: Workload, versions: Ints) -> Ints:
    """The queries that one of these versions answers."""
    matches = ranges(workload.match_start[versions], workload.match_start[versions + 1])
    return np.unique(workload.slot_query[workload.match_slot[matches]])


def first_known(history: History, begin_s: float, end_s: float) -> Ints:
    """The version of each page of the span that is known first: that of the begin, or that of its birth."""
    known = history.version_at(np.arange(history.pages), begin_s)
    later = (history.born_s > begin_s) & (history.born_s < end_s)
    known[later] = history.first_version[later]
    return known[known >= 0]


def drawn_queries(history: History, versions: Ints, seed: int) -> Queries:
    """Queries that pages themselves suggest: two neighbouring words, from a version and a place drawn evenly."""
    rng = rng_for(seed, "lab/asking")
    asked: dict[str, float] = {}
    for version, place in zip(rng.choice(versions, DRAWS).tolist(), rng.random(DRAWS).tolist(), strict=True):
        words = words_of(history.texts.text(version))
        if len(words) > 1:
            at = int(place * (len(words) - 1))
            query = f"{words[at]} {words[at + 1]}"
            asked[query] = asked.get(query, 0.0) + 1.0
    return queries_of(asked.items(), "drawn")


def _from_file(seed: int) -> Queries | None:
    folder = os.environ.get("VEDETTE_DATA")
    path = Path(folder or "") / "queries" / NAME
    return read_query_file(path, seed) if folder and path.is_file() else None
