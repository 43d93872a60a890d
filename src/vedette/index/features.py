"""Ranking features: compute where and how closely a few hundred pages contain the words of a query.

A query is a row of *slots*, one for each of its words; a slot has the word and its alternatives. All pages are
processed together. One pass over their words finds the *hits*, the positions where a word of a slot occurs; everything
after that is arithmetic on the few hits. No step loops over pages.

Most features are between 0 and 1. Features that count slots weight each by its word's *idf*, so that a page with
"consumer lag" and not "the" has nearly all of "the consumer lag".
"""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.policy import Floats, Ints

# Slots are bits of a 64-bit mask.
MAX_SLOTS = 48
NEAR_WORDS = 8
# A position this far into a body counts half as much as the first.
EARLY_HALF_WORDS = 100
# Words with less than this share of the largest idf are left out of proximity: they are everywhere.
MIN_IDF_SHARE = 0.25
# A question of this many words has many that say little about its subject, so rare ones count more.
WORDY, WORDY_POWER = 20, 1.5
# Words of a field from which on it is too long to count as short.
LONG = {"headings": 400, "body": 4096}
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
    "body": _Bm25Constants(2.0, 0.75, 150),
}
_PLACES = {
    "title": "the title",
    "headings": "the headings",
    "anchors": "the text of links to it",
    "url": "the address",
    "body": "the text",
}
_ORDERED = ("title", "headings", "anchors", "body")
_TITLE, _HEADINGS, _ANCHORS, _URL, _BODY = (
    TEXT_FIELDS.index(field) for field in ("title", "headings", "anchors", "url", "body")
)
# A URL usually has this many words besides the names in its path: a host name, and a file's extension.
USUAL_HOST_WORDS = 4

FEATURES: tuple[Feature, ...] = (
    *(Feature(f"{field}_bm25", f"words in {_PLACES[field]}") for field in TEXT_FIELDS),
    *(Feature(f"{field}_coverage", f"share of the words in {_PLACES[field]}") for field in TEXT_FIELDS),
    *(Feature(f"{field}_phrase", f"all words in order in {_PLACES[field]}") for field in _ORDERED),
    *(Feature(f"{field}_pairs", f"pairs of words in order in {_PLACES[field]}") for field in _ORDERED),
    Feature("title_exact", "share of the title that the words cover"),
    Feature("title_is", "the title is the query"),
    Feature("anchors_exact", "share of the text of links to it that the words cover"),
    Feature("url_exact", "share of the path that the words cover"),
    Feature("body_has", "all words in order anywhere in the text"),
    Feature("body_span", "all words close together in the text"),
    Feature("body_near", "pairs of words close together in the text"),
    Feature("body_early", "words early in the text"),
    Feature("headings_short", "all words in order in few headings"),
    Feature("body_short", "all words in order in a short text"),
    Feature("anywhere", "share of the words anywhere"),
    Feature("outside", "share of the words outside the text"),
)
# These can be above 0 for a text that has the words in its body only.
BODY_FEATURES = frozenset(("anywhere", *(feature.key for feature in FEATURES if feature.key.startswith("body_"))))


class SlotHits(NamedTuple):
    """Where query slots occur: position, text and field of each hit, by position; ``weights`` has a row per slot.

    Texts follow each other, each with its fields in order (``TEXT_FIELDS``).
    """

    places: Ints
    texts: Ints
    fields: Ints
    weights: Floats

    @property
    def masks(self) -> Masks:
        """The slots of each hit as bits."""
        masks = np.zeros(len(self.places), np.uint64)
        for slot, weights in enumerate(self.weights):
            masks |= (weights > 0).astype(np.uint64) << np.uint64(slot)
        return masks


def compute_idf(df: int, pages: int) -> float:
    """Compute the idf of a word that occurs in ``df`` out of ``pages`` pages.

    >>> round(compute_idf(1, 1000), 2), round(compute_idf(1000, 1000), 4)
    (6.5, 0.0005)
    """
    return float(np.log1p((max(pages, df) - df + 0.5) / (df + 0.5)))


def compute_features(forward: ForwardTokens, slots: Sequence[Slot], keys: Collection[str] | None = None) -> Floats:
    """Compute the ranking features of pages for a query: one row per page, one column for each of ``FEATURES``.

    With ``keys`` only these are computed, and all others are 0.
    """
    slots = slots[:MAX_SLOTS]
    features = np.zeros((len(forward.lengths), len(FEATURES)))
    if not len(forward.lengths) or not slots:
        return features
    found = TextFeatures(find_hits(forward, slots), forward.lengths, np.array([[slot.idf for slot in slots]]))
    for column, feature in enumerate(FEATURES):
        if keys is None or feature.key in keys:
            features[:, column] = found[feature.key]
    return features


