"""Answer scores: how well pages answer watched queries, by the same score that search uses.

Search scores a few hundred pages for one query; here each page is scored for the few of many queries that it answers. A
page is a candidate for a query as in search: if it has all needed words, or as many of them as it takes to find
``MIN_RESULTS`` pages. To find these without trying all, a query with k of n words needed is looked up by its n - k + 1
rarest ones only: a page without any of them cannot have k (*prefix filter*).

Anything that depends on the moment or on other results is left out: whether a query wants fresh pages, operator boosts,
folded copies, diversity of sites.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.engine.search.ports import IndexSnapshot, PageSignals
from vedette.engine.search.scoring import build_slots, score_signals, score_words
from vedette.engine.search.search import MIN_RESULTS
from vedette.frontier.impact.url_features import concatenate_ranges
from vedette.index.features import Slot, SlotHits, TextFeatures, WordCounts, WordFeatures
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
_FIELDS, _BODY = len(TEXT_FIELDS), TEXT_FIELDS.index("body")


def read_query(text: str, shelf: IndexSnapshot, now_s: float) -> WatchedQuery | None:
    """Parse a query as search does, without the operator's rules; None if it has no words, or too many."""
    plan = build_plan(parse_query(text, now_s), shelf.get_word_forms, (PUBLIC,))
    slots = build_slots(plan.wanted, shelf.df, len(shelf.finder)) if len(plan.wanted) <= MAX_SLOTS else []
    if not slots:
        return None
    is_needed = tuple(word.is_needed for word in plan.wanted)
    return WatchedQuery(tuple(slots), is_needed, _count_needed(plan, sum(is_needed), shelf.finder))


def _count_needed(plan: RetrievalPlan, words: int, finder: Searcher) -> int:
    """Count how many of the needed words a candidate page must have: fewer where few pages have all."""
    if plan.is_question:
        return (words + 1) // 2
    for fewer, node in enumerate((plan.node, *plan.looser)):
        if finder.find(node, 1, count=True).total >= MIN_RESULTS:
            return max(words - fewer, 1)
    return max(words - len(plan.looser), 1)


def read_words(numbers: WordHashes, words: Mapping[int, str], forms: WordForms) -> list[WatchedQuery]:
    """Parse single words by number as queries; one without a spelling represents only itself."""
    return [
        WatchedQuery.of_word(Slot(*_stand_for(number, words.get(number), forms), 1.0)) for number in numbers.tolist()
    ]


def _stand_for(number: int, word: str | None, forms: WordForms) -> tuple[tuple[int, ...], tuple[float, ...]]:
    others = [(hash_word(form), weight) for form, weight in (forms(word) if word else ()) if " " not in form]
    return (number, *(each for each, _ in others)), (1.0, *(weight for _, weight in others))


class _WatchedTokens(NamedTuple):
    """Tokens of texts that are watched words: their positions in all texts, and ``text * width + word``."""

    places: Ints
    keys: Ints

    def select(self, tokens: Ints) -> "_WatchedTokens":
        """Select some of the tokens."""
        return _WatchedTokens(self.places[tokens], self.keys[tokens])


class _FoundWords(NamedTuple):
    """Watched words in texts: a key for each text and word (``text * width + word``), ascending, and its hits.

    Key k has the hits ``start[k]`` to ``start[k + 1]``, each with its position in all texts and its row (text and
    field).
    """

    keys: Ints
    start: Ints
    places: Ints
    rows: Ints


class _QueryWords(NamedTuple):
    """Query words that texts contain: the pair of text and query, the entry among all queries' words, the key."""

    pair: Ints
    entry: Ints
    key: Ints

    def select(self, rows: Ints | Bools) -> "_QueryWords":
        """Select some of the words."""
        return _QueryWords(self.pair[rows], self.entry[rows], self.key[rows])


