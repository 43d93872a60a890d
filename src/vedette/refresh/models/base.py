"""Interface of change models: learn from fetches, and predict how likely a page has changed since.

Models learn in batches, at a cost that does not grow with their history: their memory of a page is a row of
``page_width`` numbers, and of a group of pages (a section, a site, everything) a row of ``group_width``. So the same
model serves a lab that holds a million pages as arrays and a coordinator that reads the rows of a batch from disk.
"""

from typing import NamedTuple, Protocol

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.timeutil import DAY_S

MAX_CHANCE = 0.9999
MIN_HAZARD = 1e-7  # changes a day of a page that never changes


class Rates(NamedTuple):
    """Estimated page changes per day: the expected number, and the ends of a 90 % interval."""

    mean: Floats
    low: Floats
    high: Floats


class Belief(NamedTuple):
    """A change model's belief about each page: -log of the chance that it is unchanged, and its hazard."""

    staleness: Floats
    hazard: Floats


class ChangeModel(Protocol):
    """Protocol of a change model: a value without hidden state, created without arguments."""

    @property
    def name(self) -> str:
        """The name under which the change model is published."""

    @property
    def page_width(self) -> int:
        """The number of values that the change model remembers per page."""

    @property
    def group_width(self) -> int:
        """The number of values that the change model remembers per group of pages."""

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Return the change model's memory after these fetches; the given memory is not modified.

        Each page occurs once. ``batch.changed`` covers the time from ``batch.before_s`` to ``batch.last_fetch_s``. A
        first fetch begins a page's row; one that finds the page gone says nothing about its changes.
        """

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the probability that each page differs at a time from what its last fetch brought.

        It never falls with time. A page without memory gets the chance of its section, its site, or of everything.
        """

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return how often each page changes, for display."""


def estimate_belief(model: ChangeModel, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
    """Return the belief of any change model at a time; the hazard is that of the following day."""
    now, then = (
        -np.log1p(-np.minimum(model.chance(memory, batch, each_s), MAX_CHANCE)) for each_s in (at_s, at_s + DAY_S)
    )
    return Belief(now, np.maximum(then - now, MIN_HAZARD))
