"""The impact estimator: learns from first fetches what unseen URLs are worth, by published estimates and our own.

*As published* (Impact08, section 5): the expected scores of matching pages are put into the sketches of needy queries,
and the impact of a page is how often it is among the first K there (``estimate_by_queries``). Importance alone is
informative too (``Quadratic``); a hybrid is a weighted average of both.

*Ours* (``estimate_gain``): the probability that a page is among the first K, using the distribution of its score
instead of the mean, for everything that the rarest word of a query matches. That, the published estimates, and the
gains of pages of the same folder, branch and words are then columns of a second forest, which learns from crawled pages
how to combine them. It learns whatever gains it is given, so its predictions have that unit. If gains are measured word
by word, the gain of each word is known before any page with it was fetched (``TermGains``): a proportional part of that
is expected, and the forest learns the rest.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.forest import Forest, Grower
from vedette.frontier.impact.group_means import FOLDS, PooledMeans, compute_out_of_fold, pool_means
from vedette.frontier.impact.matching import Hits, Matcher, Pairs, QuerySet
from vedette.frontier.impact.scorer import MIN_ROWS as FEWEST_PAIRS
from vedette.frontier.impact.scorer import ForestPair, build_pair_columns, grow_forest_pair, lookup_true_scores
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import DescribedUrls, TrainingPages
from vedette.policy import Floats, Ints

MIN_PAGES = 4
NEGLIGIBLE = 1e-100  # smaller estimates count as zero: dividing by them would overflow


@dataclass(frozen=True, slots=True)
class Quadratic:
    """A quadratic fit of impact by page importance: a + b x + c x^2, never below 0.

    It holds within the range of importance seen; beyond it, the value at the nearer end is used.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> Quadratic.fit(x, 1 + x**2).predict(np.array([2.0, 9.0])).round(6).tolist()
    [5.0, 10.0]
    """

    level: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def fit(cls, importance: Floats, impact: Floats) -> "Quadratic":
        """Fit impact by importance with least squares; with few pages, or all of one importance, use their mean."""
        if len(importance) < MIN_PAGES or len(np.unique(importance)) < MIN_PAGES - 1:
            return cls(level=float(impact.mean()) if len(impact) else 0.0)
        bend, slope, level = np.polyfit(importance, impact, 2).tolist()
        return cls(level, slope, bend, float(importance.min()), float(importance.max()))

    def predict(self, importance: Floats) -> Floats:
        """Predict the average impact of pages of this importance."""
        inside = np.clip(importance, self.low, self.high)
        return np.asarray(np.maximum(self.level + self.slope * inside + self.curvature * inside**2, 0.0))


def fit_weights(by_queries: Floats, by_importance: Floats, impact: Floats) -> tuple[float, float]:
    """Fit the weights of the query-driven and importance-only impact estimates by least squares, none below 0.

    >>> fit_weights(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0]), np.array([5.0, 2.0, 6.0]))
    (3.0, 2.0)
    >>> fit_weights(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-1.0, 2.0]))
    (0.0, 2.0)
    """
    both = np.column_stack((by_queries, by_importance))
    both[:, np.abs(both).max(axis=0, initial=0.0) < NEGLIGIBLE] = 0.0
    first, second = np.linalg.lstsq(both, impact, rcond=None)[0].round(12).tolist()
    if min(first, second) >= 0:
        return first, second
    # With two weights, the best allowed solution has one of them at 0.
    alone = [max(float(one @ impact) / (float(one @ one) or 1.0), 0.0) for one in both.T]
    errors = [float(((impact - weight * one) ** 2).sum()) for weight, one in zip(alone, both.T, strict=True)]
    return (alone[0], 0.0) if errors[0] < errors[1] else (0.0, alone[1])


FULL_MATCH = 1.0 - 1e-9  # rho = 1
BY_QUERIES, BY_IMPORTANCE, BY_TERMS = 2, 3, -2  # columns of a page; the last one if words have a gain
# Prior for the fraction of its words' gain that a page brings; it counts as this many pages.
PRIOR_SLOPE, PRIOR_PAGES = 0.5, 4.0
MIN_SQUARE = 1e-100


class TermGains(NamedTuple):
    """The gain that a page would bring for each single search term it answers well; by ascending term hashes."""

    words: Ints
    gain: Floats

    def lookup(self, words: Ints) -> Floats:
        """Look up the gain of search terms; 0 for those in no query."""
        if not len(self.words):
            return np.zeros(len(words))
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return np.where(self.words[at] == words, self.gain[at], 0.0)


@dataclass(frozen=True, slots=True)
class ImpactSettings:
    """The settings of the impact estimator: the queries with sketches, and what grows its trees.

    ``term_gains`` is used where gains are measured by single words, as in production.
    """

    queries: QuerySet
    grow: Grower
    seed: int = 0
    term_gains: TermGains | None = None


class Means(NamedTuple):
    """The mean gain of fetched pages by folder, by branch and by word."""

    folders: PooledMeans
    branches: PooledMeans
    words: PooledMeans


class _TrainingFolds(NamedTuple):
    """The pages that the impact model was trained on: their rows, their halves, and out-of-fold means."""

    page: Ints
    half: Ints
    means: tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True)
class ImpactModel:
    """The trained impact model of first fetches.

    Without ``settings``, and before anything was fetched, all URLs are worth the same.
    """

    settings: ImpactSettings | None = None
    quadratic: Quadratic = field(default_factory=Quadratic)
    means: Means | None = None
    matcher: Matcher | None = None
    sketches: Sketches | None = None
    scorer: ForestPair | None = None
    page_forest: Forest | None = None
    weights: tuple[float, float] = (0.0, 1.0)
    slope: float = 0.0

    def estimate_by_importance(self, batch: DescribedUrls) -> Floats:
        """Estimate the impact of unseen URLs by importance alone."""
        return self.quadratic.predict(batch.importance)

    def estimate_by_queries(self, batch: DescribedUrls) -> Floats:
        """Estimate impact as published in Impact08: how often each URL is in the first K of query sketches."""
        if self.scorer is None:
            return np.zeros(len(batch))
        pairs, columns, _ = self._match_pairs(batch, None)
        strict = np.flatnonzero(pairs.share >= FULL_MATCH)
        pairs, scores = pairs.select(strict), self.scorer.predict_means(columns[strict])
        return _sum_by_page(pairs, self._find_top_pairs(pairs, scores) * self._get_frequencies(pairs), len(batch))

    def estimate_hybrid(self, batch: DescribedUrls) -> Floats:
        """Estimate impact as the weighted sum of the query-driven and the importance-only estimates."""
        by_queries, by_importance = self.weights
        return by_queries * self.estimate_by_queries(batch) + by_importance * self.estimate_by_importance(batch)

    def estimate_gain(self, batch: DescribedUrls, hits: Hits | None = None) -> Floats:
        """Estimate the gain of a first fetch of each unseen URL, by our impact model.

        ``hits`` are those of all strings, if some came earlier.
        """
        if self.page_forest is None:
            return self.estimate_by_importance(batch)
        columns = self.build_columns(batch, hits=hits)
        return np.maximum(self._predict_linear(columns) + self.page_forest.predict_means(columns), 0.0)

    def _predict_linear(self, columns: Floats) -> Floats:
        """Predict the part of the gain that is proportional to the gains of a URL's search terms."""
        return self.slope * columns[:, BY_TERMS] if self.slope else np.zeros(len(columns))

    def build_columns(
        self, batch: DescribedUrls, folds: _TrainingFolds | None = None, hits: Hits | None = None
    ) -> Floats:
        """Build the feature columns of the impact model, one row per page; ``folds`` for pages it was trained on."""
        assert self.means is not None, "learned before asked"
        row, word = _collect_words(batch)
        if folds is None:
            folders, branches = self.means.folders.lookup(batch.folder), self.means.branches.lookup(batch.branch)
            words = self.means.words.lookup(word)
        else:
            folders, branches, words = folds.means
        word_mean, word_most = _average_by_words(row, words, len(batch), self.means.words.prior)
        links = np.bincount(batch.texts.row[batch.texts.is_anchor], minlength=len(batch))
        columns = (
            *self._estimate_by_pairs(batch, folds, hits),
            *(
                self.estimate_by_importance(batch),
                batch.importance,
                np.log1p(np.maximum(batch.inlinks, 0)),
                batch.depth,
            ),
            *(folders, branches, word_mean, word_most, np.log1p(links)),
            *self._sum_term_gains(row, word, len(batch)),
        )
        return np.column_stack([np.asarray(column, np.float64) for column in columns])

    def _sum_term_gains(self, row: Ints, word: Ints, pages: int) -> tuple[Floats, ...]:
        """Sum the gains of all search terms of each URL, and find the best one; 0 if term gains are unknown."""
        if self.settings is None or self.settings.term_gains is None:
            return ()
        gains = self.settings.term_gains.lookup(word)
        most = np.zeros(pages)
        np.maximum.at(most, row, gains)
        return np.asarray(np.bincount(row, gains, pages), np.float64), most

    def _estimate_by_pairs(
        self, batch: DescribedUrls, folds: _TrainingFolds | None, hits: Hits | None
    ) -> tuple[Floats, Floats, Floats]:
        """Estimate impact by URL and query pairs: probable, probable with all n-grams, and by expected scores."""
        nothing = np.zeros(len(batch))
        if self.scorer is None:
            return nothing, nothing, nothing
        pairs, columns, bar = self._match_pairs(batch, folds, hits)
        half = None if folds is None else folds.half[pairs.row]
        frequency, strict = self._get_frequencies(pairs), pairs.share >= FULL_MATCH
        means, above = self.scorer.predict_both(columns, bar, half)
        chance, passes = above * frequency, (means > bar) & strict
        probable, certain, printed = (
            _sum_by_page(pairs, values, len(batch)) for values in (chance, chance * strict, passes * frequency)
        )
        return probable, certain, printed

    def _match_pairs(
        self, batch: DescribedUrls, folds: _TrainingFolds | None, hits: Hits | None = None
    ) -> tuple[Pairs, Floats, Floats]:
        assert self.settings is not None, "learned before asked"
        assert self.sketches is not None, "learned before asked"
        assert self.matcher is not None, "learned before asked"
        pairs = self.matcher.build_pairs(self.matcher.find_hits(batch.texts) if hits is None else hits)
        bar = self.sketches.get_thresholds()[pairs.query]
        if folds is not None:
            bar = self.sketches.get_thresholds_without(pairs.query, folds.page[pairs.row])
        return pairs, build_pair_columns(pairs, batch, self.settings.queries, self.sketches, bar), bar

    def _get_frequencies(self, pairs: Pairs) -> Floats:
        assert self.settings is not None, "learned before asked"
        return self.settings.queries.frequency[pairs.query]

    def _find_top_pairs(self, pairs: Pairs, scores: Floats) -> Floats:
        """Find which URL and query pairs are in the query's first K of crawled and matching uncrawled pages."""
        assert self.sketches is not None, "learned before asked"
        order = np.lexsort((pairs.row, -scores, pairs.query))
        query = pairs.query[order]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.searchsorted(query, query)
        crawled = (self.sketches.score[pairs.query] >= scores[:, None]).sum(axis=1)
        return np.asarray((place + crawled < self.sketches.top_k) & (scores > 0), np.float64)


