"""Ranking features: compute where and how closely some hundred pages have the words of a query, as numbers.

A query is a row of *slots*, one for each of its words; a slot has the word and its alternatives. All pages are
processed together. One pass over their words finds the *hits*, the positions where a word of a slot occurs; everything
after that is arithmetic on the few hits. No step loops over pages.

Most features lie between 0 and 1. Features that count slots weight each by its word's *idf*, so that a page with
"consumer lag" and not "the" has nearly all of "the consumer lag".
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints

# Slots are bits of a mask of 64.
MAX_SLOTS = 48
NEAR_WORDS = 8
# A position so far into a body counts half as much as the first.
EARLY_HALF_WORDS = 100
# Words that tell less than this share of what the most telling one does are left out of nearness: they are everywhere.
MIN_IDF_SHARE = 0.25
LONG_BODY = 4096
TABLE_BITS = 16

Masks = npt.NDArray[np.uint64]
Bools = npt.NDArray[np.bool_]


class Slot(NamedTuple):
    """One word of a query: the hashes of its alternatives, the weight of each, and the word's idf."""

    numbers: tuple[int, ...]
    weights: tuple[float, ...]
    idf: float


class Feature(NamedTuple):
    """The name of a ranking feature column, for programs and for people."""

    key: str
    words: str


class _Bm25Constants(NamedTuple):
    """BM25 constants of a field: term frequency saturation, length normalization, and the usual length."""

    k1: float
    b: float
    usual_length: float


_FIELDS = {
    "title": _Bm25Constants(0.6, 0.5, 8),
    "headings": _Bm25Constants(0.8, 0.5, 40),
    "anchors": _Bm25Constants(1.2, 0.3, 12),
    "url": _Bm25Constants(0.5, 0.3, 8),
    "body": _Bm25Constants(1.3, 0.7, 250),
}
_PLACES = {
    "title": "the title",
    "headings": "the headings",
    "anchors": "the text of links to it",
    "url": "the address",
    "body": "the text",
}
_ORDERED = ("title", "headings", "anchors", "body")
_BODY = TEXT_FIELDS.index("body")

FEATURES: tuple[Feature, ...] = (
    *(Feature(f"{field}_bm25", f"words in {_PLACES[field]}") for field in TEXT_FIELDS),
    *(Feature(f"{field}_coverage", f"share of the words in {_PLACES[field]}") for field in TEXT_FIELDS),
    *(Feature(f"{field}_phrase", f"all words in order in {_PLACES[field]}") for field in _ORDERED),
    *(Feature(f"{field}_pairs", f"pairs of words in order in {_PLACES[field]}") for field in _ORDERED),
    Feature("title_exact", "how much of the title the words are"),
    Feature("title_is", "the title is the query"),
    Feature("anchors_exact", "how much of the text of links to it the words are"),
    Feature("body_has", "all words in order anywhere in the text"),
    Feature("body_span", "all words close together in the text"),
    Feature("body_near", "pairs of words close together in the text"),
    Feature("body_early", "words early in the text"),
    Feature("body_length", "a long text"),
    Feature("anywhere", "share of the words anywhere"),
    Feature("outside", "share of the words outside the text"),
)


class _Hits(NamedTuple):
    """Hits of query slots: word position, field (a row per page and field), and slots as a bit mask.

    ``which`` is the row of ``shares``, the weight of a hit for each slot.
    """

    places: Ints
    rows: Ints
    masks: Masks
    which: Ints
    shares: Floats


def compute_idf(df: int, pages: int) -> float:
    """Compute the idf of a word that ``df`` out of ``pages`` pages have.

    >>> round(compute_idf(1, 1000), 2), round(compute_idf(1000, 1000), 4)
    (6.5, 0.0005)
    """
    return float(np.log1p((max(pages, df) - df + 0.5) / (df + 0.5)))


