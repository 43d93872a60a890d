"""Match the words of unseen URLs and their anchors to queries by n-grams (Impact08, section 5.3).

Queries and strings are cut into runs of one, two and three words (*n-grams*). As published, a URL matches a query if at
least a share rho of the query's n-grams occur in its strings, in any of them; rho = 1 requires all. Other forms of a
word count as in search: an n-gram occurs if any form of each of its words does, and counts with the weight of that
form.

The paper indexes the unseen URLs and looks queries up in that index. Here it is the other way round: the n-grams of the
*queries* are indexed, and URLs are streamed past them. There are few needy queries and many URLs, so memory is bounded
by the needy queries, and a link is judged when it is found.

A URL becomes a candidate of a query only by the query's rarest word. If one word is in a million strings and another in
ten, only the second is worth a lookup.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.url_features import Flags, UrlTexts, concatenate_ranges
from vedette.policy import Floats, Ints
from vedette.text import FACTOR, WideHashes, WordHashes, scramble

MAX_NGRAM = 3  # words of an n-gram, as in the paper
SLOTS_PER_NGRAM = 16
MAX_PAIRS = 2_000_000  # of one batch; beyond that, more words match than are informative


class WordForms(NamedTuple):
    """Other forms of the words of queries: form ``words[i]`` represents the query word at ``place[i]``, ascending."""

    words: WordHashes
    place: Ints
    weight: Floats


NO_FORMS = WordForms(np.zeros(0, np.uint32), np.zeros(0, np.int64), np.zeros(0))


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Queries of users: query ``q`` has ``words[start[q]:start[q + 1]]``, searched ``frequency[q]`` times.

    ``idf`` is the idf of each of these words; all equal if unknown.
    """

    words: WordHashes
    start: Ints
    frequency: Floats
    idf: Floats
    forms: WordForms = NO_FORMS

    def __len__(self) -> int:
        return len(self.frequency)

    def select(self, queries: Ints) -> "QuerySet":
        """Return only these queries of the set, renumbered."""
        starts, ends = self.start[queries], self.start[queries + 1]
        at = concatenate_ranges(starts, ends)
        start = np.append(0, np.cumsum(ends - starts))
        begins, stops = (np.searchsorted(self.forms.place, at, side=side) for side in ("left", "right"))
        places = concatenate_ranges(begins, stops)
        forms = WordForms(
            self.forms.words[places], np.repeat(np.arange(len(at)), stops - begins), self.forms.weight[places]
        )
        return QuerySet(self.words[at], start, self.frequency[queries], self.idf[at], forms)


NO_QUERIES = QuerySet(np.zeros(0, np.uint32), np.zeros(1, np.int64), np.zeros(0), np.zeros(0))


class Hits(NamedTuple):
    """N-grams of queries found in the strings of unseen URLs: the n-gram, the row, and whether in an anchor."""

    ngram: Ints
    row: Ints
    is_anchor: Flags


class Pairs(NamedTuple):
    """Candidate pairs of an unseen URL and a query it matches, with how much of the query is found where.

    ``share`` is the share of n-grams found in any string, ``in_url`` and ``in_anchors`` the idf-weighted shares of the
    query's words there, ``longest_ngram`` the longest n-gram found, ``links`` how many link texts have its rarest word.
    """

    row: Ints
    query: Ints
    share: Floats
    in_url: Floats
    in_anchors: Floats
    longest_ngram: Ints
    links: Ints

    def select(self, rows: Ints | Flags) -> "Pairs":
        """Return only these candidate pairs of URL and query."""
        return Pairs._make(column[rows] for column in self)


