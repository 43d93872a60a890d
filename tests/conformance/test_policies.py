"""What every policy owes its callers, whatever it decides.

Policies are found, not listed: every module of every ``policies`` folder holds one. A stage whose policies judge a new
kind of batch adds a generator to ``BATCHES``; nothing else is needed to join.
"""

import importlib
import inspect
import json
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vedette
from vedette.decide import Floats, Ints, Picks, rng_for
from vedette.order.unseen import Unseen

SHAPES = ("worth", "due", "choose")
NOW_S = 1_700_000_000.0


@dataclass(frozen=True, slots=True)
class Entry:
    """A policy, and where it was found."""

    stage: str
    module: ModuleType
    policy: Any

    def __str__(self) -> str:
        return f"{self.stage}/{self.module.__name__.rpartition('.')[2]}"

    @property
    def shape(self) -> str:
        """The kind of decision that it makes."""
        return next(shape for shape in SHAPES if hasattr(self.policy, shape))


def entries() -> Iterator[Entry]:
    """Every policy of every stage, in the order of their names."""
    for found in pkgutil.walk_packages(vedette.__path__, "vedette."):
        parts = found.name.split(".")
        if len(parts) == 4 and parts[2] == "policies":
            module = importlib.import_module(found.name)
            yield from (Entry(parts[1], module, kind()) for kind in _kinds(module))


def _kinds(module: ModuleType) -> list[type]:
    own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return [each for each in own if any(hasattr(each, shape) for shape in SHAPES)]


