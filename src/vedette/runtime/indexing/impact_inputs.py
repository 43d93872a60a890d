"""What is known of URLs before they are fetched, out of index and state: their words, and who links to them.

Of pages that were fetched the same is told as it would be if they had not been, as far as that can be had: what others
call them, and the links of others. What has been said of them since is in it.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.adapters.crawl_store.url_list import UrlFacts
from vedette.adapters.index_store.impact_store import KeptSketches
from vedette.adapters.index_store.indexer_store import read_aliases, read_names
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.engine.search.answer_scores import Answering
from vedette.frontier.impact.matching import Wanted
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import NOBODY, Sketches
from vedette.frontier.impact.url_features import Described, Flags, folders_of, strings_of
from vedette.index.pagerank import page_importance
from vedette.index.quality.term_curves import TermCurves, idf_of_terms
from vedette.index.query.retrieval import TEXT_FIELDS, All, Any, Finder, Term
from vedette.model import fingerprint
from vedette.policy import Floats, Ints
from vedette.text import Numbers, numbers_of

__all__ = [
    "Linked",
    "brought_up_to_date",
    "described_urls",
    "linked",
    "needy_queries",
    "prints_of",
    "prints_of_urls",
    "wanted_of",
]

# Each making goes on where the last one ended: pages that changed since are scored against all queries at once; queries
# that are new, or have lost more results than they had to spare, are asked of the index, the most frequent first and so
# many at a time. Between two makings it is seen how many new results queries got, from which improvability is learned.
# The index is asked for its best candidates by its own scores, which are nearly, not exactly, those that count here.


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


MOST_NAMES = 8  # of one URL
NOTHING_LINKS = 1e-9


class Linked(NamedTuple):
    """How many indexed pages link to each URL, by ascending print, and how important that makes it."""

    prints: Ints
    inlinks: Ints
    importance: Floats

    def of(self, prints: Ints) -> tuple[Ints, Floats]:
        """The same for some; nothing links to a URL that is not among them."""
        if not len(self.prints):
            return np.zeros(len(prints), np.int64), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        least = float(self.importance.min())
        return np.where(known, self.inlinks[at], 0), np.where(known, self.importance[at], least)


def prints_of_urls(urls: Sequence[UrlFacts]) -> Ints:
    """Their fingerprints."""
    return np.array([fingerprint(one.url) for one in urls], np.int64)


def linked(table: PageTable, prints: Ints) -> Linked:
    """Links from all pages of the index to each other and to the URLs with these prints, and PageRank over them.

    Importance is its logarithm, to the mean: what is linked from everywhere has a thousand times what others have.
    """
    ids = table.indexed
    own = table.rows["print"][ids]
    nodes = np.unique(np.concatenate((own, prints)))
    links = [np.unique(table.links(id_)) for id_ in ids.tolist()]
    source = np.repeat(np.searchsorted(nodes, own), [len(each) for each in links])
    target_prints = _followed(np.concatenate(links) if links else np.zeros(0, np.int64), table.folder)
    if not len(nodes):
        return Linked(nodes, np.zeros(0, np.int64), np.zeros(0))
    target = np.minimum(np.searchsorted(nodes, target_prints), len(nodes) - 1)
    known = (nodes[target] == target_prints) & (source != target)
    source, target = source[known], target[known]
    ranks = page_importance(source, target, len(nodes))
    importance = np.log(np.maximum(ranks * len(nodes), NOTHING_LINKS))
    return Linked(nodes, np.bincount(target, minlength=len(nodes)), importance)


def _followed(prints: Ints, generation: Path) -> Ints:
    """Where URLs lead that lead on, one step."""
    aliases = np.array(read_aliases(generation), np.int64).reshape(-1, 2)
    if not len(aliases) or not len(prints):
        return prints
    aliases = aliases[np.argsort(aliases[:, 0], kind="stable")]
    places = np.minimum(np.searchsorted(aliases[:, 0], prints), len(aliases) - 1)
    return np.where(aliases[places, 0] == prints, aliases[places, 1], prints)


def described_urls(urls: Sequence[UrlFacts], prints: Ints, known: Linked, generation: Path) -> Described:
    """All that is known of these URLs."""
    texts = [one.url for one in urls]
    folder, branch = folders_of(texts)
    inlinks, importance = known.of(prints)
    return Described(
        depth=np.array([one.depth for one in urls], np.int64),
        found=np.array([one.id for one in urls], np.int64),
        inlinks=inlinks,
        importance=importance,
        folder=folder,
        branch=branch,
        strings=strings_of(texts, read_names(generation, prints.tolist(), MOST_NAMES)),
    )
