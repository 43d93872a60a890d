"""The contract of every change model."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.refresh.models.change_models import DAY_S, MODELS, NAMES, later, looks, stories, taught

from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import ChangeModel

few = settings(max_examples=5)  # nine models, each with its own
each_model = pytest.mark.parametrize("model", MODELS, ids=NAMES)


@each_model
@few
@given(story=stories(), waits=st.lists(st.floats(0, 1e4), min_size=2, max_size=5).map(sorted))
def test_chances_are_chances_and_never_fall_with_time(
    model: ChangeModel, story: list[KnownPages], waits: list[float]
) -> None:
    """A probability is always between 0 and 1, and never decreases over time; rates are finite and ordered."""
    memory, batch = taught(model, story), story[-1]
    chances = np.array([model.chance(memory, batch, later(batch, wait)) for wait in waits])
    assert np.all((chances >= 0) & (chances <= 1))
    assert np.all(np.diff(chances, axis=0) >= -1e-9)
    mean, low, high = model.rates(memory, batch)
    assert np.all(np.isfinite(mean) & (low >= 0) & (low <= high) & np.isfinite(high))


@each_model
@few
@given(story=stories())
def test_what_is_given_stays_as_it_was(model: ChangeModel, story: list[KnownPages]) -> None:
    """Neither learning nor predicting changes a memory or a batch."""
    memory = taught(model, story[:-1])
    pages, groups = memory.pages.copy(), memory.groups.copy()
    changed = story[-1].changed.copy()
    model.learn(memory, story[-1])
    model.chance(memory, story[-1], later(story[-1], 3.0))
    model.rates(memory, story[-1])
    assert np.array_equal(memory.pages, pages)
    assert np.array_equal(memory.groups, groups)
    assert np.array_equal(story[-1].changed, changed)


@each_model
def test_an_empty_memory_and_an_empty_batch_are_answered(model: ChangeModel) -> None:
    """Unknown pages and groups still have a probability; an empty batch has none."""
    memory = Memory.empty(model.page_width, model.group_width)
    unknown = looks([False, False], 5.0, 1.0, section=[7, 0], site=[3, 0])
    chance = model.chance(memory, unknown, later(unknown, 30.0))
    assert np.all((chance > 0) & (chance < 1))
    nobody = looks([], 5.0, 1.0)
    assert len(model.chance(model.learn(memory, nobody), nobody, np.zeros(0))) == 0


@each_model
def test_rows_of_the_pages_in_question_are_enough(model: ChangeModel) -> None:
    """Passing only the rows of a batch gives the same result as passing all rows."""
    story = [looks([False] * 4, 0.0, 0.0, first=True), looks([True, False, True, False], 9.0, 9.0)]
    memory = taught(model, story)
    some = np.array([1, 2])
    part = looks([True, False], 20.0, 11.0)
    apart = model.learn(Memory(memory.pages[some], memory.groups), part)
    moved = looks([True, False], 20.0, 11.0)
    object.__setattr__(moved, "place", some)
    whole = model.learn(memory, moved)
    assert np.array_equal(whole.pages[some], apart.pages)
    assert np.array_equal(whole.groups, apart.groups)


@each_model
def test_a_page_that_changes_is_expected_to_change(model: ChangeModel) -> None:
    """Of two pages fetched daily, the one that always changed is more likely to change the next day."""
    memory = taught(model, [looks([True, False], day, 1.0) for day in range(1, 12)])
    batch = looks([True, False], 11.0, 1.0)
    busy, still = model.chance(memory, batch, later(batch, 1.0))
    assert busy > 2 * still


@each_model
def test_a_new_page_has_the_chance_of_its_section(model: ChangeModel) -> None:
    """After a busy and a quiet section, an unseen page is expected to be like its section."""
    section, site = np.repeat([2, 3], 10), np.ones(20, np.int64)
    busy = np.repeat([True, False], 10)
    memory = taught(model, [looks(busy, day, 2.0, section=section, site=site) for day in range(2, 20, 2)])
    new = looks([False, False], 20.0, 0.0, first=True, section=[2, 3], site=[1, 1])
    object.__setattr__(new, "place", np.array([20, 21]))
    in_busy, in_quiet = model.chance(memory, new, later(new, 2.0))
    assert in_busy > 2 * in_quiet


@each_model
def test_a_page_that_is_gone_says_nothing_of_changes(model: ChangeModel) -> None:
    """A fetch that finds no page does not change any probability."""
    memory = taught(model, [looks([True, False], 3.0, 3.0)])
    after = model.learn(memory, looks([True, True], 9.0, 6.0, gone=[True, True]))
    batch = looks([False, False], 9.0, 6.0)
    at_s = np.full(2, 12 * DAY_S)
    assert model.chance(after, batch, at_s) == pytest.approx(model.chance(memory, batch, at_s))
