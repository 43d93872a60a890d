"""Impact inputs: query sketches, and what index and state know of URLs before they are fetched.

Fetched pages are described as they would be if they had not been fetched, as far as possible: by anchor texts and by
the links of other pages. What was added since is included.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xxhash

from vedette.adapters.crawl_store.url_list import UrlFacts
from vedette.adapters.index_store.impact_store import StoredSketches
from vedette.adapters.index_store.indexer_store import follow_aliases, read_anchors
from vedette.adapters.index_store.page_table import INDEXED, PageTable
from vedette.engine.search.answer_scores import QueryScorer
from vedette.frontier.impact.matching import QuerySet
from vedette.frontier.impact.query_need import Improvability, needy
from vedette.frontier.impact.sketches import NO_PAGE, Sketches
from vedette.frontier.impact.url_features import DescribedUrls, Flags, hash_folders, tokenize_texts
from vedette.index.pagerank import page_importance
from vedette.index.quality.term_curves import TermCurves, compute_term_idf
from vedette.index.query.retrieval import TEXT_FIELDS, And, Or, Searcher, Term
from vedette.model import fingerprint
from vedette.policy import Floats, Ints
from vedette.text import WordHashes, hash_words

# Each making goes on where the last one ended: pages that changed since are scored against all queries at once; queries
# that are new, or have lost more results than they had to spare, are asked of the index, the most frequent first and so
# many at a time. Between two makings it is seen how many new results queries got, from which improvability is learned.
# The index is asked for its best candidates by its own scores, which are nearly, not exactly, those that count here.


MAX_QUERIES = 100_000
MAX_WORDS = 12  # of a query; what is longer finds itself
MAX_REQUERIES = 5_000  # of the index, in one making
CANDIDATES = 60
QUERIES_AT_ONCE, PAGES_AT_ONCE = 100, 1000
NEVER_QUERIED = 1 << 20  # results that a query has lost which was never asked
TOP_SCORE = 20.0  # beyond this mean score all queries are alike
# The neediest queries, a share of all, are matched with the words of unseen URLs; of few queries all are.
NEEDY_SHARE, MIN_NEEDY = 0.01, 1_000

FindCandidates = Callable[[str], Ints]


def encode_queries(
    queries: Sequence[str], shares: Floats, curves: TermCurves | None, pages: int
) -> tuple[list[str], QuerySet]:
    """Encode queries for the impact pass as word numbers with idf weights; skip empty and very long ones."""
    kept = [place for place, words in enumerate(queries[:MAX_QUERIES]) if 0 < words.count(" ") + 1 <= MAX_WORDS]
    texts = [queries[place] for place in kept]
    words = hash_words(" ".join(texts).encode("utf-8", "replace"))
    start = np.append(0, np.cumsum([text.count(" ") + 1 for text in texts], dtype=np.int64))
    if len(words) != start[-1]:  # what is no word any more since another version wrote it
        return [], QuerySet(words[:0], np.zeros(1, np.int64), np.zeros(0), np.zeros(0))
    return texts, QuerySet(words, start, shares[kept], _compute_idf(words, curves, pages))


def _compute_idf(words: WordHashes, curves: TermCurves | None, pages: int) -> Floats:
    rare = float(compute_term_idf(np.zeros(1, np.int64), max(pages, 1))[0])
    if curves is None or not len(curves.tracked):
        return np.full(len(words), rare)
    known = curves.tracked.numbers
    at = np.minimum(np.searchsorted(known, words), len(known) - 1)
    return np.where(known[at] == words, curves.idf[at], rare)


def hash_queries(queries: Sequence[str]) -> Ints:
    """Hash queries, to find their sketches again in the next impact pass."""
    return np.array([xxhash.xxh64_intdigest(text.encode()) >> 1 for text in queries], np.int64)


def build_finder(finder: Searcher) -> FindCandidates:
    """Build a function that finds the index's pages with all words of a query, for query sketches."""

    def ask(text: str) -> Ints:
        every = (Or(tuple(Term(field, word) for field in TEXT_FIELDS)) for word in text.split())
        return finder.find(And(tuple(every)), CANDIDATES).ids

    return ask


