"""Watched queries: the queries used to measure gains, as arrays, and how well pages answer them.

They are what people search for, as parsed by search: a slot for each word, with its other forms. The frequent queries
whose gains weigh most are watched as a whole; the others are too many, and each counts once for each of its words
(Pandey08, 4.6.1).
Before anyone has searched, people are expected to search for the words in titles and link texts; these count as a
number of searches and matter less the more real ones there are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.index.features import Slot
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints
from vedette.text import WideHashes, WordHashes

MAX_ASKED, MAX_WORDS = 100, 2_000  # whole queries, and single words
MAX_SLOTS = 8  # words of a watched query; longer ones find themselves
# After this many searches, queries count as much as the names of pages.
FIRST_SEARCHES = 100.0
FULL_POINTS = 40.0  # of a score that counts as 1: nearly all that words and signals can contribute
STEPS = 1 << 20

_FIELDS = len(TEXT_FIELDS)
_NAMING = np.array([field in {"title", "anchors"} for field in TEXT_FIELDS])
Bools = npt.NDArray[np.bool_]
# The words of a page as numbers, and how many of them each field has; see ``fields.number_tokens``.
PageWords = tuple[WordHashes, tuple[int, ...]]
NO_WORDS: PageWords = (np.zeros(0, np.uint32), (0,) * _FIELDS)


class WatchedQuery(NamedTuple):
    """A query to watch: its slots, which are needed, and how many of these a page must have to be a candidate."""

    slots: tuple[Slot, ...]
    is_needed: tuple[bool, ...]
    min_words: int = 1

    @classmethod
    def of_word(cls, slot: Slot) -> "WatchedQuery":
        """Watch a single word."""
        return cls((slot,), (True,))


@dataclass(frozen=True, slots=True)
class WatchedQueries:
    """Watched queries: query ``q`` has the slots ``start[q]`` to ``start[q + 1]``, each with an ``idf``.

    Word ``words[i]`` matches slot ``slot[i]`` with ``weight[i]``, in order of slots. ``frequency`` is the share of all
    searches, ``min_words`` how many of the needed slots a candidate has, ``prints`` identifies a query.
    """

    start: Ints
    idf: Floats
    is_needed: Bools
    words: WordHashes
    slot: Ints
    weight: Floats
    frequency: Floats
    min_words: Ints
    prints: WideHashes

    def __len__(self) -> int:
        return len(self.frequency)

    @property
    def telling(self) -> Floats:
        """Return the sum of the idf of each query's words."""
        return np.add.reduceat(np.append(self.idf, 0.0), self.start[:-1])[: len(self)] * (np.diff(self.start) > 0)

    def select(self, queries: Ints) -> "WatchedQueries":
        """Select some of the queries, ascending."""
        is_kept = np.zeros(len(self), np.bool_)
        is_kept[queries] = True
        slots = np.repeat(is_kept, np.diff(self.start))
        place = np.cumsum(slots) - 1
        words = slots[self.slot]
        start = np.append(0, np.cumsum(np.diff(self.start)[queries]))
        return WatchedQueries(
            *(
                start,
                self.idf[slots],
                self.is_needed[slots],
                self.words[words],
                place[self.slot[words]],
                self.weight[words],
            ),
            *(self.frequency[queries], self.min_words[queries], self.prints[queries]),
        )


class QueryScores(NamedTuple):
    """Scores of pages for the watched queries that they answer, above 0, in order of pages and queries."""

    page: Ints
    query: Ints
    score: Floats


class ScoreChanges(NamedTuple):
    """Scores of pages for watched queries before and after a change; 0 for no match, in order of pages and queries."""

    page: Ints
    query: Ints
    before: Floats
    after: Floats


def build_watched(asked: Sequence[tuple[WatchedQuery, float]]) -> WatchedQueries:
    """Build watched queries, each with how often it is searched; of two with the same words the first is left.

    >>> tide, low = Slot((5,), (1.0,), 3.0), Slot((7, 8), (1.0, 0.8), 2.0)
    >>> both = WatchedQuery((low, tide), (True, True), 2)
    >>> watched = build_watched([(both, 0.25), (WatchedQuery.of_word(tide), 0.75)])
    >>> watched.start.tolist(), watched.words.tolist(), watched.slot.tolist(), watched.telling.tolist()
    ([0, 2, 3], [7, 8, 5, 5], [0, 0, 1, 2], [5.0, 3.0])
    """
    prints = [
        xxhash.xxh64_intdigest(np.array([slot.numbers[0] for slot in one.slots], np.uint32).tobytes())
        for one, _ in asked
    ]
    first = {print_: place for place, print_ in reversed(list(enumerate(prints)))}
    places = [place for place, print_ in enumerate(prints) if first[print_] == place]
    kept = [asked[place] for place in places]
    slots = [slot for one, _ in kept for slot in one.slots]
    return WatchedQueries(
        np.append(0, np.cumsum([len(one.slots) for one, _ in kept], dtype=np.int64)),
        np.array([slot.idf for slot in slots], np.float64),
        np.array([each for one, _ in kept for each in one.is_needed], np.bool_),
        np.array([number for slot in slots for number in slot.numbers], np.uint32),
        np.repeat(np.arange(len(slots)), [len(slot.numbers) for slot in slots]),
        np.array([weight for slot in slots for weight in slot.weights], np.float64),
        np.array([times for _, times in kept], np.float64),
        np.array([max(one.min_words, 1) for one, _ in kept], np.int64),
        np.array([prints[place] for place in places], np.uint64),
    )


