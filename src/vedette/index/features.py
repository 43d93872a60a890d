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


class SlotHits(NamedTuple):
    """Where query slots occur: the place of each hit, its row, and its weight for each slot; in order of places.

    Texts lie one after the other, each with its fields in order (``TEXT_FIELDS``); every field of a text is a row.
    """

    places: Ints
    rows: Ints
    weights: Floats

    @property
    def masks(self) -> Masks:
        """The slots of each hit as bits."""
        bits = np.left_shift(np.uint64(1), np.arange(self.weights.shape[1], dtype=np.uint64))
        return np.asarray(((self.weights > 0) * bits).sum(axis=1, dtype=np.uint64))


def compute_idf(df: int, pages: int) -> float:
    """Compute the idf of a word that ``df`` out of ``pages`` pages have.

    >>> round(compute_idf(1, 1000), 2), round(compute_idf(1000, 1000), 4)
    (6.5, 0.0005)
    """
    return float(np.log1p((max(pages, df) - df + 0.5) / (df + 0.5)))


def compute_features(forward: ForwardTokens, slots: Sequence[Slot]) -> Floats:
    """Compute the ranking features of pages for a query: a row per page, a column for each of ``FEATURES``."""
    slots = slots[:MAX_SLOTS]
    if not len(forward.lengths) or not slots:
        return np.zeros((len(forward.lengths), len(FEATURES)))
    return compute_hit_features(_find_hits(forward, slots), forward.lengths, np.array([[slot.idf for slot in slots]]))


def compute_hit_features(hits: SlotHits, lengths: Ints, idf: Floats) -> Floats:
    """Compute the ranking features of texts from the hits of their queries; search and measurement share it.

    A text has a row of ``lengths``, and one of ``idf`` with a column per slot; one row of ``idf`` is that of all.
    Queries of one call have as many slots.
    """
    texts, fields = lengths.shape
    slots, masks = idf.shape[1], hits.masks
    starts = np.concatenate(([0], np.cumsum(lengths.reshape(-1))[:-1]))
    total = idf.sum(axis=1, keepdims=True)
    shares = np.where(total > 0, idf / np.where(total > 0, total, 1.0), 1 / slots)
    by_text = _count_slots(hits, texts * fields).reshape(texts, fields, slots)
    present = np.minimum(by_text, 1.0)
    runs = _find_runs(hits, masks, texts * fields)
    whole = runs.whole.reshape(texts, fields)
    columns = [
        *_bm25(by_text, lengths, shares).T,
        *_weigh(present, shares).T,
        *_select_ordered(_bm25(whole[:, :, None], lengths, np.ones((1, 1)))).T,
        *_select_ordered(_bm25(runs.pairs.reshape(texts, fields, -1), lengths, _pair_shares(shares))).T,
        *_compute_exactness(hits, present, whole, lengths, shares),
        (whole[:, _BODY] > 0).astype(np.float64),
        *_compute_nearness(
            hits, starts, np.broadcast_to(idf >= MIN_IDF_SHARE * idf.max(axis=1, keepdims=True), (texts, slots))
        ),
        _compute_earliness(hits, starts, texts, shares),
        np.log1p(lengths[:, _BODY]) / np.log1p(LONG_BODY),
        (present.max(axis=1) * shares).sum(axis=1),
        (present[:, :_BODY].max(axis=1) * shares).sum(axis=1),
    ]
    return np.column_stack(columns).astype(np.float64)


def _find_hits(forward: ForwardTokens, slots: Sequence[Slot]) -> SlotHits:
    """Find all hits of the query's slots in the pages' words, in word order.

    A table of the low bits discards nearly all other words at once, and the rest is looked up.
    """
    words, lengths = forward.words, forward.lengths.reshape(-1)
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
    weights = np.zeros((len(known), len(slots)))
    for column, slot in enumerate(slots):
        at = np.searchsorted(known, np.array(slot.numbers, np.uint32))
        np.maximum.at(weights[:, column], at, np.array(slot.weights, np.float64))
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    return SlotHits(places, np.searchsorted(starts, places, side="right") - 1, weights[which])


def _count_slots(hits: SlotHits, rows: int) -> Floats:
    """Count how often each query slot occurs in each field, weighted by the alternative that matched."""
    return np.column_stack([np.bincount(hits.rows, column, rows) for column in hits.weights.T])


def _weigh(values: Floats, shares: Floats) -> Floats:
    """Sum values by text, field and slot over slots, each by its share of the idf."""
    return np.asarray((values * shares[:, None, :]).sum(axis=2))


def _bm25(counts: Floats, lengths: Ints, shares: Floats) -> Floats:
    """Compute Robertson and Zaragoza's BM25 of each field, divided by the sum of the slots' idf."""
    k1, b, usual = np.array([_FIELDS[field] for field in TEXT_FIELDS]).T
    slowed = k1 * (1 - b + b * lengths / usual)
    return _weigh(counts * (k1 + 1)[:, None] / (counts + slowed[:, :, None] + 1e-9), shares)


class _Runs(NamedTuple):
    """How often each field has all query slots in order next to each other, and each pair of adjacent slots."""

    whole: Floats
    pairs: Floats