class _SketchUpdater:
    """Updater of the sketches of all queries of an impact pass, in its order."""

    def __init__(self, texts: Sequence[str], wanted: QuerySet, table: PageTable) -> None:
        self.texts, self.wanted, self.table = texts, wanted, table

    def apply_changes(self, sketches: Sketches, pages: Ints) -> Sketches:
        """Update the query sketches after these pages changed or went away."""
        answering = QueryScorer(self.wanted)
        for begin in range(0, len(pages), PAGES_AT_ONCE):
            some = pages[begin : begin + PAGES_AT_ONCE]
            there = some[self.table.get_rows(some)["flags"] & INDEXED > 0]
            found = answering.score(self.table.read_forward(there))
            query, place = np.nonzero(np.isin(sketches.page, some))
            # What stood there is out, unless it comes again with what it scores now: the later entry holds.
            sketches = sketches.put(
                np.concatenate((query, found.query)),
                np.concatenate((sketches.page[query, place], there[found.row])),
                np.concatenate((np.zeros(len(query)), found.score)),
            )
        return sketches

    def requery(self, sketches: Sketches, queries: Ints, ask: FindCandidates) -> Sketches:
        """Rebuild the sketches of these queries by searching the index."""
        score, page, lost = sketches.score.copy(), sketches.page.copy(), sketches.removed.copy()
        score[queries], page[queries], lost[queries] = 0.0, NO_PAGE, 0
        sketches = replace(sketches, score=score, page=page, removed=lost)
        for begin in range(0, len(queries), QUERIES_AT_ONCE):
            some = queries[begin : begin + QUERIES_AT_ONCE]
            ids = np.unique(np.concatenate([ask(self.texts[query]) for query in some.tolist()]))
            ids = ids[self.table.get_rows(ids)["flags"] & INDEXED > 0]
            found = QueryScorer(self.wanted.select(some)).score(self.table.read_forward(ids))
            sketches = sketches.put(some[found.query], ids[found.row], found.score)
        # What did not fit was never there: nothing was lost by it.
        return replace(sketches, removed=np.where(np.isin(np.arange(len(lost)), queries), 0, sketches.removed))


def update_sketches(
    kept: StoredSketches | None,
    texts: Sequence[str],
    wanted: QuerySet,
    table: PageTable,
    changed: Ints,
    seq: int,
    ask: FindCandidates,
) -> StoredSketches:
    """Update the sketches of these queries for all index changes up to ``seq``."""
    prints, every = hash_queries(texts), _SketchUpdater(texts, wanted, table)
    before, is_kept = _carry_over(kept, prints)
    after = every.apply_changes(before, changed) if len(changed) else before
    short = after.find_short()
    short = short[np.argsort(-wanted.frequency[short], kind="stable")][:MAX_REQUERIES]
    if len(short):
        after = every.requery(after, np.sort(short), ask)
    rates = kept.rates if kept is not None else Improvability(top=TOP_SCORE)
    whole = np.flatnonzero(is_kept & (before.removed < NEVER_QUERIED))
    if len(changed) and len(whole):
        rates = rates.add_cycle(before.compute_means()[whole], _count_new_results(before, after, whole))
    return StoredSketches(prints, after, rates, seq)


def _carry_over(kept: StoredSketches | None, prints: Ints) -> tuple[Sketches, Flags]:
    """Carry over the stored sketches of these queries, and mark which had one."""
    sketches = Sketches.empty(len(prints))
    sketches.removed[:] = NEVER_QUERIED
    is_kept = np.zeros(len(prints), np.bool_)
    if kept is None or not len(kept.prints) or kept.sketches.score.shape[1] != sketches.score.shape[1]:
        return sketches, is_kept
    order = np.argsort(kept.prints, kind="stable")
    at = order[np.minimum(np.searchsorted(kept.prints[order], prints), len(order) - 1)]
    is_kept = kept.prints[at] == prints
    for mine, theirs in zip(
        (sketches.score, sketches.page, sketches.removed),
        (kept.sketches.score, kept.sketches.page, kept.sketches.removed),
        strict=True,
    ):
        mine[is_kept] = theirs[at[is_kept]]
    return sketches, is_kept