@st.composite
def unseen(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> Unseen:
    """URLs that were never fetched, with depths, numbers and in-links in any order."""
    count = draw(rows)
    column = _column(st.integers(0, 2**31), count)
    return Unseen(_ints(draw(column)), _ints(draw(column)), _ints(draw(column)))


@st.composite
def known(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> Any:
    """Pages that were fetched, each once in a batch, with and without a known time of change."""
    from vedette.refresh.known import Known  # a stage that may not be there yet

    count = draw(rows)
    times = st.floats(NOW_S - 1e8, NOW_S)
    place = draw(st.permutations(range(count)))
    fetched_s, modified_s = draw(_column(times, count)), draw(_column(times | st.just(np.nan), count))
    changed, first = draw(_column(st.booleans(), count)), draw(_column(st.booleans(), count))
    return Known(
        _ints(list(place)), np.array(fetched_s), np.array(changed, bool), np.array(first, bool), np.array(modified_s)
    )


def _column(values: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=count, max_size=count)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


BATCHES: dict[str, Callable[[st.SearchStrategy[int]], st.SearchStrategy[Any]]] = {"order": unseen, "refresh": known}

ENTRIES = tuple(entries())
every_policy = pytest.mark.parametrize("entry", ENTRIES, ids=str)


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision as plain lists: what was given to which row, and with which probability where it was drawn."""

    values: list[float]
    propensities: list[float]


def decide(entry: Entry, state: Any, batch: Any, seed: int = 1, k: int = 3) -> Decision:
    """What a policy of any shape decides on a batch."""
    rng = rng_for(seed, f"conformance/{entry}")
    if entry.shape == "choose":
        picks: Picks = entry.policy.choose(state, batch, k, NOW_S, rng)
        return Decision(picks.rows.tolist(), picks.propensities.tolist())
    if entry.shape == "due":
        due: Floats = entry.policy.due(state, batch, NOW_S, 1.0, rng)
        return Decision(due.tolist(), [])
    worth: Floats = entry.policy.worth(state, batch, NOW_S, rng)
    return Decision(worth.tolist(), [])


def columns(batch: Any) -> list[bytes]:
    """The content of a batch, to be compared later."""
    return [np.asarray(getattr(batch, each.name)).tobytes() for each in fields(batch)]


def learned(entry: Entry, data: st.DataObject) -> Any:
    """A state that has seen something."""
    state = entry.policy.start(None)
    return entry.policy.observe(state, data.draw(BATCHES[entry.stage](st.integers(0, 5))), NOW_S)


def test_policies_are_found() -> None:
    """Discovery sees every file of every ``policies`` folder, so none escapes this suite."""
    files = {
        found.name
        for found in pkgutil.walk_packages(vedette.__path__, "vedette.")
        if found.name.split(".")[2:3] == ["policies"] and found.name.count(".") > 2
    }
    assert "vedette.order.policies.breadth" in files
    assert {entry.module.__name__ for entry in ENTRIES} == files


@every_policy
def test_one_policy_per_file_of_one_shape_and_the_files_name(entry: Entry) -> None:
    """A policy is found by the name that people know it by, and makes exactly one kind of decision."""
    assert entry.policy.name == entry.module.__name__.rpartition(".")[2].replace("_", "-")
    assert [each for each in ENTRIES if each.module is entry.module] == [entry]
    assert len([shape for shape in SHAPES if hasattr(entry.policy, shape)]) == 1


@every_policy
def test_the_docstring_shows_an_example_and_says_when_to_use_it(entry: Entry) -> None:
    """Whoever chooses a policy finds an example with its output, and for what it is useful and for what not."""
    text = inspect.getdoc(type(entry.policy)) or ""
    assert ">>>" in text
    assert "Useful" in text
    assert "Not useful" in text


@every_policy
def test_its_stage_has_a_generator_of_batches(entry: Entry) -> None:
    """A new stage says what its batches look like, or its policies could not be tried at all."""
    assert entry.stage in BATCHES


@every_policy
@given(data=st.data())
def test_what_is_handed_in_stays_as_it_was(entry: Entry, data: st.DataObject) -> None:
    """Neither a decision nor an observation changes the batch or the state that it was given."""
    batch = data.draw(BATCHES[entry.stage](st.integers(0, 20)))
    state = learned(entry, data)
    before, state_before = columns(batch), pickle.dumps(state)
    decide(entry, state, batch)
    entry.policy.observe(state, batch, NOW_S)
    assert columns(batch) == before
    assert pickle.dumps(state) == state_before


@every_policy
@given(data=st.data())
def test_the_output_fits_the_batch(entry: Entry, data: st.DataObject) -> None:
    """Empty, one row or many: a number for each row, or at most k distinct rows with their propensities."""
    batch = data.draw(BATCHES[entry.stage](st.sampled_from([0, 1, 2, 30])))
    k = data.draw(st.integers(0, 40))
    decision = decide(entry, learned(entry, data), batch, k=k)
    if entry.shape == "choose":
        assert len(decision.values) == len(set(decision.values)) <= min(k, len(batch))
        assert all(0 <= row < len(batch) for row in decision.values)
        assert len(decision.propensities) == len(decision.values)
        assert all(0 < propensity <= 1 for propensity in decision.propensities)
    else:
        assert len(decision.values) == len(batch)
        never = np.inf if entry.shape == "due" else np.nan
        assert all(np.isfinite(value) or value == never for value in decision.values)


@every_policy
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_the_same_seed_makes_the_same_decision(entry: Entry, data: st.DataObject, seed: int) -> None:
    """What is handed in is all that counts: no clock, no order of calls, no hidden state."""
    batch = data.draw(BATCHES[entry.stage](st.integers(0, 20)))
    state = learned(entry, data)
    first = decide(entry, state, batch, seed)
    decide(entry, state, batch, seed + 1)
    again = Entry(entry.stage, entry.module, type(entry.policy)())
    assert decide(again, state, batch, seed) == first


@every_policy
@given(data=st.data())
def test_a_state_survives_storage(entry: Entry, data: st.DataObject) -> None:
    """A state that was written and read again decides as before; where it is plain, JSON keeps it too."""
    batch = data.draw(BATCHES[entry.stage](st.integers(0, 20)))
    state = learned(entry, data)
    restored = pickle.loads(pickle.dumps(state))  # noqa: S301 - our own bytes
    assert decide(entry, restored, batch) == decide(entry, state, batch)
    if isinstance(state, (dict, list, str, int, float)):
        assert decide(entry, json.loads(json.dumps(state)), batch) == decide(entry, state, batch)


@every_policy
@given(data=st.data())
def test_each_row_has_its_reason_on_one_line(entry: Entry, data: st.DataObject) -> None:
    """A person who asks why gets a sentence: not empty, not two lines."""
    batch = data.draw(BATCHES[entry.stage](st.integers(1, 5)))
    state = learned(entry, data)
    for row in range(len(batch)):
        reason = entry.policy.reason(state, batch, row, NOW_S)
        assert reason.strip()
        assert len(reason.splitlines()) == 1
