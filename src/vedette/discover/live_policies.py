"""Registry of the discovery policies that may run live: three for general use, published ones for research.

The default decides how many sources are polled, and which. Published policies consider neither prices nor the time
between polls, so they decide which, and as many are polled as the default would poll. Those that learn only from full
crawls (OD-WIN, OD-1, CLIQ, COV) cannot run live: a crawler polls a few sources at a time.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from vedette.discover.policies.accrual import Accrual
from vedette.discover.policies.batch_bandit import BatchBandit
from vedette.discover.policies.pham import Pham
from vedette.discover.policies.pham_scaled import PhamScaled
from vedette.discover.policies.random import Random
from vedette.discover.policies.round_robin import RoundRobin
from vedette.discover.policies.thompson import Thompson
from vedette.discover.polling.belief_codec import UNREADABLE, pack_columns, unpack_columns
from vedette.discover.polling.sources import Sources
from vedette.policy import Choice, Ints

RESEARCH_PREFIX = "research:"


class PublishedPolicy(Choice[None, Any, Sources, Sources], Protocol):
    """Protocol of published discovery policies that may run live: sources come and go while they run."""

    def select(self, state: Any, places: Ints) -> Any:  # noqa: ANN401 - each has its own state
        """Return the state of some sources, in this order; their positions count from 0 again."""


_NAMED: tuple[Callable[[], PublishedPolicy], ...] = (Thompson, RoundRobin)
_RESEARCH: tuple[Callable[[], PublishedPolicy], ...] = (BatchBandit, Pham, PhamScaled, Random)
_PUBLISHED: Mapping[str, Callable[[], PublishedPolicy]] = {
    **{kind().name: kind for kind in _NAMED},
    **{f"{RESEARCH_PREFIX}{kind().name}": kind for kind in _RESEARCH},
}

DEFAULT_DISCOVERY_POLICY = Accrual().name
# How a published policy is configured, by its name.
PUBLISHED_SETTINGS: Mapping[str, str] = {kind().name: setting for setting, kind in _PUBLISHED.items()}


class PublishedChooser:
    """A published policy with its state, as the crawler runs it.

    >>> PublishedChooser("research:random").policy.name, is_published("accrual"), is_published("of tomorrow")
    ('random', False, False)
    """

    def __init__(self, name: str, state: str | None = None) -> None:
        """Create the configured policy, with the state that ``pack`` returned in an earlier run."""
        self.name, self.policy = name, _PUBLISHED[name]()
        self.state = _unpack_state(self.policy.start(None), state)

    def observe(self, batch: Sources, now_s: float) -> None:
        """Learn from polls."""
        self.state = self.policy.observe(self.state, batch, now_s)

    def select(self, places: Ints) -> None:
        """Keep the state of some sources, in this order."""
        self.state = self.policy.select(self.state, places)

    def choose(self, options: Sources, k: int, now_s: float, rng: np.random.Generator) -> Ints:
        """Choose k of the sources to poll; return their positions."""
        return options.place[self.policy.choose(self.state, options, k, now_s, rng).rows]

    def explain(self, batch: Sources, now_s: float) -> list[str]:
        """Explain polls of some sources."""
        return [self.policy.reason(self.state, batch, row, now_s) for row in range(len(batch))]

    def pack(self) -> str:
        """Encode the state as text, for the next run."""
        return pack_columns({name: np.asarray(getattr(self.state, name)) for name in _list_fields(self.state)})


def is_published(name: str) -> bool:
    """Check whether a setting names a published policy; otherwise the default runs."""
    return name in _PUBLISHED


def _unpack_state(fresh: Any, text: str | None) -> Any:  # noqa: ANN401 - each policy has its own state
    """Return the state encoded in a text; the initial one if it is invalid."""
    fields = _list_fields(fresh)
    try:
        columns = unpack_columns(text or "")
        values = {name: columns[name] for name in fields}
    except UNREADABLE:
        return fresh
    if not fields or any(each.ndim != np.ndim(getattr(fresh, name)) for name, each in values.items()):
        return fresh
    return fresh._replace(**{name: each if each.ndim else float(each) for name, each in values.items()})


def _list_fields(state: Any) -> tuple[str, ...]:  # noqa: ANN401 - as above
    return getattr(state, "_fields", ())
