"""Watched terms, the terms that people search for, and how well pages answer each, for many pages at once.

Each query counts once for each of its words (Pandey08, 4.6.1), so only single words are *watched*. A page answers a
word by its text: BM25 over all fields together, where a word in a title counts for several in the body,

    tf / (tf + k1 (1 - b + b length / usual length)),   between 0 and 1

The word's idf is the same for all pages, and belongs to the word's weight (``index.quality.gains``).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints
from vedette.text import WordHashes, hash_words

MAX_TRACKED = 60_000
# With so many searches, what people ask for counts as much as what pages are called.
FIRST_SEARCHES = 100.0

K1, B, USUAL_WORDS = 1.2, 0.6, 600.0
_COUNTS_FOR = np.array(
    [{"title": 5.0, "headings": 2.0, "anchors": 3.0, "url": 2.0, "body": 1.0}[f] for f in TEXT_FIELDS]
)
_NAMING = np.array([field in {"title", "anchors"} for field in TEXT_FIELDS])
_FIELDS, _BODY = len(TEXT_FIELDS), TEXT_FIELDS.index("body")
SLOTS_EACH = 8
# The place of a hit: its field, and whether it is of the words before a change, of those after it, or of both. Counts
# are added up in one number, those after it far above the others.
PLACE_BITS, LATER, BOTH = 5, 8, 16
APART = float(1 << 20)
_COUNTED = np.zeros(1 << PLACE_BITS)
for _place, _factor in ((0, 1.0), (LATER, APART), (BOTH, 1.0 + APART)):
    _COUNTED[_place : _place + _FIELDS] = _COUNTS_FOR * _factor
STEPS = 1 << 20

Marks = npt.NDArray[np.unsignedinteger[Any]]
# The words of a page as numbers, and how many of them each field has; see ``fields.numbers``.
PageWords = tuple[WordHashes, tuple[int, ...]]
NO_WORDS: PageWords = (np.zeros(0, np.uint32), (0,) * _FIELDS)


class TrackedTerms:
    """The watched terms by word number, ascending, with the share of all searches that contains each."""

    def __init__(self, numbers: WordHashes, frequency: Floats) -> None:
        self.numbers, self.frequency = numbers, frequency
        # Most words of pages are decided by one look into this table; where two watched ones share a place, one has it.
        self._low = np.uint32((1 << (SLOTS_EACH * len(numbers)).bit_length()) - 1)
        self._slots = np.full(int(self._low) + 1, -1, np.int32)
        self._slots[numbers & self._low] = np.arange(len(numbers))

    def __len__(self) -> int:
        return len(self.numbers)

    def find(self, words: WordHashes) -> tuple[Ints, Ints]:
        """Find the watched terms among these words: their positions, and which terms they are."""
        which = self._slots.take((words & self._low).astype(np.intp))
        places: Ints = np.flatnonzero(which >= 0)
        found, terms = words[places], which[places].astype(np.int64)
        other = np.flatnonzero(self.numbers[terms] != found)
        if len(other):
            again = np.minimum(np.searchsorted(self.numbers, found[other]), len(self) - 1)
            terms[other] = np.where(self.numbers[again] == found[other], again, -1)
            places, terms = places[terms >= 0], terms[terms >= 0]
        return places, terms


class TermScores(NamedTuple):
    """Scores of pages for the watched terms they answer, before and after a change; 0 for no match.

    One row for each page and term, in page order.
    """

    page: Ints
    term: Ints
    before: Floats
    after: Floats


def select_tracked_terms(
    asked: Sequence[tuple[str, float]], searches: float, named: tuple[WordHashes, Ints]
) -> TrackedTerms:
    """Select the terms to watch from searched terms with their counts and from the words that name pages.

    Before anybody has searched, people are expected to search for the words in titles and links
    (``count_naming_terms``), which count as some searches and matter less the more real ones there are.

    >>> watched = select_tracked_terms([("tide", 300.0)], 300.0, (hash_words(b"moon"), np.array([7])))
    >>> sorted(watched.frequency.tolist())
    [0.25, 0.75]
    """
    numbers = hash_words(" ".join(term for term, _ in asked).encode("utf-8", "replace"))
    times = np.array([times for _, times in asked], np.float64)
    if len(numbers) != len(times):
        numbers, times = numbers[:0], times[:0]
    shares = FIRST_SEARCHES * named[1] / max(float(named[1].sum()), 1.0)
    every, at = np.unique(np.concatenate((numbers, named[0])), return_inverse=True)
    total = np.bincount(at, np.concatenate((times, shares)), len(every)) / (max(searches, 0.0) + FIRST_SEARCHES)
    kept = np.sort(np.argsort(-total, kind="stable")[:MAX_TRACKED])
    return TrackedTerms(every[kept], total[kept])


def count_naming_terms(pages: ForwardTokens) -> tuple[WordHashes, Ints]:
    """Count the words in titles and in the link texts of pages: the terms that name pages."""
    fields = np.tile(_NAMING, len(pages.lengths))
    naming = np.repeat(fields, pages.lengths.reshape(-1))
    numbers, times = np.unique(pages.words[naming], return_counts=True)
    return numbers, times


def score_pages(watched: TrackedTerms, before: ForwardTokens, after: ForwardTokens) -> TermScores:
    """Score how well each page answers the watched terms, with its words before and after a change.

    Every hit becomes one number: page, word, before or after, field. Sorting groups what belongs together.
    """
    if not len(watched):
        return TermScores(*(np.zeros(0, np.int64),) * 2, *(np.zeros(0),) * 2)
    hits = _find_hits(watched, before, after)
    rows = hits >> PLACE_BITS
    opens = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])[: len(rows)])
    page, term = np.divmod(rows[opens].astype(np.int64), len(watched))
    sums = np.add.reduceat(_COUNTED[hits & ((1 << PLACE_BITS) - 1)], opens) if len(opens) else np.zeros(0)
    later = np.floor(sums / APART)
    scores = (
        score_texts(tf, version.lengths[page, _BODY])
        for tf, version in ((sums - later * APART, before), (later, after))
    )
    return TermScores(page, term, *scores)


def _find_hits(watched: TrackedTerms, before: ForwardTokens, after: ForwardTokens) -> Marks:
    """Find all hits of watched terms in both versions of the pages, each encoded as a number, ascending."""
    pages = np.arange(len(after.lengths))[:, None] * len(watched)
    # Half as wide sorts twice as fast.
    width = np.uint32 if len(pages) * len(watched) << PLACE_BITS < 1 << 32 else np.uint64
    words, marks = _merge_versions(before, after, (pages << PLACE_BITS | np.arange(_FIELDS)).astype(width))
    places, which = watched.find(words)
    hits = marks[places] + (which << PLACE_BITS).astype(width)
    hits.sort()
    return np.asarray(hits)


def _merge_versions(before: ForwardTokens, after: ForwardTokens, marks: Marks) -> tuple[WordHashes, Marks]:
    """Merge the words of both page versions, each with the code of its page and field, and its position.

    Most of a page stays the same: a word that is unchanged at its position is listed once, as part of both versions.
    """
    first, later = (np.repeat(marks.reshape(-1), version.lengths.reshape(-1)) for version in (before, after))
    is_aligned = (before.lengths == after.lengths).all(axis=1)
    there, here = (np.flatnonzero(np.repeat(is_aligned, version.lengths.sum(axis=1))) for version in (before, after))
    stays = before.words[there] == after.words[here]
    later += LATER
    later[here[stays]] += BOTH - LATER
    goes = np.ones(len(first), np.bool_)
    goes[there[stays]] = False
    return np.concatenate((before.words[goes], after.words)), np.concatenate((first[goes], later))


def score_texts(tf: Floats, length: Ints) -> Floats:
    """Compute the BM25 score of texts for a watched term from its frequency and the body length.

    >>> score_texts(np.array([0.0, 1.0, 5.0]), np.array([600, 600, 60])).round(2).tolist()
    [0.0, 0.45, 0.9]
    """
    return round_scores(tf / (tf + K1 * (1.0 - B + B * length / USUAL_WORDS)))


def round_scores(scores: Floats) -> Floats:
    """Round term scores coarsely enough that sums are exact, so that a curve finds a page's score again."""
    return np.asarray(np.round(scores * STEPS) / STEPS)
