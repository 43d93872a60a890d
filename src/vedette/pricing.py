"""Pricing: the price of a fetch, which every fetch must be worth, so that spending meets the budget.

Everything that wants fetches states their *worth* in one unit: expected gain in search quality, times days for which it
lasts, per unit of cost. Fetches worth at least the price are made. The price moves with spending against the budget and
nothing else: a price that rose with the backlog would starve small hosts behind politeness.

    log price  +=  (spent / budget - 1) (time / patience)

The step is bounded, so that a burst of new pages moves the price by a factor and not by orders of magnitude. If
spending stays too low or too high, steps grow: a price that starts far off settles within days.

Three kinds of fetches compete, all in ordinary changes that people have for a day longer:

    refresh   expected changes of a known page               (``refresh.policies.expected_gain``)
    look      expected new links on a known page             (``discover.policies.accrual``)
    first     expected gain of an unseen page                (``FirstFetchModel``)

A first fetch is valued by the results of similar ones: by section, by depth, by in-links. No estimate is zero: with few
pages it is shrunk towards the overall mean, plus an exploration bonus, since trying gives information. So a section
that brought nothing is tried again, at growing intervals.

Useful for: one budget that several kinds of fetches share without quotas. Not useful for: limits that must hold at
every moment; those need a bucket as well (``engine.scheduling.budget``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import exp, inf, isfinite, sqrt
from typing import NamedTuple

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S

# Spending beyond this multiple of the budget moves the price no faster.
MAX_OVERSPENT = 3.0
# Steps in one direction lengthen the next one, up to this factor.
MAX_STRIDE = 8.0
STRIDE_GROWTH = 1.15
LOWEST, HIGHEST = 1e-30, 1e30
# The result of a first fetch lasts about this long: as long as a refresh may wait at most, since both bring a copy.
GAIN_LASTS_D = 180.0
# Ordinary changes that an unseen page counts for before any was fetched.
DEFAULT_WORTH = 3.0
# This many fetches of its own weigh as much, in a group, as all others.
CONFIDENCE = 4.0
# Number of prior changes, each with the usual fraction of what first fetches brought.
PSEUDO_CHANGES = 4.0
# The fraction of the usual worth that no measurement takes away.
SURE_SHARE = 0.5
EXPLORATION = 0.5
MAX_GROUPS = 5_000
NO_SUMS: Mapping[str, tuple[float, float]] = {}


@dataclass(frozen=True, slots=True)
class Price:
    """A fetch price; ``stride`` is positive if recent spending was too high, negative if too low.

    >>> price = Price(1.0)
    >>> price.update(spent=2.0, budget=1.0, span_s=3600.0).value > 1.0 > price.update(0.0, 1.0, 3600.0).value
    True
    >>> price.update(spent=1.0, budget=1.0, span_s=3600.0).value
    1.0
    """

    value: float
    patience_s: float = 2 * DAY_S
    stride: float = 0.0

    def __post_init__(self) -> None:
        if not (self.value > 0 and isfinite(self.value) and self.patience_s > 0):
            raise ConfigError("price and patience must be positive")

    def update(self, spent: float, budget: float, span_s: float) -> "Price":
        """Return the price after spending against a budget over a time; without a budget it does not move."""
        if not (0 < budget < inf) or span_s <= 0:
            return self
        off = min(spent / budget, MAX_OVERSPENT) - 1.0
        stride = self._stride(off)
        step = off * abs(stride) * min(span_s / self.patience_s, 1.0)
        return replace(self, value=min(max(self.value * exp(step), LOWEST), HIGHEST), stride=stride)

    def _stride(self, off: float) -> float:
        """Return the price's next stride: longer while it continues in one direction, short after a turn."""
        if off == 0:
            return self.stride
        side = 1.0 if off > 0 else -1.0
        if side * self.stride < 0 or not self.stride:
            return side
        return side * min(abs(self.stride) * STRIDE_GROWTH, MAX_STRIDE)