class TextFeatures:
    """The ranking features of texts by key, each computed on demand; search and measurement share them.

    A text has a row of ``lengths``, and one of ``idf`` with a column per slot; a single row of ``idf`` applies to all.
    Tables of counts have a row per field, and in it a row per text.
    """

    def __init__(self, hits: SlotHits, lengths: Ints, idf: Floats) -> None:
        self.hits, self.lengths, self.idf = hits, np.ascontiguousarray(lengths.T), idf
        self.texts, self.slots = len(lengths), idf.shape[1]
        telling = idf if self.slots < WORDY else idf**WORDY_POWER
        total = telling.sum(axis=1, keepdims=True)
        self.shares = np.where(total > 0, telling / np.where(total > 0, total, 1.0), 1 / self.slots)
        self.rows = hits.fields * self.texts + hits.texts

    def __getitem__(self, key: str) -> Floats:
        """Compute a feature of all texts."""
        return _COMPUTE[key](self)

    def count(self, weights: Floats | None = None) -> Floats:
        """Count hits, or sum their weights, by field and text."""
        counts = np.bincount(self.rows, weights, len(TEXT_FIELDS) * self.texts)
        return counts.reshape(len(TEXT_FIELDS), self.texts).astype(np.float64, copy=False)

    @cached_property
    def by_slot(self) -> Floats:
        """How often each query slot occurs in each field, weighted by the alternative that matched."""
        if self.slots == 1:
            return self.count(self.hits.weights[0])[:, :, None]
        return np.stack([self.count(column) for column in self.hits.weights], axis=-1)

    @cached_property
    def present(self) -> Floats:
        """Whether each field has each slot; less than 1 if only other forms of its word occur."""
        return np.minimum(self.by_slot, 1.0)

    @cached_property
    def runs(self) -> "_Runs":
        """How often all slots, and each pair of neighbors, occur in order."""
        return _find_runs(self)

    @cached_property
    def in_title(self) -> Floats:
        """How many words of the title are in the query."""
        return np.bincount(self.hits.texts[self.hits.fields == _TITLE], minlength=self.texts).astype(np.float64)

    @cached_property
    def earliness(self) -> Floats:
        """How early each query slot first occurs in the body."""
        return _compute_earliness(self)

    @cached_property
    def body(self) -> "_BodyHits":
        """The hits in the body."""
        inside = np.flatnonzero(self.hits.fields == _BODY)
        texts, places = self.hits.texts[inside], self.hits.places[inside]
        ends = np.cumsum(self.lengths.sum(axis=0))
        return _BodyHits(places, texts, (ends - self.lengths[_BODY])[texts], self.hits.weights.take(inside, axis=1))

    @cached_property
    def telling(self) -> Bools:
        """Which slots of each text's query are rare enough to count for proximity."""
        return np.broadcast_to(
            self.idf >= MIN_IDF_SHARE * self.idf.max(axis=1, keepdims=True), (self.texts, self.slots)
        )

    def weigh(self, values: Floats) -> Floats:
        """Sum values by text and slot over slots, each by its share of the idf."""
        return values[:, 0] if self.slots == 1 else np.asarray((values * self.shares).sum(axis=1))


class WordCounts(NamedTuple):
    """How often texts contain the word of a query: ``times`` and ``weighted`` by field and text.

    ``first`` is its first position in the body, infinity if there is none. Texts have rows of ``lengths``.
    """

    times: Floats
    weighted: Floats
    first: Floats
    lengths: Ints

    def select(self, texts: Ints) -> "WordCounts":
        """Select some of the texts."""
        return WordCounts(
            self.times.take(texts, axis=1), self.weighted.take(texts, axis=1), self.first[texts], self.lengths[texts]
        )


class WordFeatures(TextFeatures):
    """The ranking features of texts for queries of one word, from counts alone."""

    def __init__(self, counts: WordCounts) -> None:
        none = np.zeros(0, np.int64)
        super().__init__(SlotHits(none, none, none, np.zeros((1, 0))), counts.lengths, np.ones((1, 1)))
        self.by_slot, self.in_title = counts.weighted[:, :, None], counts.times[_TITLE]
        self.runs = _Runs(counts.times, np.zeros((*counts.times.shape, 0)))
        self.earliness = EARLY_HALF_WORDS / (EARLY_HALF_WORDS + counts.first)


def find_hits(forward: ForwardTokens, slots: Sequence[Slot]) -> SlotHits:
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
    weights = np.zeros((len(slots), len(known)))
    for row, slot in enumerate(slots):
        at = np.searchsorted(known, np.array(slot.numbers, np.uint32))
        np.maximum.at(weights[row], at, np.array(slot.weights, np.float64))
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    texts, fields = np.divmod(np.searchsorted(starts, places, side="right") - 1, len(TEXT_FIELDS))
    return SlotHits(places, texts, fields, weights.take(which, axis=1))


