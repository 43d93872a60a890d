"""Page quality from clicks: a posterior of views and clicks, shrunk to site and topic.

Each view counts by the probability that the result was examined (``examination``), each click by what followed it.
Evidence decays with a half-life. No single actor can move a page: a visitor counts once for a page, and an address as a
few people at most; the removed weight is counted by reason.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints

HALF_LIFE_DAYS = 90.0
MAX_ADDRESS_WEIGHT = 3.0
# Weight, in views, of the general share in a site or topic, and of site and topic in a page.
GROUP_WEIGHT, PAGE_WEIGHT = 20.0, 5.0
LONG_S, SHORT_S = 30.0, 5.0


class ResultViews(NamedTuple):
    """Result views in columns; ``looked`` is the examination probability of each, ``liked`` from 0 to 1."""

    page: Ints
    visitor: Ints
    address: Ints
    looked: Floats
    liked: Floats
    at_days: Floats


class CappedWeights(NamedTuple):
    """The capped weight of each result view, and how much weight was removed, by reason."""

    weight: Floats
    taken_off: Mapping[str, float]


class QualityEstimate(NamedTuple):
    """Expected quality of each page, and the decayed likes and views it is based on."""

    mean: Floats
    likes: Floats
    looks: Floats


def grade_clicks(dwell_s: Floats) -> Floats:
    """Grade clicks by dwell time: an immediate return is no like, half a minute a full one.

    The dwell time of a user who never came back is unknown; that is NaN, and counts as long.

    >>> grade_clicks(np.array([2.0, 17.5, 60.0, np.nan])).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    stayed = np.where(np.isnan(dwell_s), LONG_S, dwell_s)
    return np.asarray(np.clip((stayed - SHORT_S) / (LONG_S - SHORT_S), 0.0, 1.0))


def cap_weights(seen: ResultViews) -> CappedWeights:
    """Cap weights of result views: a visitor counts once for a page, and an address as three people at most.

    >>> one = np.zeros(4, np.int64)
    >>> cap_weights(ResultViews(one, one, one, np.ones(4), np.ones(4), np.zeros(4))).weight.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    weight = np.ones(len(seen.page))
    once = weight * _compute_caps(seen.page, seen.visitor, weight, 1.0)
    few = once * _compute_caps(seen.page, seen.address, once, MAX_ADDRESS_WEIGHT)
    taken_off = {"same visitor": float((weight - once).sum()), "same address": float((once - few).sum())}
    return CappedWeights(few, taken_off)


def decay_weights(at_days: Floats, now_days: float) -> Floats:
    """Compute the decayed weight of click evidence by its age.

    >>> decay_weights(np.array([0.0, 90.0]), 90.0).tolist()
    [0.5, 1.0]
    """
    return np.asarray(0.5 ** (np.maximum(now_days - at_days, 0.0) / HALF_LIFE_DAYS))


def _compute_caps(page: Ints, actor: Ints, weight: Floats, most: float) -> Floats:
    """Compute factors that cap each actor's total weight on a page."""
    _, group = np.unique(np.column_stack([page, actor]), axis=0, return_inverse=True)
    total = _sum_by_group(group.ravel(), weight)
    return np.asarray(np.minimum(1.0, most / np.maximum(total, 1e-12))[group.ravel()])


def estimate_quality(seen: ResultViews, site: Ints, topic: Ints, now_days: float) -> QualityEstimate:
    """Estimate the posterior quality of pages, given ``site`` and ``topic`` by page.

    A page without a view gets the quality of its site and topic.
    """
    weight = cap_weights(seen).weight * decay_weights(seen.at_days, now_days)
    looks = _sum_by_group(seen.page, weight * np.maximum(seen.looked, seen.liked), len(site))
    likes = _sum_by_group(seen.page, weight * seen.liked, len(site))
    return QualityEstimate(shrink_quality(likes, looks, site, topic), likes, looks)


def shrink_quality(likes: Floats, looks: Floats, site: Ints, topic: Ints) -> Floats:
    """Return the expected quality of pages by their likes and views, shrunk to their sites and topics."""
    # Prior: one liked view and one not liked.
    general = (1.0 + float(likes.sum())) / (2.0 + float(looks.sum()))
    kind = (
        _estimate_group_quality(site, likes, looks, general) + _estimate_group_quality(topic, likes, looks, general)
    ) / 2
    return np.asarray((likes + PAGE_WEIGHT * kind) / (looks + PAGE_WEIGHT))


def _estimate_group_quality(group: Ints, likes: Floats, looks: Floats, general: float) -> Floats:
    """Estimate the expected quality of each page's group (site or topic)."""
    liked, looked = _sum_by_group(group, likes), _sum_by_group(group, looks)
    return np.asarray(((liked + GROUP_WEIGHT * general) / (looked + GROUP_WEIGHT))[group])


def _sum_by_group(group: Ints, values: Floats, length: int = 0) -> Floats:
    return np.bincount(group, weights=values, minlength=length).astype(np.float64)
