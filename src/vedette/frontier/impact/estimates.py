"""Order unseen URLs by their impact estimates: the expected gain of a first fetch, computed outside the crawl.

Learning impact takes seconds, and a choice has microseconds. So the expected gain of each URL is computed elsewhere,
periodically, and is an ordinary column here. URLs without an estimate, and all URLs before anything was learned, are in
breadth-first order.
"""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Ints

# The share of all URLs in the front queues 1 to k together. Queues are drawn with weights that halve, so half of all
# fetches go to the best 64th, a quarter to the next, and nothing starves.
QUEUE_SHARES = 0.5 ** np.arange(6, 0, -1)


@dataclass(frozen=True, slots=True)
class UnseenWithGain(UnseenUrls):
    """Unseen URLs with ``gain``: the expected gain of a first fetch for search; NaN if unknown."""

    gain: Floats


@dataclass(frozen=True, slots=True)
class ImpactOrder:
    """Order unseen URLs by the expected gain of a first fetch; an unknown gain counts as the mean of the others.

    If no gain is known, exactly breadth first.

    >>> from vedette.policy import rng_for
    >>> depth, found, inlinks = np.array([1, 1, 2]), np.arange(3), np.ones(3, np.int64)
    >>> policy, rng = ImpactOrder(), rng_for(1, "order")
    >>> policy.worth((), UnseenWithGain(depth, found, inlinks, np.array([0.5, np.nan, 0.1])), 0.0, rng).tolist()
    [0.5, 0.3, 0.1]
    >>> batch = UnseenUrls(depth, found, inlinks)
    >>> bool((policy.worth((), batch, 0.0, rng) == Breadth().worth((), batch, 0.0, rng)).all())
    True
    """

    name: str = "impact"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the empty state of the impact order: learning happens elsewhere."""
        return ()

    def observe(self, state: tuple[()], batch: UnseenUrls, now: float) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Learn nothing from fetches: they change the expected gains of a later batch."""
        return state

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the expected gain of a first fetch of each unseen URL, or breadth first where none is known."""
        gain = batch.gain if isinstance(batch, UnseenWithGain) else np.full(len(batch), np.nan)
        is_known = np.isfinite(gain)
        if not is_known.any():
            return Breadth().worth(state, batch, now, rng)
        return np.where(is_known, gain, gain[is_known].mean())

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the expected gain of an unseen URL in words."""
        gain = float(batch.gain[row]) if isinstance(batch, UnseenWithGain) else np.nan
        if not np.isfinite(gain):
            return f"{Breadth().reason(state, batch, row, now)}, because its gain for searches is unknown"
        return f"expected gain {gain:.3g} of what one search shows"


def assign_by_rank(gain: Floats) -> Ints:
    """Assign each unseen URL to a front queue by the rank of its expected gain: best first, never queue 0.

    >>> assign_by_rank(np.array([0.1, 0.9, 0.2, 0.3])).tolist()
    [7, 1, 7, 6]
    """
    order = np.argsort(-gain, kind="stable")
    fronts = np.empty(len(gain), np.int64)
    ends = np.ceil(QUEUE_SHARES * len(gain))
    fronts[order] = 1 + np.searchsorted(ends, np.arange(len(gain)), side="right")
    return fronts


def compute_bounds(gain: Floats) -> Floats:
    """Compute the lowest expected gain in each of the front queues 1 to 6, to assign URLs found later.

    >>> compute_bounds(np.arange(128.0)).tolist()
    [126.0, 124.0, 120.0, 112.0, 96.0, 64.0]
    """
    if not len(gain):
        return np.full(len(QUEUE_SHARES), np.inf)
    falling = -np.sort(-gain)
    return np.asarray(
        falling[np.minimum(np.ceil(QUEUE_SHARES * len(gain)).astype(np.int64), len(gain)) - 1], np.float64
    )


def assign_by_bounds(gain: Floats, bounds: Floats) -> Ints:
    """Assign each unseen URL to a front queue by its expected gain and the bounds of the queues.

    >>> assign_by_bounds(np.array([200.0, 125.0, 3.0]), compute_bounds(np.arange(128.0))).tolist()
    [1, 2, 7]
    """
    return np.asarray(1 + (gain[:, None] < bounds[None, :]).sum(axis=1), np.int64)