def _bm25(counts: Floats, lengths: Ints, field: int) -> Floats:
    """Compute Robertson and Zaragoza's BM25 of a field by text and slot, without the idf."""
    k1, b, usual = _FIELDS[TEXT_FIELDS[field]]
    slowed = k1 * (1 - b + b * lengths / usual)
    return np.asarray(counts * (k1 + 1) / (counts + slowed[:, None] + 1e-9))


class _Runs(NamedTuple):
    """How often each field has all query slots in order next to each other, and each pair of adjacent slots."""

    whole: Floats
    pairs: Floats


def _find_runs(of: TextFeatures) -> _Runs:
    """Count runs of query slots in order: bit s of ``going`` marks a run that ends at this hit with slot s."""
    pairs = np.zeros((*of.lengths.shape, max(0, of.slots - 1)))
    if of.slots == 1:
        return _Runs(of.count(), pairs)
    joined = np.zeros(len(of.rows), np.bool_)
    joined[1:] = (np.diff(of.hits.places) == 1) & (np.diff(of.rows) == 0)
    masks = going = of.hits.masks
    for length in range(2, of.slots + 1):
        before = np.concatenate((going[:1], going[:-1]))
        going = np.where(joined, (before << np.uint64(1)) & masks, np.uint64(0))
        if length == 2:
            pairs = np.stack([_count_with_bit(of, going, slot) for slot in range(1, of.slots)], axis=-1)
        if not going.any():
            break
    return _Runs(pairs[:, :, 0] if of.slots == 2 else _count_with_bit(of, going, of.slots - 1), pairs)


def _count_with_bit(of: TextFeatures, masks: Masks, bit: int) -> Floats:
    """Count the hits of each field and text that have this bit set."""
    has = np.flatnonzero(masks & (np.uint64(1) << np.uint64(bit)))
    counts = np.bincount(of.rows[has], minlength=len(TEXT_FIELDS) * of.texts)
    return counts.reshape(len(TEXT_FIELDS), of.texts).astype(np.float64)


def _pair_shares(shares: Floats) -> Floats:
    """Compute each adjacent slot pair's share of the idf of all pairs."""
    both = shares[:, 1:] + shares[:, :-1]
    total = both.sum(axis=1, keepdims=True)
    return np.asarray(both / np.where(total > 0, total, 1.0))


def _compute_pairs(of: TextFeatures, field: int) -> Floats:
    """Compute the BM25 of adjacent slots in order."""
    if of.slots == 1:
        return np.zeros(of.texts)
    counts = _bm25(of.runs.pairs[field], of.lengths[field], field)
    return np.asarray((counts * _pair_shares(of.shares)).sum(axis=1))


def _compute_title_share(of: TextFeatures) -> Floats:
    """Compute how much of the title the query covers."""
    return np.asarray(of.in_title / np.maximum(of.lengths[_TITLE], 1) * of.weigh(of.present[_TITLE]))


def _compute_anchor_share(of: TextFeatures) -> Floats:
    """Compute how much of the link texts the whole query covers."""
    said = of.runs.whole[_ANCHORS] * of.slots / np.maximum(of.lengths[_ANCHORS], 1)
    return np.asarray(np.sqrt(np.minimum(said, 1.0)))


def _compute_shortness(of: TextFeatures, field: int) -> Floats:
    """Compute how short a field with all words in order is: they were more likely taken from a short one."""
    length = np.log1p(of.lengths[field]) / np.log1p(LONG[TEXT_FIELDS[field]])
    return _unless_alone(of, np.where(of.runs.whole[field] > 0, np.maximum(1 - length, 0.0), 0.0))


def _compute_path_share(of: TextFeatures) -> Floats:
    """Compute how much of the URL's path the query covers: all of ``/faq.html`` for "faq"."""
    names = np.maximum(of.lengths[_URL] - USUAL_HOST_WORDS, 1)
    return np.asarray(np.minimum(of.by_slot[_URL].sum(axis=1) / names, 1.0) * of.weigh(of.present[_URL]))


def _unless_alone(of: TextFeatures, values: Floats | Bools) -> Floats:
    """Return the values of a feature that needs several words; a single word has no order."""
    return np.zeros(of.texts) if of.slots == 1 else np.asarray(values, np.float64)


class _BodyHits(NamedTuple):
    """Hits in bodies: their places, their texts, where the body of each begins, and their weights."""

    places: Ints
    texts: Ints
    begins: Ints
    weights: Floats

    def find_slots(self, telling: Bools) -> list[Bools]:
        """Find by slot which hits have it, where it is rare enough."""
        has = [weights > 0 for weights in self.weights]
        if telling.all():
            return has
        return [there & column[self.texts] for there, column in zip(has, telling.T, strict=True)]

    def find_near(self, one: Bools, other: Bools, texts: int) -> Bools:
        """Find the texts where two slots meet within a few words: if so, two hits that follow each other do."""
        some = np.flatnonzero(one | other)
        one, other, places, of = one[some], other[some], self.places[some], self.texts[some]
        is_near = (np.diff(places) <= NEAR_WORDS) & (of[1:] == of[:-1])
        is_near &= (one[1:] & other[:-1]) | (one[:-1] & other[1:])
        met = np.zeros(texts, np.bool_)
        met[of[1:][is_near]] = met[of[one & other]] = True
        return met