def compute_features(forward: ForwardTokens, slots: Sequence[Slot]) -> Floats:
    """Compute the ranking features of pages for a query: a row per page, a column for each of ``FEATURES``."""
    pages, fields = len(forward.lengths), len(TEXT_FIELDS)
    slots = slots[:MAX_SLOTS]
    if not pages or not slots:
        return np.zeros((pages, len(FEATURES)))
    lengths = forward.lengths.reshape(-1)
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    hits = _find_hits(forward.words, starts, slots)
    told = np.array([slot.idf for slot in slots])
    shares = told / told.sum() if told.sum() > 0 else np.full(len(slots), 1 / len(slots))
    counts = _count_slots(hits, len(lengths), len(slots))
    by_page = counts.reshape(pages, fields, len(slots))
    present = np.minimum(by_page, 1.0)
    runs = _find_runs(hits, len(lengths), len(slots))
    exact = _compute_exactness(hits, present, runs, forward.lengths, shares)
    columns = [
        *_bm25(by_page, forward.lengths, shares).T,
        *(present @ shares).T,
        *_select_ordered(_bm25(runs.whole.reshape(pages, fields, 1), forward.lengths, np.ones(1))).T,
        *_select_ordered(_bm25(runs.pairs.reshape(pages, fields, -1), forward.lengths, _pair_shares(shares))).T,
        *exact,
        (runs.whole.reshape(pages, fields)[:, _BODY] > 0).astype(np.float64),
        *_compute_nearness(hits, starts, told, pages),
        _compute_earliness(hits, starts, pages, shares),
        np.log1p(forward.lengths[:, _BODY]) / np.log1p(LONG_BODY),
        present.max(axis=1) @ shares,
        present[:, :_BODY].max(axis=1) @ shares,
    ]
    return np.column_stack(columns).astype(np.float64)


def _find_hits(words: npt.NDArray[np.uint32], starts: Ints, slots: Sequence[Slot]) -> _Hits:
    """Find all hits of the query's slots in the pages' words, in word order.

    A table of the low bits discards nearly all other words at once, and the rest is looked up.
    """
    known = np.array(sorted({number for slot in slots for number in slot.numbers}), np.uint32)
    low = np.zeros(1 << TABLE_BITS, np.bool_)
    low[known & np.uint32((1 << TABLE_BITS) - 1)] = True
    maybe = np.flatnonzero(low.take((words & np.uint32((1 << TABLE_BITS) - 1)).astype(np.intp)))
    if not len(known):
        maybe = maybe[:0]
    found = words[maybe]
    which = np.searchsorted(known, found)
    which[which == len(known)] = 0
    right = known[which] == found if len(known) else np.zeros(0, np.bool_)
    places, which = maybe[right], which[right]
    shares = np.zeros((len(known), len(slots)))
    for column, slot in enumerate(slots):
        at = np.searchsorted(known, np.array(slot.numbers, np.uint32))
        np.maximum.at(shares[:, column], at, np.array(slot.weights, np.float64))
    bits = np.left_shift(np.uint64(1), np.arange(len(slots), dtype=np.uint64))
    masks = ((shares > 0) * bits).sum(axis=1, dtype=np.uint64)
    rows = np.searchsorted(starts, places, side="right") - 1
    return _Hits(places, rows, masks[which], which, shares)


def _count_slots(hits: _Hits, rows: int, slots: int) -> Floats:
    """Count how often each query slot occurs in each field, weighted by the alternative that matched."""
    each = [np.bincount(hits.rows, hits.shares[hits.which, slot], rows) for slot in range(slots)]
    return np.column_stack(each)


def _bm25(counts: Floats, lengths: Ints, shares: Floats) -> Floats:
    """Compute Robertson and Zaragoza's BM25 of each field, divided by the sum of the slots' idf."""
    k1, b, usual = np.array([_FIELDS[field] for field in TEXT_FIELDS]).T
    slowed = k1 * (1 - b + b * lengths / usual)
    scored: Floats = (counts * (k1 + 1)[:, None] / (counts + slowed[:, :, None] + 1e-9)) @ shares
    return scored


class _Runs(NamedTuple):
    """How often each field has all query slots in order next to each other, and each pair of adjacent slots."""

    whole: Floats
    pairs: Floats


def _find_runs(hits: _Hits, rows: int, slots: int) -> _Runs:
    """Count runs of query slots in order: bit s of ``going`` marks a run that ends at this hit with slot s."""
    joined = np.zeros(len(hits.places), np.bool_)
    joined[1:] = (np.diff(hits.places) == 1) & (np.diff(hits.rows) == 0)
    going = hits.masks
    pairs = np.zeros((rows, max(0, slots - 1)))
    for length in range(2, slots + 1):
        before = np.concatenate((going[:1], going[:-1]))
        going = np.where(joined, (before << np.uint64(1)) & hits.masks, np.uint64(0))
        if length == 2:
            pairs = np.column_stack([_count_with_bit(hits.rows, going, slot, rows) for slot in range(1, slots)])
        if not going.any():
            break
    return _Runs(_count_with_bit(hits.rows, going, slots - 1, rows), pairs)


