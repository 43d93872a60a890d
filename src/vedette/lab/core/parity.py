"""Replay the decision log of a live crawl: does the lab decide like the crawler, from the same facts?

A crawl logs decisions if VEDETTE_DECISIONS names a file: due times of sources and gone pages (``refresh``), what a
refresh policy learned about pages and when they are due (``refresh/fetched``, ``refresh/asked``, ``refresh/gained``),
and the worth of unseen ones (``order``). Here each goes through the policies and the steps of the lab. The front queue
that a URL is drawn from is chosen by the store, randomly, and is not replayed.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from vedette.engine.decision_record import Decision, parse_decision
from vedette.engine.scheduling.policy_runner import PolicyRunner
from vedette.engine.scheduling.refresh_policies import create_policy
from vedette.frontier.impact.estimates import UnseenWithGain
from vedette.frontier.queues import ORDER_POLICIES, OrderName
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch

Columns = Mapping[str, npt.NDArray[np.generic]]


class Difference(NamedTuple):
    """Where the lab's decision differs from the live crawler's log: the decision's number, stage, column and row."""

    number: int
    stage: str
    column: str
    row: int


def replay_log(log: Path) -> tuple[int, Difference | None]:
    """Replay a live crawl's decision log in the lab; return the number of decisions and the first difference, or None.

    A line that was truncated when the crawl was killed is skipped.
    """
    with log.open(encoding="utf-8") as lines:
        decisions = [decision for line in lines if (decision := parse_decision(line)) is not None]
    return len(decisions), find_difference(decisions)


def find_difference(decisions: Iterable[Decision]) -> Difference | None:
    """Return the first logged decision that the lab makes differently."""
    for number, decision in enumerate(decisions):
        column = _compare_decision(decision)
        if column is not None:
            return Difference(number, decision.stage, *column)
    return None


def redo_decision(decision: Decision) -> Columns:
    """Redo a logged decision of the live crawler with the lab's policies, from the same facts."""
    return STAGES[decision.stage](decision)


def _compare_decision(decision: Decision) -> tuple[str, int] | None:
    """Compare a logged decision with the lab's; return the first column and row that differ."""
    recomputed = redo_decision(decision)
    for name, recorded in decision.outcome.items():
        # Decisions are compared bit for bit, and never equals never.
        unlike = _find_differing_rows(np.asarray(recorded), recomputed[name])
        if len(unlike):
            return name, int(unlike[0])
    return None


def _find_differing_rows(
    recorded: npt.NDArray[np.generic], recomputed: npt.NDArray[np.generic]
) -> npt.NDArray[np.intp]:
    """Return the rows where logged and recomputed decisions differ; NaN equals NaN, and extra rows differ."""
    if recorded.shape != recomputed.shape:
        return np.arange(min(len(recorded), len(recomputed)), max(len(recorded), len(recomputed), 1))
    unlike = (recorded != recomputed) & ~((recorded != recorded) & (recomputed != recomputed))  # noqa: PLR0124 - only NaN is not equal to itself
    return np.flatnonzero(unlike.any(axis=1) if recorded.ndim > 1 else unlike)


def _redo_policy_refresh(decision: Decision) -> Columns:
    """Redo a logged batch of the refresh policy: its memory after the batch, and when its pages are due."""
    facts = {name: np.asarray(column) for name, column in decision.facts.items()}
    mind = PolicyRunner(create_policy(next(iter(decision.policies))))
    batch = KnownPages(**{name: facts[name] for name in KnownPages.__slots__ if name in facts})
    memory = Memory(facts["pages"], facts["groups"])
    learn = {"refresh/fetched": mind.observe, "refresh/gained": mind.learn_gains}.get(decision.stage)
    after = learn(memory, batch, decision.now_s) if learn else memory
    outcome = {"pages": after.pages, "groups": after.groups}
    if decision.stage == "refresh/gained":
        return outcome
    rng = rng_for(decision.seed, decision.stream)
    return {**outcome, "due_s": mind.due(after, batch, decision.now_s, float(facts["price"][0]), rng)}


def _redo_schedule(decision: Decision) -> Columns:
    facts = {name: np.asarray(column) for name, column in decision.facts.items()}
    batch = KnownPages(**{name: facts[name] for name in KnownPages.__slots__ if name in facts})
    rng = rng_for(decision.seed, decision.stream)
    pages, sources = (cast("dict[str, Any]", decision.policies[who]) for who in ("pages", "sources"))
    nutch = Nutch(**pages)
    state = nutch.observe(facts["state"], batch, decision.now_s)
    due_s = nutch.due(state, batch, decision.now_s, 0.0, rng)
    looks_s = Fixed(**sources).due((), batch, decision.now_s, 0.0, rng)
    return {"state": state, "due_s": np.where(facts["is_source"], looks_s, due_s)}


def _redo_order(decision: Decision) -> Columns:
    policy = ORDER_POLICIES[cast("OrderName", next(iter(decision.policies)))].policy
    batch = UnseenUrls(*(np.asarray(decision.facts[name], np.int64) for name in UnseenUrls.__slots__))
    if "gain" in decision.facts:
        batch = UnseenWithGain(batch.depth, batch.found, batch.inlinks, np.asarray(decision.facts["gain"], np.float64))
    rng = rng_for(decision.seed, decision.stream)
    return {"worth": policy.worth(policy.start(None), batch, decision.now_s, rng)}


STAGES: Mapping[str, Callable[[Decision], Columns]] = {
    "refresh": _redo_schedule,
    "refresh/fetched": _redo_policy_refresh,
    "refresh/asked": _redo_policy_refresh,
    "refresh/gained": _redo_policy_refresh,
    "order": _redo_order,
}
