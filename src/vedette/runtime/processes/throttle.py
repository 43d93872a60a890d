"""Throttle: repeat costly work only as often as it takes a small share of the time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
# Work for display may take a twentieth of a CPU at most, however much there is.
CACHE_REST_FACTOR = 20.0


@dataclass(slots=True)
class Throttle:
    """Throttle for costly work: next run after ``rest_factor`` times its duration, at least ``min_interval_s``.

    Times are from one clock, chosen by the caller.
    """

    rest_factor: float = 50.0
    min_interval_s: float = 0.0
    next_s: float = -inf

    def record_run(self, started_s: float, ended_s: float) -> None:
        """Record how long a throttled run took, and set when the next one may start."""
        self.next_s = ended_s + max(self.min_interval_s, self.rest_factor * (ended_s - started_s))


class CachedValue(Generic[T]):
    """A throttled value, cached for some seconds; concurrent callers wait for the one that computes it."""

    def __init__(self, least_s: float) -> None:
        self._lock = Lock()
        self._throttle = Throttle(CACHE_REST_FACTOR, least_s)
        self._value: T | None = None

    def get(self, made: Callable[[], T], fits: Callable[[T], bool] = lambda _: True) -> T:
        """Return the cached value; compute it again if it is too old or does not fit."""
        with self._lock:
            began_s = time.monotonic()
            if self._value is None or began_s >= self._throttle.next_s or not fits(self._value):
                self._value = made()
                self._throttle.record_run(began_s, time.monotonic())
            return self._value
