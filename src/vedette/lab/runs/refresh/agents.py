"""Refresh agents: a refresh policy driven by a simulation, with the same runner as in production.

Only the source of memory rows differs: live they are read from the crawl store, here from arrays. A test drives both
through one history and compares their due times bit for bit, for every policy that may run live.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from vedette.engine.scheduling.policy_runner import PolicyRunner, Stage, stream_name
from vedette.engine.scheduling.price_controller import find_starting_price
from vedette.lab.worlds.history import History
from vedette.policy import Due, Floats, Ints, rng_for
from vedette.refresh.known_pages import Bools, KnownPages, Memory, groups_of


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
        """Return the state of random refresh unchanged; a fetch teaches it nothing."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return due times of random refresh: the last fetch plus a drawn wait."""
        due: Floats = batch.last_fetch_s + rng.exponential(self.mean_s, len(batch))
        return due

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """Describe the mean wait of random refresh."""
        return f"random: after {self.mean_s / 3600:.1f} h on average"


# Each policy has its own kind of state: an array with an element per page, a ``Memory``, or nothing.
RefreshPolicy = Due[None, Any, KnownPages, KnownPages]


class FetchFindings(NamedTuple):
    """Findings of the last fetches of some pages, for training a refresh policy.

    ``before_s`` is the time of the previous fetch; ``more`` are other columns of ``KnownPages`` by name.
    """

    last_fetch_s: Floats
    changed: Bools
    gone: Bools
    first: Bools | bool = False
    before_s: Floats | None = None
    more: Mapping[str, Floats] = MappingProxyType({})


class _AgentBatch(NamedTuple):
    """A batch of a refresh agent: the memory rows of some pages, the pages themselves, and their group numbers."""

    memory: Memory
    batch: KnownPages
    groups: Ints


class PolicyAgent:
    """Agent that runs a refresh policy in a simulation; it passes only the memory rows of the batch."""

    def __init__(self, policy: RefreshPolicy, history: History, seed: int) -> None:
        self._runner, self._seed = PolicyRunner(policy), seed
        self.priced = self._runner.is_priced
        self._groups = groups_of(history.urls)
        self._memory = self._runner.empty_memory(history.pages, len(self._groups.names))

    def learn(self, pages: Ints, findings: FetchFindings, now_s: float, price: float) -> Floats:
        """Let the refresh policy learn from fetches of these pages; return when they are due again."""
        agent_batch = self.observe(pages, findings, now_s)
        return self._runner.due(agent_batch.memory, agent_batch.batch, now_s, price, self._create_rng("fetched", now_s))

    def observe(self, pages: Ints, findings: FetchFindings, now_s: float) -> _AgentBatch:
        """Let the refresh policy learn from fetches of these pages; return the batch with the memory after it."""
        agent_batch = self._prepare_batch(pages, findings)
        return self._store(pages, agent_batch, self._runner.observe(agent_batch.memory, agent_batch.batch, now_s))

    def learn_gains(self, pages: Ints, findings: FetchFindings, now_s: float) -> None:
        """Let the refresh policy learn the search gains of the latest fetches of these pages."""
        agent_batch = self._prepare_batch(pages, findings)
        self._store(pages, agent_batch, self._runner.learn_gains(agent_batch.memory, agent_batch.batch, now_s))

    def due(self, pages: Ints, findings: FetchFindings, now_s: float, price: float) -> Floats:
        """Return when these pages are due by the refresh policy's current memory."""
        agent_batch = self._prepare_batch(pages, findings)
        return self._runner.due(agent_batch.memory, agent_batch.batch, now_s, price, self._create_rng("asked", now_s))

    def worth(self, pages: Ints, findings: FetchFindings, now_s: float) -> Floats | None:
        """Return the current worth of refreshes of these pages; None if the refresh policy does not say."""
        agent_batch = self._prepare_batch(pages, findings)
        return self._runner.value(agent_batch.memory, agent_batch.batch, now_s)

    def chance(self, pages: Ints, findings: FetchFindings, now_s: float) -> Floats | None:
        """Return the probability that each copy is outdated by the refresh policy; None if it does not say."""
        agent_batch = self._prepare_batch(pages, findings)
        return self._runner.chance(agent_batch.memory, agent_batch.batch, np.full(len(pages), now_s))

    def find_starting_price(self, pages: Ints, findings: FetchFindings, now_s: float, wait_s: float) -> float:
        """Find the starting price at which half of these pages wait this long; 1 if the price has no effect."""
        return find_starting_price(
            lambda price: self.due(pages, findings, now_s, price) - findings.last_fetch_s, wait_s
        )

    def _create_rng(self, stage: Stage, now_s: float) -> np.random.Generator:
        return rng_for(self._seed, stream_name(stage, now_s))

    def _prepare_batch(self, pages: Ints, findings: FetchFindings) -> _AgentBatch:
        section, site = self._groups.section[pages], self._groups.site[pages]
        groups, places = np.unique(np.concatenate([[0], section, site]), return_inverse=True)
        section, site = np.split(places[1:].astype(np.int64), 2)
        unknown = np.full(len(pages), np.nan)
        columns: dict[str, Any] = {"modified_s": unknown, "before_s": unknown, "gone": findings.gone, **findings.more}
        if findings.before_s is not None:
            columns["before_s"] = findings.before_s
        batch = KnownPages(
            # A bound without memory identifies pages by their numbers.
            place=np.arange(len(pages)) if any(self._runner.widths) else pages,
            last_fetch_s=findings.last_fetch_s,
            changed=findings.changed,
            first_fetch=np.full(len(pages), findings.first),
            section=section,
            site=site,
            **columns,
        )
        return _AgentBatch(Memory(self._memory.pages[pages], self._memory.groups[groups]), batch, groups)

    def _store(self, pages: Ints, agent_batch: _AgentBatch, after: Memory) -> _AgentBatch:
        self._memory.pages[pages], self._memory.groups[agent_batch.groups] = after.pages, after.groups
        return agent_batch._replace(memory=after)
