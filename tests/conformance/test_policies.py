"""The contract of every policy.

Policies are found automatically: every module of every ``policies`` folder has one. If the policies of a stage use a
new kind of batch, add a generator to ``BATCHES`` here and one to ``SAMPLES`` of ``vedette.lab.core.conformance``, which
contains the checks.
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
    CHECKS,
    NOW_S,
    STAGES,
    Trial,
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
        """Return the kind of decision that a policy makes."""
        return find_shapes(self.policy)[0]


def entries() -> Iterator[Entry]:
    """List every policy of every stage by name."""
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
    """Generate URLs that were never fetched, with depths, numbers and in-links in any order."""
    count = draw(rows)
    column = _column(st.integers(0, 2**31), count)
    return UnseenUrls(_ints(draw(column)), _ints(draw(column)), _ints(draw(column)))


@st.composite
def known(draw: st.DrawFn, rows: st.SearchStrategy[int]) -> Any:
    """Generate fetched pages, each once per batch, with and without a known time of change."""
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
    """Generate sources that were polled or not, to choose from or to learn from."""
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


def a_trial(entry: Entry, data: st.DataObject, rows: st.SearchStrategy[int], *, k: int, seed: int) -> Trial:
    """Generate a policy that has observed something, before a batch."""
    batches = BATCHES[entry.stage]
    return Trial(entry.policy, entry.shape, data.draw(batches(st.integers(0, 5))), data.draw(batches(rows)), k, seed)


def test_policies_are_found() -> None:
    """Discovery finds every file of every ``policies`` folder, so none escapes this suite."""
    files = {name for stage in STAGES.values() for name in _files(stage)}
    assert {"vedette.frontier.policies.breadth", "vedette.lab.baselines.discover.od_1"} <= files
    assert {entry.module.__name__ for entry in ENTRIES} == files


def test_one_policy_per_file_of_one_shape_and_the_files_name() -> None:
    """A policy has the name of its file, and makes exactly one kind of decision."""
    for entry in ENTRIES:
        assert entry.policy.name == entry.module.__name__.rpartition(".")[2].replace("_", "-")
        assert [each for each in ENTRIES if each.module is entry.module] == [entry]
        assert len(find_shapes(entry.policy)) == 1, str(entry)


def test_the_docstring_shows_an_example_and_says_when_to_use_it() -> None:
    """Each policy has an example with output, and says what it is and isn't good for."""
    texts = {str(entry): " ".join((inspect.getdoc(type(entry.policy)) or "").split()) for entry in ENTRIES}
    parts = (">>>", "Useful", "Not useful")
    assert {name: parts for name, text in texts.items() if not all(part in text for part in parts)} == {}


def test_every_stage_has_a_generator_of_batches() -> None:
    """A new stage defines what its batches look like; otherwise its policies could not be tested."""
    assert {entry.stage for entry in ENTRIES} <= BATCHES.keys()


@every_policy
@given(data=st.data(), k=st.integers(0, 40), seed=st.integers(0, 2**32))
def test_a_policy_keeps_the_contract(entry: Entry, data: st.DataObject, k: int, seed: int) -> None:
    """For empty, single, small and large batches, each check of the contract passes.

    Batch and state are not changed; there is a number per row, or up to k distinct rows with propensities; only the
    arguments matter; a saved state decides as before; and each reason is one line.
    """
    trial = a_trial(entry, data, st.sampled_from([0, 1, 2, 30]) | st.integers(3, 20), k=k, seed=seed)
    assert {check.__name__: words for check in CHECKS if (words := check(trial))} == {}


@every_policy
def test_the_lab_would_let_it_in(entry: Entry) -> None:
    """Our policies pass the same checks as external ones."""
    assert find_violation(entry.policy) == ""