@dataclass(frozen=True, slots=True)
class Returns:
    """Mean return of fetches, and how far each group of pages is above or below it.

        expected = mean * product over groups of (sum + c mean) / (n + c) / mean  +  hope * deviation / sqrt(n + c)

    where c is ``confidence`` and n belongs to the group with the fewest fetches. ``total`` has number, sum, sum of
    squares.

    Useful for any kind of fetch that has groups. Not useful if two groups carry the same information: their factors are
    multiplied.

    A section that brought much is worth more than one that brought nothing, which is still worth something:

    >>> known = Returns().observe([["news"]] * 8 + [["tags"]] * 8, np.repeat([2.0, 0.0], 8))
    >>> news, tags, other = known.estimate([["news"], ["tags"], ["docs"]]).tolist()
    >>> news > other > tags > 0
    True
    """

    usual: float = DEFAULT_WORTH
    confidence: float = CONFIDENCE
    hope: float = EXPLORATION
    total: tuple[float, float, float] = (0.0, 0.0, 0.0)
    groups: Mapping[str, tuple[float, float]] = field(default_factory=lambda: NO_SUMS)

    @property
    def mean(self) -> float:
        """Mean return of a fetch, shrunk towards the usual value."""
        number, brought, _ = self.total
        return (brought + self.confidence * self.usual) / (number + self.confidence)

    @property
    def deviation(self) -> float:
        """Standard deviation of fetch returns, shrunk towards the usual value."""
        number, _, squares = self.total
        square = (squares + self.confidence * 2 * self.usual**2) / (number + self.confidence)
        return sqrt(max(square - self.mean**2, 0.0))

    def observe(self, groups: Sequence[Sequence[str]], gains: Floats) -> "Returns":
        """Return the model after fetches of members of these groups; negative returns count as 0."""
        gains = np.maximum(np.nan_to_num(gains), 0.0)
        known = dict(self.groups)
        for names, gain in zip(groups, gains.tolist(), strict=True):
            for name in names:
                if name in known or len(known) < MAX_GROUPS:
                    number, brought = known.get(name, (0.0, 0.0))
                    known[name] = number + 1.0, brought + gain
        number, brought, squares = self.total
        total = number + len(gains), brought + float(gains.sum()), squares + float((gains**2).sum())
        return replace(self, total=total, groups=known)

    def estimate(self, groups: Sequence[Sequence[str]]) -> Floats:
        """Estimate the return of a fetch for each list of groups; unknown groups change nothing."""
        mean, spread = self.mean, self.hope * self.deviation
        return np.array([self._estimate_one(names, mean, spread) for names in groups], np.float64)

    def estimate_bonus(self, groups: Sequence[Sequence[str]]) -> Floats:
        """Estimate the exploration bonus on top of the expected return: smaller the more was fetched."""
        fewest = [min((self.groups.get(name, (0.0, 0.0))[0] for name in names), default=0.0) for names in groups]
        return np.asarray(self.hope * self.deviation / np.sqrt(np.array(fewest, np.float64) + self.confidence))

    def _estimate_one(self, names: Sequence[str], mean: float, spread: float) -> float:
        factor, fewest = 1.0, self.total[0]
        for name in names:
            number, brought = self.groups.get(name, (0.0, 0.0))
            factor *= (brought + self.confidence * mean) / (number + self.confidence) / mean
            fewest = min(fewest, number)
        return mean * factor + spread / sqrt(fewest + self.confidence)


