"""Answer scores: how well pages answer watched queries, by the very score that search ranks its candidates with.

Search scores some hundred pages for one query; here each page is scored for the few of many queries that it answers. A
page is a candidate of a query as it is for search: where it has all needed words, or as many of them as it takes to
find ``MIN_RESULTS`` pages. To find these without trying all, a query of which k out of n words are needed is looked up
by its n - k + 1 most telling ones only: whichever page lacks them cannot have k (*prefix filter*).

Left out is what depends on the moment or on other results: that a query wants fresh pages, what the operator favours,
that copies are folded and sites take turns.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.engine.search.ports import IndexSnapshot, PageSignals
from vedette.engine.search.scoring import build_slots, score_texts
from vedette.engine.search.search import MIN_RESULTS
from vedette.frontier.impact.url_features import concatenate_ranges
from vedette.index.features import Slot, SlotHits, TextFeatures
from vedette.index.fields import PUBLIC
from vedette.index.quality.watched_queries import (
    MAX_SLOTS,
    Bools,
    QueryScores,
    ScoreChanges,
    WatchedQueries,
    WatchedQuery,
    merge_scores,
    normalize_points,
)
from vedette.index.query.parser import parse_query
from vedette.index.query.planner import RetrievalPlan, WordForms, build_plan
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens, Searcher
from vedette.policy import Floats, Ints
from vedette.text import WordHashes, hash_word

SLOTS_PER_WORD = 8
_FIELDS = len(TEXT_FIELDS)


def read_query(text: str, shelf: IndexSnapshot, now_s: float) -> WatchedQuery | None:
    """Read a query as search does, without the operator's rules; None where it has no words, or too many."""
    plan = build_plan(parse_query(text, now_s), shelf.get_word_forms, (PUBLIC,))
    slots = build_slots(plan.wanted, shelf) if len(plan.wanted) <= MAX_SLOTS else []
    if not slots:
        return None
    is_needed = tuple(word.is_needed for word in plan.wanted)
    return WatchedQuery(tuple(slots), is_needed, _count_needed(plan, sum(is_needed), shelf.finder))


def _count_needed(plan: RetrievalPlan, words: int, finder: Searcher) -> int:
    """Count how many of the needed words a page must have to be a candidate: fewer where few pages have all."""
    if plan.is_question:
        return (words + 1) // 2
    for fewer, node in enumerate((plan.node, *plan.looser)):
        if finder.find(node, 1, count=True).total >= MIN_RESULTS:
            return max(words - fewer, 1)
    return max(words - len(plan.looser), 1)


def read_words(numbers: WordHashes, words: Mapping[int, str], forms: WordForms) -> list[WatchedQuery]:
    """Read single words by number as queries; one without a spelling stands for itself alone."""
    return [
        WatchedQuery.of_word(Slot(*_stand_for(number, words.get(number), forms), 1.0)) for number in numbers.tolist()
    ]


def _stand_for(number: int, word: str | None, forms: WordForms) -> tuple[tuple[int, ...], tuple[float, ...]]:
    others = [(hash_word(form), weight) for form, weight in (forms(word) if word else ()) if " " not in form]
    return (number, *(each for each, _ in others)), (1.0, *(weight for _, weight in others))


class _FoundWords(NamedTuple):
    """Watched words in texts: a key for each text and word (``text * width + word``), ascending, and its hits.

    Key k has the hits ``start[k]`` to ``start[k + 1]``, each with its place in all texts and its row (text and field).
    """

    keys: Ints
    start: Ints
    places: Ints
    rows: Ints


class _QueryWords(NamedTuple):
    """Words of queries that texts have: the pair of text and query, the entry among all queries' words, the key."""

    pair: Ints
    entry: Ints
    key: Ints

    def select(self, rows: Ints | Bools) -> "_QueryWords":
        """Select some of the words."""
        return _QueryWords(self.pair[rows], self.entry[rows], self.key[rows])


class _Pairs(NamedTuple):
    """Pairs of a text and a query that it answers, in order; ``is_same`` where a change left the pair as it was."""

    text: Ints
    query: Ints
    is_same: Bools
    words: _QueryWords


