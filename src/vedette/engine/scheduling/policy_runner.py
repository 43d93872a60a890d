"""Policy runner: run a refresh policy over memory rows of pages and groups, whatever its state looks like.

The coordinator has page rows on disk and group rows in memory. It passes the rows of a batch, with positions 0, 1, 2 …,
so the cost depends only on the batch. The lab uses the same runner over rows in arrays (``lab.runs.refresh.agents``),
so both make the same decisions.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, cast

import numpy as np
import xxhash

from vedette.engine.scheduling.fetch_cost import find_next_quiet_s, is_busy
from vedette.engine.scheduling.refresh_policies import RefreshPolicy
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.timeutil import DAY_S, HOUR_S

# No page is fetched more often, however cheap fetches are.
MIN_INTERVAL_S = HOUR_S
# Names of the three steps: learn from fetches and set due times; review pages; learn from gains.
Stage = Literal["fetched", "asked", "gained"]


def stream_name(stage: Stage, now_s: float) -> str:
    """Return the name of the random stream that a batch of the refresh policy draws from."""
    return f"refresh/{stage}/{now_s}"


class _OptionalMethods(Protocol):
    """Optional methods of refresh policies: learning from gains, and numbers for explanations."""

    def learn_gains(self, state: Memory, batch: KnownPages, now: float) -> Memory: ...

    def upgrade_group(self, row: Floats) -> Floats: ...

    def value(self, state: Memory, batch: KnownPages, now: float) -> Floats: ...

    def rates(self, state: Memory, batch: KnownPages) -> Rates: ...

    def chance(self, state: Memory, batch: KnownPages, at_s: Floats) -> Floats: ...

    def median_wait_d(self, state: Memory, batch: KnownPages) -> Floats: ...

    def causes(self, state: Memory, batch: KnownPages, row: int, now: float) -> list[str]: ...


def at_current_cost(batch: KnownPages, now_s: float) -> KnownPages:
    """Return a batch with the current cost of its fetches, busy hours included."""
    if not batch.busy_hours.any():
        return batch
    factor = np.where(is_busy(batch.busy_hours, np.full(len(batch), now_s)), batch.busy_factor, 1.0)
    return replace(batch, cost=batch.cost * factor)


@dataclass(frozen=True, slots=True)
class PolicyRunner:
    """Run a refresh policy that takes and returns ``Memory`` rows.

    >>> from vedette.policy import rng_for
    >>> from vedette.refresh.policies.nutch import Nutch
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.zeros(2), no, ~no, np.full(2, np.nan))
    >>> mind = PolicyRunner(Nutch())
    >>> memory = mind.observe(mind.empty_memory(2, 1), batch, 0.0)
    >>> memory.pages.tolist(), mind.due(memory, batch, 0.0, 0.0, rng_for(1, "refresh")).tolist()
    ([[86400.0], [86400.0]], [86400.0, 86400.0])
    """

    policy: RefreshPolicy
    signature: bytes = field(init=False, repr=False)
    """Signature that distinguishes its memory from that of another policy, or of one with other rows."""
    _start: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_start", self.policy.start(None))
        object.__setattr__(self, "signature", self._sign(self.widths))

    def _sign(self, widths: tuple[int, int]) -> bytes:
        return xxhash.xxh32_digest(f"{self.policy.name} {widths}".encode())

    @property
    def earlier_signature(self) -> bytes | None:
        """The signature of memory from an earlier version of the policy that can be upgraded, if any."""
        width: int | None = getattr(self.policy, "earlier_group_width", None)
        return None if width is None else self._sign((self.widths[0], width))

    def upgrade_group(self, row: Floats) -> Floats:
        """Convert a group row of an earlier version of the refresh policy to this version."""
        return cast("_OptionalMethods", self.policy).upgrade_group(row)

    @property
    def is_priced(self) -> bool:
        """Whether the due times of the refresh policy depend on the price."""
        return bool(getattr(self.policy, "priced", False))

    @property
    def widths(self) -> tuple[int, int]:
        """How many numbers the refresh policy stores for a page, and for a group."""
        if isinstance(self._start, Memory):
            return self._start.pages.shape[1], self._start.groups.shape[1]
        return (1, 0) if isinstance(self._start, np.ndarray) else (0, 0)

    def empty_memory(self, pages: int, groups: int) -> Memory:
        """Build empty memory rows of a refresh policy, for this many pages and groups."""
        page_width, group_width = self.widths
        return Memory(np.zeros((pages, page_width)), np.zeros((groups, group_width)))

    def observe(self, memory: Memory, batch: KnownPages, now_s: float) -> Memory:
        """Run the refresh policy's ``observe``: return its memory after these fetches."""
        return self._to_memory(memory, self.policy.observe(self._to_state(memory), batch, now_s))

    def learn_gains(self, memory: Memory, batch: KnownPages, now_s: float) -> Memory:
        """Return the refresh policy's memory after the gains of fetches were measured, if it uses them."""
        if not hasattr(self.policy, "learn_gains"):
            return memory
        return self._to_memory(memory, cast("_OptionalMethods", self.policy).learn_gains(memory, batch, now_s))

    def due(self, memory: Memory, batch: KnownPages, now_s: float, price: float, rng: np.random.Generator) -> Floats:
        """Run the refresh policy's ``due``: return when each page is due again at a price.

        With busy hours, that is when it is worth their cost, or the first other hour in which it is worth the usual
        cost.
        """
        due_s = self.policy.due(self._to_state(memory), batch, now_s, price, rng)
        bounded: Floats = np.maximum(due_s, batch.last_fetch_s + MIN_INTERVAL_S)
        rows = np.flatnonzero(batch.busy_hours)
        if self.is_priced and len(rows):
            some = batch.select(rows)
            dear = replace(some, cost=some.cost * some.busy_factor)
            busy_s = np.maximum(self.policy.due(self._to_state(memory), dear, now_s, price, rng), bounded[rows])
            quiet_s = find_next_quiet_s(some.busy_hours, np.maximum(bounded[rows], now_s))
            bounded[rows] = np.minimum(busy_s, quiet_s)
        return bounded

    def build_wait_function(self, memory: Memory, batch: KnownPages) -> Callable[[float], Floats]:
        """Build the function of how long these pages wait for a refresh at a price."""

        def waits_s(price: float) -> Floats:
            rng, last_s = rng_for(1, "refresh/starting-price"), batch.last_fetch_s
            return self.due(memory, batch, float(last_s.max()), price, rng) - last_s

        return waits_s

    def value(self, memory: Memory, batch: KnownPages, now_s: float) -> Floats | None:
        """Return the refresh policy's current worth of fetching each page; None if it does not say."""
        if not hasattr(self.policy, "value"):
            return None
        return cast("_OptionalMethods", self.policy).value(memory, at_current_cost(batch, now_s), now_s)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates | None:
        """Return each page's change rate by the refresh policy; None if it does not say."""
        return cast("_OptionalMethods", self.policy).rates(memory, batch) if hasattr(self.policy, "rates") else None

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats | None:
        """Return the policy's probability that each page differs from its copy at a time; None if unknown.

        A policy with a model is queried through it unless it provides more; for one with rates only, changes are
        memoryless.
        """
        if hasattr(self.policy, "chance"):
            return cast("_OptionalMethods", self.policy).chance(memory, batch, at_s)
        model = getattr(self.policy, "model", None)
        if model is not None:
            rows = Memory(memory.pages[:, : model.page_width], memory.groups[:, : model.group_width])
            return cast("Floats", model.chance(rows, batch, at_s))
        rates = self.rates(memory, batch)
        return None if rates is None else -np.expm1(-rates.mean * np.maximum(at_s - batch.last_fetch_s, 0.0) / DAY_S)

    def median_wait_d(self, memory: Memory, batch: KnownPages) -> Floats | None:
        """Return the days after which each page has changed with probability .5; None if the policy does not say."""
        policy = cast("_OptionalMethods", self.policy)
        return policy.median_wait_d(memory, batch) if hasattr(self.policy, "median_wait_d") else None

    def causes(self, memory: Memory, batch: KnownPages, row: int, now_s: float) -> list[str]:
        """List what moves the policy's belief about a page besides its own changes; empty if it does not say."""
        policy = cast("_OptionalMethods", self.policy)
        return policy.causes(memory, batch, row, now_s) if hasattr(self.policy, "causes") else []

    def reason(self, memory: Memory, batch: KnownPages, row: int, now_s: float) -> str:
        """Return the refresh policy's reason for the due time of a page."""
        return self.policy.reason(self._to_state(memory), batch, row, now_s)

    def _to_state(self, memory: Memory) -> Any:  # noqa: ANN401 - see refresh_names
        """Convert memory rows to the state that the refresh policy takes."""
        if isinstance(self._start, Memory):
            return memory
        return memory.pages[:, 0] if isinstance(self._start, np.ndarray) else self._start

    def _to_memory(self, before: Memory, state: Any) -> Memory:  # noqa: ANN401 - see refresh_names
        """Convert the state that the refresh policy returned to memory rows."""
        if isinstance(state, Memory):
            return state
        return Memory(state[:, None], before.groups) if isinstance(state, np.ndarray) else before
