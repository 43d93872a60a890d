"""What fetching a page costs, in ordinary fetches: the request, and what is sent."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import isfinite

import numpy as np

from vedette.decide import Floats

__all__ = ["FetchCost"]

# Budgets and politeness count requests: one is as dear as so many bytes, and no page costs many times what others do.
REQUEST_BYTES = 100_000.0
MOST = 2.0
REMEMBERED = 1_000  # fetches, over which the mean is about taken


@dataclass(frozen=True, slots=True)
class FetchCost:
    """The mean size of what is fetched; a page of that size costs 1.

    >>> cost = FetchCost().after([50_000, 250_000])
    >>> cost.of([150_000, 0, 10**9]).tolist()
    [1.0, 0.4, 2.0]
    """

    mean_bytes: float = 0.0
    seen: int = 0

    def after(self, sizes: Sequence[int]) -> "FetchCost":
        """The mean with some more fetches, of which old ones fade."""
        if not sizes:
            return self
        seen = self.seen + len(sizes)
        weight = len(sizes) / min(seen, max(REMEMBERED, len(sizes)))
        return FetchCost(self.mean_bytes + weight * (float(np.mean(sizes)) - self.mean_bytes), min(seen, REMEMBERED))

    def of(self, sizes: Sequence[int]) -> Floats:
        """What pages of these sizes cost; 1 each where nothing was seen yet."""
        if not self.seen:
            return np.ones(len(sizes))
        cost: Floats = np.minimum((np.array(sizes, float) + REQUEST_BYTES) / (self.mean_bytes + REQUEST_BYTES), MOST)
        return cost

    def to_json(self) -> str:
        """For the next run."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | None) -> "FetchCost":
        """What an earlier run wrote; nothing seen where that makes no sense.

        >>> FetchCost.from_json(FetchCost(5.0, 2).to_json()), FetchCost.from_json('{"seen": "x"}').seen
        (FetchCost(mean_bytes=5.0, seen=2), 0)
        """
        try:
            kept = cls(**json.loads(text or "{}"))
            sound = isfinite(kept.mean_bytes) and kept.mean_bytes >= 0 and kept.seen >= 0
        except (TypeError, ValueError):
            return cls()
        return kept if sound else cls()
