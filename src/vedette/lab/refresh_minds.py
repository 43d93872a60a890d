"""A refresh policy with what it remembers, as a run of the lab drives it: arrays, of which a batch gets its rows."""

from collections.abc import Mapping
from math import sqrt
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vedette.decide import Due, Floats, Ints, rng_for
from vedette.lab.worlds.history import History
from vedette.refresh.known import Bools, Known, Memory
from vedette.refresh.sections import groups_of

__all__ = ["Mind", "RefreshPolicy", "Told", "again"]

# The state of a policy is its own affair: an array with an element per page, a ``Memory``, or anything else.
RefreshPolicy = Due[None, Any, Known, Known]
HALVINGS = 60
LOWEST, HIGHEST = 1e-12, 1e12


class Told(NamedTuple):
    """What a policy is told of some pages: when each was fetched last, and what that found.

    ``before_s`` is when the fetch before was; ``more`` are other columns of ``Known`` by name.
    """

    last_fetch_s: Floats
    changed: Bools
    gone: Bools
    first: bool = False
    before_s: Floats | None = None
    more: Mapping[str, Floats] = MappingProxyType({})


def again(
    policy: RefreshPolicy,
    state: Any,  # noqa: ANN401 - see above
    batch: Known,
    now_s: float,
    rng: np.random.Generator,
    price: float = 0.0,
) -> tuple[Any, Floats]:
    """What a policy remembers after these fetches, and when it wants each page again."""
    after = policy.observe(state, batch, now_s)
    return after, policy.due(after, batch, now_s, price, rng)


class Mind:
    """Of an array or a ``Memory`` only the rows of the pages in question are handed over."""

    def __init__(self, policy: RefreshPolicy, history: History, seed: int) -> None:
        self._policy, self._seed = policy, seed
        self.priced = bool(getattr(policy, "priced", False))
        self._state = policy.start(None)
        self._groups = groups_of(history.urls) if isinstance(self._state, Memory) else None
        if isinstance(self._state, Memory):
            assert self._groups is not None
            groups = np.zeros((len(self._groups.names), self._state.groups.shape[1]))
            groups[: len(self._state.groups)] = self._state.groups
            self._state = Memory(np.zeros((history.pages, self._state.pages.shape[1])), groups)
        elif isinstance(self._state, np.ndarray):
            self._state = np.zeros((history.pages, *self._state.shape[1:]), self._state.dtype)

    def learned(self, pages: Ints, told: Told, now_s: float, price: float) -> Floats:
        """When these pages are due again after what their fetches found."""
        batch, rng = self._batch(pages, told), rng_for(self._seed, f"refresh/{now_s}/{told.first}")
        after, due_s = again(self._policy, self._rows(pages), batch, now_s, rng, price)
        self._keep(pages, after)
        return due_s

    def due(self, pages: Ints, told: Told, now_s: float, price: float) -> Floats:
        """When these pages are due as it stands."""
        rng = rng_for(self._seed, f"refresh/{now_s}/again")
        return self._policy.due(self._rows(pages), self._batch(pages, told), now_s, price, rng)

    def worth(self, pages: Ints, told: Told, now_s: float) -> Floats | None:
        """What fetches of these pages are worth now; None where the policy does not say."""
        value = getattr(self._policy, "value", None)
        if value is None:
            return None
        worth: Floats = value(self._rows(pages), self._batch(pages, told), now_s)
        return worth

    def price_for(self, pages: Ints, told: Told, now_s: float, until_s: float) -> float:
        """The price at which half of these pages are due until a time; 1 where the price makes no difference yet."""
        low, high = LOWEST, HIGHEST
        for _ in range(HALVINGS):
            price = sqrt(low) * sqrt(high)
            due = self.due(pages, told, now_s, price) <= until_s
            low, high = (price, high) if len(pages) and due.mean() > 0.5 else (low, price)
        return low if LOWEST * 2 < low < HIGHEST / 2 else 1.0

    def _rows(self, pages: Ints) -> Any:  # noqa: ANN401 - see above
        if isinstance(self._state, Memory):
            return Memory(self._state.pages[pages], self._state.groups)
        return self._state[pages] if isinstance(self._state, np.ndarray) else self._state

    def _keep(self, pages: Ints, after: Any) -> None:  # noqa: ANN401 - see above
        if isinstance(self._state, Memory):
            self._state.pages[pages] = after.pages
            self._state = Memory(self._state.pages, after.groups)
        elif isinstance(self._state, np.ndarray):
            self._state[pages] = after
        else:
            self._state = after

    def _batch(self, pages: Ints, told: Told) -> Known:
        whole = not isinstance(self._state, np.ndarray | Memory)
        columns: dict[str, Any] = {"gone": told.gone, **told.more}
        if told.before_s is not None:
            columns["before_s"] = told.before_s
        if self._groups is not None:
            columns |= {"section": self._groups.section[pages], "site": self._groups.site[pages]}
        return Known(
            pages if whole else np.arange(len(pages)),
            told.last_fetch_s,
            told.changed,
            np.full(len(pages), told.first),
            np.full(len(pages), np.nan),
            **columns,
        )
