"""Order experiment on a joined web: does impact order pay off if queries have answers, and which of its parts does?

Several git worlds are one web at their tips (``joined:REPOSITORY#BRANCH:FOLDER,…``). A random half of the pages is
uncrawled. Queries are titles and link texts of pages drawn by the seed, with frequencies by Zipf's law; a link text
that is a query is hidden from policies. Pages are scored as in search, without other forms of words. The impact of a
page is how often it is among the first ten of all pages; it is learned from the current gains of crawled pages, as in
production.

``default`` is the live estimator, with the settings and training data of the live impact pass; the others, except the
orders by one number, are the same without one of its inputs. ``no-sketches`` omits query sketches, URL matching and the
scorer of Impact08. A budget is the share of the uncrawled pages that is fetched. Queries that no crawled page answers
have separate rows (``bucket`` 1).
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.engine.search.answer_scores import AnswerScorer
from vedette.engine.search.needy_queries import build_impact_settings, build_training
from vedette.engine.search.ports import PageSignals
from vedette.frontier.impact.estimator import create_model, train_model
from vedette.frontier.impact.matching import NO_QUERIES
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages, hash_folders, tokenize_texts
from vedette.index.features import Slot, compute_idf
from vedette.index.pagerank import page_importance
from vedette.index.quality.gains import measure_current_gains
from vedette.index.quality.query_curves import QueryCurveBuilder, QueryCurves
from vedette.index.quality.watched_queries import QueryScores, WatchedQueries, WatchedQuery, build_watched
from vedette.index.query.retrieval import TEXT_FIELDS, ForwardTokens
from vedette.index.query.vocabulary import is_stop_word
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric
from vedette.lab.core.registry import DEFAULT
from vedette.lab.quality.corpus import concat_ranges
from vedette.lab.runs.order.run import BOUND, draw_tie_order, impact_share, parse_fetch_count
from vedette.lab.visitors.queries import zipf_shares
from vedette.lab.worlds.catalog import get_cache_folder, locate_world
from vedette.lab.worlds.git.joined import JoinedWeb, load_joined
from vedette.policy import Floats, Ints, rng_for
from vedette.text import hash_word, hash_words, normalize_words, split_words

QUERIES, MAX_QUERY_WORDS, FEW_WORDS = 1200, 6, 3
MAX_TRAINING, MAX_NAMES, PAGES_AT_ONCE = 20_000, 8, 500
TOP_RESULTS = 10
SIGNAL_ORDERS = ("breadth", "inlinks", "pagerank")
ABLATIONS = ("no-sketches", "no-word-gains", "no-words", "no-folders", "no-links")
_ANCHORS = TEXT_FIELDS.index("anchors")


class _DrawnQueries(NamedTuple):
    """The queries, how often each is searched, and the hidden links (by row)."""

    texts: list[str]
    frequency: Floats
    held_out: Ints


class _Outcome(NamedTuple):
    """The fetch order of each policy, and the impact of uncrawled pages by bucket of queries: all, without answers."""

    orders: Mapping[str, Ints]
    impact: tuple[Floats, Floats]
    crawled: int
    answered: int
    unanswered: int


def draw_queries(web: JoinedWeb, seed: int) -> _DrawnQueries:
    """Draw titles and link texts as queries, equally many, in an order that Zipf's law turns into frequencies."""
    rng = rng_for(seed, "lab/order-joined/queries")
    found: dict[str, int] = {}
    for titles, links in zip(rng.permutation(len(web.urls)), rng.permutation(len(web.source)), strict=False):
        for text, link in ((web.titles[titles], -1), (web.texts[web.text[links]], int(links))):
            words = split_words(text)
            if 0 < len(words) <= MAX_QUERY_WORDS and not all(map(is_stop_word, words)):
                found.setdefault(" ".join(words), link)
        if len(found) >= QUERIES:
            break
    chosen = np.array([link for link in found.values() if link >= 0], np.int64)
    same = np.isin(web.target * len(web.texts) + web.text, web.target[chosen] * len(web.texts) + web.text[chosen])
    return _DrawnQueries(list(found), zipf_shares(len(found), 1.0), np.flatnonzero(same))


def _watch(web: JoinedWeb, queries: _DrawnQueries) -> WatchedQueries:
    """Parse queries as search does: common words are optional; of many words half is enough."""
    numbers = np.unique(hash_words(" ".join(queries.texts).encode()))
    page = np.repeat(np.arange(len(web.urls)), web.pages.lengths.sum(axis=1))
    at = np.minimum(np.searchsorted(numbers, web.pages.words), len(numbers) - 1)
    there = np.flatnonzero(numbers[at] == web.pages.words)
    pairs = np.unique(page[there] * len(numbers) + at[there])
    df = dict(zip(numbers.tolist(), np.bincount(pairs % len(numbers), minlength=len(numbers)).tolist(), strict=True))
    watched = []
    for text, share in zip(queries.texts, queries.frequency.tolist(), strict=True):
        words = text.split()
        slots = (Slot((hash_word(word),), (1.0,), compute_idf(df[hash_word(word)], len(web.urls))) for word in words)
        needed = tuple(not is_stop_word(word) for word in words)
        count = sum(needed) if len(words) <= FEW_WORDS else (sum(needed) + 1) // 2
        watched.append((WatchedQuery(tuple(slots), needed, count), share))
    return build_watched(watched)


