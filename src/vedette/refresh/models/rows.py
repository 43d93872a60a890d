"""The rows of a model's memory: reading those of a batch, and adding what was seen to all of its groups."""

from collections.abc import Iterator

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.timeutil import DAY_S


def is_informative(batch: KnownPages) -> Bools:
    """Which fetches say something about changes: not the first of a page, and not one that finds it gone."""
    known: Bools = ~batch.first_fetch & ~batch.gone & (batch.last_fetch_s > batch.before_s)
    return known


def days_between(batch: KnownPages) -> Floats:
    """Days between the last two fetches; 0 where there is one only."""
    return np.fmax((batch.last_fetch_s - batch.before_s) / DAY_S, 0.0)


def days_since_fetch(batch: KnownPages, at_s: Floats) -> Floats:
    """Days from the last fetch to a time, never below 0."""
    return np.fmax((at_s - batch.last_fetch_s) / DAY_S, 0.0)


def page_rows(memory: Memory, batch: KnownPages) -> Floats:
    """A copy of what is remembered of each page; zeros where that is nothing."""
    return _select_rows(memory.pages, batch.place)


def group_rows(groups: Floats, numbers: Ints) -> Floats:
    """A copy of what is remembered of each group; zeros where that is nothing."""
    return _select_rows(groups, numbers)


def slice_memory(memory: Memory, page_from: int, page_width: int, group_from: int, group_width: int) -> Memory:
    """The columns of a model that is part of another, as its own memory; what is written there is written here."""
    return Memory(
        memory.pages[:, page_from : page_from + page_width], memory.groups[:, group_from : group_from + group_width]
    )


def group_levels(batch: KnownPages) -> Iterator[tuple[Ints, Bools]]:
    """From everything down to the section: the group of each page, and whether it is another than the one above.

    Where nobody told sections or sites, they are the group of everything, and must not be counted twice.
    """
    nothing = np.zeros(len(batch), np.int64)
    yield nothing, np.ones(len(batch), np.bool_)
    yield batch.site, batch.site > 0
    yield batch.section, (batch.section > 0) & (batch.section != batch.site)


def add_to_groups(groups: Floats, batch: KnownPages, amounts: Floats, seen: Bools) -> None:
    """Add a row of amounts for each page that was seen to its groups' rows, in place; once to each group."""
    for numbers, apart in group_levels(batch):
        rows = np.flatnonzero(seen & apart)
        np.add.at(groups, numbers[rows], amounts[rows])


def _select_rows(rows: Floats, numbers: Ints) -> Floats:
    if int(numbers.max(initial=-1)) < len(rows):
        return rows[numbers]
    picked = np.zeros((len(numbers), rows.shape[1]))
    inside = numbers < len(rows)
    picked[inside] = rows[numbers[inside]]
    return picked
