"""Costly things that are asked for all the time: done again only when that costs little on the whole."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Generic, TypeVar

__all__ = ["Kept", "Sparing"]

T = TypeVar("T")
# What people look at may take a twentieth of a processor at most, however much there is.
LOOKED_AT = 20.0


@dataclass(slots=True)
class Sparing:
    """When something may be done again: ``times`` what it took after it was done, and after ``least_s`` at the soonest.

    Times are of one clock, whichever its user has.
    """

    times: float = 50.0
    least_s: float = 0.0
    next_s: float = -inf

    def did(self, started_s: float, ended_s: float) -> None:
        """It took that long."""
        self.next_s = ended_s + max(self.least_s, self.times * (ended_s - started_s))


class Kept(Generic[T]):
    """An answer that is good for some seconds; whoever comes meanwhile waits for the one who works it out."""

    def __init__(self, least_s: float) -> None:
        self._lock = Lock()
        self._sparing = Sparing(LOOKED_AT, least_s)
        self._value: T | None = None

    def get(self, made: Callable[[], T], fits: Callable[[T], bool] = lambda _: True) -> T:
        """The answer, made anew where it is too old, or does not fit what is asked."""
        with self._lock:
            began_s = time.monotonic()
            if self._value is None or began_s >= self._sparing.next_s or not fits(self._value):
                self._value = made()
                self._sparing.did(began_s, time.monotonic())
            return self._value
