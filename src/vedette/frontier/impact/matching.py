"""Match the words of unseen URLs and their anchors to queries by n-grams (Impact08, section 5.3).

Queries and strings are cut into runs of one, two and three words (*n-grams*). As printed, a URL matches a query where
at least a share rho of the query's n-grams occur in its strings, whichever string has each; rho = 1 asks for all.

The paper keeps an index over the unseen URLs and looks queries up in it. Here it is the other way round: the n-grams
of the *queries* are the index, and URLs stream past it. There are few needy queries and many URLs, so what is kept is
bounded by the share of needy ones, and a link is judged when it is seen.

A URL becomes a candidate of a query by the query's most telling word only. Of two words one is in a million strings
and one in ten: only the second is worth a lookup.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.url_features import Flags, UrlTexts, concatenate_ranges
from vedette.policy import Floats, Ints
from vedette.text import FACTOR, WideHashes, WordHashes, scramble

MAX_NGRAM = 3  # words of an n-gram, as in the paper
SLOTS_PER_NGRAM = 16
MAX_PAIRS = 2_000_000  # of one batch; behind that, more words match than anything can be told from


@dataclass(frozen=True, slots=True)
class QuerySet:
    """The queries that people ask: query ``q`` has ``words[start[q]:start[q + 1]]``, asked ``frequency[q]`` times.

    ``idf`` says of each of these words how much it says (its idf); all equal where that is unknown.
    """

    words: WordHashes
    start: Ints
    frequency: Floats
    idf: Floats

    def __len__(self) -> int:
        return len(self.frequency)

    def select(self, queries: Ints) -> "QuerySet":
        """Return only these queries of the set, renumbered."""
        starts, ends = self.start[queries], self.start[queries + 1]
        at = concatenate_ranges(starts, ends)
        start = np.append(0, np.cumsum(ends - starts))
        return QuerySet(self.words[at], start, self.frequency[queries], self.idf[at])


NO_QUERIES = QuerySet(np.zeros(0, np.uint32), np.zeros(1, np.int64), np.zeros(0), np.zeros(0))


class Hits(NamedTuple):
    """N-grams of queries found in the strings of unseen URLs: the n-gram, the row, and whether in an anchor."""

    ngram: Ints
    row: Ints
    is_anchor: Flags


class Pairs(NamedTuple):
    """Candidate pairs of an unseen URL and a query that it matches, with how much of the query is where.

    ``share`` is the share of n-grams that any string has, ``in_url`` and ``in_anchors`` the shares of the query's
    words there, by how telling they are, ``longest_ngram`` the longest n-gram found, ``links`` how many strings of
    links have its most telling word.
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
    """Hash the word n-grams of one size in strings: a hash each, and the string that has it."""
    owner = np.repeat(np.arange(len(start) - 1), np.diff(start))
    first = np.arange(max(len(words) - size + 1, 0))
    first = first[owner[first] == owner[first + size - 1]]
    numbers = scramble(words[first].astype(np.uint64))
    for step in range(1, size):
        numbers = scramble(numbers * FACTOR + words[first + step])
    return numbers, owner[first]


class Matcher:
    """An index of the n-grams of queries, to match strings of unseen URLs against."""

    def __init__(self, wanted: QuerySet) -> None:
        self._wanted = wanted
        parts = [hash_ngrams(wanted.words, wanted.start, size) for size in range(1, MAX_NGRAM + 1)]
        grams, query = (np.concatenate(each) for each in zip(*parts, strict=True))
        size = np.repeat(np.arange(1, MAX_NGRAM + 1), [len(numbers) for numbers, _ in parts])
        telling = np.append(wanted.idf, np.zeros(len(grams) - len(wanted.words)))
        self._known, at = np.unique(grams, return_inverse=True)
        # A word that a query repeats counts once.
        _, once = np.unique(query * max(len(self._known), 1) + at, return_index=True)
        self._gram, self._size, self._telling = at[once], size[once], telling[once]
        self._start = np.searchsorted(query[once], np.arange(len(wanted) + 1))
        self._index_gates(query[once])
        self._mask = np.uint64((1 << (SLOTS_PER_NGRAM * max(len(self._known), 1)).bit_length()) - 1)
        self._may = np.zeros(int(self._mask) + 1, np.bool_)
        self._may[(self._known & self._mask).astype(np.intp)] = True

    def _index_gates(self, query: Ints) -> None:
        """Index each query by its most telling word, by which unseen URLs become its candidates."""
        order = np.lexsort((-self._telling, self._size, query))
        some = np.flatnonzero(np.diff(self._start))
        gate = self._gram[order[self._start[some]]]
        by_gate = np.argsort(gate, kind="stable")
        self._gated = some[by_gate]
        self._gate_start = np.searchsorted(gate[by_gate], np.arange(len(self._known) + 1))

    @property
    def size_bytes(self) -> int:
        """The memory that the n-gram index of queries takes."""
        arrays = (self._known, self._gram, self._size, self._telling, self._start)
        return sum(each.nbytes for each in (*arrays, self._gated, self._gate_start, self._may))

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
        return np.repeat(row, ends - starts), self._gated[concatenate_ranges(starts, ends)]

    def _score_pairs(self, row: Ints, query: Ints, seen: tuple[Ints, Ints, Ints], width: int) -> Pairs:
        url, anchors, times = seen
        starts, ends = self._start[query], self._start[query + 1]
        at, pair = concatenate_ranges(starts, ends), np.repeat(np.arange(len(row)), ends - starts)
        keys = row[pair] * width + self._gram[at]
        is_in_url, _ = _find_in(keys, url)
        is_in_anchors, place = _find_in(keys, anchors)
        told = _sum_by_pair(pair, self._telling[at], len(row))
        told[told == 0] = 1.0
        anywhere = is_in_url | is_in_anchors
        run, links = np.zeros(len(row), np.int64), np.zeros(len(row), np.int64)
        np.maximum.at(run, pair, np.where(anywhere, self._size[at], 0))
        if len(anchors):
            np.maximum.at(links, pair, np.where(is_in_anchors & (self._size[at] == 1), times[place], 0))
        return Pairs(
            row,
            query,
            _sum_by_pair(pair, anywhere, len(row)) / np.maximum(ends - starts, 1),
            _sum_by_pair(pair, is_in_url * self._telling[at], len(row)) / told,
            _sum_by_pair(pair, is_in_anchors * self._telling[at], len(row)) / told,
            run,
            links,
        )


def _find_in(keys: Ints, known: Ints) -> tuple[Flags, Ints]:
    """Find which n-gram keys are in a sorted array of known ones, and where."""
    if not len(known):
        return np.zeros(len(keys), np.bool_), np.zeros(len(keys), np.int64)
    at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return known[at] == keys, at


def _sum_by_pair(pair: Ints, values: Floats | Flags, pairs: int) -> Floats:
    return np.asarray(np.bincount(pair, values, pairs), np.float64)