def _name_pages(web: JoinedWeb, links: Ints) -> list[tuple[int, str]]:
    """List different texts of these links with the page that each names, a few for a page."""
    keys = np.unique(web.target[links] * len(web.texts) + web.text[links])
    target = keys // len(web.texts)
    top_keys = keys[np.arange(len(keys)) - np.searchsorted(target, target) < MAX_NAMES]
    return [(key // len(web.texts), web.texts[key % len(web.texts)]) for key in top_keys.tolist()]


def _score(web: JoinedWeb, watched: WatchedQueries, pages: Ints, names: list[tuple[int, str]]) -> QueryScores:
    """Score pages for all queries as search does, with these texts of links to them."""
    scorer, found = AnswerScorer(watched), []
    words: dict[int, list[bytes]] = {}
    for page, text in names:
        words.setdefault(page, []).append(normalize_words(text))
    sizes = web.pages.lengths.sum(axis=1)
    starts = np.cumsum(sizes) - sizes
    before = web.pages.lengths[:, :_ANCHORS].sum(axis=1)
    for begin in range(0, len(pages), PAGES_AT_ONCE):
        some = pages[begin : begin + PAGES_AT_ONCE]
        pieces, lengths = [], web.pages.lengths[some].copy()
        for row, page in enumerate(some.tolist()):
            anchors = hash_words(b" ".join(words.get(page, ())))
            first, middle = int(starts[page]), int(starts[page] + before[page])
            pieces += [web.pages.words[first:middle], anchors, web.pages.words[middle : first + int(sizes[page])]]
            lengths[row, _ANCHORS] = len(anchors)
        scores = scorer.score(ForwardTokens(np.concatenate(pieces), lengths), PageSignals.neutral(len(some)))
        found.append((begin + scores.page, scores.query, scores.score))
    return QueryScores(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _describe(web: JoinedWeb, pages: Ints, links: Ints, seed: int) -> DescribedUrls:
    """Describe pages by what crawled pages say about them: ``links`` are those on crawled pages."""
    count, place = len(web.urls), np.full(len(web.urls), -1, np.int64)
    place[pages] = np.arange(len(pages))
    ranks = page_importance(web.source[links], web.target[links], count)
    urls = [web.urls[page] for page in pages.tolist()]
    folder, branch = hash_folders(urls)
    names = [(int(place[page]), text) for page, text in _name_pages(web, links) if place[page] >= 0]
    return DescribedUrls(
        depth=np.array([url.count("/") - 2 for url in urls], np.int64),
        found=rng_for(seed, "lab/order/found").permutation(count)[pages],
        inlinks=np.bincount(web.target[links], minlength=count)[pages],
        importance=np.log(np.maximum(ranks * count, 1e-9))[pages],
        folder=folder,
        branch=branch,
        texts=tokenize_texts(urls, names),
    )


def _drop(batch: DescribedUrls, policy: str) -> DescribedUrls:
    """Drop an input of the estimator."""
    nothing = np.zeros(len(batch), np.int64)
    if policy == "no-folders":
        return replace(batch, folder=nothing, branch=nothing)
    if policy == "no-links":
        return replace(batch, inlinks=nothing, importance=np.zeros(len(batch)))
    return replace(batch, texts=tokenize_texts([""] * len(batch), [])) if policy == "no-words" else batch


def estimate_gains(policy: str, taught: TrainingPages, unseen: DescribedUrls, curves: QueryCurves, seed: int) -> Floats:
    """Estimate the gain of uncrawled pages with the live estimator, or with one of its inputs missing."""
    settings = build_impact_settings(curves, seed)
    if policy in ("no-word-gains", "no-words"):
        settings = replace(settings, term_gains=None)
    if policy == "no-sketches":
        settings = replace(settings, queries=NO_QUERIES)
    model = train_model(create_model(settings), _drop_taught(taught, policy))
    return model.estimate_gain(_drop(unseen, policy))


def _drop_taught(taught: TrainingPages, policy: str) -> TrainingPages:
    dropped = _drop(taught, policy)
    assert isinstance(dropped, TrainingPages), "only columns were replaced"
    if policy != "no-sketches":
        return dropped
    none = np.zeros(0, np.int64)
    return replace(dropped, found_row=none, found_query=none, found_score=np.zeros(0))


@lru_cache(maxsize=2)
def run_case(world: str, seed: int) -> _Outcome:
    """Run all orders of a joined web and a seed at once."""
    web = load_joined(locate_world(world).part.split(","), get_cache_folder())
    queries = draw_queries(web, seed)
    watched = _watch(web, queries)
    lots = rng_for(seed, "lab/order/cut").permutation(len(web.urls))
    uncrawled, crawled = (np.sort(part) for part in np.array_split(lots, 2))
    visible = np.setdiff1d(np.arange(len(web.source)), queries.held_out)
    links = visible[np.isin(web.source[visible], crawled)]
    everything = _score(web, watched, np.arange(len(web.urls)), _name_pages(web, visible))
    mine = _score(web, watched, crawled, _name_pages(web, links))
    has_answer = np.isin(np.arange(len(watched)), mine.query)
    impact = tuple(
        _compute_impact(everything, watched.frequency * part, len(web.urls))[uncrawled]
        for part in (np.ones(len(watched)), ~has_answer)
    )
    unseen = _describe(web, uncrawled, links, seed)
    worths = {"breadth": -1.0 * unseen.depth, "inlinks": 1.0 * unseen.inlinks, "pagerank": unseen.importance}
    taught, curves = _teach(web, watched, crawled, links, mine, seed)
    for policy in ("impact", *ABLATIONS):
        worths[policy] = estimate_gains(policy, taught, unseen, curves, seed)
    ties = draw_tie_order(seed, len(uncrawled))
    orders = {name: np.lexsort((ties, -worth)) for name, worth in {**worths, BOUND: impact[0]}.items()}
    answered = len(np.unique(everything.query))
    orders[DEFAULT] = orders["impact"]
    return _Outcome(orders, (impact[0], impact[1]), len(crawled), answered, int((~has_answer).sum()))


def _teach(
    web: JoinedWeb, watched: WatchedQueries, crawled: Ints, links: Ints, mine: QueryScores, seed: int
) -> tuple[TrainingPages, QueryCurves]:
    """Build the estimator's training data: the current gains of crawled pages, each as if it had come last."""
    builder = QueryCurveBuilder(watched)
    builder.add(mine, np.full(len(crawled), 0.5))
    curves = builder.build(len(crawled))
    gain = np.maximum(measure_current_gains(curves, mine, len(crawled)), 0.0)
    some = np.sort(rng_for(seed, "lab/order-joined/taught").permutation(len(crawled))[:MAX_TRAINING])
    batch = _describe(web, crawled[some], links, seed)
    row = np.searchsorted(mine.page, some)
    matches = concat_ranges(row, np.searchsorted(mine.page, some, side="right"))
    scores = QueryScores(np.searchsorted(some, mine.page[matches]), mine.query[matches], mine.score[matches])
    return build_training(batch, crawled[some], gain[some], scores, watched), curves


def _compute_impact(scores: QueryScores, frequency: Floats, pages: int) -> Floats:
    """Compute how often each page is among the first ten of queries with these frequencies."""
    order = np.lexsort((scores.page, -scores.score, scores.query))
    query = scores.query[order]
    first = order[np.arange(len(order)) - np.searchsorted(query, query) < TOP_RESULTS]
    return np.bincount(scores.page[first], frequency[scores.query[first]], pages).astype(np.float64)


OWN_METRICS: Mapping[str, Metric] = {
    "impact_share": Metric("impact of what was fetched, as a share of that of all uncrawled pages", "share", True),
    "crawled": Metric("pages crawled before"),
    "uncrawled": Metric("pages to order"),
    "asked": Metric("queries that some page answers"),
    "unanswered": Metric("queries that no crawled page answers"),
}


class OrderJoined(Experiment):
    """The experiment of crawl orders on a joined web."""

    name = "order-joined"
    about = "Which new pages first, on several sites at once? (budget: the share of the uncrawled pages)"
    worlds = ("joined",)
    metrics = tuple(OWN_METRICS)
    own = OWN_METRICS
    policies = (DEFAULT, *SIGNAL_ORDERS, *ABLATIONS, BOUND)
    budgets = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    figures = (("impact_share", "budget"),)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the experiment on a cell: a row for all queries (``bucket`` 0), and one for those without answers (1)."""
        outcome = run_case(cell.world, cell.seed)
        order, fetched = outcome.orders[cell.policy], parse_fetch_count(cell, len(outcome.impact[0]))
        return [
            {
                "bucket": float(bucket),
                "impact_share": impact_share(order, impact, fetched),
                "crawled": float(outcome.crawled),
                "uncrawled": float(len(impact)),
                "asked": float(outcome.answered),
                "unanswered": float(outcome.unanswered),
            }
            for bucket, impact in enumerate(outcome.impact)
        ]


EXPERIMENT = OrderJoined()
