"""Rows of a change model's memory: read those of a batch, and add observations to all of its groups."""

from collections.abc import Iterator

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.timeutil import DAY_S


def is_informative(batch: KnownPages) -> Bools:
    """Mark the fetches that are informative about changes: not a page's first, and not one that finds it gone."""
    informative: Bools = ~batch.first_fetch & ~batch.gone & (batch.last_fetch_s > batch.before_s)
    return informative


def days_between(batch: KnownPages) -> Floats:
    """Return the days between the last two fetches of each page; 0 if there is only one."""
    return np.fmax((batch.last_fetch_s - batch.before_s) / DAY_S, 0.0)


def days_since_fetch(batch: KnownPages, at_s: Floats) -> Floats:
    """Return the days from each page's last fetch to a time, never below 0."""
    return np.fmax((at_s - batch.last_fetch_s) / DAY_S, 0.0)


def announced_delay_d(batch: KnownPages) -> Floats:
    """Return the days from the previous fetch to a found change whose time was announced; NaN if unknown.

    A page that is fetched because a change was announced is always found changed. Without the time of the change every
    such fetch would raise its rate, without limit.
    """
    announced = batch.changed & (batch.signal_s > batch.before_s) & (batch.signal_s <= batch.last_fetch_s)
    return np.where(announced, (batch.signal_s - batch.before_s) / DAY_S, np.nan)


def page_rows(memory: Memory, batch: KnownPages) -> Floats:
    """Copy the memory rows of each page; zeros if there are none."""
    return _select_rows(memory.pages, batch.place)


def group_rows(groups: Floats, numbers: Ints) -> Floats:
    """Copy the memory rows of groups of pages; zeros if there are none."""
    return _select_rows(groups, numbers)


def slice_memory(memory: Memory, page_from: int, page_width: int, group_from: int, group_width: int) -> Memory:
    """Return the columns of a nested change model as its own memory; writes go through to the outer memory."""
    return Memory(
        memory.pages[:, page_from : page_from + page_width], memory.groups[:, group_from : group_from + group_width]
    )


def group_levels(batch: KnownPages) -> Iterator[tuple[Ints, Bools]]:
    """Yield group levels from global down to the section: each page's group, and whether it is new.

    Unknown sections or sites are the global group, and must not be counted twice.
    """
    nothing = np.zeros(len(batch), np.int64)
    yield nothing, np.ones(len(batch), np.bool_)
    yield batch.site, batch.site > 0
    yield batch.section, (batch.section > 0) & (batch.section != batch.site)


def add_to_groups(groups: Floats, batch: KnownPages, amounts: Floats, seen: Bools) -> None:
    """Add a row of amounts for each observed page to its groups' memory rows, in place, once per group."""
    for numbers, apart in group_levels(batch):
        rows = np.flatnonzero(seen & apart)
        np.add.at(groups, numbers[rows], amounts[rows])


def _select_rows(rows: Floats, numbers: Ints) -> Floats:
    if len(rows) and not numbers.any():  # the global group
        return np.repeat(rows[:1], len(numbers), axis=0)
    if int(numbers.max(initial=-1)) < len(rows):
        return rows[numbers]
    picked = np.zeros((len(numbers), rows.shape[1]))
    inside = numbers < len(rows)
    picked[inside] = rows[numbers[inside]]
    return picked