def hash_ngrams(words: WordHashes, start: Ints, size: int) -> tuple[WideHashes, Ints]:
    """Hash the word n-grams of one size in strings: one hash each, and the string that contains it."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = np.arange(max(len(words) - size + 1, 0))
    first = first[owner[first] == owner[first + size - 1]]
    numbers = scramble(words[first].astype(np.uint64))
    for step in range(1, size):
        numbers = scramble(numbers * FACTOR + words[first + step])
    return numbers, owner[first]


class _Grams(NamedTuple):
    """N-grams of queries: the hash of each, its query, the n-gram that it is a form of, its size, weight and idf."""

    number: WideHashes
    query: Ints
    unit: WideHashes
    size: Ints
    weight: Floats
    telling: Floats


def _hash_query_ngrams(wanted: QuerySet, size: int) -> _Grams:
    """Hash the n-grams of one size of queries, with every form of their words."""
    place = np.append(np.arange(len(wanted.words)), wanted.forms.place)
    order = np.argsort(place, kind="stable")  # a word comes before its other forms
    words = np.append(wanted.words, wanted.forms.words)[order].astype(np.uint64)
    weights = np.append(np.ones(len(wanted.words)), wanted.forms.weight)[order]
    start = np.searchsorted(place[order], np.arange(len(wanted.words) + 1))
    owner = np.repeat(np.arange(len(wanted)), np.diff(wanted.start))
    first = np.arange(max(len(wanted.words) - size + 1, 0))
    first = first[owner[first] == owner[first + size - 1]]
    numbers, weight = np.zeros(len(first), np.uint64), np.ones(len(first))
    at = np.arange(len(first))
    for step in range(size):
        begins, ends = start[first[at] + step], start[first[at] + step + 1]
        form = concatenate_ranges(begins, ends)
        times = ends - begins
        at, numbers, weight = np.repeat(at, times), np.repeat(numbers, times), np.repeat(weight, times)
        numbers = scramble(numbers * FACTOR + words[form] if step else words[form])
        weight = weight * weights[form]
    unit, _ = hash_ngrams(wanted.words, wanted.start, size)
    telling = wanted.idf[first[at]] if size == 1 else np.zeros(len(at))
    return _Grams(numbers, owner[first[at]], unit[at], np.full(len(at), size), weight, telling)


class Matcher:
    """An index of the n-grams of queries, to match strings of unseen URLs against."""

    def __init__(self, wanted: QuerySet) -> None:
        parts = [_hash_query_ngrams(wanted, size) for size in range(1, MAX_NGRAM + 1)]
        every = _Grams(*(np.concatenate(each) for each in zip(*parts, strict=True)))
        self._known, gram = np.unique(every.number, return_inverse=True)
        unit = np.searchsorted(self._known, every.unit)
        # An n-gram that a query repeats counts once; of two equivalent ones, the one with more weight.
        order = np.lexsort((-every.weight, gram, unit, every.query))
        query, unit, gram = every.query[order], unit[order], gram[order]
        is_other_unit = np.append(True, (np.diff(query) != 0) | (np.diff(unit) != 0))[: len(order)]
        once = is_other_unit | np.append(True, np.diff(gram) != 0)[: len(order)]
        query, order = query[once], order[once]
        self._gram, self._size, self._weight = gram[once], every.size[order], every.weight[order]
        self._telling, self._is_first = every.telling[order], is_other_unit[once]
        self._start = np.searchsorted(query, np.arange(len(wanted) + 1))
        self._units = np.bincount(query[self._is_first], minlength=len(wanted))
        self._index_gates(query)
        self._mask = np.uint64((1 << (SLOTS_PER_NGRAM * max(len(self._known), 1)).bit_length()) - 1)
        self._may = np.zeros(int(self._mask) + 1, np.bool_)
        self._may[(self._known & self._mask).astype(np.intp)] = True

    def _index_gates(self, query: Ints) -> None:
        """Index each query by its rarest word, by which unseen URLs become its candidates."""
        order = np.lexsort((-self._telling, self._size, query))
        some = np.flatnonzero(np.diff(self._start))
        unit = np.cumsum(self._is_first)
        best = np.zeros(len(self._start), np.int64)
        best[some] = unit[order[self._start[some]]]
        gates = np.flatnonzero(unit == best[query])
        by_gate = gates[np.argsort(self._gram[gates], kind="stable")]
        self._gated = query[by_gate]
        self._gate_start = np.searchsorted(self._gram[by_gate], np.arange(len(self._known) + 1))

    @property
    def size_bytes(self) -> int:
        """The memory that the n-gram index of queries takes."""
        arrays = (self._known, self._gram, self._size, self._weight, self._telling, self._is_first, self._start)
        return sum(each.nbytes for each in (*arrays, self._units, self._gated, self._gate_start, self._may))

    def match_pairs(self, strings: UrlTexts) -> Pairs:
        """Match the strings of unseen URLs to queries, and return all candidate pairs."""
        return self.build_pairs(self.find_hits(strings))

    def build_pairs(self, hits: Hits) -> Pairs:
        """Build candidate pairs of URL and query from n-gram hits found now and earlier."""
        gram, row, anchor = hits
        width = max(len(self._known), 1)
        keys = row * width + gram
        seen, times = np.unique(keys[anchor], return_counts=True)
        url = np.unique(keys[~anchor])
        every = np.union1d(url, seen)
        row, query = self._expand_gates(every // width, every % width)
        return self._score_pairs(row, query, (url, seen, times), width)

    def find_hits(self, strings: UrlTexts) -> Hits:
        """Find where n-grams of queries occur in the strings of unseen URLs."""
        found = []
        for size in range(1, MAX_NGRAM + 1):
            numbers, owner = hash_ngrams(strings.words, strings.start, size)
            maybe = np.flatnonzero(self._may[(numbers & self._mask).astype(np.intp)])
            numbers, owner = numbers[maybe], owner[maybe]
            at = np.minimum(np.searchsorted(self._known, numbers), max(len(self._known) - 1, 0))
            same = np.flatnonzero(self._known[at] == numbers) if len(self._known) else at[:0]
            found.append((at[same], strings.row[owner[same]], strings.is_anchor[owner[same]]))
        gram, row, anchor = (np.concatenate(each) for each in zip(*found, strict=True))
        return Hits(gram, row, anchor)

    def _expand_gates(self, row: Ints, gram: Ints) -> tuple[Ints, Ints]:
        starts, ends = self._gate_start[gram], self._gate_start[gram + 1]
        fits = np.cumsum(ends - starts) <= MAX_PAIRS
        row, starts, ends = row[fits], starts[fits], ends[fits]
        row, query = np.repeat(row, ends - starts), self._gated[concatenate_ranges(starts, ends)]
        # A URL may contain several forms of the word.
        _, first = np.unique(row * max(len(self._units), 1) + query, return_index=True)
        first.sort()
        return row[first], query[first]

    def _score_pairs(self, row: Ints, query: Ints, seen: tuple[Ints, Ints, Ints], width: int) -> Pairs:
        url, anchors, times = seen
        starts, ends = self._start[query], self._start[query + 1]
        at, pair = concatenate_ranges(starts, ends), np.repeat(np.arange(len(row)), ends - starts)
        keys = row[pair] * width + self._gram[at]
        is_in_url, _ = _find_in(keys, url)
        is_in_anchors, place = _find_in(keys, anchors)
        anywhere = is_in_url | is_in_anchors
        run, links = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
        np.maximum.at(run, pair, np.where(anywhere, self._size[at], 0))
        if len(anchors):
            np.maximum.at(links, pair, np.where(is_in_anchors & (self._size[at] == 1), times[place], 0))
        units = np.flatnonzero(self._is_first[at])
        pair, telling = pair[units], self._telling[at[units]]
        in_url, in_anchors = (_find_best(each * self._weight[at], units) for each in (is_in_url, is_in_anchors))
        total = _sum_by_pair(pair, telling, len(row))
        total[total == 0] = 1.0
        return Pairs(
            row,
            query,
            _sum_by_pair(pair, np.maximum(in_url, in_anchors) > 0, len(row)) / np.maximum(self._units[query], 1),
            _sum_by_pair(pair, in_url * telling, len(row)) / total,
            _sum_by_pair(pair, in_anchors * telling, len(row)) / total,
            run,
            links,
        )


def _find_in(keys: Ints, sorted_keys: Ints) -> tuple[Flags, Ints]:
    """Find which n-gram keys are in a sorted array of known ones, and where."""
    if not len(sorted_keys):
        return np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.int64)
    at = np.minimum(np.searchsorted(sorted_keys, keys), len(sorted_keys) - 1)
    return sorted_keys[at] == keys, at


def _find_best(values: Floats, starts: Ints) -> Floats:
    """Find the largest value of each run, from one start to the next."""
    return np.maximum.reduceat(values, starts) if len(starts) else values


def _sum_by_pair(pair: Ints, values: Floats | Flags, pairs: int) -> Floats:
    return np.asarray(np.bincount(pair, values, pairs), np.float64)