def choose_whole(asked: Sequence[tuple[WatchedQuery, float]], most: int) -> list[int]:
    """Choose which queries to watch as a whole, by frequency times the idf of their words, and return their positions.

    Queries of one word are none of them; of several with the same words, the first counts. Common words together are
    watched as words: they are costly, and gain little.

    >>> tide, low, the = Slot((5,), (1.0,), 3.0), Slot((7,), (1.0,), 1.0), Slot((2,), (1.0,), 0.125)
    >>> pairs = [WatchedQuery(slots, (True, True), 2) for slots in ((the, low), (low, tide), (tide, low), (low, tide))]
    >>> choose_whole([(WatchedQuery.of_word(tide), 9.0), *zip(pairs, (4.0, 3.0, 2.0, 1.0))], 2)
    [2, 3]
    """
    first: dict[tuple[Slot, ...], int] = {}
    for place, (one, _) in enumerate(asked):
        if len(one.slots) > 1:
            first.setdefault(one.slots, place)
    return sorted(first.values(), key=lambda at: -asked[at][1] * sum(slot.idf for slot in asked[at][0].slots))[:most]


def weigh_words(
    asked: Mapping[int, float], named: tuple[WordHashes, Ints], searches: float
) -> tuple[WordHashes, Floats]:
    """Return the share of all searches for single words: those in queries, by number, and those that name pages.

    >>> numbers, shares = weigh_words({5: 300.0}, (np.array([9], np.uint32), np.array([7])), 300.0)
    >>> numbers.tolist(), shares.tolist()
    ([5, 9], [0.75, 0.25])
    """
    numbers = np.array(list(asked), np.uint32)
    shares = FIRST_SEARCHES * named[1] / max(float(named[1].sum()), 1.0)
    every, at = np.unique(np.concatenate((numbers, named[0])), return_inverse=True)
    times = np.concatenate((np.array(list(asked.values()), np.float64), shares))
    total = np.bincount(at, times, len(every)) / (max(searches, 0.0) + FIRST_SEARCHES)
    kept = np.sort(np.argsort(-total, kind="stable")[:MAX_WORDS])
    return every[kept], total[kept]


def count_naming_words(pages: ForwardTokens) -> tuple[WordHashes, Ints]:
    """Count the words in titles and link texts of pages, the most frequent ``MAX_WORDS`` of them."""
    fields = np.tile(_NAMING, len(pages.lengths))
    naming = np.repeat(fields, pages.lengths.reshape(-1))
    numbers, times = np.unique(pages.words[naming], return_counts=True)
    kept = np.sort(np.argsort(-times, kind="stable")[:MAX_WORDS])
    return numbers[kept], times[kept]


def merge_scores(before: QueryScores, after: QueryScores, queries: int, is_same: Bools | None = None) -> ScoreChanges:
    """Merge the scores of the same pages before and after a change.

    If ``is_same``, the score is unchanged.

    >>> old = QueryScores(np.array([0, 1]), np.array([2, 0]), np.array([0.5, 0.25]))
    >>> new = QueryScores(np.array([0, 0]), np.array([1, 2]), np.array([0.75, 0.125]))
    >>> [column.tolist() for column in merge_scores(old, new, 3)]
    [[0, 0, 1], [1, 2, 0], [0.0, 0.5, 0.25], [0.75, 0.125, 0.0]]
    """
    width = max(queries, 1)
    old, new = (each.page * width + each.query for each in (before, after))
    keys = np.sort(np.concatenate((old, new)))
    keys = keys[np.append(True, keys[1:] != keys[:-1])[: len(keys)]]
    scores, at = np.zeros((2, len(keys))), np.searchsorted(keys, new)
    scores[0, np.searchsorted(keys, old)], scores[1, at] = before.score, after.score
    if is_same is not None:
        scores[0, at[is_same]] = after.score[is_same]
    return ScoreChanges(keys // width, keys % width, *scores)


def normalize_points(points: Floats) -> Floats:
    """Normalize search points to scores above 0, up to 1.

    They are rounded coarsely enough that sums are exact, so that a curve finds a page's score again.
    """
    return round_scores(np.clip(points / FULL_POINTS, 1 / STEPS, 1.0))


def round_scores(scores: Floats) -> Floats:
    """Round scores coarsely enough that sums are exact."""
    return np.asarray(np.round(scores * STEPS) / STEPS)
