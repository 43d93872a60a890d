"""How good is a page, by what people did? Views and clicks as a posterior that leans on site and topic.

Each view counts by how probably the result was looked at (``examination``), each click by what followed it. Evidence
fades with a half-life. One actor cannot move a page: a visitor counts once for a page, and an address as a few people
at most; what is taken off is counted by its reason.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints

__all__ = ["Believed", "Counted", "Seen", "believed", "counted", "faded", "grade"]

HALF_LIFE_DAYS = 90.0
MOST_OF_ADDRESS = 3.0
# Views that the general share counts for in a site or topic, and that site and topic count for in a page.
GROUP_WEIGHT, PAGE_WEIGHT = 20.0, 5.0
LONG_S, SHORT_S = 30.0, 5.0


class Seen(NamedTuple):
    """Results that were shown, in columns; ``looked`` is how probably each was looked at, ``liked`` from 0 to 1."""

    page: Ints
    visitor: Ints
    address: Ints
    looked: Floats
    liked: Floats
    at_days: Floats


class Counted(NamedTuple):
    """The weight of each row of what was seen, and how much was taken off, by reason."""

    weight: Floats
    taken_off: Mapping[str, float]


class Believed(NamedTuple):
    """Expected quality of each page, and the faded likes and looks that it rests on."""

    mean: Floats
    likes: Floats
    looks: Floats


def grade(dwell_s: Floats) -> Floats:
    """What a click says, by how long the reader stayed: back at once is no like, half a minute a whole one.

    Nobody knows how long who never came back stayed; that is NaN, and counts as long.

    >>> grade(np.array([2.0, 17.5, 60.0, np.nan])).tolist()
    [0.0, 0.5, 1.0, 1.0]
    """
    stayed = np.where(np.isnan(dwell_s), LONG_S, dwell_s)
    return np.asarray(np.clip((stayed - SHORT_S) / (LONG_S - SHORT_S), 0.0, 1.0))


def counted(seen: Seen) -> Counted:
    """A visitor counts once for a page, and an address as three people at most.

    >>> one = np.zeros(4, np.int64)
    >>> counted(Seen(one, one, one, np.ones(4), np.ones(4), np.zeros(4))).weight.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """
    weight = np.ones(len(seen.page))
    once = weight * _limits(seen.page, seen.visitor, weight, 1.0)
    few = once * _limits(seen.page, seen.address, once, MOST_OF_ADDRESS)
    taken_off = {"same visitor": float((weight - once).sum()), "same address": float((once - few).sum())}
    return Counted(few, taken_off)


def faded(at_days: Floats, now_days: float) -> Floats:
    """What is left of evidence of some time ago.

    >>> faded(np.array([0.0, 90.0]), 90.0).tolist()
    [0.5, 1.0]
    """
    return np.asarray(0.5 ** (np.maximum(now_days - at_days, 0.0) / HALF_LIFE_DAYS))


def _limits(page: Ints, actor: Ints, weight: Floats, most: float) -> Floats:
    """By what each row is multiplied so that no actor has more than this of a page."""
    _, group = np.unique(np.column_stack([page, actor]), axis=0, return_inverse=True)
    total = _summed(group.ravel(), weight)
    return np.asarray(np.minimum(1.0, most / np.maximum(total, 1e-12))[group.ravel()])


def believed(seen: Seen, site: Ints, topic: Ints, now_days: float) -> Believed:
    """The posterior of every page; ``site`` and ``topic`` are by page. A page without a view is as its kind is."""
    weight = counted(seen).weight * faded(seen.at_days, now_days)
    looks = _summed(seen.page, weight * np.maximum(seen.looked, seen.liked), len(site))
    likes = _summed(seen.page, weight * seen.liked, len(site))
    # One like and one look without: before anything is known all is even.
    general = (1.0 + float(likes.sum())) / (2.0 + float(looks.sum()))
    kind = (_of_group(site, likes, looks, general) + _of_group(topic, likes, looks, general)) / 2
    return Believed((likes + PAGE_WEIGHT * kind) / (looks + PAGE_WEIGHT), likes, looks)


def _of_group(group: Ints, likes: Floats, looks: Floats, general: float) -> Floats:
    """The expected quality of each page's group."""
    liked, looked = _summed(group, likes), _summed(group, looks)
    return np.asarray(((liked + GROUP_WEIGHT * general) / (looked + GROUP_WEIGHT))[group])


def _summed(group: Ints, values: Floats, length: int = 0) -> Floats:
    return np.bincount(group, weights=values, minlength=length).astype(np.float64)