@dataclass(frozen=True, slots=True)
class FirstFetchModel:
    """Pricing model of first fetches against page changes, so that both use the unit of ordinary changes.

    ``changes`` is how many changes were measured, ``gained`` their total gain: the mean is the unit. Without searches
    nothing is measured, and every unseen page has the usual worth; and however few searches there were, a fraction of
    the usual worth is guaranteed.

    >>> firsts = FirstFetchModel().add_changes(np.full(50, 2.0)).add_first_fetches([["news"]] * 90, np.full(90, 20.0))
    >>> FirstFetchModel().worth([["news"]]).tolist(), 4.0 < float(firsts.worth([["news"]])[0]) < 10.0
    ([3.0], True)
    """

    returns: Returns = field(default_factory=Returns)
    changes: float = 0.0
    gained: float = 0.0

    def add_changes(self, gains: Floats) -> "FirstFetchModel":
        """Return the first-fetch model after changes of known pages with these search gains."""
        gained = float(np.maximum(np.nan_to_num(gains), 0.0).sum())
        return replace(self, changes=self.changes + len(gains), gained=self.gained + gained)

    def add_first_fetches(self, groups: Sequence[Sequence[str]], gains: Floats) -> "FirstFetchModel":
        """Return the first-fetch model after first fetches of such pages with these search gains."""
        return replace(self, returns=self.returns.observe(groups, gains)) if len(groups) else self

    def worth(self, groups: Sequence[Sequence[str]]) -> Floats:
        """Return the daily worth of first fetches of such pages, in ordinary changes, by their groups."""
        if not self.unit > 0:
            return np.full(len(groups), DEFAULT_WORTH)
        return _add_floor(self._scaled_returns.estimate(groups) / self.unit)

    def worth_from_gains(self, gains: Floats, groups: Sequence[Sequence[str]]) -> Floats:
        """Return first-fetch worths from estimated gains plus exploration; by groups if there is no estimate.

        >>> firsts = FirstFetchModel().add_changes(np.full(50, 2.0)).add_first_fetches([["news"]] * 90, np.full(90,
        ...     2.0))
        >>> much, little, unknown = firsts.worth_from_gains(np.array([20.0, 0.0, np.nan]), [["news"]] * 3).tolist()
        >>> much > unknown > little >= SURE_SHARE * DEFAULT_WORTH, unknown == float(firsts.worth([["news"]])[0])
        (True, True)
        """
        by_groups = self.worth(groups)
        if not self.unit > 0:
            return by_groups
        foreseen = _add_floor((np.maximum(gains, 0.0) + self._scaled_returns.estimate_bonus(groups)) / self.unit)
        return np.where(np.isfinite(gains), foreseen, by_groups)

    @property
    def page_worth(self) -> float:
        """The worth of any unseen page without information on its groups."""
        return float(_add_floor(np.array(self._scaled_returns.mean / self.unit))) if self.unit > 0 else DEFAULT_WORTH

    @property
    def unit(self) -> float:
        """The search gain of an ordinary change; based on first fetches while few changes were measured."""
        number, brought, _ = self.returns.total
        imagined = brought / number / DEFAULT_WORTH if number else 0.0
        return (self.gained + PSEUDO_CHANGES * imagined) / (self.changes + PSEUDO_CHANGES)

    @property
    def is_sound(self) -> bool:
        """Whether all sums of the first-fetch model are finite and not negative, since a file may contain anything."""
        sums = (*self.returns.total, self.changes, self.gained, *chain.from_iterable(self.returns.groups.values()))
        return all(0.0 <= each < inf for each in sums)

    @property
    def _scaled_returns(self) -> Returns:
        return replace(self.returns, usual=DEFAULT_WORTH * self.unit)


def _add_floor(worth: Floats) -> Floats:
    sure: Floats = SURE_SHARE * DEFAULT_WORTH + (1.0 - SURE_SHARE) * worth
    return sure


def in_links_group(count: int) -> str:
    """Return the group of a page by its number of in-links, in doubling steps.

    >>> [in_links_group(count) for count in (0, 1, 2, 3, 200)]
    ['in 1', 'in 1', 'in 2', 'in 2', 'in 128']
    """
    return f"in {1 << max(count, 1).bit_length() - 1}"


class ClearedPrice(NamedTuple):
    """A clearing price and the rows fetched at it, ascending, and the worth of the last; 0 if all are."""

    rows: Ints
    price: float


def clear_price(worth: Floats, most: int) -> ClearedPrice:
    """Compute the clearing price at which this many fetches are wanted, from all worths at one moment.

    >>> clear_price(np.array([3.0, 9.0, 1.0, 5.0]), 2)
    ClearedPrice(rows=array([1, 3]), price=5.0)
    """
    if len(worth) <= most:
        return ClearedPrice(np.arange(len(worth)), 0.0)
    if most <= 0:
        return ClearedPrice(np.zeros(0, np.int64), float(worth.max()))
    order = np.argsort(-worth, kind="stable")[:most]
    return ClearedPrice(np.sort(order), float(worth[order[-1]]))


def split_by_shares(most: int, shares: Sequence[float], owed: Sequence[float]) -> tuple[list[int], list[float]]:
    """Split a number of fetches by fixed shares into whole ones, and return what each is owed next time.

    >>> split_by_shares(4, (0.5, 0.5, 0.0), (0.0, 0.0, 0.0)), split_by_shares(1, (0.5, 0.5, 0.0), (0.0, 0.0, 0.0))
    (([2, 2, 0], [0.0, 0.0, 0.0]), ([1, 0, 0], [-0.5, 0.5, 0.0]))
    """
    due = [most * share + before for share, before in zip(shares, owed, strict=True)]
    parts = [0] * len(due)
    for _ in range(most):
        best = max(range(len(due)), key=lambda kind: due[kind] - parts[kind])
        parts[best] += 1
    return parts, [each - part for each, part in zip(due, parts, strict=True)]
