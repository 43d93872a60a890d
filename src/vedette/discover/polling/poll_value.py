"""The worth of polling a discovery source, by the arrival model: now, at a price, and for display.

Two numbers must not be confused. ``estimate_yield`` is what a poll would bring now, in new pages. ``compute_index`` is
what would be lost by postponing it, also in pages: polls compete by it, and it is compared with the price.
"""

from typing import NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import LIFETIMES_H, estimate_answer_chance
from vedette.discover.polling.overlap import AccrualState, compute_accrued
from vedette.discover.polling.rates import RatePosterior
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats

# A find this late counts 1 / e of an immediate one.
PATIENCE_H = 8.0
# A source never quite fills up; this close it counts as full.
NEARLY_FULL = 1e-3


class RateInterval(NamedTuple):
    """New links an hour at each discovery source, with a 95% credible interval."""

    mean: Floats
    low: Floats
    high: Floats


def compute_urgency(amount: Floats, patience_h: float = PATIENCE_H) -> Floats:
    """Compute the urgency of a poll (W of ``Accrual``) from accumulated links by lifetime, at one link an hour.

    An empty source loses nothing; of an hour's links, the short-lived ones are lost first:

    >>> compute_urgency(np.zeros((1, 4))).tolist()
    [[0.0, 0.0, 0.0, 0.0]]
    >>> np.argsort(compute_urgency(LIFETIMES_H * -np.expm1(-1.0 / LIFETIMES_H))).tolist()
    [3, 2, 1, 0]
    """
    time_h = -LIFETIMES_H * np.log(np.clip(1.0 - amount / LIFETIMES_H, NEARLY_FULL, 1.0))
    life_h = 1.0 / (1.0 / LIFETIMES_H + 1.0 / patience_h)
    x = time_h / life_h
    lost: Floats = life_h * (1.0 - np.exp(-x) * (1.0 + x))
    return lost


def compute_urgency_after(age_h: float, patience_h: float = PATIENCE_H) -> Floats:
    """Compute the urgency of a poll by kind of lifetime, this long after the last one, at one link an hour."""
    return compute_urgency(LIFETIMES_H * -np.expm1(-age_h / LIFETIMES_H), patience_h)


def estimate_yield(state: AccrualState, options: Sources, now: float) -> Floats:
    """Estimate how many new pages a poll of each source would bring now, each source considered alone."""
    state = state.ensure_places(options)
    expected: Floats = (
        state.arrivals.estimate_rates(options.place, now).mean * compute_accrued(state, options.place, now)
    ).sum(axis=1)
    return expected * _estimate_answers(state, options, now)


def compute_index(state: AccrualState, options: Sources, now: float, optimism: float = 0.0) -> Floats:
    """Compute the poll index: pages lost or late if a source is not polled now, with optimism about unknown ones."""
    state = state.ensure_places(options)
    lost = compute_urgency(compute_accrued(state, options.place, now))
    return compute_ucb(state.arrivals.estimate_rates(options.place, now), lost, optimism) * _estimate_answers(
        state, options, now
    )


def compute_ucb(rates: RatePosterior, amount: Floats, optimism: float) -> Floats:
    """Compute the upper confidence bound of new links from a poll: the mean plus ``optimism`` deviations."""
    mean = (rates.mean * amount).sum(axis=-1)
    hope: Floats = mean + optimism * np.sqrt((rates.variance * amount**2).sum(axis=-1))
    return hope


def estimate_rates(state: AccrualState, options: Sources) -> RateInterval:
    """Estimate the new links an hour at each discovery source, with intervals, for display."""
    believed = state.ensure_places(options).arrivals.estimate_own_rates(options.place)
    mean = believed.mean.sum(axis=1)
    # A Gamma of the same mean and variance, and the cube root that makes a Gamma nearly normal (Wilson and Hilferty).
    shape = mean**2 / np.maximum(believed.variance.sum(axis=1), 1e-300)
    middle, spread = 1.0 - 1.0 / (9.0 * shape), 1.96 / (3.0 * np.sqrt(shape))
    low, high = (mean * np.maximum(middle + side * spread, 0.0) ** 3 for side in (-1.0, 1.0))
    return RateInterval(mean, low, high)


def get_weekly_pace(state: AccrualState, host: int) -> Floats:
    """Return the weekly pace of new links at a host: each hour's multiple of the mean, from Monday midnight UTC."""
    rhythm = state.arrivals.rhythm
    week: Floats = rhythm.pace[rhythm.find_rows(np.array([host]))[0]].copy()
    return week


def _estimate_answers(state: AccrualState, options: Sources, now: float) -> Floats:
    return estimate_answer_chance(state.arrivals.down_s[options.place], options.last_poll_s, now)
