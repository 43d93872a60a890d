"""What is known of sources, the pages that are looked at for what they link to: the batch that discovery judges."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats, Ints

__all__ = ["RECENT", "Sources", "hour_of_week"]

Bools = npt.NDArray[np.bool_]

# How many looks of each source a batch remembers: a day of hourly ones.
RECENT = 24
_HOUR_S = 3_600
_HOURS_A_WEEK = 168
_FIRST_MONDAY_S = 4 * 24 * _HOUR_S  # 1970 began on a Thursday


@dataclass(frozen=True, slots=True)
class Sources:
    """One row per source. To choose, a policy is handed all that may be looked at; to learn, those just looked at.

    A policy may remember something of each source, as an array with one element per source; ``place`` says which
    element is this source's. Places count from 0, and a state grows when a larger one comes up. ``host`` is the number
    of its host.

    ``last_look_s`` is when it was last tried, -infinity for never; ``failures`` how often in a row that failed since,
    so a look has just failed where it is above 0. All that follows speaks of looks that succeeded: ``looks`` is their
    number, ``found`` the sum of their yields, ``links`` how many links the latest showed. ``look_s`` and ``yields``
    have the latest ``RECENT`` of them, newest first, NaN and 0 where there were fewer. The *yield* of a look is how
    many targets it showed that no look before this step had shown: two sources that show the same new target in one
    step both get credit (Thompson23, section 2.1).

    Where the rows were just looked at, ``shown[shown_start[i]:shown_start[i + 1]]`` are the targets of row ``i``,
    numbered in the order in which looks first brought them, and ``shown_new`` says which were new. In a batch to choose
    from they are empty.
    """

    place: Ints
    host: Ints
    last_look_s: Floats
    failures: Ints
    looks: Ints
    found: Ints
    links: Ints
    look_s: Floats
    yields: Ints
    shown_start: Ints
    shown: Ints
    shown_new: Bools

    def __len__(self) -> int:
        return len(self.place)


def hour_of_week(at_s: float | Floats) -> Ints:
    """The hour of the week, from 0 (Monday, midnight UTC) to 167; for one time or many, none of them NaN.

    >>> int(hour_of_week(0.0)), int(hour_of_week(4 * 86_400 - 1)), int(hour_of_week(4 * 86_400))
    (72, 167, 0)
    """
    hours: Ints = (np.floor_divide(np.asarray(at_s) - _FIRST_MONDAY_S, _HOUR_S) % _HOURS_A_WEEK).astype(np.int64)
    return hours
