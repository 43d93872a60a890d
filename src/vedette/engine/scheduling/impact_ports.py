"""What first fetches are expected to bring to those who search: worked out beside the crawl, and looked up here."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from vedette.engine.ports import Ids
from vedette.policy import Floats, Ints


class ImpactEstimates(Protocol):
    """Whoever has what was worked out. ``version`` tells one making from another; 0 where there is none."""

    @property
    def version(self) -> int:
        """Which making this is."""

    def get_known(self, ids: Ids) -> Floats:
        """What a first fetch of each of these URLs is expected to bring; NaN where it was not worked out."""

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:
        """The same; where it was not worked out, what is usual where the URL lies, and NaN only where nothing is."""

    def get_front_queues(self, gains: Floats) -> Ints:
        """The front queues for URLs that are found now and of which so much is expected."""


class NoImpact:
    """Nobody knows anything.

    >>> NO_IMPACT.version, NO_IMPACT.get_gains(np.array([1], np.uint32), ["https://a.test/"]).tolist()
    (0, [nan])
    """

    version = 0

    def get_known(self, ids: Ids) -> Floats:
        """Nothing."""
        return np.full(len(ids), np.nan)

    def get_gains(self, ids: Ids, urls: Sequence[str]) -> Floats:  # noqa: ARG002 - the shape that all have
        """Nothing."""
        return self.get_known(ids)

    def get_front_queues(self, gains: Floats) -> Ints:
        """The last of all; nobody asks."""
        return np.full(len(gains), 7)


NO_IMPACT = NoImpact()