class _Pairs(NamedTuple):
    """Pairs of a text and a query that it answers, in order, and which candidates they are."""

    candidate: Ints
    text: Ints
    query: Ints
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
        if not len(self._known):
            self._known = np.zeros(1, np.uint32)  # not in the table
        self._width = len(self._known)
        self._low = np.uint32((1 << (SLOTS_PER_WORD * self._width).bit_length()) - 1)
        self._table = np.full(int(self._low) + 1, -1, np.int32)
        self._table[self._known[self._word] & self._low] = self._word
        self._slots = np.diff(watched.start)
        self._query_of_slot = np.repeat(np.arange(len(watched)), self._slots)
        self._column = watched.slot - watched.start[self._query_of_slot[watched.slot]]
        self._word_start = np.searchsorted(watched.slot, watched.start)
        self._build_gates()

    def _build_gates(self) -> None:
        """Index each query by just enough of its rarest words that every candidate has one."""
        watched, query = self._watched, self._query_of_slot
        needed = np.flatnonzero(watched.is_needed)
        order = needed[np.lexsort((-watched.idf[needed], query[needed]))]
        place = np.arange(len(order)) - np.searchsorted(query[order], query[order])
        counts = np.bincount(query[needed], minlength=len(watched))
        is_gate = np.zeros(len(query), np.bool_)
        is_gate[order] = place <= (counts - watched.min_words)[query[order]]
        self._gates = self._index_queries(np.flatnonzero(is_gate[watched.slot]))
        self._every = self._index_queries(np.arange(len(watched.slot)))

    def _index_queries(self, entries: Ints) -> tuple[Ints, Ints]:
        """Index queries by words: those of word w are ``queries[start[w]:start[w + 1]]``."""
        by_word = entries[np.argsort(self._word[entries], kind="stable")]
        start = np.searchsorted(self._word[by_word], np.arange(self._width + 1))
        return self._query_of_slot[self._watched.slot[by_word]], start

    def score(self, pages: ForwardTokens, signals: PageSignals) -> QueryScores:
        """Score how well each page answers the watched queries, as search would score it."""
        words = _group_tokens(self._find_tokens(pages), pages.lengths)
        candidates = self._look_up(words.keys, self._gates)
        pairs = self._find_pairs(words, candidates, len(pages.lengths))
        return QueryScores(pairs.text, pairs.query, self._score_pairs(pairs, words, pages.lengths, signals))

    def score_changes(
        self, before: ForwardTokens, after: ForwardTokens, signals: PageSignals, is_whole: Bools
    ) -> ScoreChanges:
        """Score the same pages before and after a change.

        A score depends on the positions of words in each field, and on the length of fields that contain them. So a
        query keeps its score if none of its words appeared, disappeared or moved, or is in a field whose length
        changed: such queries are scored once for pages that are ``is_whole``, and skipped for others.
        """
        # Score both versions at once: a call costs more than the pages of a small batch.
        both = ForwardTokens(
            np.concatenate((before.words, after.words)), np.concatenate((before.lengths, after.lengths))
        )
        pages, tokens = len(after.lengths), self._find_tokens(both)
        moved = self._look_up(self._find_moved(before, after, tokens), self._every)
        words = _group_tokens(tokens.select(self._list_counted(tokens, moved, is_whole)), both.lengths)
        is_wanted = np.append(np.zeros(pages, np.bool_), is_whole)[words.keys // self._width]
        middle = pages * max(len(self._watched), 1)
        whole = self._look_up(words.keys[is_wanted], self._gates) - middle
        # If a pair is listed twice, as moved and as wanted anyway, the first counts.
        later = np.sort(np.concatenate((moved << 1, whole << 1 | 1)))
        later = later[_find_new(later >> 1)]
        is_same = np.append(np.zeros(len(moved), np.bool_), later & 1 > 0)
        pairs = self._find_pairs(words, np.append(moved, (later >> 1) + middle), 2 * pages)
        scores = self._score_pairs(pairs, words, both.lengths, signals.take(np.tile(np.arange(pages), 2)))
        half = int(np.searchsorted(pairs.text, pages))
        old = QueryScores(pairs.text[:half], pairs.query[:half], scores[:half])
        new = QueryScores(pairs.text[half:] - pages, pairs.query[half:], scores[half:])
        return merge_scores(old, new, len(self._watched), is_same[pairs.candidate[half:]])

    def _find_tokens(self, pages: ForwardTokens) -> _WatchedTokens:
        """Find the tokens that are watched words. Most others are ruled out by one lookup in a table."""
        which = self._table.take((pages.words & self._low).astype(np.intp))
        wrong = np.flatnonzero((self._known.take(which, mode="clip") != pages.words) & (which >= 0))
        if len(wrong):
            found = pages.words[wrong]
            again = np.minimum(np.searchsorted(self._known, found), len(self._known) - 1)
            which[wrong] = np.where(self._known[again] == found, again, -1)
        places: Ints = np.flatnonzero(which >= 0)
        begins = np.repeat(np.arange(len(pages.lengths)) * self._width, pages.lengths.sum(axis=1))
        return _WatchedTokens(places, begins[places] + which[places])

    def _find_moved(self, before: ForwardTokens, after: ForwardTokens, tokens: _WatchedTokens) -> Ints:
        """Find the words, by page, that appeared, disappeared or moved; all words in fields whose length changed."""
        is_as_long = (before.lengths == after.lengths).reshape(-1)
        old, new = (np.repeat(is_as_long, each.lengths.reshape(-1)) for each in (before, after))
        is_other = np.ones(len(old) + len(new), np.bool_)
        is_other[np.append(old, new)] = np.tile(before.words[old] != after.words[new], 2)
        is_moved = np.zeros(len(before.lengths) * self._width, np.bool_)
        is_moved[tokens.keys[is_other[tokens.places]] % max(len(is_moved), 1)] = True
        return np.flatnonzero(is_moved)

    def _list_counted(self, tokens: _WatchedTokens, moved: Ints, is_whole: Bools) -> Ints:
        """List the tokens that count: words of queries that move, and all in new versions of ``is_whole`` pages."""
        page, query = np.divmod(moved, max(len(self._watched), 1))
        begins, ends = self._word_start[query], self._word_start[query + 1]
        is_counted = np.zeros((2, len(is_whole), self._width), np.bool_)
        is_counted[:, np.repeat(page, ends - begins), self._word[concatenate_ranges(begins, ends)]] = True
        is_counted[1, is_whole] = True
        return np.flatnonzero(is_counted.reshape(-1)[tokens.keys])

    def _look_up(self, keys: Ints, index: tuple[Ints, Ints]) -> Ints:
        """Look up the queries of words, by text: ``text * queries + query`` of each pair, ascending."""
        (queries, start), (text, word) = index, np.divmod(keys, self._width)
        begins, ends = start[word], start[word + 1]
        found = np.repeat(text * max(len(self._watched), 1), ends - begins) + queries[concatenate_ranges(begins, ends)]
        found.sort()
        return found[_find_new(found)]

    def _find_pairs(self, words: _FoundWords, candidates: Ints, texts: int) -> _Pairs:
        """Find which candidates have enough words of the query, and list those words."""
        (text, query), width = np.divmod(candidates, max(len(self._watched), 1)), self._width
        begins, ends = self._word_start[query], self._word_start[query + 1]
        entry, pair = concatenate_ranges(begins, ends), np.repeat(np.arange(len(text)), ends - begins)
        key_of = np.full(texts * width, -1, np.int32)
        key_of[words.keys] = np.arange(len(words.keys))
        key = key_of[text[pair] * width + self._word[entry]].astype(np.int64)
        found = _QueryWords(pair, entry, key).select(np.flatnonzero(key >= 0))
        slot = self._watched.slot[found.entry]
        is_new = _find_new(found.pair) | _find_new(slot)
        has = np.bincount(found.pair, self._watched.is_needed[slot] & is_new, len(text))
        is_kept = has >= self._watched.min_words[query]
        found = found.select(is_kept[found.pair])
        found = found._replace(pair=(np.cumsum(is_kept) - 1)[found.pair])
        return _Pairs(np.flatnonzero(is_kept), text[is_kept], query[is_kept], found)

    def _score_pairs(self, pairs: _Pairs, words: _FoundWords, lengths: Ints, signals: PageSignals) -> Floats:
        """Score pairs of texts and queries, all queries with the same number of words together."""
        points, place = np.zeros(len(pairs.text)), np.empty(len(pairs.text), np.int64)
        slots_of = self._slots[pairs.query]
        for slots in np.flatnonzero(np.bincount(slots_of)).tolist():
            some, mine = np.flatnonzero(slots_of == slots), np.flatnonzero(slots_of[pairs.words.pair] == slots)
            place[some] = np.arange(len(some))
            text, found = pairs.text[some], pairs.words.select(mine)
            points[some] = score_signals(signals, slots)[text]
            if slots == 1:  # by far the most common
                points[some] += _score_single(self._count_words(found, words, lengths, text), signals.depth[text])
            else:
                found = found._replace(pair=place[found.pair])
                hits = self._build_hits(found, words, lengths.sum(axis=1), text)
                idf = self._watched.idf[self._watched.start[pairs.query[some]][:, None] + np.arange(slots)]
                points[some] += score_words(TextFeatures(hits, lengths[text], idf), signals.depth[text], slots)
        return normalize_points(points)

    def _count_words(self, found: _QueryWords, words: _FoundWords, lengths: Ints, text: Ints) -> WordCounts:
        """Count the hits of queries of one word, with its other forms, by field and pair."""
        keys = len(words.keys)
        key, (of, field) = np.repeat(np.arange(keys), np.diff(words.start)), np.divmod(words.rows, _FIELDS)
        times = np.bincount(field * keys + key, minlength=_FIELDS * keys).reshape(_FIELDS, keys)
        inside = np.flatnonzero(field == _BODY)
        inside = inside[_find_new(key[inside])]  # positions of a key ascend
        first = np.full(keys, np.inf)
        begins = np.cumsum(lengths.sum(axis=1)) - lengths[:, _BODY]
        first[key[inside]] = words.places[inside] - begins[of[inside]]
        starts = np.flatnonzero(_find_new(found.pair))
        each = times[:, found.key].astype(np.float64)
        return WordCounts(
            np.add.reduceat(each, starts, axis=1),
            np.add.reduceat(each * self._watched.weight[found.entry], starts, axis=1),
            np.minimum.reduceat(first[found.key], starts),
            lengths[text],
        )

    def _build_hits(self, found: _QueryWords, words: _FoundWords, sizes: Ints, text: Ints) -> SlotHits:
        """Build the hits of pairs as if each pair's page were a separate text, one after the other."""
        starts, ends = words.start[found.key], words.start[found.key + 1]
        hits, times = concatenate_ranges(starts, ends), ends - starts
        begins, own = np.cumsum(sizes) - sizes, sizes[text]
        shift = np.cumsum(own) - own - begins[text]
        place = words.places[hits] + np.repeat(shift[found.pair], times)
        place, order = _sort_both(place)
        hits, word = hits[order], np.repeat(np.arange(len(times)), times)[order]
        pair, entry, field = found.pair[word], found.entry[word], words.rows[hits] % _FIELDS
        is_new = _find_new(place)
        slots = self._column[entry]
        masks = np.bitwise_or.reduceat(np.uint64(1) << slots.astype(np.uint64), np.flatnonzero(is_new))
        owners, weights = np.cumsum(is_new) - 1, self._watched.weight[entry]
        return SlotHits(place[is_new], pair[is_new], field[is_new], owners, slots, weights, masks)


def _score_single(counts: WordCounts, depth: Ints) -> Floats:
    """Score texts for queries of one word; most texts have it in their bodies only, where few features count."""
    points, is_outside = np.empty(len(depth)), counts.times[:_BODY].any(axis=0)
    for rows, is_body_only in ((np.flatnonzero(is_outside), False), (np.flatnonzero(~is_outside), True)):
        features = WordFeatures(counts.select(rows))
        points[rows] = score_words(features, depth[rows], 1, is_body_only=is_body_only)
    return points


def _group_tokens(tokens: _WatchedTokens, lengths: Ints) -> _FoundWords:
    """Group watched tokens by text and word."""
    rows = np.repeat(np.arange(lengths.size), lengths.reshape(-1))
    keys, order = _sort_both(tokens.keys)
    places, first = tokens.places[order], np.flatnonzero(_find_new(keys))
    return _FoundWords(keys[first], np.append(first, len(keys)), places, rows[places])


def _sort_both(values: Ints) -> tuple[Ints, Ints]:
    """Return values, sorted, and their order; sorting numbers is several times faster than argsort."""
    bits = np.int64(max(len(values), 1).bit_length())
    both = np.sort(values << bits | np.arange(len(values)))
    return both >> bits, both & ((np.int64(1) << bits) - 1)


def _find_new(values: Ints) -> Bools:
    """Find which values differ from the one before."""
    is_new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new
