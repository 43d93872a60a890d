"""Conformance checks that every policy must pass; each describes the violation in words.

The test suite runs them on the policies of this package with batches of every kind; ``find_violation`` runs them on an
external policy before it is used.
"""

import json
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Ints, rng_for
from vedette.refresh.known_pages import KnownPages
from vedette.timeutil import HOUR_S

NOW_S = 1_700_000_000.0
_MAX_HOURS = 6
_TARGETS = 40  # few, so that sources share targets


def sample_sources(rng: np.random.Generator, rows: int) -> Sources:
    """Sample discovery sources for the conformance checks, after polls that failed, found something, or found nothing.

    Half of the batches are to choose from; the others are as after a poll of every source, in any order.
    """
    book = PollHistory(rng.integers(0, 3, rows))
    is_known = np.zeros(_TARGETS, bool)
    for hour in range(int(rng.integers(0, _MAX_HOURS)), 0, -1):
        some = rng.permutation(rows)[: rng.integers(0, rows + 1)]
        book.record(_sample_polls(rng, some, is_known), NOW_S - hour * HOUR_S)
    return (
        book.list_options()
        if rng.random() < 0.5
        else book.record(_sample_polls(rng, rng.permutation(rows), is_known), NOW_S)
    )


def _sample_polls(rng: np.random.Generator, place: Ints, is_known: npt.NDArray[np.bool_]) -> PollResults:
    """Sample the result of polling each of these sources, up to five targets; ``is_known`` is updated."""
    ok = rng.random(len(place)) < 0.8
    many = rng.integers(0, 6, len(place)) * ok
    start = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    first = rng.integers(0, _TARGETS, len(place)) - start[:-1]
    target = (np.repeat(first, many) + np.arange(start[-1])) % _TARGETS
    new = ~is_known[target]
    is_known[target] = True
    return PollResults(place, ok, start, target, new)


SHAPES = ("worth", "due", "choose")
STAGES: Mapping[str, str] = {"worth": "order", "due": "refresh", "choose": "discover"}
BATCH_SIZES = (0, 1, 2, 30)
_REQUIRED = ("name", "start", "observe", "reason")
_NO_NUMBER = re.compile(r"\b(inf|nan)\b")


class Trial(NamedTuple):
    """A conformance trial: a policy, its past observations, the batch to decide on, k, and the seed of its draws."""

    policy: Any
    shape: str
    seen: Any
    batch: Any
    k: int = 3
    seed: int = 1

    def learn_state(self) -> Any:  # noqa: ANN401 - each policy has its own state
        """Return the state of the policy under conformance test after its past observations."""
        return self.policy.observe(self.policy.start(None), self.seen, NOW_S)


@dataclass(frozen=True, slots=True)
class Decision:
    """A policy's decision as plain lists: the value of each row, and its propensity if it was drawn."""

    values: list[float]
    propensities: list[float]


def find_shapes(policy: object) -> list[str]:
    """Return the decision shapes (priority, due time, choice of k) that a policy implements; it should be one."""
    return [shape for shape in SHAPES if hasattr(policy, shape)]


def decide(trial: Trial, state: Any, seed: int | None = None) -> Decision:  # noqa: ANN401 - see Trial.learned
    """Return the decision of a policy of any shape, for the conformance checks."""
    rng = rng_for(trial.seed if seed is None else seed, "lab/conformance")
    if trial.shape == "choose":
        picks = trial.policy.choose(state, trial.batch, trial.k, NOW_S, rng)
        return Decision(picks.rows.tolist(), picks.propensities.tolist())
    if trial.shape == "due":
        return Decision(trial.policy.due(state, trial.batch, NOW_S, 1.0, rng).tolist(), [])
    return Decision(trial.policy.worth(state, trial.batch, NOW_S, rng).tolist(), [])


def check_no_mutation(trial: Trial) -> str:
    """Check that a policy changes neither the batch nor the state it was given."""
    state = trial.learn_state()
    before, state_before = _column_bytes(trial.batch), pickle.dumps(state)
    decide(trial, state)
    trial.policy.observe(state, trial.seen, NOW_S)
    if _column_bytes(trial.batch) != before:
        return "it changes the batch that it gets"
    return "" if pickle.dumps(state) == state_before else "it changes the state that it gets"


def _column_bytes(batch: Any) -> list[bytes]:  # noqa: ANN401 - each stage has its own kind
    return [np.asarray(getattr(batch, each.name)).tobytes() for each in fields(batch)]


def check_output_shape(trial: Trial) -> str:
    """Check the shape of a policy's output: a number for each row, or at most k distinct rows with propensities."""
    decision = decide(trial, trial.learn_state())
    rows = len(trial.batch)
    if trial.shape == "choose":
        return _check_picks(decision, rows, trial.k)
    if len(decision.values) != rows:
        return f"it returns {len(decision.values)} numbers for {rows} rows"
    # Never due has no time; a worth is a number.
    never = np.inf if trial.shape == "due" else np.nan
    wrong = [value for value in decision.values if not (np.isfinite(value) or value == never)]
    return f"it returns {wrong[0]} for a row" if wrong else ""


