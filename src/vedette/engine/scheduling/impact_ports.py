"""What first fetches are expected to bring to those who search: worked out beside the crawl, and looked up here."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from vedette.engine.ports import Ids
from vedette.policy import Floats, Ints

__all__ = ["BLIND", "Foresight"]


class Foresight(Protocol):
    """Whoever has what was worked out. ``turn`` tells one making from another; 0 where there is none."""

    @property
    def turn(self) -> int:
        """Which making this is."""

    def known(self, ids: Ids) -> Floats:
        """What a first fetch of each of these URLs is expected to bring; NaN where it was not worked out."""

    def gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """The same; where it was not worked out, what is usual where the URL lies, and NaN only where nothing is."""

    def fronts(self, gains: Floats) -> Ints:
        """The front queues for URLs that are found now and of which so much is expected."""


class Blind:
    """Nobody knows anything.

    >>> BLIND.turn, BLIND.gains(np.array([1], np.uint32), ["https://a.test/"]).tolist()
    (0, [nan])
    """

    turn = 0

    def known(self, ids: Ids) -> Floats:
        """Nothing."""
        return np.full(len(ids), np.nan)

    def gains(self, ids: Ids, urls: Sequence[str]) -> Floats:  # noqa: ARG002 - the shape that all have
        """Nothing."""
        return self.known(ids)

    def fronts(self, gains: Floats) -> Ints:
        """The last of all; nobody asks."""
        return np.full(len(gains), 7)


BLIND = Blind()
