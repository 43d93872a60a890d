"""Interface of change models: learn from fetches, and predict how likely a page has changed since.

Models learn in batches, at a cost that does not grow with their history: the memory of a page is a row of
``page_width`` numbers, and of a group of pages (a section, a site, everything) a row of ``group_width``. So the same
model serves a lab that holds a million pages as arrays and a coordinator that reads the rows of a batch from disk.
"""

from typing import NamedTuple, Protocol

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory


class Rates(NamedTuple):
    """Estimated page changes per day: the expected number, and the ends of a 90% interval."""

    mean: Floats
    low: Floats
    high: Floats


class Belief(NamedTuple):
    """A change model's belief about each page at a time.

    ``staleness`` is -log of the probability that the page is unchanged since its last fetch, ``hazard`` its growth per
    day. Neither is bounded: of two pages that have almost certainly changed one is still more certain, and both keep
    the hazard of their model.
    """

    staleness: Floats
    hazard: Floats


class ChangeModel(Protocol):
    """Protocol of a change model: a value without hidden state, created without arguments."""

    @property
    def name(self) -> str:
        """The published name of the change model."""

    @property
    def page_width(self) -> int:
        """The number of values that the change model stores per page."""

    @property
    def group_width(self) -> int:
        """The number of values that the change model stores per group of pages."""

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Return the change model's memory after these fetches; the given memory is not modified.

        Each page occurs once. ``batch.changed`` covers the time from ``batch.before_s`` to ``batch.last_fetch_s``. A
        first fetch initializes a page's row; one that finds the page gone says nothing about its changes.
        """

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability that each page differs at a time from its last fetch.

        It never decreases with time. A page without memory gets the probability of its section, its site, or of
        everything.
        """

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return how often each page changes, for display."""


class HazardModel(ChangeModel, Protocol):
    """Protocol of a change model with a hazard, as needed by the freshness index."""

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the change model's belief about each page at a time."""


def average_beliefs(weights: Floats, parts: Belief) -> Belief:
    """Average several beliefs (a column each) by weights that sum to 1 in each row.

    A page that is still unchanged after this long has the lower of two rates:

    >>> even = Belief(np.array([[60.0, 1.0]]), np.array([[6.0, 0.1]]))
    >>> [part.round(3).tolist() for part in average_beliefs(np.full((1, 2), 0.5), even)]
    [[1.693], [0.1]]
    """
    least = parts.staleness.min(axis=1, keepdims=True)
    alive = weights * np.exp(least - parts.staleness)
    total = alive.sum(axis=1)
    return Belief(np.maximum(least[:, 0] - np.log(total), 0.0), (alive * parts.hazard).sum(axis=1) / total)


def to_chance(belief: Belief) -> Floats:
    """Return the probability that each page has changed, by a belief."""
    chance: Floats = -np.expm1(-belief.staleness)
    return chance