def _check_picks(decision: Decision, rows: int, k: int) -> str:
    picked = decision.values
    if len(picked) != len(frozenset(picked)) or len(picked) > min(k, rows):
        return f"it picks {len(picked)} of {rows} rows instead of {min(k, rows)} distinct ones"
    if not all(0 <= row < rows for row in picked):
        return "it picks rows that are not in the batch"
    if len(decision.propensities) != len(picked):
        return f"it returns {len(decision.propensities)} propensities for {len(picked)} picks"
    wrong = [each for each in decision.propensities if not 0 < each <= 1]
    return f"it returns a propensity of {wrong[0]}; it must be above 0 and at most 1" if wrong else ""


def check_deterministic(trial: Trial) -> str:
    """Check that a policy is deterministic: no clock, no dependence on the order of calls, no hidden state."""
    state = trial.learn_state()
    first = decide(trial, state)
    decide(trial, state, trial.seed + 1)
    again = trial._replace(policy=_renew(trial.policy))
    # NaN is rejected elsewhere; here it equals itself.
    same = repr(decide(trial, state)) == repr(first) == repr(decide(again, state))
    return "" if same else "it decides differently for the same input"


def _renew(policy: Any) -> Any:  # noqa: ANN401 - each stage has its own kind
    """Create a policy with the same settings, and nothing that the other one may remember."""
    return replace(policy) if is_dataclass(policy) and not isinstance(policy, type) else type(policy)()


def check_serializable(trial: Trial) -> str:
    """Check that a policy's state survives pickling, and JSON if it is plain, and then decides the same."""
    state = trial.learn_state()
    copies = [pickle.loads(pickle.dumps(state))]  # noqa: S301 - our own bytes
    if isinstance(state, dict | list | str | int | float):
        copies.append(json.loads(json.dumps(state)))
    first = repr(decide(trial, state))
    same = all(repr(decide(trial, copy)) == first for copy in copies)
    return "" if same else "it decides differently after its state is stored and loaded"


def check_reasons(trial: Trial) -> str:
    """Check that a policy's reasons are one-line sentences without *inf* or *nan*, also before it learned anything."""
    rows = range(min(len(trial.batch), 5))
    states = (trial.learn_state(), trial.policy.start(None))
    reasons = [trial.policy.reason(state, trial.batch, row, NOW_S) for state in states for row in rows]
    good = all(isinstance(reason, str) and len(reason.strip().splitlines()) == 1 for reason in reasons)
    if good and not any(_NO_NUMBER.search(reason) for reason in reasons):
        return ""
    return "its reason must be one line of text, without inf or nan"


CHECKS: tuple[Callable[[Trial], str], ...] = (
    check_no_mutation,  # first: the others may then rely on it
    check_output_shape,
    check_deterministic,
    check_serializable,
    check_reasons,
)


def sample_unseen(rng: np.random.Generator, rows: int) -> UnseenUrls:
    """Sample unseen URLs for the conformance checks of order policies, with any depths, numbers and in-links."""
    return UnseenUrls(*(rng.integers(0, 2**31, rows) for _ in range(3)))


def sample_known(rng: np.random.Generator, rows: int) -> KnownPages:
    """Sample known pages for the conformance checks of refresh policies, with and without a known time of change."""
    fetched_s = NOW_S - rng.uniform(0, 1e8, rows)
    modified_s = np.where(rng.random(rows) < 0.5, np.nan, NOW_S - rng.uniform(0, 1e8, rows))
    return KnownPages(rng.permutation(rows), fetched_s, rng.random(rows) < 0.5, rng.random(rows) < 0.5, modified_s)


SAMPLES: Mapping[str, Callable[[np.random.Generator, int], Any]] = {
    "order": sample_unseen,
    "refresh": sample_known,
    "discover": sample_sources,
}


def find_violation(policy: object) -> str:
    """Run all conformance checks on a plug-in policy; return the first violation in words, or an empty string."""
    if missing := [name for name in _REQUIRED if not hasattr(policy, name)]:
        return f"it has no {missing[0]}"
    shapes = find_shapes(policy)
    if len(shapes) != 1:
        return f"it must have exactly one of {', '.join(SHAPES)}; it has {' and '.join(shapes) or 'none'}"
    found = (_run_check(check, trial) for trial in _iter_trials(policy, shapes[0]) for check in CHECKS)
    return next(filter(None, found), "")


def _iter_trials(policy: object, shape: str) -> Iterator[Trial]:
    sample = SAMPLES[STAGES[shape]]
    for number, rows in enumerate(BATCH_SIZES * 3):
        rng = rng_for(number, "lab/conformance/sample")
        yield Trial(policy, shape, sample(rng, int(rng.integers(0, 6))), sample(rng, rows), k=3 * number, seed=number)


def _run_check(check: Callable[[Trial], str], trial: Trial) -> str:
    try:
        return check(trial)
    except Exception as error:  # noqa: BLE001 - any error of foreign code is reported, not raised
        return f"it fails on a batch of {len(trial.batch)} rows: {type(error).__name__}: {error}"
