"""Ad budget pacing: a plan of the day's query traffic, learned from past days, and its effect on budgets.

A day has ``BINS`` bins. The plan holds how often each phrase is expected in each of them: an average of past days, in
which each counts half as much as the one after it. It determines how much of a day is still to come, how much of a
budget should be spent by now, and how much a bid is discounted if the budget will not last (``compute_discounts``).

Why not a share of time: most people search at certain hours, and for different things at different hours. A plan by the
clock starves the evening for phrases searched in the morning.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints
from vedette.serve.ads.candidates import AdCandidates
from vedette.timeutil import DAY_S

BINS = 24
# The weight of a day relative to all before it.
NEWEST_WEIGHT = 0.5
# How sharply the better of two ads is preferred when predicting which would be shown: the power of its score.
SHARPNESS = 12.0
STEPS, STEP = 12, 0.4
MIN_DISCOUNT = 0.25


class Traffic(NamedTuple):
    """Query traffic by bin and phrase: of an average past day, and of today until now.

    ``asked`` is the total number of queries for each phrase at the last update, ``day`` and ``bin`` the time of that
    update; ``days`` is the number of whole days seen.
    """

    usual: Floats
    today: Floats
    asked: Floats
    day: int
    bin: int
    days: int


NO_TRAFFIC = Traffic(np.zeros((BINS, 0)), np.zeros((BINS, 0)), np.zeros(0), -1, 0, 0)


def update_traffic(before: Traffic, asked: Floats, now_s: float) -> Traffic:
    """Update the traffic plan with the total number of queries for each phrase until now.

    Queries since the last update count for the bin of that update. A finished day becomes part of the plan.
    """
    day, bin_ = _split_time(now_s)
    more = max(len(asked) - len(before.asked), 0)
    usual, today = (np.pad(each, ((0, 0), (0, more))) for each in (before.usual, before.today))
    if before.day >= 0:
        today[before.bin] += asked - np.pad(before.asked, (0, more))
    if before.day < 0 or day == before.day:
        return Traffic(usual, today, asked.copy(), day, bin_, before.days)
    weight = NEWEST_WEIGHT if before.days else 1.0
    usual = (1 - weight) * usual + weight * today
    return Traffic(usual, np.zeros_like(today), asked.copy(), day, bin_, before.days + 1)


def expected_queries(traffic: Traffic, now_s: float) -> Floats:
    """Return the expected queries for each phrase until the end of the day, including the rest of this bin."""
    _, bin_ = _split_time(now_s)
    left = 1 - (now_s % DAY_S) / DAY_S * BINS % 1
    found: Floats = traffic.usual[bin_ + 1 :].sum(axis=0) + left * traffic.usual[bin_]
    return found


def spend_allowance(traffic: Traffic, now_s: float, ahead: float = 0.1) -> float:
    """Return the share of an ad budget that may be spent by now: that of traffic plus ``ahead``.

    All of it without a plan.

    >>> spend_allowance(NO_TRAFFIC, 3600.0)
    1.0
    """
    whole = float(traffic.usual.sum())
    gone = 1 - float(expected_queries(traffic, now_s).sum()) / whole if whole else 1.0
    return min(gone + ahead, 1.0)


def is_resting(remaining: Floats, budget: Floats, allowed: float | Floats) -> npt.NDArray[np.bool_]:
    """Mark ads that pause for now because the share of the budget allowed by now was charged.

    >>> is_resting(np.array([9.0, 8.0, 10.0, np.inf]), np.array([10.0, 10.0, 10.0, np.inf]), 0.2).tolist()
    [False, True, False, False]
    """
    limited = np.isfinite(budget)
    with np.errstate(invalid="ignore"):  # infinity minus infinity, which is left out
        charged = np.where(limited, budget - remaining, 0.0)
        found: npt.NDArray[np.bool_] = limited & (charged > 0) & (charged >= allowed * budget)
    return found


def compute_discounts(traffic: Traffic, ads: AdCandidates, value: Floats, before: Floats, now_s: float) -> Floats:
    """Compute the discount of each advertiser's bid: below 1 if the day would exceed the budget.

    ``value`` is the expected revenue of an impression of each ad. The ads shown are predicted for the queries still to
    come; an advertiser who would then spend more than is left counts less, one who would spend less counts more, up to
    1, step by step from the discount ``before``. So a discount applies only if a budget binds, and is no larger than
    necessary.
    """
    payers = max(int(ads.advertiser.max(initial=-1)) + 1, len(before))
    keep = np.append(before, np.ones(payers - len(before)))
    if not traffic.days or not len(ads):
        return np.ones(payers)
    queries = expected_queries(traffic, now_s)[ads.phrase]
    remaining = np.full(payers, np.inf)
    remaining[ads.advertiser] = ads.remaining
    can = np.where(ads.remaining >= ads.bid, value, 0.0)
    for _ in range(STEPS):
        cost = np.bincount(
            ads.advertiser, queries * can * _show_chances(can * keep[ads.advertiser], ads.phrase), payers
        )
        keep = np.clip(keep * (remaining / np.maximum(cost, 1e-9)).clip(0.5, 2.0) ** STEP, MIN_DISCOUNT, 1.0)
    return keep


def _show_chances(score: Floats, phrase: Ints) -> Floats:
    """Estimate the probability that each ad is the one shown for its phrase; scores are uncertain."""
    best = np.zeros(int(phrase.max()) + 1)
    np.maximum.at(best, phrase, score)
    weight = (score / np.maximum(best[phrase], 1e-300)) ** SHARPNESS
    found: Floats = weight / np.maximum(np.bincount(phrase, weight)[phrase], 1e-300)
    return found


def _split_time(now_s: float) -> tuple[int, int]:
    day, rest_s = divmod(now_s, DAY_S)
    return int(day), int(rest_s / DAY_S * BINS)
