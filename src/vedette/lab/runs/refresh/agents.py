"""Refresh agents: a refresh policy as a simulation drives it, with its memory of pages and sections, and batches."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vedette.engine.scheduling.policy_runner import PolicyRunner
from vedette.engine.scheduling.price_controller import find_starting_price
from vedette.lab.worlds.history import History
from vedette.policy import Due, Floats, Ints, rng_for
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.sections import groups_of


@dataclass(frozen=True, slots=True)
class RandomRefresh:
    """Refresh every page equally often, at unpredictable times: waits are exponential with one mean for all.

        due = last_fetch + wait,    wait ~ Exp(mean_s)

    The mean is the time in which the budget lets every page have its turn, so no page waits for others for long.

    Useful as the baseline that uses no knowledge at all. Not useful for anything else: fetches in turn are fresher.

    Reference: the random-order policy of J. Cho, H. Garcia-Molina, *Synchronizing a Database to Improve Freshness*,
    SIGMOD 2000.
    """

    mean_s: float = 86_400.0
    name: str = "random"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the empty state of random refresh, which learns nothing."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the state of random refresh as it is; a fetch teaches it nothing."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return due times of random refresh: the last fetch plus a drawn wait."""
        due: Floats = batch.last_fetch_s + rng.exponential(self.mean_s, len(batch))
        return due

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """Describe the mean wait of random refresh."""
        return f"random: after {self.mean_s / 3600:.1f} h on average"


# The state of a policy is its own affair: an array with an element per page, a ``Memory``, or anything else.
RefreshPolicy = Due[None, Any, KnownPages, KnownPages]
NO_GROUPS: Ints = np.zeros(0, np.int64)


class FetchFindings(NamedTuple):
    """Findings of the last fetches of some pages, from which a refresh policy learns.

    ``before_s`` is when the fetch before was; ``more`` are other columns of ``KnownPages`` by name.
    """

    last_fetch_s: Floats
    changed: Bools
    gone: Bools
    first: bool = False
    before_s: Floats | None = None
    more: Mapping[str, Floats] = MappingProxyType({})


def observe_and_schedule(
    policy: RefreshPolicy,
    state: Any,  # noqa: ANN401 - see above
    batch: KnownPages,
    now_s: float,
    rng: np.random.Generator,
    price: float = 0.0,
) -> tuple[Any, Floats]:
    """Let a refresh policy observe these fetches; return its new state, and when it wants each page again."""
    after = policy.observe(state, batch, now_s)
    return after, policy.due(after, batch, now_s, price, rng)


class _PolicyBatch(NamedTuple):
    """A batch of a refresh agent: the memory of some pages, the pages themselves, and their group numbers."""

    state: Any
    batch: KnownPages
    groups: Ints = NO_GROUPS


class PolicyAgent:
    """Agent that runs a refresh policy in a simulation; it passes only the rows of memory of the pages in question."""

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

    def learn(self, pages: Ints, told: FetchFindings, now_s: float, price: float) -> Floats:
        """Let the refresh policy learn from fetches of these pages; return when they are due again."""
        made, rng = self._prepare_batch(pages, told), rng_for(self._seed, f"refresh/{now_s}/{told.first}")
        after, due_s = observe_and_schedule(self._policy, made.state, made.batch, now_s, rng, price)
        self._store_state(pages, made.groups, after)
        return due_s

    def due(self, pages: Ints, told: FetchFindings, now_s: float, price: float) -> Floats:
        """Return when these pages are due by the refresh policy's current memory."""
        made, rng = self._prepare_batch(pages, told), rng_for(self._seed, f"refresh/{now_s}/again")
        return self._policy.due(made.state, made.batch, now_s, price, rng)

    def worth(self, pages: Ints, told: FetchFindings, now_s: float) -> Floats | None:
        """Return what refreshes of these pages are worth now; None where the refresh policy does not say."""
        value = getattr(self._policy, "value", None)
        if value is None:
            return None
        made = self._prepare_batch(pages, told)
        worth: Floats = value(made.state, made.batch, now_s)
        return worth

    def chance(self, pages: Ints, told: FetchFindings, now_s: float) -> Floats | None:
        """Return how probably each copy is outdated by the refresh policy; None where it does not say."""
        if not isinstance(self._state, Memory):
            return None
        made = self._prepare_batch(pages, told)
        return PolicyRunner(self._policy).chance(made.state, made.batch, np.full(len(pages), now_s))

    def find_starting_price(self, pages: Ints, told: FetchFindings, now_s: float, wait_s: float) -> float:
        """Find the starting price at which half of these pages wait this long; 1 where the price has no effect."""
        return find_starting_price(lambda price: self.due(pages, told, now_s, price) - told.last_fetch_s, wait_s)

    def _prepare_batch(self, pages: Ints, told: FetchFindings) -> _PolicyBatch:
        if isinstance(self._state, Memory):
            assert self._groups is not None
            section, site = self._groups.section[pages], self._groups.site[pages]
            groups, places = np.unique(np.concatenate([[0], section, site]), return_inverse=True)
            own = dict(zip(("section", "site"), np.split(places[1:].astype(np.int64), 2), strict=True))
            rows = Memory(self._state.pages[pages], self._state.groups[groups])
            return _PolicyBatch(rows, _build_known(np.arange(len(pages)), told, own), groups)
        if isinstance(self._state, np.ndarray):
            return _PolicyBatch(self._state[pages], _build_known(np.arange(len(pages)), told))
        return _PolicyBatch(self._state, _build_known(pages, told))

    def _store_state(self, pages: Ints, groups: Ints, after: Any) -> None:  # noqa: ANN401 - see above
        if isinstance(self._state, Memory):
            self._state.pages[pages], self._state.groups[groups] = after.pages, after.groups
        elif isinstance(self._state, np.ndarray):
            self._state[pages] = after
        else:
            self._state = after


def _build_known(place: Ints, told: FetchFindings, more: Mapping[str, Ints] = MappingProxyType({})) -> KnownPages:
    columns: dict[str, Any] = {"gone": told.gone, **told.more, **more}
    if told.before_s is not None:
        columns["before_s"] = told.before_s
    first = np.full(len(place), told.first)
    return KnownPages(place, told.last_fetch_s, told.changed, first, np.full(len(place), np.nan), **columns)