def _count_new_results(before: Sketches, after: Sketches, queries: Ints) -> Floats:
    """Count how many of the first K results of each query sketch are new."""
    new, old = (each.page[queries, : each.top_k] for each in (after, before))
    was_there = (new[:, :, None] == old[:, None, :]).any(axis=2)
    return np.asarray(((new != NO_PAGE) & ~was_there).sum(axis=1), np.float64)


def needy_queries(kept: StoredSketches, wanted: QuerySet) -> Ints:
    """Select the neediest queries with sketches: frequent, and not well answered yet."""
    some = np.flatnonzero(kept.sketches.removed < NEVER_QUERIED)
    if not len(some):
        return some
    share = max(NEEDY_SHARE, MIN_NEEDY / len(some))
    chosen = needy(wanted.frequency[some], kept.rates.predict(kept.sketches.compute_means()[some]), min(share, 1.0))
    return some[chosen]


MAX_NAMES = 8  # of one URL
MIN_RANK = 1e-9


class LinkStats(NamedTuple):
    """Link statistics for the impact pass: in-links from indexed pages and importance, by URL fingerprint."""

    prints: Ints
    inlinks: Ints
    importance: Floats

    def get(self, prints: Ints) -> tuple[Ints, Floats]:
        """Look up in-links and importance of URLs by fingerprint; the least where nothing links to a URL."""
        if not len(self.prints):
            return np.zeros(len(prints), np.int64), np.zeros(len(prints))
        at = np.minimum(np.searchsorted(self.prints, prints), len(self.prints) - 1)
        known = self.prints[at] == prints
        least = float(self.importance.min())
        return np.where(known, self.inlinks[at], 0), np.where(known, self.importance[at], least)


def fingerprint_urls(urls: Sequence[UrlFacts]) -> Ints:
    """Compute the fingerprints of URLs for the impact pass."""
    return np.array([fingerprint(one.url) for one in urls], np.int64)


def compute_link_stats(table: PageTable, prints: Ints) -> LinkStats:
    """Compute link statistics and PageRank over indexed pages and unseen URLs, for the impact pass.

    Importance is its logarithm, to the mean: what is linked from everywhere has a thousand times what others have.
    """
    ids = table.indexed
    own = table.rows["print"][ids]
    nodes = np.unique(np.concatenate((own, prints)))
    links = [np.unique(table.read_links(id_)) for id_ in ids.tolist()]
    source = np.repeat(np.searchsorted(nodes, own), [len(each) for each in links])
    target_prints = follow_aliases(table.folder, np.concatenate(links) if links else np.zeros(0, np.int64))
    if not len(nodes):
        return LinkStats(nodes, np.zeros(0, np.int64), np.zeros(0))
    target = np.minimum(np.searchsorted(nodes, target_prints), len(nodes) - 1)
    known = (nodes[target] == target_prints) & (source != target)
    source, target = source[known], target[known]
    ranks = page_importance(source, target, len(nodes))
    importance = np.log(np.maximum(ranks * len(nodes), MIN_RANK))
    return LinkStats(nodes, np.bincount(target, minlength=len(nodes)), importance)


def describe_urls(urls: Sequence[UrlFacts], prints: Ints, known: LinkStats, generation: Path) -> DescribedUrls:
    """Build the feature rows of URLs for the impact pass: all that is known before they are fetched."""
    texts = [one.url for one in urls]
    folder, branch = hash_folders(texts)
    inlinks, importance = known.get(prints)
    return DescribedUrls(
        depth=np.array([one.depth for one in urls], np.int64),
        found=np.array([one.id for one in urls], np.int64),
        inlinks=inlinks,
        importance=importance,
        folder=folder,
        branch=branch,
        texts=tokenize_texts(texts, read_anchors(generation, prints.tolist(), MAX_NAMES)),
    )