def _count_with_bit(rows_of: Ints, masks: Masks, bit: int, rows: int) -> Floats:
    """Count the hits of each row that have this bit set."""
    return np.bincount(rows_of[(masks >> np.uint64(bit)) & np.uint64(1) > 0], minlength=rows).astype(np.float64)


def _pair_shares(shares: Floats) -> Floats:
    """Compute each adjacent slot pair's share of the idf of all pairs."""
    both = shares[1:] + shares[:-1]
    return both / both.sum() if both.sum() > 0 else both


def _select_ordered(values: Floats) -> Floats:
    """Select the columns of the fields in which word order is a ranking feature."""
    return values[:, [TEXT_FIELDS.index(field) for field in _ORDERED]]


def _compute_exactness(hits: _Hits, present: Floats, runs: _Runs, lengths: Ints, shares: Floats) -> tuple[Floats, ...]:
    """Compute how much of the title and link text the query covers, and whether it is the whole title."""
    pages, fields = lengths.shape
    title, anchors = TEXT_FIELDS.index("title"), TEXT_FIELDS.index("anchors")
    each = np.bincount(hits.rows, minlength=pages * fields).reshape(pages, fields)
    of_title = each[:, title] / np.maximum(lengths[:, title], 1) * (present[:, title] @ shares)
    whole = runs.whole.reshape(pages, fields)
    is_title = (whole[:, title] > 0) & (lengths[:, title] == len(shares))
    said = np.minimum(whole[:, anchors] * len(shares) / np.maximum(lengths[:, anchors], 1), 1.0)
    return of_title, is_title.astype(np.float64), np.sqrt(said)


def _compute_nearness(hits: _Hits, starts: Ints, told: Floats, pages: int) -> tuple[Floats, Floats]:
    """Compute the inverse length of the shortest body span with all slots, and the share of near slot pairs.

    ``last`` has for each hit where each slot occurred last, itself included. Anything before the start of the body
    belongs to another field and is ignored.
    """
    wanted = np.flatnonzero(told >= MIN_IDF_SHARE * told.max())
    bits = np.left_shift(np.uint64(1), wanted.astype(np.uint64))
    in_body = (hits.rows % len(TEXT_FIELDS) == _BODY) & ((hits.masks & bits.sum(dtype=np.uint64)) > 0)
    places, rows, masks = hits.places[in_body], hits.rows[in_body], hits.masks[in_body]
    if not len(places):
        return np.zeros(pages), np.zeros(pages)
    has = (masks[:, None] & bits) > 0
    last = np.maximum.accumulate(np.where(has, places[:, None], -1), axis=0)
    begins, owners = starts[rows], rows // len(TEXT_FIELDS)
    spans = np.where(last.min(axis=1) >= begins, places - last.min(axis=1) + 1, np.iinfo(np.int64).max)
    shortest = np.full(pages, np.iinfo(np.int64).max)
    np.minimum.at(shortest, owners, spans)
    near = _near_pairs(has, last, np.maximum(begins, places - NEAR_WORDS), owners, pages)
    return np.minimum(len(wanted) / shortest, 1.0), near


def _near_pairs(has: Bools, last: Ints, since: Ints, owners: Ints, pages: int) -> Floats:
    """Compute the share of adjacent query slots that occur within a few words of each other, in any order."""
    slots = has.shape[1]
    if slots == 1:
        return np.minimum(np.bincount(owners, minlength=pages), 1.0)
    recent = last >= since[:, None]
    met = (has[:, 1:] & recent[:, :-1]) | (has[:, :-1] & recent[:, 1:])
    total: Floats = np.zeros(pages)
    for pair in range(slots - 1):
        total += np.bincount(owners[met[:, pair]], minlength=pages) > 0
    total /= slots - 1
    return total


def _compute_earliness(hits: _Hits, starts: Ints, pages: int, shares: Floats) -> Floats:
    """Compute how early each query slot first occurs in the body."""
    in_body = hits.rows % len(TEXT_FIELDS) == _BODY
    places, rows, masks = hits.places[in_body], hits.rows[in_body], hits.masks[in_body]
    owners, offsets = rows // len(TEXT_FIELDS), places - starts[rows]
    total = np.zeros(pages)
    for slot, share in enumerate(shares):
        there = (masks >> np.uint64(slot)) & np.uint64(1) > 0
        pages_of, after = owners[there], offsets[there]
        first = np.concatenate(([True], pages_of[1:] != pages_of[:-1]))[: len(pages_of)]  # hits are in order
        total[pages_of[first]] += share * EARLY_HALF_WORDS / (EARLY_HALF_WORDS + after[first])
    return total
