"""Off-policy estimates: what another policy would have achieved, from logs with propensities.

A row is one decision: its probability, the probability that the other policy would make the same one, and its reward.
The doubly robust estimate also uses a model's expectation for the decision, and its expectation for the other policy on
average.

- IPS (Horvitz and Thompson): mean of w r with w = target / logged; unbiased, but with high variance.
- SNIPS (Swaminathan and Joachims 2015): the same divided by the mean of w; slightly biased, and much more stable.
- DR (Dudik, Langford and Li 2011): the model, corrected by w where it was wrong; unbiased if either is.

A log that depends on few decisions is no evidence, however many rows it has. Its *effective* number is ``(sum w)^2 /
sum w^2`` (Kish); below 100, or if the weights do not average to about 1, it is "not enough data".
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.learn.clicks.impressions import Bools, Impressions
from vedette.policy import Floats, Ints

# The order for a user depends on the visitor hash of the day: one of ten gets the order by relevance alone, one the
# learned order without trials, eight all of it. So the probability of each order is known exactly.
RELEVANCE_ONLY, LEARNED_ONLY, WITH_TRIALS = "relevance", "learned", "tried"
GROUP_COUNT = 10
GROUP_SHARES: Mapping[str, float] = {
    RELEVANCE_ONLY: 1 / GROUP_COUNT,
    LEARNED_ONLY: 1 / GROUP_COUNT,
    WITH_TRIALS: 1 - 2 / GROUP_COUNT,
}


def assign_group(mark: str) -> str:
    """Assign a user to an experiment group by hexadecimal visitor hash; the learned order without one.

    >>> [assign_group(mark) for mark in ("0a", "0b", "0c", "")]
    ['relevance', 'learned', 'tried', 'learned']
    """
    try:
        return {0: RELEVANCE_ONLY, 1: LEARNED_ONLY}.get(int(mark, 16) % GROUP_COUNT, WITH_TRIALS)
    except ValueError:
        return LEARNED_ONLY


MIN_EFFECTIVE = 100.0
# Weights average to 1 if the log covers what the other policy does; tolerance in standard errors.
MAX_COVERAGE_ERRORS = 4.0
NOT_ENOUGH_DATA = "not enough data"
Z = 1.96
# The ends of the 95% interval of a mean.
Interval = Callable[[Floats], tuple[float, float]]


class Decisions(NamedTuple):
    """A log of decisions in columns, for off-policy estimates."""

    logged: Floats
    target: Floats
    reward: Floats
    expected: Floats
    expected_of_target: Floats

    @property
    def weights(self) -> Floats:
        """The importance weights: how much more often the other policy would have made the same decision."""
        return np.asarray(self.target / np.maximum(self.logged, 1e-12))


class Estimate(NamedTuple):
    """An off-policy estimate with its interval, its effective number of decisions, and objections to it."""

    value: float
    low: float
    high: float
    effective: float
    caveat: str


def normal_interval(values: Floats) -> tuple[float, float]:
    """Compute a normal confidence interval: fast, and good enough for hundreds of decisions.

    >>> normal_interval(np.array([1.0, 1.0, 1.0]))
    (1.0, 1.0)
    """
    if len(values) < 2:
        return math.nan, math.nan
    mean, off = float(values.mean()), Z * float(values.std(ddof=1)) / math.sqrt(len(values))
    return mean - off, mean + off


def ips(log: Decisions, ends: Interval = normal_interval) -> Estimate:
    """Estimate another policy's value by inverse propensity scoring (IPS).

    >>> ips(Decisions(*(np.array([0.5]),) * 5)).caveat
    'not enough data'
    """
    return _estimate_mean(log, log.weights * log.reward, ends)


def snips(log: Decisions, ends: Interval = normal_interval) -> Estimate:
    """Estimate another policy's value by self-normalized IPS (SNIPS), with a linearized interval."""
    weights = log.weights
    mean = float(weights.mean()) if len(weights) else math.nan
    if not mean > 0:
        return _build_estimate(log, math.nan, (math.nan, math.nan))
    value = float((weights * log.reward).mean()) / mean
    low, high = ends(weights * (log.reward - value) / mean)
    return _build_estimate(log, value, (value + low, value + high))


def doubly_robust(log: Decisions, ends: Interval = normal_interval) -> Estimate:
    """Estimate another policy's value by the doubly robust method: the model, corrected where it was wrong."""
    return _estimate_mean(log, log.expected_of_target + log.weights * (log.reward - log.expected), ends)


def _estimate_mean(log: Decisions, values: Floats, ends: Interval) -> Estimate:
    return _build_estimate(log, float(values.mean()) if len(values) else math.nan, ends(values))


def _build_estimate(log: Decisions, value: float, between: tuple[float, float]) -> Estimate:
    weights = log.weights
    squares = float((weights**2).sum())
    effective = float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
    caveat = NOT_ENOUGH_DATA if effective < MIN_EFFECTIVE or not _is_covered(weights) else ""
    return Estimate(value, *between, effective, caveat)