def _compute_span(of: TextFeatures) -> Floats:
    """Compute the inverse length of the shortest body span with all rare slots."""
    if of.slots == 1 or not len(of.body.places):
        return (of.runs.whole[_BODY] > 0).astype(np.float64) if of.slots == 1 else np.zeros(of.texts)
    places, texts, begins, _ = of.body
    has = of.body.find_slots(of.telling)
    # Anything before the start of the body belongs to another field or text.
    last = [np.maximum.accumulate(np.where(there, places, -1)) for there in has]
    earliest = np.minimum.reduce(
        [np.where(column[texts], at, places) for at, column in zip(last, of.telling.T, strict=True)]
    )
    is_any = np.logical_or.reduce(has)
    spans = np.where((earliest >= begins) & is_any, places - earliest + 1, np.iinfo(np.int64).max)
    shortest = np.full(of.texts, np.iinfo(np.int64).max)
    np.minimum.at(shortest, texts, spans)
    return np.asarray(np.minimum(of.telling.sum(axis=1) / shortest, 1.0))


def _compute_near(of: TextFeatures) -> Floats:
    """Compute the share of adjacent rare slots that occur within a few words of each other, in any order.

    A query with one rare slot among others has all of it where the slot occurs.
    """
    if of.slots == 1:
        return np.zeros(of.texts)
    has, telling = of.body.find_slots(of.telling), of.telling.sum(axis=1)
    total = np.where(
        telling == 1, np.minimum(np.bincount(of.body.texts[np.logical_or.reduce(has)], minlength=of.texts), 1.0), 0.0
    )
    for one in range(of.slots):
        open_ = of.telling[:, one]
        for other in range(one + 1, of.slots):
            is_pair = open_ & of.telling[:, other]
            if is_pair.any():
                total += is_pair & of.body.find_near(has[one], has[other], of.texts)
            open_ = open_ & ~of.telling[:, other]
            if not open_.any():
                break
    return np.asarray(total / np.maximum(telling - 1, 1))


def _compute_earliness(of: TextFeatures) -> Floats:
    """Compute how early each query slot first occurs in the body."""
    places, texts, begins, weights = of.body
    shares = np.broadcast_to(of.shares, (of.texts, of.slots))
    total = np.zeros(of.texts)
    for slot in range(of.slots):
        there = np.flatnonzero(weights[slot] > 0)
        owners = texts[there]
        first = np.append(True, owners[1:] != owners[:-1])[: len(owners)]  # hits are in order
        at, owners = there[first], owners[first]
        total[owners] += shares[owners, slot] * EARLY_HALF_WORDS / (EARLY_HALF_WORDS + places[at] - begins[at])
    return total


def _list_field_features(field: int) -> dict[str, Callable[[TextFeatures], Floats]]:
    """List the functions that compute the features that all fields have."""
    name = TEXT_FIELDS[field]
    return {
        f"{name}_bm25": lambda of: of.weigh(_bm25(of.by_slot[field], of.lengths[field], field)),
        f"{name}_coverage": lambda of: of.weigh(of.present[field]),
        f"{name}_phrase": lambda of: _unless_alone(
            of, _bm25(of.runs.whole[field][:, None], of.lengths[field], field)[:, 0]
        ),
        f"{name}_pairs": lambda of: _compute_pairs(of, field),
    }


_COMPUTE: dict[str, Callable[[TextFeatures], Floats]] = {
    **{key: each for field in range(len(TEXT_FIELDS)) for key, each in _list_field_features(field).items()},
    "title_exact": _compute_title_share,
    "title_is": lambda of: ((of.runs.whole[_TITLE] > 0) & (of.lengths[_TITLE] == of.slots)).astype(np.float64),
    "anchors_exact": _compute_anchor_share,
    "url_exact": _compute_path_share,
    "body_has": lambda of: _unless_alone(of, of.runs.whole[_BODY] > 0),
    "body_span": _compute_span,
    "body_near": _compute_near,
    "body_early": lambda of: of.earliness,
    "headings_short": lambda of: _compute_shortness(of, _HEADINGS),
    "body_short": lambda of: _compute_shortness(of, _BODY),
    "anywhere": lambda of: of.weigh(of.present.max(axis=0)),
    "outside": lambda of: of.weigh(of.present[:_BODY].max(axis=0)),
}
