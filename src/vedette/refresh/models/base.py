"""What a model of change is: something that learns from fetches and says how probably a page has changed since.

Models learn in batches, at a cost that does not grow with what they have seen: what they remember of a page is a row of
``page_width`` numbers, and of a group of pages (a section, a site, everything) a row of ``group_width``. So the same
model serves a lab that holds a million pages as arrays and a keeper that reads the rows of a batch from a disk.
"""

from typing import NamedTuple, Protocol

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.timeutil import DAY_S

MAX_CHANCE = 0.9999
MIN_HAZARD = 1e-7  # changes a day of a page that never changes


class Rates(NamedTuple):
    """Changes a day of each page: the expected number, and the ends of a 90 % interval."""

    mean: Floats
    low: Floats
    high: Floats


class Belief(NamedTuple):
    """What is believed of each page: -log of the chance that it still says the same, and its hazard a day from now."""

    staleness: Floats
    hazard: Floats


class ChangeModel(Protocol):
    """A model; a value without hidden state, made without arguments."""

    @property
    def name(self) -> str:
        """By which it is published."""

    @property
    def page_width(self) -> int:
        """How many numbers it remembers of a page."""

    @property
    def group_width(self) -> int:
        """How many numbers it remembers of a group of pages."""

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """What is remembered after these fetches; the given memory stays as it was.

        Each page occurs once. ``batch.before_s`` to ``batch.last_fetch_s`` is the time of which ``batch.changed``
        speaks. A first fetch begins a page's row; one that finds the page gone says nothing of its changes.
        """

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """How probably each page differs at a time from what its last fetch brought, between 0 and 1.

        It never falls with time. A page of which nothing is remembered has the chance of its section, its site, or
        of everything.
        """

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """How often each page changes, for people."""


def estimate_belief(model: ChangeModel, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
    """What a model believes at a time, whatever it is made of; the hazard is that of the day to come."""
    now, then = (
        -np.log1p(-np.minimum(model.chance(memory, batch, each_s), MAX_CHANCE)) for each_s in (at_s, at_s + DAY_S)
    )
    return Belief(now, np.maximum(then - now, MIN_HAZARD))
