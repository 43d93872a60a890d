"""Arrays with an element for each source, as policies remember things: long enough for whichever places come up."""

import numpy as np

from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints

__all__ = ["latest_yields", "room_for"]


def room_for(rows: Floats, place: Ints) -> Floats:
    """A copy that has an element for each of these places; what is new is 0.

    >>> room_for(np.array([3.0]), np.array([2])).tolist()
    [3.0, 0.0, 0.0]
    """
    length = max(len(rows), int(place.max(initial=-1)) + 1)
    grown = np.zeros((length, *rows.shape[1:]))
    grown[: len(rows)] = rows
    return grown


def latest_yields(batch: Sources) -> Floats:
    """What the look that was just made brought, row by row; a failed look brought nothing."""
    return np.where(batch.failures > 0, 0.0, batch.yields[:, 0])
