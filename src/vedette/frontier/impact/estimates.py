"""Unseen URLs by what a first fetch of each is expected to bring, where that was worked out beside the crawl.

What ``impact`` learns takes seconds, and a choice has microseconds. So the expected gain of each URL is worked out
elsewhere, now and then, and here it is a column like any other. Where nobody knows it, and before anything was learned,
all is breadth first.
"""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.policies.breadth import Breadth
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats, Ints

# The part of all URLs that stands in the front queues 1 to k together. Queues are drawn with weights that halve, so
# half of all fetches go to the best 64th, a quarter to the next, and nothing starves.
QUEUE_SHARES = 0.5 ** np.arange(6, 0, -1)


@dataclass(frozen=True, slots=True)
class UnseenWithGain(UnseenUrls):
    """The same with ``gain``: what a first fetch of each is expected to bring to search; NaN where nobody knows."""

    gain: Floats


@dataclass(frozen=True, slots=True)
class ImpactOrder:
    """Fetch in the order of the expected gain; those of which it is not known count as the others do on average.

    Where it is known of none, exactly breadth first.

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
        """What is learned is learned elsewhere, so the state is empty."""
        return ()

    def observe(self, state: tuple[()], batch: UnseenUrls, now: float) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """What was fetched is in the gains of a later batch."""
        return state

    def worth(self, state: tuple[()], batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """The expected gain of each."""
        gain = batch.gain if isinstance(batch, UnseenWithGain) else np.full(len(batch), np.nan)
        known = np.isfinite(gain)
        if not known.any():
            return Breadth().worth(state, batch, now, rng)
        return np.where(known, gain, gain[known].mean())

    def reason(self, state: tuple[()], batch: UnseenUrls, row: int, now: float) -> str:
        """The expected gain, in words."""
        gain = float(batch.gain[row]) if isinstance(batch, UnseenWithGain) else np.nan
        if not np.isfinite(gain):
            return f"{Breadth().reason(state, batch, row, now)}, as nobody knows what it would bring to searches"
        return f"expected gain {gain:.3g} of what one search shows"


def assign_by_rank(gain: Floats) -> Ints:
    """The front queue of each of some URLs, by its rank among them: the best first, never in queue 0.

    >>> assign_by_rank(np.array([0.1, 0.9, 0.2, 0.3])).tolist()
    [7, 1, 7, 6]
    """
    order = np.argsort(-gain, kind="stable")
    fronts = np.empty(len(gain), np.int64)
    ends = np.ceil(QUEUE_SHARES * len(gain))
    fronts[order] = 1 + np.searchsorted(ends, np.arange(len(gain)), side="right")
    return fronts


def compute_bounds(gain: Floats) -> Floats:
    """The least gain in each of the front queues 1 to 6, where these are all URLs; for those that are found later.

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
    """The front queue of each by such bounds.

    >>> assign_by_bounds(np.array([200.0, 125.0, 3.0]), compute_bounds(np.arange(128.0))).tolist()
    [1, 2, 7]
    """
    return np.asarray(1 + (gain[:, None] < bounds[None, :]).sum(axis=1), np.int64)
