"""Keeps the sketches of all queries that people ask true, page by page: what changed is scored, who is short is asked.

Each making goes on where the last one ended: pages that changed since are scored against all queries at once; queries
that are new, or have lost more results than they had to spare, are asked of the index, the most frequent first and so
many at a time. Between two makings it is seen how many new results queries got, from which improvability is learned.

The index is asked for its best candidates by its own scores, which are nearly, not exactly, those that count here.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import xxhash

from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.adapters.index_store.sketch_file import KeptSketches
from vedette.engine.search.answer_scores import Answering
from vedette.frontier.impact.matching import Wanted
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import NOBODY, Sketches
from vedette.frontier.impact.url_features import Flags
from vedette.index.quality.term_curves import TermCurves, idf_of_terms
from vedette.index.query.retrieval import TEXT_FIELDS, All, Any, Finder, Term
from vedette.policy import Floats, Ints
from vedette.text import Numbers, numbers_of

__all__ = ["brought_up_to_date", "needy_queries", "prints_of", "wanted_of"]

MOST_QUERIES = 100_000
MOST_WORDS = 12  # of a query; what is longer finds itself
MOST_ASKED = 5_000  # of the index, in one making
CANDIDATES = 60
QUERIES_AT_ONCE, PAGES_AT_ONCE = 100, 1000
UNASKED = 1 << 20  # results that a query has lost which was never asked
TOP_SCORE = 20.0  # beyond this mean score all queries are alike
# The neediest queries, a share of all, are matched with the words of unseen URLs; of few queries all are.
NEEDY_SHARE, LEAST_NEEDY = 0.01, 1_000

Ask = Callable[[str], Ints]


def wanted_of(
    queries: Sequence[str], shares: Floats, curves: TermCurves | None, pages: int
) -> tuple[list[str], Wanted]:
    """Queries as numbers, with how telling their words are: those that have any words, and not too many."""
    kept = [place for place, words in enumerate(queries[:MOST_QUERIES]) if 0 < words.count(" ") + 1 <= MOST_WORDS]
    texts = [queries[place] for place in kept]
    words = numbers_of(" ".join(texts).encode("utf-8", "replace"))
    start = np.append(0, np.cumsum([text.count(" ") + 1 for text in texts], dtype=np.int64))
    if len(words) != start[-1]:  # what is no word any more since another version wrote it
        return [], Wanted(words[:0], np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
    return texts, Wanted(words, start, shares[kept], _telling(words, curves, pages))


def _telling(words: Numbers, curves: TermCurves | None, pages: int) -> Floats:
    rare = float(idf_of_terms(np.zeros(1, np.int64), max(pages, 1))[0])
    if curves is None or not len(curves.watched):
        return np.full(len(words), rare)
    known = curves.watched.numbers
    at = np.minimum(np.searchsorted(known, words), len(known) - 1)
    return np.where(known[at] == words, curves.idf[at], rare)


def prints_of(queries: Sequence[str]) -> Ints:
    """By what queries are known again in the next making."""
    return np.array([xxhash.xxh64_intdigest(text.encode()) >> 1 for text in queries], np.int64)


def asker(finder: Finder) -> Ask:
    """Asks the index for the pages that have all words of a query, wherever."""

    def ask(text: str) -> Ints:
        every = (Any(tuple(Term(field, word) for field in TEXT_FIELDS)) for word in text.split())
        return finder.find(All(tuple(every)), CANDIDATES).ids

    return ask


class _Asked:
    """All queries of a making, in its order."""

    def __init__(self, texts: Sequence[str], wanted: Wanted, table: PageTable) -> None:
        self.texts, self.wanted, self.table = texts, wanted, table

    def changed(self, sketches: Sketches, pages: Ints) -> Sketches:
        """After these pages changed, or went away."""
        answering = Answering(self.wanted)
        for begin in range(0, len(pages), PAGES_AT_ONCE):
            some = pages[begin : begin + PAGES_AT_ONCE]
            there = some[self.table.at(some)["flags"] & INDEXED > 0]
            found = answering.of(self.table.forward(there))
            query, place = np.nonzero(np.isin(sketches.page, some))
            # What stood there is out, unless it comes again with what it scores now: the later entry holds.
            sketches = sketches.put(
                np.concatenate((query, found.query)),
                np.concatenate((sketches.page[query, place], there[found.row])),
                np.concatenate((np.zeros(len(query)), found.score)),
            )
        return sketches

    def asked(self, sketches: Sketches, queries: Ints, ask: Ask) -> Sketches:
        """After these queries were put to the index."""
        score, page, lost = sketches.score.copy(), sketches.page.copy(), sketches.lost.copy()
        score[queries], page[queries], lost[queries] = 0.0, NOBODY, 0
        sketches = replace(sketches, score=score, page=page, lost=lost)
        for begin in range(0, len(queries), QUERIES_AT_ONCE):
            some = queries[begin : begin + QUERIES_AT_ONCE]
            ids = np.unique(np.concatenate([ask(self.texts[query]) for query in some.tolist()]))
            ids = ids[self.table.at(ids)["flags"] & INDEXED > 0]
            found = Answering(self.wanted.some(some)).of(self.table.forward(ids))
            sketches = sketches.put(some[found.query], ids[found.row], found.score)
        # What did not fit was never there: nothing was lost by it.
        return replace(sketches, lost=np.where(np.isin(np.arange(len(lost)), queries), 0, sketches.lost))


def brought_up_to_date(
    kept: KeptSketches | None,
    texts: Sequence[str],
    wanted: Wanted,
    table: PageTable,
    changed: Ints,
    seq: int,
    ask: Ask,
) -> KeptSketches:
    """The sketches of these queries after what changed up to ``seq``."""
    prints, every = prints_of(texts), _Asked(texts, wanted, table)
    before, is_kept = _carried(kept, prints)
    after = every.changed(before, changed) if len(changed) else before
    short = after.short()
    short = short[np.argsort(-wanted.frequency[short], kind="stable")][:MOST_ASKED]
    if len(short):
        after = every.asked(after, np.sort(short), ask)
    rates = kept.rates if kept is not None else Improvability(top=TOP_SCORE)
    whole = np.flatnonzero(is_kept & (before.lost < UNASKED))
    if len(changed) and len(whole):
        rates = rates.after(before.mean()[whole], _new_results(before, after, whole))
    return KeptSketches(prints, after, rates, seq)


def _carried(kept: KeptSketches | None, prints: Ints) -> tuple[Sketches, Flags]:
    """What was kept of these queries, and of which; the others were never asked."""
    sketches = Sketches.empty(len(prints))
    sketches.lost[:] = UNASKED
    is_kept = np.zeros(len(prints), np.bool_)
    if kept is None or not len(kept.prints) or kept.sketches.score.shape[1] != sketches.score.shape[1]:
        return sketches, is_kept
    order = np.argsort(kept.prints, kind="stable")
    at = order[np.minimum(np.searchsorted(kept.prints[order], prints), len(order) - 1)]
    is_kept = kept.prints[at] == prints
    for mine, theirs in zip(
        (sketches.score, sketches.page, sketches.lost),
        (kept.sketches.score, kept.sketches.page, kept.sketches.lost),
        strict=True,
    ):
        mine[is_kept] = theirs[at[is_kept]]
    return sketches, is_kept


def _new_results(before: Sketches, after: Sketches, queries: Ints) -> Floats:
    """How many of the first K of each query were not among them before."""
    new, old = (each.page[queries, : each.first] for each in (after, before))
    was_there = (new[:, :, None] == old[:, None, :]).any(axis=2)
    return np.asarray(((new != NOBODY) & ~was_there).sum(axis=1), np.float64)


def needy_queries(kept: KeptSketches, wanted: Wanted) -> Ints:
    """The neediest of those that have sketches: often asked, and not well answered yet."""
    some = np.flatnonzero(kept.sketches.lost < UNASKED)
    if not len(some):
        return some
    share = max(NEEDY_SHARE, LEAST_NEEDY / len(some))
    chosen = needy(wanted.frequency[some], kept.rates.of(kept.sketches.mean()[some]), min(share, 1.0))
    return some[chosen]
