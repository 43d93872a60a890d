"""Prospect exploration policy (ours, the default): rank by the worth of a view, now and over a page's life.

The prior of page quality is a distribution on a grid, learned from the feedback on all pages. Most pages are liked by
almost no one and a few by many, so no Beta distribution fits. The weights of a grid of qualities are fitted by
expectation maximization to (likes, awareness) of all pages, a nonparametric empirical Bayes (Robbins 1956, Laird 1978).
The initial prior keeps the weight of a few pages, so that nothing is ever impossible. A page's posterior is this prior,
weighted by the likelihood of its own likes under each quality.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.policy import Floats, Ints, Picks
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation
from vedette.serve.rank.explore.randomized_lists import TiedOrder
from vedette.serve.rank.explore.slot_allocation import FIRST_PAGE, TrialSlots, allocate_slots

# If n more people saw the page, its expected quality would move, and it would rank elsewhere for the rest of its life.
# With ``gain(q)`` what a page of expected quality q adds to the quality of all views of a day (others move down for
# it), worth = mean + patience x life x views x max over n of (E gain(mean after n) - gain(mean)) / n which is the
# knowledge gradient over the best number of views (Frazier and Powell 2010), in quality per view. Views by people who
# know the page teach nothing, so the second part is multiplied by the share of those who do not.


# States with more views or likes have nothing relevant left to learn; their mean is used.
MAX_AWARE, MAX_LIKES = 40, 12
AHEAD = (1, 2, 4, 8, 16)


class ValueTable(NamedTuple):
    """Expected quality, information value of a view, and the best number of views, by awareness and likes."""

    mean: Floats
    teaching: Floats
    ahead: Floats


class RankedMeans(NamedTuple):
    """Pages by expected quality, best first, the view share of each position, and the loss of all from there on."""

    means: Floats
    shares: Floats
    lost: Floats

    @classmethod
    def from_means(cls, means: Floats) -> "RankedMeans":
        """Build the ranked list of pages with these mean qualities."""
        ordered = np.sort(means)[::-1]
        shares = visibility(np.arange(1, len(ordered) + 2))
        shares /= shares.sum()
        lost = (shares[:-1] - shares[1:]) * ordered
        return cls(ordered, shares, np.append(np.cumsum(lost[::-1])[::-1], 0.0))

    def gain(self, quality: Floats) -> Floats:
        """Compute what one more page of each quality adds to the expected quality of a view.

        The page at position p pushes all below it down by one: ``s_p q - sum over i >= p from_means (s_i - s_(i+1))
        m_i`` with the view shares s and the means m.

        >>> RankedMeans.from_means(np.array([0.2, 0.4])).gain(np.array([0.1, 0.3, 0.5])).round(3).tolist()
        [0.012, 0.048, 0.135]
        """
        places = np.searchsorted(-self.means, -quality)
        return np.asarray(self.shares[places] * quality - self.lost[places])


def build_table(weights: Floats, ladder: RankedMeans, crowd: UserPopulation) -> ValueTable:
    """Compute the value of every state of a young page, under a quality prior, among the other pages."""
    aware, likes = (each.ravel() for each in np.mgrid[: MAX_AWARE + 1, : MAX_LIKES + 1].astype(np.float64))
    believed = posterior(weights, np.minimum(likes, aware), aware)
    mean = believed @ GRID
    now = ladder.gain(mean)
    taught = np.zeros((len(AHEAD), len(mean)))
    for row, views in enumerate(AHEAD):
        chance, after = _outcomes_after(believed, views)
        taught[row] = ((chance * ladder.gain(after)).sum(axis=1) - now) / views
    best = np.maximum(taught.max(axis=0), 0.0) * crowd.life_days * crowd.views_per_day
    ahead = np.array(AHEAD, np.float64)[taught.argmax(axis=0)]
    shape = (MAX_AWARE + 1, MAX_LIKES + 1)
    return ValueTable(mean.reshape(shape), best.reshape(shape), ahead.reshape(shape))


def _outcomes_after(believed: Floats, views: int) -> tuple[Floats, Floats]:
    """Compute the probability of each number of likes after ``views`` views, and the posterior mean of each."""
    likes = np.arange(views + 1)
    ways = np.cumprod(np.append(1.0, (views - likes[:-1]) / (likes[:-1] + 1.0)))
    each = ways * GRID[:, None] ** likes * (1 - GRID[:, None]) ** (views - likes)
    chance = believed @ each
    return chance, (believed @ (GRID[:, None] * each)) / chance


# The quality distribution distinguishes large numbers of likes too; the value of a view is only needed while they are
# few.
WIDTH = MAX_AWARE + 1


class LearnedPrior(NamedTuple):
    """The learned quality prior of all pages, and the value table for young ones; no table before any data."""

    weights: Floats
    table: ValueTable | None


@dataclass(frozen=True, slots=True)
class Prospect:
    """Rank by expected quality plus the information value of a view over the rest of a page's life (prospect policy).

    The quality prior is learned from all pages (``prior``), so a page is assumed to be as good as others with a similar
    history. ``patience`` below 1 explores less than the knowledge gradient, which assumes a choice is now or never,
    while a page can wait a day. A result is *unproven* if it owes its position to information value; none comes before
    position ``first``, and at most ``most`` are among the first ten. Ties are in random order, which is where
    propensities below 1 come from.

    Useful if pages are many and views are few. Not useful if nothing is known about how long pages live and how many
    people will see them: then the second part is a guess.

    Reference: our own; the knowledge gradient is Frazier and Powell's (Decision Analysis 7, 2010).
    """

    patience: float = 0.3
    first: int = 1
    most: int = FIRST_PAGE
    name: str = "prospect"

    def start(self, config: None) -> LearnedPrior:
        """Return the initial quality prior, uniform over orders of magnitude."""
        return LearnedPrior(uniform_prior(), None)

    def observe(self, state: LearnedPrior, batch: Candidates, now: float) -> LearnedPrior:
        """Fit the quality prior to pages, and compute the worth of views of young ones."""
        if not len(batch):
            return state
        codes = _encode_states(batch)
        pages = np.bincount(codes, minlength=(MAX_AWARE + 1) * WIDTH)
        aware, likes = (each.astype(np.float64) for each in np.divmod(np.flatnonzero(pages), WIDTH))
        weights = fit_prior(state.weights, likes, aware, pages[pages > 0].astype(np.float64))
        ladder = RankedMeans.from_means(_estimate_parts(batch, LearnedPrior(weights, state.table))[0])
        return LearnedPrior(weights, build_table(weights, ladder, batch.crowd))

    def plan(self, state: LearnedPrior, batch: Candidates, now: float) -> TiedOrder:
        """Plan the prospect order by worth, with trial slots for unproven pages."""
        mean, teaching, ahead = _estimate_parts(batch, state)
        teaching *= self.patience
        seats = TrialSlots(self.first, self.most, batch.crowd.views_per_day * batch.crowd.delay_days)
        return allocate_slots(batch.relevance * (mean + teaching), teaching > mean, ahead, seats)

    def choose(self, state: LearnedPrior, options: Candidates, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Draw one list of results from the prospect plan."""
        return self.plan(state, options, now).draw(k, rng)

    def reason(self, state: LearnedPrior, batch: Candidates, row: int, now: float) -> str:
        """Describe both parts of a result's worth: expected quality and information value."""
        mean, teaching, _ahead = (float(part[row]) for part in _estimate_parts(batch, state))
        likes = f"liked by {batch.likes[row]:.0f} of {batch.aware[row]:.0f} who saw it, {mean:.1%} expected"
        return f"prospect: {likes}" + ("; shown to learn more about it" if self.patience * teaching > mean else "")


