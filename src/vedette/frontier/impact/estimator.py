"""What is learned from first fetches, and what it says about unseen URLs: the printed estimates and our own.

*As printed* (Impact08, section 5): the expected scores of matching pages are put into the sketches of needy queries,
and the impact of a page is how often it is among the first K there (``query_based``). Importance alone says something,
too (``independent``); a hybrid is a weighted average of both.

*Ours* (``worth``): how probably a page is among the first K, with the distribution of its score and not its mean, and
for whatever the most telling word of a query matches. That, the printed estimates, and what pages of the same folder,
branch and words brought are then columns of a second forest, which learns from crawled pages what they are good for
together. It learns whatever it is told that pages brought, so its answers are in that unit. Where gains are measured
word by word, what each word brings is known before any page with it was fetched (``Terms``): a part of that is
expected in proportion, and the forest learns the rest.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.forest import Forest, Grower
from vedette.frontier.impact.group_means import FOLDS, Pooled, out_of_fold, pooled
from vedette.frontier.impact.matching import Hits, Matcher, Pairs, Wanted
from vedette.frontier.impact.scorer import FEWEST as FEWEST_PAIRS
from vedette.frontier.impact.scorer import Halves, grown_halves, pair_columns, true_scores
from vedette.frontier.impact.sketches import Sketches
from vedette.frontier.impact.url_features import Brought, Described
from vedette.policy import Floats, Ints

__all__ = ["Asking", "Expectation", "Means", "Quadratic", "Terms", "fitted_weights", "learned", "start"]

FEWEST = 4
NOTHING = 1e-100  # estimates as small as that are none: what would be divided by them has no end


@dataclass(frozen=True, slots=True)
class Quadratic:
    """impact = a + b x + c x^2 within the importance that was seen, never below 0; beyond it, as at its ends.

    >>> x = np.array([0.0, 1.0, 2.0, 3.0])
    >>> Quadratic.fitted(x, 1 + x**2).of(np.array([2.0, 9.0])).round(6).tolist()
    [5.0, 10.0]
    """

    level: float = 0.0
    slope: float = 0.0
    bend: float = 0.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def fitted(cls, importance: Floats, impact: Floats) -> "Quadratic":
        """By least squares; with few pages, or all of one importance, their mean."""
        if len(importance) < FEWEST or len(np.unique(importance)) < FEWEST - 1:
            return cls(level=float(impact.mean()) if len(impact) else 0.0)
        bend, slope, level = np.polyfit(importance, impact, 2).tolist()
        return cls(level, slope, bend, float(importance.min()), float(importance.max()))

    def of(self, importance: Floats) -> Floats:
        """The impact that pages of this importance have on average."""
        inside = np.clip(importance, self.low, self.high)
        return np.asarray(np.maximum(self.level + self.slope * inside + self.bend * inside**2, 0.0))


def fitted_weights(by_queries: Floats, by_importance: Floats, impact: Floats) -> tuple[float, float]:
    """The weights of both estimates that come nearest to what pages brought, by least squares; neither is below 0.

    >>> fitted_weights(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 0.0]), np.array([5.0, 2.0, 6.0]))
    (3.0, 2.0)
    >>> fitted_weights(np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([-1.0, 2.0]))
    (0.0, 2.0)
    """
    both = np.column_stack((by_queries, by_importance))
    both[:, np.abs(both).max(axis=0, initial=0.0) < NOTHING] = 0.0
    first, second = np.linalg.lstsq(both, impact, rcond=None)[0].round(12).tolist()
    if min(first, second) >= 0:
        return first, second
    # With two weights, the best one that is allowed has one of them at 0.
    alone = [max(float(one @ impact) / (float(one @ one) or 1.0), 0.0) for one in both.T]
    errors = [float(((impact - weight * one) ** 2).sum()) for weight, one in zip(alone, both.T, strict=True)]
    return (alone[0], 0.0) if errors[0] < errors[1] else (0.0, alone[1])


ALL_GRAMS = 1.0 - 1e-9  # rho = 1
BY_QUERIES, BY_IMPORTANCE, BY_TERMS = 2, 3, -2  # columns of a page; the last one where words have a gain
# The part of what its words would bring that a page brings, before any was fetched; it counts as so many pages.
USUAL_SLOPE, LEANING = 0.5, 4.0
LEAST_SQUARE = 1e-100


class Terms(NamedTuple):
    """What a page would bring by each single word that people ask for, if it answers it well; by ascending numbers."""

    words: Ints
    gain: Floats

    def of(self, words: Ints) -> Floats:
        """The same for some words; nothing for those that nobody asks for."""
        if not len(self.words):
            return np.zeros(len(words))
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return np.where(self.words[at] == words, self.gain[at], 0.0)


@dataclass(frozen=True, slots=True)
class Asking:
    """What a policy is set up with: the queries that have sketches, and who grows trees.

    ``terms`` are for where gains are measured by single words, as they are live.
    """

    wanted: Wanted
    grow: Grower
    seed: int = 0
    terms: Terms | None = None


class Means(NamedTuple):
    """What pages brought on average, by folder, by branch and by word."""

    folders: Pooled
    branches: Pooled
    words: Pooled


class _Told(NamedTuple):
    """Pages that were learned from: who they are, in which half, and their means out of other folds."""

    page: Ints
    half: Ints
    means: tuple[Floats, Floats, Floats]


@dataclass(frozen=True, slots=True)
class Expectation:
    """All that was learned. Without an ``asking``, and before anything was fetched, everything is worth the same."""

    asking: Asking | None = None
    quadratic: Quadratic = field(default_factory=Quadratic)
    means: Means | None = None
    matcher: Matcher | None = None
    sketches: Sketches | None = None
    scorer: Halves | None = None
    pages: Forest | None = None
    weights: tuple[float, float] = (0.0, 1.0)
    slope: float = 0.0

    def independent(self, batch: Described) -> Floats:
        """By importance alone."""
        return self.quadratic.of(batch.importance)

    def query_based(self, batch: Described) -> Floats:
        """As printed: how often each is among the first K of sketches, by its expected scores."""
        if self.scorer is None:
            return np.zeros(len(batch))
        pairs, columns, _ = self._pairs(batch, None)
        strict = np.flatnonzero(pairs.share >= ALL_GRAMS)
        pairs, scores = pairs.some(strict), self.scorer.means(columns[strict])
        return _summed(pairs, self._first(pairs, scores) * self._asked(pairs), len(batch))

    def weighted(self, batch: Described) -> Floats:
        """Both, by the weights that were learned."""
        by_queries, by_importance = self.weights
        return by_queries * self.query_based(batch) + by_importance * self.independent(batch)

    def worth(self, batch: Described, hits: Hits | None = None) -> Floats:
        """Ours: the expected gain of a first fetch. ``hits`` are those of all strings, where some came earlier."""
        if self.pages is None:
            return self.independent(batch)
        columns = self.columns(batch, hits=hits)
        return np.maximum(self._straight(columns) + self.pages.means(columns), 0.0)

    def _straight(self, columns: Floats) -> Floats:
        """The part that goes with what words bring, in proportion."""
        return self.slope * columns[:, BY_TERMS] if self.slope else np.zeros(len(columns))

    def columns(self, batch: Described, told: _Told | None = None, hits: Hits | None = None) -> Floats:
        """What is known of each page, a row a page; ``told`` for pages that were learned from."""
        assert self.means is not None, "learned before asked"
        row, word = _words(batch)
        if told is None:
            folders, branches = self.means.folders.of(batch.folder), self.means.branches.of(batch.branch)
            words = self.means.words.of(word)
        else:
            folders, branches, words = told.means
        word_mean, word_most = _by_words(row, words, len(batch), self.means.words.prior)
        links = np.bincount(batch.strings.row[batch.strings.anchor], minlength=len(batch))
        columns = (
            *self._estimates(batch, told, hits),
            *(self.independent(batch), batch.importance, np.log1p(np.maximum(batch.inlinks, 0)), batch.depth),
            *(folders, branches, word_mean, word_most, np.log1p(links)),
            *self._by_terms(row, word, len(batch)),
        )
        return np.column_stack([np.asarray(column, np.float64) for column in columns])

    def _by_terms(self, row: Ints, word: Ints, pages: int) -> tuple[Floats, ...]:
        """What all its words, and its best one, would bring; nothing where nobody told what words bring."""
        if self.asking is None or self.asking.terms is None:
            return ()
        gains = self.asking.terms.of(word)
        most = np.zeros(pages)
        np.maximum.at(most, row, gains)
        return np.asarray(np.bincount(row, gains, pages), np.float64), most

    def _estimates(self, batch: Described, told: _Told | None, hits: Hits | None) -> tuple[Floats, Floats, Floats]:
        """By queries: probable, probable where all n-grams match, and by expected scores."""
        nothing = np.zeros(len(batch))
        if self.scorer is None:
            return nothing, nothing, nothing
        pairs, columns, bar = self._pairs(batch, told, hits)
        half = None if told is None else told.half[pairs.row]
        asked, strict = self._asked(pairs), pairs.share >= ALL_GRAMS
        means, above = self.scorer.both(columns, bar, half)
        chance, passes = above * asked, (means > bar) & strict
        probable, certain, printed = (
            _summed(pairs, values, len(batch)) for values in (chance, chance * strict, passes * asked)
        )
        return probable, certain, printed

    def _pairs(self, batch: Described, told: _Told | None, hits: Hits | None = None) -> tuple[Pairs, Floats, Floats]:
        assert self.asking is not None, "learned before asked"
        assert self.sketches is not None, "learned before asked"
        assert self.matcher is not None, "learned before asked"
        pairs = self.matcher.candidates(self.matcher.hits(batch.strings) if hits is None else hits)
        bar = self.sketches.bar()[pairs.query]
        if told is not None:
            bar = self.sketches.bar_without(pairs.query, told.page[pairs.row])
        return pairs, pair_columns(pairs, batch, self.asking.wanted, self.sketches, bar), bar

    def _asked(self, pairs: Pairs) -> Floats:
        assert self.asking is not None, "learned before asked"
        return self.asking.wanted.frequency[pairs.query]

    def _first(self, pairs: Pairs, scores: Floats) -> Floats:
        """Whether each pair is among the first K of its query, among crawled and matching uncrawled pages."""
        assert self.sketches is not None, "learned before asked"
        order = np.lexsort((pairs.row, -scores, pairs.query))
        query = pairs.query[order]
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - np.searchsorted(query, query)
        crawled = (self.sketches.score[pairs.query] >= scores[:, None]).sum(axis=1)
        return np.asarray((place + crawled < self.sketches.first) & (scores > 0), np.float64)


def start(asking: Asking | None) -> Expectation:
    """Nothing was fetched yet."""
    return Expectation(asking)


def learned(before: Expectation, brought: Brought, sketches: Sketches | None = None) -> Expectation:
    """What these first fetches teach, in place of what was learned before: whoever tells, tells all that counts.

    ``sketches`` are those of all pages of an index; without them they are made of the pages that were brought.
    """
    after = replace(before, quadratic=Quadratic.fitted(brought.importance, brought.gain))
    if before.asking is None or not len(brought):
        return after
    asking = before.asking
    told = _told(brought)
    row, word = _words(brought)
    means = (
        pooled(brought.folder, brought.gain),
        pooled(brought.branch, brought.gain),
        pooled(word, brought.gain[row]),
    )
    found = brought.page[brought.found_row]
    if sketches is None:
        sketches = Sketches.empty(len(asking.wanted)).put(brought.found_query, found, brought.found_score)
    after = replace(after, means=Means(*means), matcher=Matcher(asking.wanted), sketches=sketches)
    after = _with_scorer(after, brought, told)
    if len(brought) < FEWEST_PAIRS:
        return after
    rows = after.columns(brought, told)
    weights = fitted_weights(rows[:, BY_QUERIES], rows[:, BY_IMPORTANCE], brought.gain)
    after = replace(after, weights=weights)
    if asking.terms is not None:
        after = replace(after, slope=_slope(rows[:, BY_TERMS], brought.gain))
    # Trees know no more than they saw; words that nobody fetched a page for are beyond it. So they learn the rest.
    rest = brought.gain - after._straight(rows)  # noqa: SLF001 - this is how it is made
    return replace(after, pages=asking.grow(rows, rest, asking.seed + 2))


def _slope(by_terms: Floats, gain: Floats) -> float:
    """How much of what words would bring pages bring that are called so, leaning on what is usual.

    >>> _slope(np.array([1.0, 2.0, 0.0]), np.array([1.0, 2.0, 0.5])) > USUAL_SLOPE == _slope(np.zeros(2), np.ones(2))
    True
    """
    square = float(by_terms @ by_terms)
    if square < LEAST_SQUARE:
        return USUAL_SLOPE
    leaning = LEANING * square / len(by_terms)
    return max((float(by_terms @ gain) + leaning * USUAL_SLOPE) / (square + leaning), 0.0)


def _told(brought: Brought) -> _Told:
    fold, half = np.arange(len(brought)) % FOLDS, np.arange(len(brought)) % 2
    row, word = _words(brought)
    means = (
        out_of_fold(brought.folder, brought.gain, fold),
        out_of_fold(brought.branch, brought.gain, fold),
        out_of_fold(word, brought.gain[row], fold[row]),
    )
    return _Told(brought.page, half, means)


def _with_scorer(after: Expectation, brought: Brought, told: _Told) -> Expectation:
    assert after.asking is not None, "there are queries"
    pairs, columns, _ = after._pairs(brought, told)  # noqa: SLF001 - this is how it is made
    scores = true_scores(pairs, brought, len(after.asking.wanted))
    halves = grown_halves(columns, scores, told.half[pairs.row], after.asking.grow, after.asking.seed)
    return replace(after, scorer=halves)


def _words(batch: Described) -> tuple[Ints, Ints]:
    """Every word of every page, once: the page and the word."""
    row = np.repeat(batch.strings.row, np.diff(batch.strings.start))
    keys = np.unique((row << 32) | batch.strings.words.astype(np.int64))
    return keys >> 32, keys & 0xFFFF_FFFF


def _by_words(row: Ints, means: Floats, pages: int, prior: float) -> tuple[Floats, Floats]:
    """What pages with the same words brought: the mean over a page's words, and the most."""
    times = np.bincount(row, minlength=pages)
    most = np.full(pages, prior)
    np.maximum.at(most, row, means)
    mean = np.bincount(row, means, pages) / np.maximum(times, 1)
    return np.where(times > 0, mean, prior), most


def _summed(pairs: Pairs, values: Floats, pages: int) -> Floats:
    return np.asarray(np.bincount(pairs.row, values, pages), np.float64)
