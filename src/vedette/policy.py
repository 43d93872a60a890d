"""Policy protocols: the three shapes of a decision (Priority, Due, Choice), and seeded random streams.

A policy is a value without hidden state. It takes facts in batches (arrays of equal length) and returns a proposal;
other code carries it out. Time and random numbers are arguments. Every policy has

    start(config) -> state              before it has seen anything
    observe(state, batch, now) -> state learn from the outcomes of earlier decisions
    reason(state, batch, row, now)      explain one row in one sentence

and exactly one of

    Priority.worth   something new: how much a fetch of it is worth
    Due.due          something known: when to fetch it again, at a price
    Choice.choose    k among options, with the probability of each pick

A worth may depend on ``now``, so it is never stored in a heap; a due time may be.
"""

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import xxhash

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

Config = TypeVar("Config", contravariant=True)
State = TypeVar("State")
Seen = TypeVar("Seen", contravariant=True)
Batch = TypeVar("Batch", contravariant=True)


class Policy(Protocol[Config, State, Seen, Batch]):
    """Base protocol of every policy, whatever the shape of its decision."""

    @property
    def name(self) -> str:
        """The published name of the policy."""

    def start(self, config: Config) -> State:
        """Return the initial state of a policy that has seen nothing."""

    def observe(self, state: State, batch: Seen, now: float) -> State:
        """Return the policy's state after the outcomes of earlier decisions; the given state is unchanged."""

    def reason(self, state: State, batch: Batch, row: int, now: float) -> str:
        """Explain the policy's decision on one row."""


class Priority(Policy[Config, State, Seen, Batch], Protocol[Config, State, Seen, Batch]):
    """Protocol of priority policies: which unseen thing comes first?"""

    def worth(self, state: State, batch: Batch, now: float, rng: np.random.Generator) -> Floats:
        """Return the expected gain of fetching each row now; larger is sooner."""


class Due(Policy[Config, State, Seen, Batch], Protocol[Config, State, Seen, Batch]):
    """Protocol of due-time policies: when to fetch a known thing again."""

    def due(self, state: State, batch: Batch, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return the world time at which each row's worth per cost reaches the price; infinity for never."""


@dataclass(frozen=True, slots=True)
class Picks:
    """Picks of a choice policy: the chosen rows in order, and the propensity of each."""

    rows: Ints
    propensities: Floats


class Choice(Policy[Config, State, Seen, Batch], Protocol[Config, State, Seen, Batch]):
    """Protocol of choice policies: choose k among options."""

    def choose(self, state: State, options: Batch, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose at most k distinct rows, with their propensities."""


class Stateless:
    """Base class of policies without memory: every batch has all they need."""

    __slots__ = ()

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape of a policy
        """Return the empty state of a policy without memory."""
        return ()

    def observe(self, state: tuple[()], batch: Any, now: float) -> tuple[()]:  # noqa: ANN401, ARG002 - any batch
        """Return the state unchanged: a policy without memory learns nothing."""
        return state

    def select(self, state: tuple[()], places: Ints) -> tuple[()]:  # noqa: ARG002 - the shape of a policy
        """Return the state of some rows only: there is none."""
        return state


def rng_for(seed: int, decision: str) -> np.random.Generator:
    """Create the random stream of one decision: the same for the same seed and name, independent of all others.

    >>> int(rng_for(7, "order/breadth/12").integers(1000)) == int(rng_for(7, "order/breadth/12").integers(1000))
    True
    """
    return np.random.Generator(np.random.PCG64([seed, xxhash.xxh64_intdigest(decision.encode())]))