def _encode_states(batch: Candidates) -> Ints:
    """Encode awareness and likes as table states; counts beyond the table are scaled down."""
    scale = np.minimum(1.0, MAX_AWARE / np.maximum(batch.aware, 1.0))
    aware, likes = np.rint(batch.aware * scale), np.minimum(np.rint(batch.likes * scale), WIDTH - 1)
    return (aware * WIDTH + likes).astype(np.int64)


def _estimate_parts(batch: Candidates, state: LearnedPrior) -> tuple[Floats, Floats, Floats]:
    """Estimate expected quality, information value and views wanted; by table for young pages."""
    prior = float(state.weights @ GRID)
    mean = (batch.likes + prior) / (batch.aware + 1.0)
    teaching, ahead = np.zeros(len(batch)), np.ones(len(batch))
    if state.table is None:
        return mean, teaching, ahead
    young = np.flatnonzero((batch.aware <= MAX_AWARE) & (batch.likes <= MAX_LIKES))
    aware = batch.aware[young]
    at = (np.rint(aware) * (MAX_LIKES + 1) + np.rint(batch.likes[young])).astype(np.int64)
    fresh = np.maximum(1.0 - aware / max(batch.crowd.people, 1.0), 0.0)
    mean[young] = state.table.mean.ravel()[at]
    teaching[young] = state.table.teaching.ravel()[at] * fresh
    ahead[young] = state.table.ahead.ravel()[at]
    return mean, teaching, ahead


# Qualities from one in ten thousand to nearly all, each 15% above the one before.
GRID: Floats = np.geomspace(1e-4, 0.9, 64)
_LOGS = np.vstack([np.log(GRID), np.log1p(-GRID)])
KEPT_PAGES = 20.0
STEPS = 30


def uniform_prior() -> Floats:
    """Return the initial quality prior: uniform over orders of magnitude."""
    return np.full(len(GRID), 1.0 / len(GRID))


def posterior(weights: Floats, likes: Floats, aware: Floats) -> Floats:
    """Compute the posterior probability of each quality on the grid, one row per page.

    >>> unseen, liked = posterior(uniform_prior(), np.array([0.0, 1.0]), np.array([0.0, 1.0])) @ GRID
    >>> bool(unseen < liked)
    True
    """
    logs = np.column_stack([likes, np.maximum(aware - likes, 0.0)]) @ _LOGS
    shares = weights * np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_prior(weights: Floats, likes: Floats, aware: Floats, pages: Floats) -> Floats:
    """Fit the quality prior by some steps of expectation maximization; ``pages`` are counts of pages."""
    for _ in range(STEPS):
        counts = pages @ posterior(weights, likes, aware) + KEPT_PAGES * uniform_prior()
        weights = counts / counts.sum()
    return weights
