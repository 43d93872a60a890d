"""The contract of every policy, whatever it decides.

Policies are found, not listed: every module of every ``policies`` folder holds one. A stage whose policies judge a new
kind of batch adds a generator to ``BATCHES`` here and one to ``SAMPLES`` of ``vedette.lab.core.conformance``, where the
checks are; nothing else is needed to join.
"""

import importlib
import importlib.util
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.frontier.unseen import UnseenUrls
from vedette.lab.core.conformance import (
    NOW_S,
    STAGES,
    Trial,
    check_deterministic,
    check_no_mutation,
    check_output_shape,
    check_reasons,
    check_serializable,
    find_shapes,
    find_violation,
)
from vedette.lab.core.registry import policy_packages
from vedette.policy import Ints, rng_for


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
        return find_shapes(self.policy)[0]


def entries() -> Iterator[Entry]:
    """Every policy of every stage, in the order of their names."""
    for stage in STAGES.values():
        for name in _files(stage):
            module = importlib.import_module(name)
            yield from (Entry(stage, module, kind()) for kind in _kinds(module))


def _files(stage: str) -> list[str]:
    found = [name for name in policy_packages(stage) if importlib.util.find_spec(name)]
    folders = [(name, importlib.import_module(name).__path__) for name in found]
    return [each.name for name, path in folders for each in pkgutil.iter_modules(path, f"{name}.")]


def _kinds(module: ModuleType) -> list[type]:
    own = [each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__]
    return [each for each in own if find_shapes(each)]


@st.composite
def unseen(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> UnseenUrls:
    """URLs that were never fetched, with depths, numbers and in-links in any order."""
    count = draw(rows)
    column = _column(st.integers(0, 2**31), count)
    return UnseenUrls(_ints(draw(column)), _ints(draw(column)), _ints(draw(column)))


@st.composite
def known(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> Any:
    """Pages that were fetched, each once in a batch, with and without a known time of change."""
    from vedette.refresh.known_pages import KnownPages  # a stage that may not be there yet

    count = draw(rows)
    times = st.floats(NOW_S - 1e8, NOW_S)
    place = draw(st.permutations(range(count)))
    fetched_s, modified_s = draw(_column(times, count)), draw(_column(times | st.just(np.nan), count))
    changed, first = draw(_column(st.booleans(), count)), draw(_column(st.booleans(), count))
    return KnownPages(
        _ints(list(place)), np.array(fetched_s), np.array(changed, bool), np.array(first, bool), np.array(modified_s)
    )


@st.composite
def sources(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> Any:
    """Sources that were looked at, or not yet, to choose from or to learn from."""
    from vedette.lab.core.conformance import sample_sources

    return sample_sources(rng_for(draw(st.integers(0, 2**32)), "conformance/sources"), draw(rows))


def _column(values: st.SearchStrategy[Any], count: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=count, max_size=count)


def _ints(values: list[int]) -> Ints:
    return np.array(values, dtype=np.int64)


BATCHES: dict[str, Callable[[st.SearchStrategy[int]], st.SearchStrategy[Any]]] = {
    "discover": sources,
    "order": unseen,
    "refresh": known,
}

ENTRIES = tuple(entries())
every_policy = pytest.mark.parametrize("entry", ENTRIES, ids=str)


def a_trial(entry: Entry, data: st.DataObject, rows: st.SearchStrategy[int], *, k: int = 3, seed: int = 1) -> Trial:
    """A policy that has seen something, before a batch."""
    batches = BATCHES[entry.stage]
    return Trial(entry.policy, entry.shape, data.draw(batches(st.integers(0, 5))), data.draw(batches(rows)), k, seed)


def test_policies_are_found() -> None:
    """Discovery sees every file of every ``policies`` folder, so none escapes this suite."""
    files = {name for stage in STAGES.values() for name in _files(stage)}
    assert {"vedette.frontier.policies.breadth", "vedette.lab.baselines.discover.od_1"} <= files
    assert {entry.module.__name__ for entry in ENTRIES} == files


@every_policy
def test_one_policy_per_file_of_one_shape_and_the_files_name(entry: Entry) -> None:
    """A policy is found by the name that people know it by, and makes exactly one kind of decision."""
    assert entry.policy.name == entry.module.__name__.rpartition(".")[2].replace("_", "-")
    assert [each for each in ENTRIES if each.module is entry.module] == [entry]
    assert len(find_shapes(entry.policy)) == 1


@every_policy
def test_the_docstring_shows_an_example_and_says_when_to_use_it(entry: Entry) -> None:
    """Each policy shows an example with its output, and says what it is useful for and what not."""
    text = " ".join((inspect.getdoc(type(entry.policy)) or "").split())
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
    assert not check_no_mutation(a_trial(entry, data, st.integers(0, 20)))


@every_policy
@given(data=st.data(), k=st.integers(0, 40))
def test_the_output_fits_the_batch(entry: Entry, data: st.DataObject, k: int) -> None:
    """Empty, one row or many: a number for each row, or at most k distinct rows with their propensities."""
    assert not check_output_shape(a_trial(entry, data, st.sampled_from([0, 1, 2, 30]), k=k))


@every_policy
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_the_same_seed_makes_the_same_decision(entry: Entry, data: st.DataObject, seed: int) -> None:
    """Only the arguments count: no clock, no order of calls, no hidden state."""
    assert not check_deterministic(a_trial(entry, data, st.integers(0, 20), seed=seed))


@every_policy
@given(data=st.data())
def test_a_state_survives_storage(entry: Entry, data: st.DataObject) -> None:
    """A state that was written and read again decides as before; where it is plain, JSON keeps it too."""
    assert not check_serializable(a_trial(entry, data, st.integers(0, 20)))


@every_policy
@given(data=st.data())
def test_each_row_has_its_reason_on_one_line(entry: Entry, data: st.DataObject) -> None:
    """A person who asks why gets a sentence: not empty, not two lines."""
    assert not check_reasons(a_trial(entry, data, st.integers(1, 5)))


@every_policy
def test_the_lab_would_let_it_in(entry: Entry) -> None:
    """What a policy from elsewhere has to pass before it is run, ours pass as well."""
    assert find_violation(entry.policy) == ""
