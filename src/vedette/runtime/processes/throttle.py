"""Costly things that are asked for all the time: done again only when that costs little on the whole."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
# What people look at may take a twentieth of a processor at most, however much there is.
CACHE_REST_FACTOR = 20.0


@dataclass(slots=True)
class Throttle:
    """When something may be done again: after ``rest_factor`` times what it took, and ``min_interval_s`` at least.

    Times are of one clock, whichever its user has.
    """

    rest_factor: float = 50.0
    min_interval_s: float = 0.0
    next_s: float = -inf

    def record_run(self, started_s: float, ended_s: float) -> None:
        """It took that long."""
        self.next_s = ended_s + max(self.min_interval_s, self.rest_factor * (ended_s - started_s))


class CachedValue(Generic[T]):
    """An answer that is good for some seconds; whoever comes meanwhile waits for the one who works it out."""

    def __init__(self, least_s: float) -> None:
        self._lock = Lock()
        self._throttle = Throttle(CACHE_REST_FACTOR, least_s)
        self._value: T | None = None

    def get(self, made: Callable[[], T], fits: Callable[[T], bool] = lambda _: True) -> T:
        """The answer, made anew where it is too old, or does not fit what is asked."""
        with self._lock:
            began_s = time.monotonic()
            if self._value is None or began_s >= self._throttle.next_s or not fits(self._value):
                self._value = made()
                self._throttle.record_run(began_s, time.monotonic())
            return self._value
