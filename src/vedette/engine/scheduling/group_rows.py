"""What is remembered of groups of pages: sections and sites, in memory, since they are few and wanted all the time.

A batch is handed the rows of its own groups, numbered anew from 0, the group of everything. There may be so many groups
and no more: what comes later counts for its site, or for everything.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.sections import section_of, site_of

__all__ = ["GroupRows", "Picked"]

MOST_GROUPS = 50_000
LONGEST_NAME = 300
EVERYTHING = ""


class Picked(NamedTuple):
    """The groups of a batch: which they are, the rows of each page's section and site among them, and their numbers."""

    numbers: Ints
    section: Ints
    site: Ints
    rows: Floats


class GroupRows:
    """Rows by the names of groups; those that have changed since they were last written are known.

    >>> groups = GroupRows(width=1)
    >>> picked = groups.pick(["https://a.example/x/1", "https://a.example/2"])
    >>> picked.numbers.tolist(), picked.section.tolist(), picked.site.tolist()
    ([0, 1, 2], [2, 1], [1, 1])
    >>> groups.put(picked, np.array([[3.0], [2.0], [1.0]]))
    >>> groups.changed()
    [('', array([3.])), ('https://a.example/', array([2.])), ('https://a.example/x/', array([1.]))]
    """

    def __init__(self, width: int, kept: Iterable[tuple[str, Floats]] = (), most: int = MOST_GROUPS) -> None:
        self._most = most
        self._places: dict[str, int] = {EVERYTHING: 0}
        self._names = [EVERYTHING]
        self._rows = np.zeros((1, width))
        self._changed: dict[int, None] = {}
        for name, row in kept:
            place = self._place(name, 0)
            self._rows_reach(place)
            self._rows[place] = row

    def __len__(self) -> int:
        return len(self._names)

    def pick(self, urls: Sequence[str]) -> Picked:
        """The groups of these pages, each once."""
        sites = [self._place(site_of(url), 0) for url in urls]
        sections = [self._place(section_of(url), site) for url, site in zip(urls, sites, strict=True)]
        self._rows_reach(len(self._names) - 1)
        numbers, places = np.unique(np.array([0, *sections, *sites], np.int64), return_inverse=True)
        section, site = np.split(places[1:].astype(np.int64), 2)
        return Picked(numbers, section, site, self._rows[numbers])

    def put(self, picked: Picked, rows: Floats) -> None:
        """The rows of these groups are others from now on."""
        self._rows[picked.numbers] = rows
        self._changed.update(dict.fromkeys(picked.numbers.tolist()))

    def changed(self) -> list[tuple[str, Floats]]:
        """Names and rows of those that are not written yet; they are taken to be from now on."""
        found = [(self._names[number], self._rows[number]) for number in sorted(self._changed)]
        self._changed.clear()
        return found

    def _place(self, name: str, instead: int) -> int:
        place = self._places.get(name)
        if place is not None:
            return place
        if len(self._names) >= self._most or len(name) > LONGEST_NAME:
            return instead
        self._places[name] = len(self._names)
        self._names.append(name)
        return self._places[name]

    def _rows_reach(self, last: int) -> None:
        """Room for so many, and for as many again: rows are copied rarely."""
        if last >= len(self._rows):
            more = np.zeros((last + 1, self._rows.shape[1]))
            self._rows = np.concatenate([self._rows, more])
