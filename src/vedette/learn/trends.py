"""Trends in searches: detect rising queries and drifting terms, by two tests over decaying weights.

Each search of age *a* has a weight *r* = 2^(-a / short) as a recent one and *u* = 2^(-a / long) - *r* as a usual one.
Both are between 0 and 1, and so is their sum. Recent and usual weights of one query are compared with those of all
searches: a busy day, or a night, changes no share.

**Is a query rising?** We bet that its share of the searches is 2, 4, 8 … times what ``RISE_LIMIT`` allows, and compute
how much that bet would have won. For one bet that *x* of what is recent or usual is recent, where the limit allows *p*,

    won = (x / p)^R ((1 - x) / (1 - p))^U,

with *R* and *U* the query's weights. A function that is linear in a weight is above a convex one with equal ends, so
the bet wins at most 1 on average as long as the share did not rise beyond the limit, however the searches are spread
over time. Such winnings are evidence by themselves (e-values: Vovk, Wang, 2021), without any assumed distribution, and
valid for a handful of searches as for thousands. Those of many queries are judged together (e-BH: Wang, Ramdas, 2022):
of all queries that are ever reported, at most one in twenty is noise; if nothing rises, that is one test in twenty.

**Have the terms drifted?** By the Jensen-Shannon divergence between recent and usual shares of the terms. It is above 0
even without any change, and more so the fewer the searches. Noise adds about (K - L) v / (8 L ln 2) bits for *K* terms,
*L* per search, where *v* is the sum over all searches of (r / all r - u / all u)^2; that is subtracted. Rare terms are
pooled, since the formula holds only for terms searched several times. A shift is notable when it is four standard
deviations of noise and a distance of ``MIN_DISTANCE``: without any change that is at most one test in a hundred, on
sites with a few searches an hour, and hardly ever on busier ones.

Useful for: reporting what is new. Not useful for: rare queries (a handful of searches proves nothing), things that come
and go within hours, or against someone who searches in order to be counted.
"""

from math import log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.learn.decaying_counts import Numbers

RISE_LIMIT = 1.5  # a query rises when its share is more than this many times the usual one
BETS = 2.0 ** np.arange(1, 9)
FALSE_ALARMS = 0.05

MIN_TERM_SEARCHES = 5.0  # searches that a term must have been in, to be separated from the other rare ones
SURE_SIGMAS = 4.0  # standard deviations
MIN_DISTANCE = 0.1  # as a distance; smaller ones may be real but are not useful

Bools = npt.NDArray[np.bool_]
Positions = npt.NDArray[np.int64]


class Moments(NamedTuple):
    """Sums over all searches of their recent and usual weights, of the squares of both, and of products."""

    recent: float
    usual: float
    recent_squares: float
    usual_squares: float
    products: float

    @property
    def is_enough(self) -> bool:
        """Whether there are any recent searches, and any usual ones to compare with."""
        return self.recent > 0.0 and self.usual > 0.0 and self.noise > 0.0

    @property
    def noise(self) -> float:
        """The noise *v* above: the inverse number of searches by which the two shares are compared."""
        squares = self.recent_squares / self.recent**2 + self.usual_squares / self.usual**2
        return squares - 2.0 * self.products / (self.recent * self.usual)


def find_rising(recent: Numbers, usual: Numbers, every: Moments) -> Bools:
    """Find the queries whose searches are rising, by their recent and usual weights.

    Eight searches for something new among a hundred, and one that doubled by chance:

    >>> every = Moments(100.0, 1000.0, 50.0, 500.0, 20.0)
    >>> find_rising(np.array([8.0, 1.0, 4.0]), np.array([0.0, 0.0, 20.0]), every).tolist()
    [True, False, False]
    """
    if not every.is_enough or not len(recent):
        return np.zeros(len(recent), np.bool_)
    return _select_by_ebh(_compute_log_e_values(recent, usual, every.recent / every.usual))