class AnswerScorer:
    """Score pages for watched queries, many pages at once; no step loops over pages or queries.

    >>> from vedette.index.quality.watched_queries import build_watched
    >>> tide, low = Slot((5,), (1.0,), 3.0), Slot((7,), (1.0,), 1.0)
    >>> both = WatchedQuery((low, tide), (True, True), 2)
    >>> scorer = AnswerScorer(build_watched([(both, 1.0), (WatchedQuery.of_word(low), 1.0)]))
    >>> pages = ForwardTokens(np.array([7, 5, 7], np.uint32), np.array([[0, 0, 0, 0, 2], [0, 0, 0, 0, 1]]))
    >>> found = scorer.score(pages, PageSignals.neutral(2))
    >>> found.page.tolist(), found.query.tolist(), bool(found.score[0] > found.score[1])
    ([0, 0, 1], [0, 1, 1], True)
    """

    def __init__(self, watched: WatchedQueries) -> None:
        self._watched = watched
        self._known, self._word = np.unique(watched.words, return_inverse=True)
        self._width = max(len(self._known), 1)
        self._low = np.uint32((1 << (SLOTS_PER_WORD * self._width).bit_length()) - 1)
        self._table = np.full(int(self._low) + 1, -1, np.int32)
        self._table[self._known & self._low] = np.arange(len(self._known))
        self._slots = np.diff(watched.start)
        self._query_of_slot = np.repeat(np.arange(len(watched)), self._slots)
        self._column = watched.slot - watched.start[self._query_of_slot[watched.slot]]
        self._word_start = np.searchsorted(watched.slot, watched.start)
        self._build_gates()

    def _build_gates(self) -> None:
        """Index each query by as many of its most telling words as no candidate can lack."""
        watched, query = self._watched, self._query_of_slot
        needed = np.flatnonzero(watched.is_needed)
        order = needed[np.lexsort((-watched.idf[needed], query[needed]))]
        place = np.arange(len(order)) - np.searchsorted(query[order], query[order])
        counts = np.bincount(query[needed], minlength=len(watched))
        is_gate = np.zeros(len(query), np.bool_)
        is_gate[order] = place <= (counts - watched.min_words)[query[order]]
        entries = np.flatnonzero(is_gate[watched.slot])
        by_word = entries[np.argsort(self._word[entries], kind="stable")]
        self._gated = query[watched.slot[by_word]]
        self._gate_start = np.searchsorted(self._word[by_word], np.arange(self._width + 1))

    def score(self, pages: ForwardTokens, signals: PageSignals) -> QueryScores:
        """Score how well each page answers the watched queries, as search would score it."""
        words = self._find_words(pages)
        pairs = self._find_pairs(words, len(pages.lengths), None)
        return QueryScores(pairs.text, pairs.query, self._score_pairs(pairs, words, pages.lengths, signals))

    def score_changes(self, before: ForwardTokens, after: ForwardTokens, signals: PageSignals) -> ScoreChanges:
        """Score the same pages before and after a change.

        Where a page is as long as before, queries none of whose words came, went or moved are scored once.
        """
        # Both versions at once: a call costs more than the pages of a small batch.
        both = ForwardTokens(*(np.concatenate(each) for each in zip(before, after, strict=True)))
        pages = len(after.lengths)
        words = self._find_words(both)
        pairs = self._find_pairs(words, 2 * pages, self._find_moved(before, after, words))
        scores = self._score_pairs(pairs, words, both.lengths, signals.take(np.tile(np.arange(pages), 2)))
        middle = int(np.searchsorted(pairs.text, pages))
        old = QueryScores(pairs.text[:middle], pairs.query[:middle], scores[:middle])
        new = QueryScores(pairs.text[middle:] - pages, pairs.query[middle:], scores[middle:])
        return merge_scores(old, new, len(self._watched), pairs.is_same[middle:])

    def _find_words(self, pages: ForwardTokens) -> _FoundWords:
        """Find watched words in texts. Most words are ruled out by one lookup in a table."""
        which = self._table.take((pages.words & self._low).astype(np.intp))
        places: Ints = np.flatnonzero(which >= 0)
        found, word = pages.words[places], which[places].astype(np.int64)
        other = np.flatnonzero(self._known[word] != found)
        if len(other):
            again = np.minimum(np.searchsorted(self._known, found[other]), len(self._known) - 1)
            word[other] = np.where(self._known[again] == found[other], again, -1)
            places, word = places[word >= 0], word[word >= 0]
        row = np.repeat(np.arange(pages.lengths.size), pages.lengths.reshape(-1))
        # Numbers are sorted several times as fast as an order of them is found.
        shift = np.int64(max(len(pages.words), 1).bit_length())
        sorted_ = np.sort((row[places] // _FIELDS * self._width + word) << shift | places)
        keys, places = sorted_ >> shift, sorted_ & ((1 << shift) - 1)
        first = np.flatnonzero(_find_new(keys))
        return _FoundWords(keys[first], np.append(first, len(keys)), places, row[places])

    def _find_moved(self, before: ForwardTokens, after: ForwardTokens, words: _FoundWords) -> Bools:
        """Find which words, by page, came, went or moved; where a page has another length all may count differently."""
        is_as_long = (before.lengths == after.lengths).all(axis=1)
        same_before, same_after = (np.repeat(is_as_long, each.lengths.sum(axis=1)) for each in (before, after))
        is_other = before.words[same_before] != after.words[same_after]
        same_before[same_before], same_after[same_after] = is_other, is_other
        is_moved = np.repeat(~is_as_long, self._width)
        keys = np.repeat(words.keys, np.diff(words.start))
        is_moved[keys[np.concatenate((same_before, same_after))[words.places]] % len(is_moved)] = True
        return is_moved

    def _find_pairs(self, words: _FoundWords, texts: int, moved: Bools | None) -> _Pairs:
        """Find which text answers which query.

        With words that ``moved`` the texts are pages before a change, then the same ones after it; a pair that is the
        same in both is listed after it only.
        """
        queries, width = max(len(self._watched), 1), self._width
        starts, stops = self._gate_start[words.keys % width], self._gate_start[words.keys % width + 1]
        gated = np.repeat(words.keys // width, stops - starts) * queries
        gated = np.sort(gated + self._gated[concatenate_ranges(starts, stops)])
        text, query = np.divmod(gated[_find_new(gated)], queries)
        is_same = np.zeros(len(text), np.bool_)
        if moved is not None:
            pages = texts // 2
            begins, ends = self._word_start[query], self._word_start[query + 1]
            pair = np.repeat(np.arange(len(text)), ends - begins)
            has_moved = moved[(text % pages)[pair] * width + self._word[concatenate_ranges(begins, ends)]]
            is_same = np.bincount(pair, has_moved, len(text)) == 0
            kept = ~is_same | (text >= pages)
            text, query, is_same = text[kept], query[kept], is_same[kept]
        begins, ends = self._word_start[query], self._word_start[query + 1]
        entry, pair = concatenate_ranges(begins, ends), np.repeat(np.arange(len(text)), ends - begins)
        key_of = np.full(texts * width, -1, np.int32)
        key_of[words.keys] = np.arange(len(words.keys))
        key = key_of[text[pair] * width + self._word[entry]]
        found = _QueryWords(pair, entry, key).select(np.flatnonzero(key >= 0))
        slot = self._watched.slot[found.entry]
        is_new = _find_new(found.pair) | _find_new(slot)
        has = np.bincount(found.pair, self._watched.is_needed[slot] & is_new, len(text))
        is_kept = has >= self._watched.min_words[query]
        found = found.select(is_kept[found.pair])
        found = found._replace(pair=(np.cumsum(is_kept) - 1)[found.pair])
        return _Pairs(text[is_kept], query[is_kept], is_same[is_kept], found)

    def _score_pairs(self, pairs: _Pairs, words: _FoundWords, lengths: Ints, signals: PageSignals) -> Floats:
        """Score pairs of texts and queries, all queries of as many words together."""
        points, place = np.zeros(len(pairs.text)), np.empty(len(pairs.text), np.int64)
        slots_of = self._slots[pairs.query]
        for slots in np.flatnonzero(np.bincount(slots_of)).tolist():
            some, mine = np.flatnonzero(slots_of == slots), np.flatnonzero(slots_of[pairs.words.pair] == slots)
            place[some] = np.arange(len(some))
            text = pairs.text[some]
            found = pairs.words.select(mine)
            found = found._replace(pair=place[found.pair])
            hits = self._build_hits(found, words, lengths.sum(axis=1), text, slots)
            idf = self._watched.idf[self._watched.start[pairs.query[some]][:, None] + np.arange(slots)]
            points[some] = score_texts(TextFeatures(hits, lengths[text], idf), signals.take(text), slots)
        return normalize_points(points)

    def _build_hits(self, found: _QueryWords, words: _FoundWords, sizes: Ints, text: Ints, slots: int) -> SlotHits:
        """Build the hits of pairs as if the page of each pair were a text of its own, one after the other."""
        starts, ends = words.start[found.key], words.start[found.key + 1]
        hits, times = concatenate_ranges(starts, ends), ends - starts
        begins, own = np.cumsum(sizes) - sizes, sizes[text]
        shift = np.cumsum(own) - own - begins[text]
        place = words.places[hits] + np.repeat(shift[found.pair], times)
        order = np.argsort(place, kind="stable")
        place, hits, word = place[order], hits[order], np.repeat(np.arange(len(times)), times)[order]
        pair, entry, field = found.pair[word], found.entry[word], words.rows[hits] % _FIELDS
        if slots == 1:  # by far the most; no place is found twice
            return SlotHits(place, pair, field, self._watched.weight[entry][:, None])
        is_new = _find_new(place)
        weights = np.zeros((int(is_new.sum()), slots))
        weights[np.cumsum(is_new) - 1, self._column[entry]] = self._watched.weight[entry]
        return SlotHits(place[is_new], pair[is_new], field[is_new], weights)


def _find_new(values: Ints) -> Bools:
    """Find which values differ from the one before."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new
