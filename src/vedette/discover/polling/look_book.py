"""What looks at sources brought so far, kept in arrays: it makes the batches that discovery policies are handed."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.sources import RECENT, Sources
from vedette.policy import Floats, Ints

__all__ = ["Brought", "LookBook"]


class Brought(NamedTuple):
    """What looks at sources ``place`` brought, a row each.

    ``ok`` says which answered; ``target[start[i]:start[i + 1]]`` are the targets that row ``i`` showed, by any
    numbers that are the same for the same target; ``new`` says which of them no look before this step had shown.
    """

    place: Ints
    ok: npt.NDArray[np.bool_]
    start: Ints
    target: Ints
    new: npt.NDArray[np.bool_]

    @property
    def yields(self) -> Ints:
        """How many new targets each row showed; what several rows show counts for each."""
        counted = np.concatenate([[0], np.cumsum(self.new)])
        return np.diff(counted[self.start])


class LookBook:
    """Knows of each source what ``Sources`` says of it. Handed-out batches are copies and stay as they are.

    >>> book = LookBook(np.array([0, 0, 1]))
    >>> one, none = np.array([True]), np.zeros(0, np.int64)
    >>> told = book.enter(Brought(np.array([2]), one, np.array([0, 2]), np.array([70, 50]), np.ones(2, bool)), 90.0)
    >>> told.yields[0, 0], told.shown.tolist()
    (np.int64(2), [0, 1])
    >>> book.options().last_look_s.tolist()
    [-inf, -inf, 90.0]
    """

    def __init__(self, host: Ints) -> None:
        count = len(host)
        self._host = host.astype(np.int64)
        self._last_look_s: Floats = np.full(count, -np.inf)
        self._failures: Ints = np.zeros(count, np.int64)
        self._looks: Ints = np.zeros(count, np.int64)
        self._found: Ints = np.zeros(count, np.int64)
        self._links: Ints = np.zeros(count, np.int64)
        self._look_s: Floats = np.full((count, RECENT), np.nan)
        self._yields: Ints = np.zeros((count, RECENT), np.int64)
        self._number: dict[int, int] = {}

    def options(self) -> Sources:
        """All sources, to choose from."""
        every = np.arange(len(self._host))
        nothing = np.zeros(0, np.int64)
        return self._batch(every, np.zeros(len(every) + 1, np.int64), nothing, nothing.astype(bool))

    def enter(self, brought: Brought, now_s: float) -> Sources:
        """Write down what looks brought, and hand back the rows of these sources, to learn from."""
        place, ok = brought.place, brought.ok
        self._last_look_s[place] = now_s
        self._failures[place] = np.where(ok, 0, self._failures[place] + 1)
        good = place[ok]
        yields = brought.yields[ok]
        self._looks[good] += 1
        self._found[good] += yields
        self._links[good] = np.diff(brought.start)[ok]
        self._look_s[good, 1:], self._look_s[good, 0] = self._look_s[good, :-1], now_s
        self._yields[good, 1:], self._yields[good, 0] = self._yields[good, :-1], yields
        return self._batch(place, brought.start, self._numbered(brought.target), brought.new)

    def _numbered(self, targets: Ints) -> Ints:
        """Numbers of our own: those of a recording would tell how much there is that nobody has found."""
        number = self._number
        return np.array([number.setdefault(target, len(number)) for target in targets.tolist()], np.int64)

    def _batch(self, rows: Ints, start: Ints, shown: Ints, new: npt.NDArray[np.bool_]) -> Sources:
        return Sources(
            place=rows.copy(),
            host=self._host[rows],
            last_look_s=self._last_look_s[rows],
            failures=self._failures[rows],
            looks=self._looks[rows],
            found=self._found[rows],
            links=self._links[rows],
            look_s=self._look_s[rows],
            yields=self._yields[rows],
            shown_start=start.copy(),
            shown=shown,
            shown_new=new.copy(),
        )
