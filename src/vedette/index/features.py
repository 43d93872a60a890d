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
from vedette.text import WordHashes

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
LOW_HALF = np.uint32(0xFFFF)

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
    """Where query slots occur: position, text and field of each hit, by position, and the slots that it fills.

    Texts follow each other, each with its fields in order (``TEXT_FIELDS``). Nearly all hits fill one slot; of one that
    fills several, ``owners`` has its row for each of them. ``slots`` and ``weights`` are parallel to ``owners``.
    ``masks`` has the slots of each hit as bits.
    """

    places: Ints
    texts: Ints
    fields: Ints
    owners: Ints
    slots: Ints
    weights: Floats
    masks: Masks


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
    return read_texts(forward, slots).tabulate(keys)


def read_texts(forward: ForwardTokens, slots: Sequence[Slot]) -> "TextFeatures":
    """Find the query's slots in texts, to compute features of them."""
    slots = slots[:MAX_SLOTS]
    return TextFeatures(find_hits(forward, slots), forward.lengths, np.array([[slot.idf for slot in slots]]))


class TextFeatures:
    """The ranking features of texts by key, each computed on demand; search and measurement share them.

    A text has a row of ``lengths``, and one of ``idf`` with a column per slot; a single row of ``idf`` applies to all.
    Tables of counts have a row per field, and in it a row per text.
    """

    def __init__(self, hits: SlotHits, lengths: Ints, idf: Floats) -> None:
        self.hits, self.lengths, self.idf = hits, np.ascontiguousarray(lengths.T), idf
        self.texts, self.slots = len(lengths), idf.shape[1]
        weights = idf if self.slots < WORDY else idf**WORDY_POWER
        total = weights.sum(axis=1, keepdims=True)
        self.shares = np.where(total > 0, weights / np.where(total > 0, total, 1.0), 1 / max(self.slots, 1))
        self.rows = hits.fields * self.texts + hits.texts

    def __getitem__(self, key: str) -> Floats:
        """Compute a feature of all texts."""
        return _COMPUTE[key](self)

    def tabulate(self, keys: Collection[str] | None = None) -> Floats:
        """Compute a column for each of ``FEATURES``; with ``keys`` only these, and all others are 0."""
        table = np.zeros((self.texts, len(FEATURES)))
        for column, feature in enumerate(FEATURES if self.texts and self.slots else ()):
            if keys is None or feature.key in keys:
                table[:, column] = self[feature.key]
        return table

    @property
    def has_slot(self) -> Bools:
        """Whether a text has a query slot in any field, by text and slot."""
        return np.asarray(self.by_slot.any(axis=0))

    def count(self, hits: Ints | None = None) -> Floats:
        """Count hits, all or some, by field and text."""
        counts = np.bincount(self.rows if hits is None else self.rows[hits], minlength=self.lengths.size)
        return counts.reshape(self.lengths.shape).astype(np.float64)

    @cached_property
    def by_slot(self) -> Floats:
        """How often each query slot occurs in each field, weighted by the alternative that matched."""
        cells = self.rows[self.hits.owners] * self.slots + self.hits.slots
        counts = np.bincount(cells, self.hits.weights, self.lengths.size * self.slots)
        return counts.reshape(*self.lengths.shape, self.slots).astype(np.float64, copy=False)

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
    def begins(self) -> Ints:
        """Where the body of each text begins."""
        return np.asarray(np.cumsum(self.lengths.sum(axis=0)) - self.lengths[_BODY])

    @cached_property
    def body(self) -> "_BodyHits":
        """The hits in bodies with a rare slot."""
        inside = np.flatnonzero(self.hits.fields == _BODY)
        texts, masks = self.hits.texts[inside], self.hits.masks[inside]
        rare = self.telling @ (np.uint64(1) << np.arange(self.slots, dtype=np.uint64))
        masks &= rare[texts] if len(self.telling) > 1 else rare
        is_rare = np.flatnonzero(masks)
        return _BodyHits(self.hits.places[inside[is_rare]], texts[is_rare], masks[is_rare])

    @cached_property
    def telling(self) -> Bools:
        """Which slots of a text's query are rare enough to count for proximity, as ``idf``."""
        return np.asarray(self.idf >= MIN_IDF_SHARE * self.idf.max(axis=1, keepdims=True))

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
        hits = SlotHits(none, none, none, none, none, np.zeros(0), np.zeros(0, np.uint64))
        super().__init__(hits, counts.lengths, np.ones((1, 1)))
        self.by_slot, self.in_title = counts.weighted[:, :, None], counts.times[_TITLE]
        self.runs = _Runs(counts.times, np.zeros((*counts.times.shape, 0)))
        self.earliness = EARLY_HALF_WORDS / (EARLY_HALF_WORDS + counts.first)