def _find_runs(hits: SlotHits, masks: Masks, rows: int) -> _Runs:
    """Count runs of query slots in order: bit s of ``going`` marks a run that ends at this hit with slot s."""
    joined = np.zeros(len(hits.places), np.bool_)
    joined[1:] = (np.diff(hits.places) == 1) & (np.diff(hits.rows) == 0)
    going, slots = masks, hits.weights.shape[1]
    pairs = np.zeros((rows, max(0, slots - 1)))
    for length in range(2, slots + 1):
        before = np.concatenate((going[:1], going[:-1]))
        going = np.where(joined, (before << np.uint64(1)) & masks, np.uint64(0))
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
    both = shares[:, 1:] + shares[:, :-1]
    total = both.sum(axis=1, keepdims=True)
    return np.asarray(both / np.where(total > 0, total, 1.0))


def _select_ordered(values: Floats) -> Floats:
    """Select the columns of the fields in which word order is a ranking feature."""
    return values[:, [TEXT_FIELDS.index(field) for field in _ORDERED]]


def _compute_exactness(
    hits: SlotHits, present: Floats, whole: Floats, lengths: Ints, shares: Floats
) -> tuple[Floats, ...]:
    """Compute how much of the title and link text the query covers, and whether it is the whole title."""
    title, anchors, slots = TEXT_FIELDS.index("title"), TEXT_FIELDS.index("anchors"), shares.shape[1]
    each = np.bincount(hits.rows, minlength=lengths.size).reshape(lengths.shape)
    of_title = each[:, title] / np.maximum(lengths[:, title], 1) * (present[:, title] * shares).sum(axis=1)
    is_title = (whole[:, title] > 0) & (lengths[:, title] == slots)
    said = np.minimum(whole[:, anchors] * slots / np.maximum(lengths[:, anchors], 1), 1.0)
    return of_title, is_title.astype(np.float64), np.sqrt(said)


def _compute_nearness(hits: SlotHits, starts: Ints, telling: Bools) -> tuple[Floats, Floats]:
    """Compute the inverse length of the shortest body span with all telling slots, and the share of near slot pairs.

    ``last`` has for each hit where each slot occurred last, itself included. Anything before the start of the body
    belongs to another field and is ignored. ``telling`` marks the slots that count, by text.
    """
    texts = len(telling)
    if telling.shape[1] == 1:
        there = np.bincount(hits.rows, minlength=texts * len(TEXT_FIELDS)).reshape(texts, -1)[:, _BODY] > 0
        return there.astype(np.float64), there.astype(np.float64)
    in_body = np.flatnonzero(hits.rows % len(TEXT_FIELDS) == _BODY)
    places, rows = hits.places[in_body], hits.rows[in_body]
    begins, owners = starts[rows], rows // len(TEXT_FIELDS)
    has = (hits.weights[in_body] > 0) & telling[owners]
    if not len(places):
        return np.zeros(texts), np.zeros(texts)
    last = np.maximum.accumulate(np.where(has, places[:, None], -1), axis=0)
    earliest = np.where(telling[owners], last, places[:, None]).min(axis=1)
    spans = np.where((earliest >= begins) & has.any(axis=1), places - earliest + 1, np.iinfo(np.int64).max)
    shortest = np.full(texts, np.iinfo(np.int64).max)
    np.minimum.at(shortest, owners, spans)
    near = _near_pairs(has, last >= np.maximum(begins, places - NEAR_WORDS)[:, None], owners, telling)
    return np.minimum(telling.sum(axis=1) / shortest, 1.0), near


def _near_pairs(has: Bools, recent: Bools, owners: Ints, telling: Bools) -> Floats:
    """Compute the share of adjacent telling slots that occur within a few words of each other, in any order.

    A query with one telling slot has all of it where the slot occurs.
    """
    texts, slots = telling.shape
    alone = telling.sum(axis=1) == 1
    total = np.where(alone, np.minimum(np.bincount(owners[has.any(axis=1)], minlength=texts), 1.0), 0.0)
    for one in range(slots):
        open_ = telling[:, one]
        for other in range(one + 1, slots):
            is_pair = open_ & telling[:, other]
            if is_pair.any():
                met = (has[:, other] & recent[:, one]) | (has[:, one] & recent[:, other])
                total += is_pair & (np.bincount(owners[met], minlength=texts) > 0)
            open_ = open_ & ~telling[:, other]
            if not open_.any():
                break
    return np.asarray(total / np.maximum(telling.sum(axis=1) - 1, 1))


def _compute_earliness(hits: SlotHits, starts: Ints, texts: int, shares: Floats) -> Floats:
    """Compute how early each query slot first occurs in the body."""
    in_body = hits.rows % len(TEXT_FIELDS) == _BODY
    rows, weights = hits.rows[in_body], hits.weights[in_body]
    owners, offsets = rows // len(TEXT_FIELDS), hits.places[in_body] - starts[rows]
    shares = np.broadcast_to(shares, (texts, shares.shape[1]))
    total = np.zeros(texts)
    for slot in range(shares.shape[1]):
        there = weights[:, slot] > 0
        of, after = owners[there], offsets[there]
        first = np.concatenate(([True], of[1:] != of[:-1]))[: len(of)]  # hits are in order
        total[of[first]] += shares[of[first], slot] * EARLY_HALF_WORDS / (EARLY_HALF_WORDS + after[first])
    return total