def create_model(asking: ImpactSettings | None) -> ImpactModel:
    """Create the impact model before anything was fetched."""
    return ImpactModel(asking)


def train_model(before: ImpactModel, brought: TrainingPages, sketches: Sketches | None = None) -> ImpactModel:
    """Train the impact model on these first fetches, in place of what it learned before.

    The caller passes all fetches that count.

    ``sketches`` are those of all pages of an index; by default they are built from the fetched pages.
    """
    after = replace(before, quadratic=Quadratic.fit(brought.importance, brought.gain))
    if before.settings is None or not len(brought):
        return after
    asking = before.settings
    folds = _build_folds(brought)
    row, word = _collect_words(brought)
    means = (
        pool_means(brought.folder, brought.gain),
        pool_means(brought.branch, brought.gain),
        pool_means(word, brought.gain[row]),
    )
    found = brought.page[brought.found_row]
    if sketches is None:
        sketches = Sketches.empty(len(asking.queries)).put(brought.found_query, found, brought.found_score)
    after = replace(after, means=Means(*means), matcher=Matcher(asking.queries), sketches=sketches)
    after = _fit_scorer(after, brought, folds)
    if len(brought) < FEWEST_PAIRS:
        return after
    rows = after.build_columns(brought, folds)
    weights = fit_weights(rows[:, BY_QUERIES], rows[:, BY_IMPORTANCE], brought.gain)
    after = replace(after, weights=weights)
    if asking.term_gains is not None:
        after = replace(after, slope=_fit_slope(rows[:, BY_TERMS], brought.gain))
    # Trees cannot extrapolate to words without a fetched page. So they learn only the residual.
    rest = brought.gain - after._predict_linear(rows)  # noqa: SLF001 - this is how it is built
    return replace(after, page_forest=asking.grow(rows, rest, asking.seed + 2))