def find_numbers(words: WordHashes, known: WordHashes) -> tuple[Ints, Ints]:
    """Find where words are among the known numbers, which ascend; return the positions, and the row of each number.

    A table of the low halves discards nearly all other words at once, and the rest is looked up.
    """
    table = np.zeros(1 << 16, np.bool_)
    table[known & LOW_HALF] = True
    places: Ints = np.flatnonzero(table.take(words.astype("<u4", copy=False).view("<u2")[::2]))
    found = words[places]
    rows = np.empty(1 << 16, np.int32)  # only set rows are read
    rows[known & LOW_HALF] = np.arange(len(known))
    which = rows.take(found & LOW_HALF).astype(np.int64)
    if np.count_nonzero(table) < len(known):  # some have the same low half
        which = np.minimum(np.searchsorted(known, found), len(known) - 1)
    is_known = known[which] == found if len(known) else np.zeros(0, np.bool_)
    return places[is_known], which[is_known]


def find_hits(forward: ForwardTokens, slots: Sequence[Slot]) -> SlotHits:
    """Find all hits of the query's slots in the pages' words, in word order."""
    weights: dict[int, dict[int, float]] = {}
    for row, slot in enumerate(slots):
        for number, weight in zip(slot.numbers, slot.weights, strict=True):
            of_number = weights.setdefault(number, {})
            of_number[row] = max(of_number.get(row, 0.0), weight)
    known = np.array(sorted(weights), np.uint32)
    places, which = find_numbers(forward.words, known)
    times = np.diff(np.searchsorted(places, np.cumsum(forward.lengths)), prepend=0)
    texts, fields = (np.repeat(each, times) for each in np.divmod(np.arange(len(times)), len(TEXT_FIELDS)))
    filled = [weights[number] for number in known.tolist()]
    each = np.array([len(some) for some in filled], np.int64)
    owners, entries = np.arange(len(places)), which
    if len(known) and each.max() > 1:
        owners = np.repeat(owners, each[which])
        first = (np.cumsum(each) - each)[which]
        entries = np.arange(len(owners)) - np.repeat(np.cumsum(each[which]) - each[which] - first, each[which])
    all_slots = np.array([row for some in filled for row in some], np.int64)
    all_weights = np.array([weight for some in filled for weight in some.values()], np.float64)
    masks = np.array([sum(1 << row for row in some) for some in filled], np.uint64)
    return SlotHits(places, texts, fields, owners, all_slots[entries], all_weights[entries], masks[which])


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
    none = np.zeros((*of.lengths.shape, max(0, of.slots - 1)))
    if of.slots == 1:
        return _Runs(of.count(), none)
    rows, masks = of.rows, of.hits.masks
    going = masks
    ends = np.flatnonzero((np.diff(of.hits.places) == 1) & (rows[1:] == rows[:-1])) + 1
    pairs, last = none, np.uint64(of.slots - 1)
    for length in range(2, of.slots + 1):
        found = going[ends - 1] << np.uint64(1) & masks[ends]
        ends, found = ends[found > 0], found[found > 0]
        if length == 2:
            pairs = _count_bits(of, ends, found)
        if length == of.slots or not len(ends):
            break
        going = np.zeros_like(masks)
        going[ends] = found
    return _Runs(pairs[:, :, 0] if of.slots == 2 else of.count(ends[found >> last > 0]), pairs)


