"""Relevance and what people made of pages, combined; and room for pages of which nobody knows yet.

A page of relevance score s and expected quality q is worth ``exp(s / T) (q + patience x teaching)``: quality multiplies
relevance, and T is how many points of score a factor of e in quality counts for. So where nothing is known to differ,
the order is that of relevance. What a view teaches is that of the default policy (``promote.prospect``), times how
often results of this query are looked at and for how long what is learned holds; it is bounded, since a page that
hardly answers the query is no use to anybody, however little is known of it.

Seats are few, so what a view teaches counts in proportion to the best that a view of any of these results teaches: who
was never seen goes before who was tried already, and the bound holds for the best. Unproven is who owes the place to
that. Candidates are taken for equal where they are worth about the same, and lots decide among equals: so each gets its
turn, and the record has propensities to learn from. Who gets no seat stands by quality, like everybody else
(``trial_seats``).
"""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.serve.rank.explore.prospect import MAX_AWARE, MAX_LIKES, Prospect
from vedette.serve.rank.explore.slot_allocation import TrialSlots
from vedette.serve.rank.reputation import PageBeliefs, Reputation
from vedette.serve.rank.trial_slots import draw_trial_list

# What ranked, as written down with each search; another number when the arithmetic changes, or who gets it.
POLICY = "prospect/3"
UNPROVEN = "here to be tried: few people have seen it"

POINTS = 1.0  # T
MAX_POINTS = 3.0  # that quality adds or takes away
PATIENCE = Prospect().patience
MAX_TEACHING = 10.0  # times the general quality
HALF_LIFE_DAYS = 90.0  # what is learned fades by half in as long
DELAY_DAYS = 1 / 48  # until what people do changes the order
STEPS = 4.0  # of equal worth among the unproven, for each factor of e


class TrialLimits(NamedTuple):
    """What the unproven may have: no place before ``first``, and ``most`` of the first ten; and by which lots."""

    first: int
    most: int
    rng: np.random.Generator


class ReorderedResults(NamedTuple):
    """Rows in their new order. By place: propensity, points of score that quality brought, and who is unproven."""

    rows: Ints
    propensities: Floats
    points: Floats
    is_unproven: np.ndarray[tuple[int], np.dtype[np.bool_]]


def is_learned_policy(policy: str) -> bool:
    """Whether that ranked by what was learned, in whatever version.

    >>> is_learned_policy(POLICY), is_learned_policy("prospect/1"), is_learned_policy("linear/3")
    (True, True, False)
    """
    return policy.partition("/")[0] == POLICY.partition("/")[0]


def reorder(
    rows: Ints, scores: Floats, believed: PageBeliefs, reputation: Reputation, chances: TrialLimits
) -> ReorderedResults:
    """Another order of rows; scores and what is believed are by row of the search, so rows may be some of them."""
    score, mean = scores[rows], believed.mean[rows]
    points = np.minimum(np.maximum(POINTS * np.log(mean / believed.general), -MAX_POINTS), MAX_POINTS)
    worth = (score - score.max(initial=0.0) + points) / POINTS
    own = believed.general * np.exp(worth)
    level, wanted = np.zeros(len(rows)), np.ones(len(rows))
    if chances.most:
        taught, wanted = _estimate_teaching(rows, believed, reputation)
        unproven = np.flatnonzero(taught > mean)
        tried = own[unproven] * (1.0 + taught[unproven] / (believed.general * np.exp(points[unproven] / POINTS)))
        # Those who would teach about as much stand for one another.
        level[unproven] = np.exp(np.floor(STEPS * np.log(np.maximum(tried, 1e-300))) / STEPS)
    seats = TrialSlots(chances.first, chances.most, believed.views_per_day * DELAY_DAYS)
    found = draw_trial_list(own, level, wanted, seats, chances.rng)
    return ReorderedResults(rows[found.rows], found.propensities, points[found.rows], found.is_tried)


def _estimate_teaching(rows: Ints, believed: PageBeliefs, reputation: Reputation) -> tuple[Floats, Floats]:
    """What a view of each teaches, and how many it has use for; nothing of whom enough is known."""
    likes, looks = believed.here_likes[rows], believed.here_looks[rows]
    young = np.flatnonzero((looks <= MAX_AWARE) & (likes <= MAX_LIKES))
    likes, looks = likes[young], looks[young]
    at = np.rint(looks).astype(np.int64), np.rint(likes).astype(np.int64)
    fresh = np.maximum(1.0 - looks / max(reputation.people, 1.0), 0.0)
    views = PATIENCE * believed.views_per_day * HALF_LIFE_DAYS
    teaches = views * reputation.teaching[at] * fresh
    # In proportion to the best, which has the bound.
    teaches *= min(1.0, MAX_TEACHING * believed.general / max(float(teaches.max(initial=0.0)), 1e-300))
    taught, wanted = np.zeros(len(rows)), np.ones(len(rows))
    taught[young], wanted[young] = teaches, reputation.ahead[at]
    return taught, wanted