def _fit_slope(by_terms: Floats, gain: Floats) -> float:
    """Fit the fraction of their search terms' gains that pages really bring, shrunk to the usual slope.

    >>> _fit_slope(np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.5])) > PRIOR_SLOPE == _fit_slope(np.zeros(2),
    ...     np.ones(2))
    True
    """
    square = float(by_terms @ by_terms)
    if square < MIN_SQUARE:
        return PRIOR_SLOPE
    leaning = PRIOR_PAGES * square / len(by_terms)
    return max((float(by_terms @ gain) + leaning * PRIOR_SLOPE) / (square + leaning), 0.0)


def _build_folds(brought: TrainingPages) -> _TrainingFolds:
    fold, half = np.arange(len(brought)) % FOLDS, np.arange(len(brought)) % 2
    row, word = _collect_words(brought)
    means = (
        compute_out_of_fold(brought.folder, brought.gain, fold),
        compute_out_of_fold(brought.branch, brought.gain, fold),
        compute_out_of_fold(word, brought.gain[row], fold[row]),
    )
    return _TrainingFolds(brought.page, half, means)


def _fit_scorer(after: ImpactModel, brought: TrainingPages, folds: _TrainingFolds) -> ImpactModel:
    assert after.settings is not None, "there are queries"
    pairs, columns, _ = after._match_pairs(brought, folds)  # noqa: SLF001 - this is how it is built
    scores = lookup_true_scores(pairs, brought, len(after.settings.queries))
    halves = grow_forest_pair(columns, scores, folds.half[pairs.row], after.settings.grow, after.settings.seed)
    return replace(after, scorer=halves)


def _collect_words(batch: DescribedUrls) -> tuple[Ints, Ints]:
    """Collect every word of every unseen URL once: the row and the word."""
    row = np.repeat(batch.texts.row, np.diff(batch.texts.start))
    keys = np.unique((row << 32) | batch.texts.words.astype(np.int64))
    return keys >> 32, keys & 0xFFFF_FFFF


def _average_by_words(row: Ints, means: Floats, pages: int, prior: float) -> tuple[Floats, Floats]:
    """Average the gains of pages with the same words: the mean over a URL's words, and the largest."""
    times = np.bincount(row, minlength=pages)
    most = np.full(pages, prior)
    np.maximum.at(most, row, means)
    mean = np.bincount(row, means, pages) / np.maximum(times, 1)
    return np.where(times > 0, mean, prior), most


def _sum_by_page(pairs: Pairs, values: Floats, pages: int) -> Floats:
    return np.asarray(np.bincount(pairs.row, values, pages), np.float64)