def _is_covered(weights: Floats) -> bool:
    """Check whether importance weights average to about 1; they fall short if the log lacks support."""
    error = float(weights.std()) / math.sqrt(len(weights))
    return abs(float(weights.mean()) - 1) <= MAX_COVERAGE_ERRORS * error + 1e-9


# A decision is what one user of a day was shown, the reward how much the searches of that user succeeded: each as much
# as its best-liked result. Orders are assigned by visitor hash (``assign_group``), so the probability of each is known,
# and the estimates of ``off_policy`` are valid whatever people are like. Users are the unit, since searches of one
# person are alike. The model of the doubly robust estimate is the success rate of searches for the same words with each
# order, from the other half of the users, so that no user's own actions are used to predict them. It must not depend on
# what this user was shown, or random outcomes would be attributed to the order.


PRIOR_WEIGHT = 5.0  # weight of the general success rate, in searches


class OrderEstimate(NamedTuple):
    """A result order by name in ``GROUP_SHARES``, and its estimated share of successful searches.

    ``readers`` of ``of_readers`` got it.
    """

    name: str
    readers: int
    of_readers: int
    ips: Estimate
    snips: Estimate
    robust: Estimate


def estimate_orders(seen: Impressions, among: Bools, is_tried: Bools) -> tuple[OrderEstimate, ...]:
    """Estimate the success of each randomly assigned result order, had all users got it.

    ``among`` selects the rows that count.

    Without trials, users who might have been shown such pages and users who might not had the same order.
    """
    rows = np.flatnonzero(among & (seen.visitor < len(seen.visitor_hashes)))
    if not len(rows):
        return ()
    orders: Mapping[str, Sequence[str]] = {
        RELEVANCE_ONLY: (RELEVANCE_ONLY,),
        LEARNED_ONLY: (LEARNED_ONLY,),
        WITH_TRIALS: (WITH_TRIALS,),
    }
    if not is_tried[rows].any():
        orders = {RELEVANCE_ONLY: (RELEVANCE_ONLY,), WITH_TRIALS: (LEARNED_ONLY, WITH_TRIALS)}
    searches = _Searches.from_impressions(seen, rows, orders)
    return tuple(_estimate_order(name, number, searches, got) for number, (name, got) in enumerate(orders.items()))


class _Searches(NamedTuple):
    """One row per search with its user, words and success; by user, the result order and its probability."""

    reader: Ints
    group: Ints
    success: Floats
    order: Ints
    many: int

    @classmethod
    def from_impressions(cls, seen: Impressions, rows: Ints, orders: Mapping[str, Sequence[str]]) -> "_Searches":
        _, first, slate = np.unique(seen.slate[rows], return_index=True, return_inverse=True)
        success = np.zeros(len(first))
        np.maximum.at(success, slate, seen.liked[rows])
        readers, reader = np.unique(seen.visitor[rows[first]], return_inverse=True)
        number = {group: at for at, groups in enumerate(orders.values()) for group in groups}
        order = [number[assign_group(seen.visitor_hashes[visitor])] for visitor in readers.tolist()]
        return cls(reader, seen.group[rows[first]], success, np.array(order, np.int64), len(orders))

    def average_by_user(self, of_search: Floats) -> Floats:
        """Average a value over the searches of each user."""
        return np.asarray(np.bincount(self.reader, of_search) / np.bincount(self.reader))

    def predict_success(self, order: Ints) -> Floats:
        """Predict the success of each search with a result order, from the other half of the users."""
        _, words = np.unique(self.group, return_inverse=True)
        half, got = self.reader % 2, self.order[self.reader]
        usual = _shrink_means(half, self.success, np.array([float(self.success.mean())] * 2))
        of_words = _shrink_means(2 * words + half, self.success, np.tile(usual, int(words.max()) + 1))
        by_both = _shrink_means((2 * words + half) * self.many + got, self.success, np.repeat(of_words, self.many))
        return np.asarray(by_both[(2 * words + 1 - half) * self.many + order])


def _shrink_means(key: Ints, values: Floats, usual: Floats) -> Floats:
    """Compute the mean of each key, shrunk to the usual value."""
    sums, counts = (np.bincount(key, each, len(usual)) for each in (values, np.ones(len(key))))
    return np.asarray((sums + PRIOR_WEIGHT * usual) / (counts + PRIOR_WEIGHT))


def _estimate_order(name: str, number: int, searches: _Searches, got: Sequence[str]) -> OrderEstimate:
    is_got = searches.order == number
    shown = searches.order[searches.reader]
    log = Decisions(
        np.where(is_got, sum(GROUP_SHARES[each] for each in got), 1.0),
        is_got.astype(np.float64),
        searches.average_by_user(searches.success),
        searches.average_by_user(searches.predict_success(shown)),
        searches.average_by_user(searches.predict_success(np.full(len(shown), number))),
    )
    return OrderEstimate(name, int(is_got.sum()), len(is_got), ips(log), snips(log), doubly_robust(log))