def _compute_log_e_values(recent: Numbers, usual: Numbers, ratio: float) -> Numbers:
    """Compute the log e-value of each query: the average winnings of all bets that it rises."""
    allowed = RISE_LIMIT * ratio / (1.0 + RISE_LIMIT * ratio)
    bets = BETS * RISE_LIMIT * ratio / (1.0 + BETS * RISE_LIMIT * ratio)
    won = np.outer(recent, np.log(bets / allowed)) + np.outer(usual, np.log((1.0 - bets) / (1.0 - allowed)))
    best = won.max(axis=1)
    averaged: Numbers = best + np.log(np.exp(won - best[:, None]).mean(axis=1))
    return averaged


def _select_by_ebh(log_winnings: Numbers) -> Bools:
    """Select rising queries by e-BH: the largest group where each won enough for a group of that size."""
    count = len(log_winnings)
    order = np.argsort(-log_winnings, kind="stable")
    needed = np.log(count / (FALSE_ALARMS * np.arange(1, count + 1)))
    enough = (log_winnings[order] >= needed).nonzero()[0]
    flags = np.zeros(count, np.bool_)
    if len(enough):
        flags[order[: enough[-1] + 1]] = True
    return flags


class Shift(NamedTuple):
    """Drift between recent and usual term shares (0 the same, 1 nothing in common), minus noise.

    ``movers`` are the positions of the terms that moved beyond noise, those that moved most first. ``has_enough_data``
    is False if there are too few searches to compare.
    """

    distance: float = 0.0
    is_notable: bool = False
    has_enough_data: bool = False
    movers: tuple[int, ...] = ()


def measure_shift(recent: Numbers, usual: Numbers, every: Moments) -> Shift:
    """Measure the drift between recent and usual weights of search terms; ``every`` is of searches."""
    recent_terms, usual_terms = float(recent.sum()), float(usual.sum())
    if not every.is_enough or recent_terms <= 0.0 or usual_terms <= 0.0:
        return Shift()
    to_a_search = (recent_terms + usual_terms) / (every.recent + every.usual)
    now, before = recent / recent_terms, usual / usual_terms
    often = (now + before) / 2.0 * to_a_search / every.noise >= MIN_TERM_SEARCHES
    if not often.any():
        return Shift()
    parts = js_divergence_terms(_append_rest(now, often), _append_rest(before, often))
    one_term = every.noise / (8.0 * log(2.0) * to_a_search)  # what noise adds to the divergence per term
    noise = one_term * max(len(parts) - to_a_search, 0.0)
    # Terms of one query move together, which makes noise rarer and larger.
    spread = noise * sqrt(2.0 * max(to_a_search, 1.0) / len(parts))
    found = float(parts.sum())
    distance = sqrt(max(found - noise, 0.0))
    is_notable = found > noise + SURE_SIGMAS * spread and distance >= MIN_DISTANCE
    return Shift(
        distance, is_notable, has_enough_data=True, movers=_find_movers(parts[:-1], often, SURE_SIGMAS**2 * one_term)
    )


def _append_rest(shares: Numbers, often: Bools) -> Numbers:
    """Return the shares of frequent terms, and of all others together."""
    return np.append(shares[often], max(1.0 - float(shares[often].sum()), 0.0))


def js_divergence_terms(left: Numbers, right: Numbers) -> Numbers:
    """Compute what each term adds to the Jensen-Shannon divergence of two distributions, in bits.

    >>> js_divergence_terms(np.array([1.0, 0.0]), np.array([0.0, 1.0])).tolist()
    [0.5, 0.5]
    >>> js_divergence_terms(np.array([0.3, 0.7]), np.array([0.3, 0.7])).tolist()
    [0.0, 0.0]
    """
    middle = (left + right) / 2.0
    return (_entropy(left) + _entropy(right)) / 2.0 - _entropy(middle)


def _entropy(shares: Numbers) -> Numbers:
    """Compute each share times its logarithm, with 0 for 0."""
    return shares * np.log2(np.where(shares > 0.0, shares, 1.0))


def _find_movers(parts: Numbers, often: Bools, sure: float) -> tuple[int, ...]:
    """Find the positions of terms that moved by more than noise moves one term."""
    order = np.argsort(-parts, kind="stable")
    places: Positions = often.nonzero()[0]
    return tuple(places[order[parts[order] > sure]].tolist())
