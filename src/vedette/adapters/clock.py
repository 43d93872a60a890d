"""Clock: wall time, and world time of the crawled web, which may run faster.

    world time = world_start_s + (wall time - wall_start_s) x speed

Wall time is read from the monotonic clock, so a system clock that is stepped or slewed changes nothing. On Linux all
processes share that clock; the offset of Unix time is part of the value, so that the server of the synthetic web, its
judge and the crawler, given equal values, agree on the time wherever they run.
"""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vedette.errors import UsageError

# Smaller differences are the slow corrections of a time service.
MIN_STEP_S = 1.0


def _measure_unix_ahead_s() -> float:
    """Measure the offset of Unix time from the monotonic clock, from the least disturbed reading."""
    readings = []
    for _ in range(5):
        before_s, unix_s, after_s = time.monotonic(), time.time(), time.monotonic()
        readings.append((after_s - before_s, unix_s - (before_s + after_s) / 2))
    return min(readings)[1]


@dataclass(frozen=True, slots=True)
class Clock:
    """A wall clock and the world time that follows from it.

    Clocks created separately from the same three numbers agree to microseconds as long as the system clock is not set
    in between; passing ``ahead_s`` on as well (``str`` writes it, ``parse_clock`` reads it) makes them agree always.

    >>> Clock(wall_start_s=100.0, world_start_s=5000.0, speed=60.0).to_world_s(101.5)
    5090.0
    """

    wall_start_s: float
    world_start_s: float
    speed: float
    ahead_s: float = field(default_factory=_measure_unix_ahead_s)

    def __post_init__(self) -> None:
        if not 0.0 < self.speed < float("inf"):
            raise UsageError(f"speed {self.speed}: expected a number above 0, such as 1 or 1000")

    def wall_now(self) -> float:
        """Return wall time in Unix seconds, which never decrease."""
        return time.monotonic() + self.ahead_s

    def to_world_s(self, wall_s: float) -> float:
        """Convert a wall time to world time."""
        return self.world_start_s + (wall_s - self.wall_start_s) * self.speed

    def now(self) -> float:
        """Return the current world time in seconds."""
        return self.to_world_s(self.wall_now())

    def to_wall_s(self, world_s: float) -> float:
        """Convert a duration in world seconds to wall seconds."""
        return world_s / self.speed

    def describe_boot(self) -> str:
        """Return which boot of the machine this is and when it was by this clock, for ``measure_step_s``."""
        return f"{_read_boot_id()} {self.wall_now() - time.clock_gettime(time.CLOCK_BOOTTIME)!r}"

    def measure_step_s(self, boot: str) -> float | None:
        """Return how far (world time) the clock was set back since ``describe_boot`` returned a text, also meanwhile.

        None if the machine was started since: then no clock can tell.
        """
        id_, _, booted_s = boot.partition(" ")
        if id_ != _read_boot_id():
            return None
        step_s = float(booted_s) - float(self.describe_boot().partition(" ")[2])
        return step_s * self.speed if step_s >= MIN_STEP_S else 0.0

    def __str__(self) -> str:
        return f"{self.wall_start_s!r},{self.world_start_s!r},{self.speed!r},{self.ahead_s!r}"


@cache
def _read_boot_id() -> str:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


def start_clock(world_start_s: float, speed: float) -> Clock:
    """Create a clock whose world time starts now, at a speed."""
    ahead_s = _measure_unix_ahead_s()
    return Clock(time.monotonic() + ahead_s, world_start_s, speed, ahead_s)


def real_clock() -> Clock:
    """Create a clock whose world time is real Unix time."""
    return Clock(0.0, 0.0, 1.0)


def parse_clock(text: str) -> Clock:
    """Parse a clock from the text that ``str`` of it gives, for another process.

    >>> parse_clock("100.0,5000.0,60.0,99.5") == Clock(100.0, 5000.0, 60.0, 99.5)
    True
    """
    try:
        wall_start_s, world_start_s, speed, ahead_s = map(float, text.split(","))
    except ValueError:
        raise UsageError(
            f'clock "{text}": expected the four comma-separated numbers printed by the first process'
        ) from None
    return Clock(wall_start_s, world_start_s, speed, ahead_s)
