"""Relevance and what people made of pages, combined; and room for pages of which nobody knows yet.

A page of relevance score s and expected quality q is worth ``exp(s / T) (q + patience x teaching)``: quality multiplies
relevance, and T is how many points of score a factor of e in quality counts for. So where nothing is known to differ,
the order is that of relevance. What a view teaches is that of the default policy (``promote.prospect``), times how
often results of this query are looked at and for how long what is learned holds; it is bounded, since a page that
hardly answers the query is no use to anybody, however little is known of it.

Unproven is who owes the place to what a view would teach. These are taken for equal where they are worth about the
same, and lots decide among equals: so each gets its turn, and the record has propensities to learn from.
"""

from typing import NamedTuple

import numpy as np

from vedette.decide import Floats, Ints
from vedette.serve.rank.promote.prospect import Prospect
from vedette.serve.rank.promote.prospects import MOST_AWARE, MOST_LIKES
from vedette.serve.rank.promote.seating import Seats, seated
from vedette.serve.rank.reputation import Believed, Reputation

__all__ = ["POLICY", "UNPROVEN", "Chances", "Reordered", "reordered"]

# What ranked, as written down with each search; another number when the arithmetic changes.
POLICY = "prospect/1"
UNPROVEN = "here to be tried: few people have seen it"

POINTS = 1.0  # T
MOST_POINTS = 3.0  # that quality adds or takes away
PATIENCE = Prospect().patience
MOST_TAUGHT = 10.0  # times the general quality
LASTS_DAYS = 90.0  # what is learned fades by half in as long
DELAY_DAYS = 1 / 48  # until what people do changes the order
STEPS = 4.0  # of equal worth among the unproven, for each factor of e


class Chances(NamedTuple):
    """What the unproven may have: no place before ``first``, and ``most`` of the first ten; and by which lots."""

    first: int
    most: int
    rng: np.random.Generator


class Reordered(NamedTuple):
    """Rows in their new order. By place: propensity, points of score that quality brought, and who is unproven."""

    rows: Ints
    propensities: Floats
    points: Floats
    is_unproven: np.ndarray[tuple[int], np.dtype[np.bool_]]


def reordered(rows: Ints, scores: Floats, believed: Believed, reputation: Reputation, chances: Chances) -> Reordered:
    """Another order of rows; scores and what is believed are by row of the search, so rows may be some of them."""
    score, mean = scores[rows], believed.mean[rows]
    points = np.clip(POINTS * np.log(mean / believed.general), -MOST_POINTS, MOST_POINTS)
    taught, wanted = _taught(rows, believed, reputation)
    is_unproven = taught > mean if chances.most else np.zeros(len(rows), bool)
    relevance = np.exp((score - score.max(initial=0.0)) / POINTS)
    quality = believed.general * np.exp(points / POINTS)
    worth = relevance * (quality + np.where(is_unproven, taught, 0.0))
    worth = np.where(is_unproven, np.exp(np.floor(STEPS * np.log(worth)) / STEPS), worth)
    # Who is not unproven stands in order, to the last: equal scores stay as they came.
    level = np.where(is_unproven, worth, worth * (1 - 1e-12 * np.arange(len(rows))))
    seats = Seats(chances.first, chances.most, believed.views_per_day * DELAY_DAYS)
    picks = seated(level, is_unproven, wanted, seats).deal(len(rows), chances.rng)
    dealt = picks.rows
    return Reordered(rows[dealt], picks.propensities, points[dealt], is_unproven[dealt])


def _taught(rows: Ints, believed: Believed, reputation: Reputation) -> tuple[Floats, Floats]:
    """What a view of each teaches, and how many it has use for; nothing of whom enough is known."""
    likes, looks = believed.likes[rows], believed.looks[rows]
    young = (looks <= MOST_AWARE) & (likes <= MOST_LIKES)
    at = (
        np.rint(np.where(young, looks, MOST_AWARE)).astype(np.int64),
        np.rint(np.where(young, likes, 0)).astype(np.int64),
    )
    fresh = np.maximum(1.0 - looks / max(reputation.people, 1.0), 0.0)
    taught = PATIENCE * reputation.teaching[at] * believed.views_per_day * LASTS_DAYS * fresh
    bounded = np.minimum(taught, MOST_TAUGHT * believed.general)
    return np.where(young, bounded, 0.0), np.where(young, reputation.ahead[at], 1.0)
