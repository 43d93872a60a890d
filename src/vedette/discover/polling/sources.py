"""Discovery sources, the pages that are polled for their links: the input batch of polling policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

Bools = npt.NDArray[np.bool_]

# How many polls of each source a batch includes: a day of hourly ones.
RECENT_POLLS = 24
_HOUR_S = 3_600
_HOURS_PER_WEEK = 168
_FIRST_MONDAY_S = 4 * 24 * _HOUR_S  # 1970 began on a Thursday


@dataclass(frozen=True, slots=True)
class Sources:
    """A batch of discovery sources, one row each: all that may be polled, or those just polled to learn from.

    A policy may store something for each source, as an array with one element per source; ``place`` is the index of
    this source. Indices count from 0, and a state grows when a larger one appears. ``host`` is the number of its host.

    ``last_poll_s`` is the last try, -infinity for never; ``failures`` is the number of failures in a row since then, so
    above 0 means that the last poll failed. The rest describes successful polls: ``polls`` is their number, ``found``
    the sum of their yields, ``links`` how many links the latest showed. ``poll_s`` and ``yields`` have the latest
    ``RECENT_POLLS`` of them, newest first, NaN and 0 if there were fewer. The *yield* of a poll is how many targets it
    showed that no poll before this step had shown: two sources that show the same new target in one step both get
    credit (Thompson23, section 2.1).

    If the rows were just polled, ``shown[shown_start[i]:shown_start[i + 1]]`` are the targets of row ``i``, numbered in
    order of discovery, and ``shown_new`` says which were new. In a batch to choose from they are empty.

    In a batch to choose from, ``weight`` is how many ordinary new pages one of this source counts for, per ordinary
    fetch that a poll costs; a source of weight 0 may not be polled now. ``pending`` marks those being polled: they are
    not chosen again, and the links they will show are not worth another poll. By default all weights are 1 and nothing
    is pending.
    """

    place: Ints
    host: Ints
    last_poll_s: Floats
    failures: Ints
    polls: Ints
    found: Ints
    links: Ints
    poll_s: Floats
    yields: Ints
    shown_start: Ints
    shown: Ints
    shown_new: Bools
    weight: Floats | None = None
    pending: Bools | None = None

    def __len__(self) -> int:
        return len(self.place)


def hour_of_week(at_s: float | Floats) -> Ints:
    """Return the hour of the week of polls of sources, from 0 (Monday, midnight UTC) to 167.

    For one time or many, none of them NaN.

    >>> int(hour_of_week(0.0)), int(hour_of_week(4 * 86_400 - 1)), int(hour_of_week(4 * 86_400))
    (72, 167, 0)
    """
    hours: Ints = (np.floor_divide(np.asarray(at_s) - _FIRST_MONDAY_S, _HOUR_S) % _HOURS_PER_WEEK).astype(np.int64)
    return hours


class PollResults(NamedTuple):
    """Results of polls of the discovery sources ``place``, one row each.

    ``ok`` says which got a response; ``target[start[i]:start[i + 1]]`` are the targets that row ``i`` showed, by any
    stable numbers; ``new`` says which of them no poll before this step had shown.
    """

    place: Ints
    ok: npt.NDArray[np.bool_]
    start: Ints
    target: Ints
    new: npt.NDArray[np.bool_]

    @property
    def yields(self) -> Ints:
        """The poll yield of each row: its number of new targets; one shown by several rows counts for each."""
        counted = np.concatenate([[0], np.cumsum(self.new)])
        return np.diff(counted[self.start])


class PollHistory:
    """The poll history of each discovery source, as in ``Sources``. Returned batches are copies.

    Targets are numbered in order of discovery, unless their numbers already count up in that order (``is_numbered``),
    as the ids of a crawl's URLs do.

    >>> book = PollHistory(np.array([0, 0, 1]))
    >>> one, none = np.array([True]), np.zeros(0, np.int64)
    >>> told = book.record(PollResults(np.array([2]), one, np.array([0, 2]), np.array([70, 50]), np.ones(2, bool)),
    ...     90.0)
    >>> told.yields[0, 0], told.shown.tolist()
    (np.int64(2), [0, 1])
    >>> book.list_options().last_poll_s.tolist(), book.add(np.array([1])).tolist(), len(book.list_options())
    ([-inf, -inf, 90.0], [3], 4)
    """

    def __init__(self, host: Ints, *, is_numbered: bool = False) -> None:
        self._columns = _create_columns(host)
        self._count = len(host)
        self._number: dict[int, int] | None = None if is_numbered else {}

    def __len__(self) -> int:
        return self._count

    def add(self, host: Ints) -> Ints:
        """Add never polled sources of these hosts, and return their positions."""
        first, self._count = self._count, self._count + len(host)
        room = len(self._columns["host"])
        if self._count > room:
            more = _create_columns(np.zeros(max(self._count - room, room), np.int64))
            self._columns = {name: np.concatenate([old, more[name]]) for name, old in self._columns.items()}
        for name, column in _create_columns(host).items():
            self._columns[name][first : self._count] = column
        return np.arange(first, self._count)

    def select(self, places: Ints) -> "PollHistory":
        """Return the history of some sources, in this order; their positions count from 0 again."""
        return PollHistory.from_columns({name: column[places] for name, column in self._columns.items()})

    def list_options(self) -> Sources:
        """Return all discovery sources, for a policy to choose polls from."""
        return self.list_some(np.arange(self._count))

    def list_some(self, places: Ints) -> Sources:
        """Return some discovery sources, for a policy to judge."""
        nothing = np.zeros(0, np.int64)
        return self._build_batch(places, np.zeros(len(places) + 1, np.int64), nothing, nothing.astype(bool))

    def record(self, brought: PollResults, now_s: float) -> Sources:
        """Record what polls brought, and return the rows of the polled sources, to learn from."""
        place, ok, columns = brought.place, brought.ok, self._columns
        columns["last_poll_s"][place] = now_s
        columns["failures"][place] = np.where(ok, 0, columns["failures"][place] + 1)
        good = place[ok]
        yields = brought.yields[ok]
        columns["polls"][good] += 1
        columns["found"][good] += yields
        columns["links"][good] = np.diff(brought.start)[ok]
        for name, latest in (("poll_s", now_s), ("yields", yields)):
            column = columns[name]
            column[good, 1:], column[good, 0] = column[good, :-1], latest
        return self._build_batch(place, brought.start, self._number_targets(brought.target), brought.new)

    def to_columns(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the history as columns by name, to be stored."""
        return {name: column[: self._count] for name, column in self._columns.items()}

    @classmethod
    def from_columns(cls, columns: Mapping[str, npt.NDArray[np.generic]]) -> "PollHistory":
        """Return the history stored in these columns, for targets whose numbers count up; all have the same length."""
        kept = cls(np.asarray(columns["host"], np.int64), is_numbered=True)
        for name, column in kept._columns.items():
            column[:] = columns[name]
        return kept

    def _number_targets(self, targets: Ints) -> Ints:
        """Number poll targets in the order found; a recording's numbers would reveal how many are still unfound."""
        number = self._number
        if number is None:
            return targets.copy()
        return np.array([number.setdefault(target, len(number)) for target in targets.tolist()], np.int64)

    def _build_batch(self, rows: Ints, start: Ints, shown: Ints, new: npt.NDArray[np.bool_]) -> Sources:
        columns = {name: column[rows] for name, column in self._columns.items()}
        return Sources(place=rows.copy(), shown_start=start.copy(), shown=shown, shown_new=new.copy(), **columns)


def _create_columns(host: Ints) -> dict[str, Any]:
    """Create the columns of a poll history of sources that were never polled."""
    count = len(host)
    return {
        "host": host.astype(np.int64),
        "last_poll_s": np.full(count, -np.inf),
        "failures": np.zeros(count, np.int64),
        "polls": np.zeros(count, np.int64),
        "found": np.zeros(count, np.int64),
        "links": np.zeros(count, np.int64),
        "poll_s": np.full((count, RECENT_POLLS), np.nan),
        "yields": np.zeros((count, RECENT_POLLS), np.int64),
    }


def grow_rows(rows: Floats, place: Ints) -> Floats:
    """Return a copy of per-source values with an element for each of these positions; new ones are 0.

    >>> grow_rows(np.array([3.0]), np.array([2])).tolist()
    [3.0, 0.0, 0.0]
    """
    length = max(len(rows), int(place.max(initial=-1)) + 1)
    grown = np.zeros((length, *rows.shape[1:]))
    grown[: len(rows)] = rows
    return grown


def get_latest_yields(batch: Sources) -> Floats:
    """Return the yield of each source's latest poll, row by row; 0 for a failed poll."""
    return np.where(batch.failures > 0, 0.0, batch.yields[:, 0])
