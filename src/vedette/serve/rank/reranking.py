"""Rerank results by relevance and learned quality, and reserve trial slots for unproven pages.

A page with relevance score s and expected quality q is worth ``exp(s / T) (q + patience x teaching)``: quality
multiplies relevance, and T is the number of score points that a factor of e in quality counts for. So without known
differences in quality, results are in order of relevance. The information value of a view is computed by the default
policy (``explore.prospect``), times how often results of this query are viewed and for how long the knowledge is
useful; it is bounded, since a page that hardly answers the query is of no use, however little is known about it.

Slots are few, so information value counts relative to the best of these results: a page that was never seen goes before
one that was already tried, and the bound applies to the best. A result is unproven if it owes its position to that.
Candidates of similar worth are treated as equal, and ties are in random order: so each gets its turn, and the event
store has propensities to learn from. A candidate without a slot is ranked by quality, like every other page
(``trial_slots``).

That is the default, ``prospect``. Selective promotion (Pandey08, section 5.5) can be chosen instead: its candidates are
the results that no one has seen, or hardly anyone (``relaxed-selective``), each with the same probability. Its coin is
1 at the positions that are open to unproven results, and 0 at all others.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.rank.explore.prospect import MAX_AWARE, MAX_LIKES, Prospect
from vedette.serve.rank.explore.slot_allocation import TrialSlots
from vedette.serve.rank.reputation import PageBeliefs, Reputation
from vedette.serve.rank.trial_slots import TrialPlan, plan_trial_list

# The ranking version recorded with each search; changes when the arithmetic or its audience changes.
POLICY = "prospect/3"
DEFAULT_PROMOTION = "prospect"
# Policies that give unproven results a chance: the maximum views of a page in the promoted pool, None if information
# value decides. Uniform promotion is not among them: its propensities can only be estimated.
PROMOTIONS: Mapping[str, float | None] = {DEFAULT_PROMOTION: None, "selective": 0.0, "relaxed-selective": 3.0}
UNPROVEN = "on trial: few people have seen it"
# As recorded with searches, including by earlier versions.
UNPROVEN_NOTES = (UNPROVEN, "here to be tried: few people have seen it")

POINTS = 1.0  # T
MAX_POINTS = 3.0  # that quality adds or subtracts
PATIENCE = Prospect().patience
MAX_TEACHING = 10.0  # times the general quality
HALF_LIFE_DAYS = 90.0  # half-life of what is learned
DELAY_DAYS = 1 / 48  # until feedback changes the order
STEPS = 4.0  # steps of equal worth among the unproven, for each factor of e


class TrialLimits(NamedTuple):
    """Limits for unproven results: none before ``first``, ``most`` of the first ten; the ``rng``, and the rule."""

    first: int
    most: int
    rng: np.random.Generator
    promotion: str = DEFAULT_PROMOTION


class ReorderedResults(NamedTuple):
    """Reranked result rows with, by position, propensity, score points from quality, and whether unproven."""

    rows: Ints
    propensities: Floats
    points: Floats
    is_unproven: np.ndarray[tuple[int], np.dtype[np.bool_]]


def format_policy(promotion: str) -> str:
    """Return the name of the learned ranking policy, as recorded with each search it ranked.

    >>> format_policy("prospect"), format_policy("selective")
    ('prospect/3', 'prospect/3+selective')
    """
    return POLICY if promotion == DEFAULT_PROMOTION else f"{POLICY}+{promotion}"


def is_learned_policy(policy: str) -> bool:
    """Check whether a ranking policy uses learned quality, in any version.

    >>> is_learned_policy(POLICY), is_learned_policy("prospect/1"), is_learned_policy("linear/3")
    (True, True, False)
    >>> is_learned_policy("prospect/3+selective")
    True
    """
    return policy.partition("/")[0] == POLICY.partition("/")[0]


def reorder(
    rows: Ints, scores: Floats, believed: PageBeliefs, reputation: Reputation, chances: TrialLimits
) -> ReorderedResults:
    """Rerank rows by learned quality; scores and beliefs are by row of the search, so rows may be a subset."""
    plan, points = plan_order(rows, scores, believed, reputation, chances.first, chances.most, chances.promotion)
    found = plan.draw(chances.rng)
    return ReorderedResults(rows[found.rows], found.propensities, points[found.rows], found.is_tried)


def plan_order(
    rows: Ints,
    scores: Floats,
    believed: PageBeliefs,
    reputation: Reputation,
    first: int,
    most: int,
    promotion: str = DEFAULT_PROMOTION,
) -> tuple[TrialPlan, Floats]:
    """Plan the order of rows by learned quality with at most ``most`` trials, none before position ``first``.

    The plan is over positions in ``rows``, and comes with the score points that quality gives each. The lab draws from
    the same plan (``lab.runs.ranking.live``).
    """
    score, mean = scores[rows], believed.mean[rows]
    points = np.minimum(np.maximum(POINTS * np.log(mean / believed.general), -MAX_POINTS), MAX_POINTS)
    worth = (score - score.max(initial=0.0) + points) / POINTS
    own = believed.general * np.exp(worth)
    level, wanted = np.zeros(len(rows)), np.ones(len(rows))
    most_looks = PROMOTIONS.get(promotion)
    if most and most_looks is not None:
        level[believed.looks[rows] <= most_looks], wanted[:] = 2 * own.max(initial=0.0), np.inf
    elif most:
        taught, wanted = _estimate_teaching(rows, believed, reputation)
        unproven = np.flatnonzero(taught > mean)
        tried = own[unproven] * (1.0 + taught[unproven] / (believed.general * np.exp(points[unproven] / POINTS)))
        # Rows with about the same information value are interchangeable.
        level[unproven] = np.exp(np.floor(STEPS * np.log(np.maximum(tried, 1e-300))) / STEPS)
    seats = TrialSlots(first, most, believed.views_per_day * DELAY_DAYS)
    return plan_trial_list(own, level, wanted, seats), points


def _estimate_teaching(rows: Ints, believed: PageBeliefs, reputation: Reputation) -> tuple[Floats, Floats]:
    """Estimate the information value of a view of each result, and the views it can use; 0 for well-known pages."""
    likes, looks = believed.here_likes[rows], believed.here_looks[rows]
    young = np.flatnonzero((looks <= MAX_AWARE) & (likes <= MAX_LIKES))
    likes, looks = likes[young], looks[young]
    at = np.rint(looks).astype(np.int64), np.rint(likes).astype(np.int64)
    fresh = np.maximum(1.0 - looks / max(reputation.people, 1.0), 0.0)
    views = PATIENCE * believed.views_per_day * HALF_LIFE_DAYS
    teaches = views * reputation.teaching[at] * fresh
    # Relative to the best, which gets the bound.
    teaches *= min(1.0, MAX_TEACHING * believed.general / max(float(teaches.max(initial=0.0)), 1e-300))
    taught, wanted = np.zeros(len(rows)), np.ones(len(rows))
    taught[young], wanted[young] = teaches, reputation.ahead[at]
    return taught, wanted