def _count_bits(of: TextFeatures, hits: Ints, masks: Masks) -> Floats:
    """Count the hits of each field and text by the bits that are set, except for the first bit."""
    bits = masks[:, None] >> np.arange(1, of.slots, dtype=np.uint64) & np.uint64(1)
    at, bit = np.nonzero(bits)
    cells = of.rows[hits[at]] * (of.slots - 1) + bit
    counts = np.bincount(cells, minlength=of.lengths.size * (of.slots - 1))
    return counts.reshape(*of.lengths.shape, of.slots - 1).astype(np.float64)


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
    """Hits of rare slots in bodies: their places, their texts, and their slots as bits."""

    places: Ints
    texts: Ints
    masks: Masks

    def find_slot(self, slot: int) -> Bools:
        """Find which hits have a slot."""
        return np.asarray(self.masks & (np.uint64(1) << np.uint64(slot)) > 0)

    def select_near(self) -> "_BodyHits":
        """Select the hits that may be near a hit of another slot: they have several, or a neighbor."""
        is_near = (np.diff(self.places) <= NEAR_WORDS) & (self.texts[1:] == self.texts[:-1])
        has_several = self.masks & (self.masks - np.uint64(1)) > 0
        some = np.flatnonzero(has_several | np.append(is_near, False) | np.append(False, is_near))
        return _BodyHits(self.places[some], self.texts[some], self.masks[some])

    def find_near(self, one: int, other: int, texts: int) -> Bools:
        """Find the texts where two slots meet within a few words: if so, two hits that follow each other do."""
        first, second = np.uint64(1) << np.uint64(one), np.uint64(1) << np.uint64(other)
        some = np.flatnonzero(self.masks & (first | second))
        masks, places, of = self.masks[some] & (first | second), self.places[some], self.texts[some]
        is_near = (np.diff(places) <= NEAR_WORDS) & (of[1:] == of[:-1])
        is_near &= masks[1:] | masks[:-1] == first | second
        met = np.zeros(texts, np.bool_)
        met[of[1:][is_near]] = met[of[masks == first | second]] = True
        return met


def _compute_span(of: TextFeatures) -> Floats:
    """Compute the inverse length of the shortest body span with all rare slots."""
    if of.slots == 1 or not len(of.body.places):
        return (of.runs.whole[_BODY] > 0).astype(np.float64) if of.slots == 1 else np.zeros(of.texts)
    places, texts, _ = of.body
    telling = np.broadcast_to(of.telling, (of.texts, of.slots))
    # Anything before the start of the body belongs to another field or text.
    last = [np.maximum.accumulate(np.where(of.body.find_slot(slot), places, -1)) for slot in range(of.slots)]
    earliest = np.minimum.reduce(
        [np.where(column[texts], at, places) for at, column in zip(last, telling.T, strict=True)]
    )
    spans = np.where(earliest >= of.begins[texts], places - earliest + 1, np.iinfo(np.int64).max)
    shortest = np.full(of.texts, np.iinfo(np.int64).max)
    np.minimum.at(shortest, texts, spans)
    return np.asarray(np.minimum(telling.sum(axis=1) / shortest, 1.0))


def _compute_near(of: TextFeatures) -> Floats:
    """Compute the share of adjacent rare slots that occur within a few words of each other, in any order.

    A query with one rare slot among others has all of it where the slot occurs.
    """
    if of.slots == 1:
        return np.zeros(of.texts)
    telling = of.telling.sum(axis=1)
    total = np.zeros(of.texts)
    if (telling == 1).any():
        total[of.body.texts] = 1.0
        total = np.where(telling == 1, total, 0.0)
    near = of.body.select_near()
    for one in range(of.slots):
        open_ = of.telling[:, one]
        for other in range(one + 1, of.slots):
            is_pair = open_ & of.telling[:, other]
            if is_pair.any():
                total += is_pair & near.find_near(one, other, of.texts)
            open_ = open_ & ~of.telling[:, other]
            if not open_.any():
                break
    return np.asarray(total / np.maximum(telling - 1, 1))


def _compute_earliness(of: TextFeatures) -> Floats:
    """Compute how early each query slot first occurs in the body."""
    hits = of.hits
    inside = np.flatnonzero(hits.fields[hits.owners] == _BODY)[::-1]
    owners = hits.owners[inside]
    first = np.full((of.texts, of.slots), np.inf)
    first[hits.texts[owners], hits.slots[inside]] = hits.places[owners]  # the last is kept: the first of the text
    return np.asarray((of.shares * EARLY_HALF_WORDS / (EARLY_HALF_WORDS + first - of.begins[:, None])).sum(axis=1))


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
