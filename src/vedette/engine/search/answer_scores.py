"""Answer scores: how well pages answer watched queries, by the very score that search ranks its candidates with.

Search scores some hundred pages for one query; here each page is scored for the few of many queries that it answers. A
page is a candidate of a query as it is for search: where it has all needed words, or as many of them as it takes to
find ``MIN_RESULTS`` pages. To find these without trying all, a query of which k out of n words are needed is looked up
by its n - k + 1 most telling ones only: whichever page lacks them cannot have k (*prefix filter*).

Left out is what depends on the moment or on other results: that a query wants fresh pages, what the operator favours,
that copies are folded and sites take turns.
"""

from collections.abc import Mapping

import numpy as np

from vedette.engine.search.ports import IndexSnapshot, PageSignals
from vedette.engine.search.scoring import build_slots, score_texts
from vedette.engine.search.search import MIN_RESULTS
from vedette.frontier.impact.url_features import concatenate_ranges
from vedette.index.features import Slot, SlotHits, compute_hit_features
from vedette.index.fields import PUBLIC
from vedette.index.quality.watched_queries import MAX_SLOTS, QueryScores, WatchedQueries, WatchedQuery, normalize_points
from vedette.index.query.parser import parse_query
from vedette.index.query.planner import RetrievalPlan, WordForms, build_plan
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens, Searcher
from vedette.policy import Ints
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
        self._low = np.uint32((1 << (SLOTS_PER_WORD * max(len(self._known), 1)).bit_length()) - 1)
        self._table = np.full(int(self._low) + 1, -1, np.int32)
        self._table[self._known & self._low] = np.arange(len(self._known))
        sizes = np.diff(watched.start)
        self._query_of_slot = np.repeat(np.arange(len(watched)), sizes)
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
        self._gate_start = np.searchsorted(self._word[by_word], np.arange(len(self._known) + 1))

    def score(self, pages: ForwardTokens, signals: PageSignals) -> QueryScores:
        """Score how well each page answers the watched queries, as search would score it."""
        sizes = pages.lengths.sum(axis=1)
        begin = np.cumsum(sizes) - sizes
        places, word = self._find_words(pages.words)
        page = np.searchsorted(begin + sizes, places, side="right")
        width = max(len(self._known), 1)
        order = np.argsort(page * width + word, kind="stable")
        places = places[order]
        keys, first = np.unique((page * width + word)[order], return_index=True)
        ends = np.append(first[1:], len(places))
        row, query, pair, entry, at = self._find_pairs(keys, width)
        hits = concatenate_ranges(first[at], ends[at])
        pair, entry = (np.repeat(each, ends[at] - first[at]) for each in (pair, entry))
        points = np.zeros(len(row))
        local = places[hits] - begin[row[pair]]
        field = np.repeat(np.arange(pages.lengths.size), pages.lengths.reshape(-1))[places[hits]] % _FIELDS
        sizes = np.diff(self._watched.start)[query]
        place = np.empty(len(row), np.int64)
        for slots in np.unique(sizes).tolist():
            some = np.flatnonzero(sizes == slots)
            place[some] = np.arange(len(some))
            mine = np.flatnonzero(sizes[pair] == slots)
            lengths = pages.lengths[row[some]]
            found = self._build_hits(place[pair[mine]], local[mine], field[mine], entry[mine], lengths, slots)
            idf = self._watched.idf[self._watched.start[query[some]][:, None] + np.arange(slots)]
            text = compute_hit_features(found, lengths, idf)
            points[some] = score_texts(text, signals.take(row[some]), slots).scores
        return QueryScores(row, query, normalize_points(points))

    def _find_words(self, words: WordHashes) -> tuple[Ints, Ints]:
        """Find the places of watched words, and which they are. Most words are ruled out by one lookup in a table."""
        which = self._table.take((words & self._low).astype(np.intp))
        places: Ints = np.flatnonzero(which >= 0)
        found, word = words[places], which[places].astype(np.int64)
        other = np.flatnonzero(self._known[word] != found)
        if len(other):
            again = np.minimum(np.searchsorted(self._known, found[other]), len(self._known) - 1)
            word[other] = np.where(self._known[again] == found[other], again, -1)
            places, word = places[word >= 0], word[word >= 0]
        return places, word

    def _find_pairs(self, keys: Ints, width: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """Find which page answers which query, and of each pair which words of the query are where in ``keys``.

        Returns page and query of each pair, and for each word that is there the pair, the word's entry among those of
        the watched queries, and the place of its key.
        """
        queries = max(len(self._watched), 1)
        starts, stops = self._gate_start[keys % width], self._gate_start[keys % width + 1]
        gated = np.repeat(keys // width, stops - starts) * queries + self._gated[concatenate_ranges(starts, stops)]
        row, query = np.divmod(np.unique(gated), queries)
        begins, ends = self._word_start[query], self._word_start[query + 1]
        entry, pair = concatenate_ranges(begins, ends), np.repeat(np.arange(len(row)), ends - begins)
        wanted = row[pair] * width + self._word[entry]
        at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        there = np.flatnonzero(keys[at] == wanted) if len(keys) else np.zeros(0, np.int64)
        pair, entry, at = pair[there], entry[there], at[there]
        slot = self._watched.slot[entry]
        is_new = np.append(True, (np.diff(pair) != 0) | (np.diff(slot) != 0))[: len(pair)]
        has = np.bincount(pair, self._watched.is_needed[slot] & is_new, len(row))
        is_kept = has >= self._watched.min_words[query]
        renumbered = np.cumsum(is_kept) - 1
        inside = is_kept[pair]
        return row[is_kept], query[is_kept], renumbered[pair[inside]], entry[inside], at[inside]

    def _build_hits(self, pair: Ints, local: Ints, field: Ints, entry: Ints, lengths: Ints, slots: int) -> SlotHits:
        """Build the hits of pairs as if the page of each pair were a text of its own, one after the other."""
        sizes = lengths.sum(axis=1)
        place = (np.cumsum(sizes) - sizes)[pair] + local
        column = self._watched.slot[entry] - self._watched.start[self._query_of_slot[self._watched.slot[entry]]]
        if slots == 1:  # by far the most; no place is found twice
            order = np.argsort(place, kind="stable")
            rows = (pair * _FIELDS + field)[order]
            return SlotHits(place[order], rows, self._watched.weight[entry[order], None])
        every, first, at = np.unique(place, return_index=True, return_inverse=True)
        weights = np.zeros((len(every), slots))
        np.maximum.at(weights, (at, column), self._watched.weight[entry])
        return SlotHits(every, pair[first] * _FIELDS + field[first], weights)
