"""Importance experiment: does importance by links (in-links, PageRank) agree with impact on search?

The *impact* of a page is how often it is among the first K results of searches (Impact08, section 1.1, where K is 10).
All pages that exist at the end of the span are ranked for every query by their text alone (``build_tfidf`` of
``vedette.lab.quality.scoring``, ties older first), so links play no part in it. *Importance* is the policy: the number
of pages that link to a page (``in-links``), or PageRank (``pagerank``). A budget is K.

Queries are of three kinds (``queries_from``): 0, the TREC Million Query file, whose frequencies are Zipf's law over an
order drawn by the seed; 1, the Excite log of 1997, with its own repetitions; 2, drawn from the pages, two neighboring
words of a page that is drawn uniformly, each query searched once. The first two are used if VEDETTE_DATA names a folder
that has them. Queries without an answer are left out.

The rows are one per kind of queries, with the rank correlation (Spearman), its 95% interval (percentiles of a
bootstrap over pages) and the linear correlation (Pearson) given in the paper; and one per tenth of the pages by
importance (``bin``), with the mean, median and 90th percentile of their impact, as the bars and points of its figure 2.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.index.pagerank import page_importance, percentiles
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, resolve_span
from vedette.lab.core.statistics import pearson, spearman
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import QUERY_FILES, Queries, find_query_file, read_query_file, select_answerable
from vedette.lab.quality.scoring import build_tfidf
from vedette.lab.quality.workload import build_workload, compute_slot_scores, draw_queries, rank_results
from vedette.lab.runs.web_snapshot import WebSnapshot, take_snapshot
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import History
from vedette.policy import Floats, rng_for

RESAMPLES = 500
BINS = 10
OWN_METRICS: Mapping[str, Metric] = {
    "spearman": Metric("rank correlation of importance and impact"),
    "spearman_low": Metric("lower end of its 95% confidence interval"),
    "spearman_high": Metric("upper end of its 95% confidence interval"),
    "pearson": Metric("Pearson correlation of importance and impact"),
    "pages": Metric("pages that live at the end of the span"),
    "queries": Metric("queries that some page answers"),
    "without": Metric("share of pages without any impact", "share"),
    "hidden": Metric("share of the 1% with the most impact that are in the lower half by importance", "share"),
    "impact_mean": Metric("impact of a page in this decile of importance, relative to the mean"),
    "impact_median": Metric("its median"),
    "impact_p90": Metric("its 90th percentile"),
}


def compute_importance(seen: WebSnapshot, measure: str) -> Floats:
    """Compute the importance of each page by links: "in-links" or "pagerank"."""
    if measure == "in-links":
        return np.bincount(seen.target, minlength=seen.web.pages).astype(np.float64)
    return page_importance(seen.source, seen.target, seen.web.pages, hosts=seen.web.site)


class PageImpact(NamedTuple):
    """Search impact of pages: how often each is among the first results, and how many queries any page answers."""

    pages: Floats
    queries: int


def compute_impact(seen: WebSnapshot, queries: Queries, first: int) -> PageImpact:
    """Compute the search impact of each page: how often it is among the ``first`` results of all queries."""
    corpus = load_corpus(seen.web, queries.term)
    everything = np.arange(seen.web.pages)
    workload = build_workload(corpus, select_answerable(queries, corpus), build_tfidf(corpus, everything))
    lists = rank_results(workload, compute_slot_scores(workload, everything), np.arange(workload.queries))
    shown = lists.rank <= first
    weights = workload.frequency[lists.row[shown]]
    pages = np.bincount(workload.slot_page[lists.slot[shown]], weights, minlength=seen.web.pages)
    return PageImpact(pages.astype(np.float64), len(np.unique(lists.row)))


def _bootstrap_spearman(one: Floats, other: Floats, seed: int) -> tuple[float, float]:
    rng = rng_for(seed, "lab/importance/bootstrap")
    drawn = (rng.integers(0, len(one), len(one)) for _ in range(RESAMPLES))
    low, high = np.nanquantile([spearman(one[rows], other[rows]) for rows in drawn], (0.025, 0.975))
    return float(low), float(high)


def build_rows(importance: Floats, impact: PageImpact, seed: int) -> list[dict[str, float]]:
    """Build the rows of the importance experiment for one kind of queries."""
    if len(importance) < 2 or not impact.queries:
        return [{"pages": len(importance), "queries": impact.queries}]
    values = impact.pages / impact.pages.mean()
    low, high = _bootstrap_spearman(importance, values, seed)
    summary = {
        "pages": len(values),
        "queries": impact.queries,
        "spearman": spearman(importance, values),
        "spearman_low": low,
        "spearman_high": high,
        "pearson": pearson(importance, values),
        "without": float((values == 0).mean()),
        "hidden": _hidden_share(importance, values),
    }
    return [summary, *_build_bin_rows(importance, values)]


def _hidden_share(importance: Floats, impact: Floats) -> float:
    most = np.argsort(-impact, kind="stable")[: max(1, len(impact) // 100)]
    return float((percentiles(importance)[most] < 0.5).mean())


def _build_bin_rows(importance: Floats, impact: Floats) -> Iterator[dict[str, float]]:
    places = np.minimum((percentiles(importance) * BINS).astype(np.int64), BINS - 1)
    for place in np.unique(places).tolist():
        inside = impact[places == place]
        middle, high = np.quantile(inside, (0.5, 0.9))
        yield {
            "bin": place,
            "pages": len(inside),
            "impact_mean": float(inside.mean()),
            "impact_median": float(middle),
            "impact_p90": float(high),
        }


class Importance(Experiment):
    """The importance experiment."""

    name = "importance"
    about = "Are important pages the ones that queries find? (budget: how many results count)"
    worlds = ("git", "live")  # made histories have no texts
    own = OWN_METRICS
    metrics = tuple(OWN_METRICS)
    policies = ("in-links", "pagerank")
    budgets = (10.0,)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the importance experiment on a cell: all rows, by kind of queries."""
        history = open_history(cell.world)
        seen = take_snapshot(history, resolve_span(cell.span, history.begin_s, history.end_s)[1])
        if not seen.web.pages:
            raise UsageError(f"{cell.world}: no page exists at the end of the period; use an earlier --to")
        importance = compute_importance(seen, cell.policy)
        return [
            {"queries_from": float(kind), **row}
            for kind, queries in _iter_query_sets(seen.web, cell.seed)
            for row in build_rows(importance, compute_impact(seen, queries, max(1, int(cell.budget))), cell.seed)
        ]


def _iter_query_sets(web: History, seed: int) -> Iterator[tuple[int, Queries]]:
    for kind, name in enumerate(QUERY_FILES):
        if path := find_query_file(name):
            yield kind, read_query_file(path, seed)
    yield len(QUERY_FILES), draw_queries(web, np.arange(web.pages), seed)


EXPERIMENT = Importance()
