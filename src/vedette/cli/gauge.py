"""How far a long copy is: one line that is written over on a terminal, nothing elsewhere."""

import sys
import time
from types import TracebackType
from typing import Self

__all__ = ["Gauge"]

EVERY_S = 0.1


class Gauge:
    """Shows a share as it grows; a context manager."""

    def __init__(self, what: str, *, quiet: bool) -> None:
        self._what = what
        self._shown = not quiet and sys.stderr.isatty()
        self._next_s = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def look(self, done: int, total: int) -> None:
        """So much of so much."""
        if not self._shown or time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        print(f"\r\x1b[K{self._what} {100 * done // max(total, 1)} %", end="", file=sys.stderr, flush=True)

    def look_at(self, part: str, done: int, total: int) -> None:
        """The same for one of several parts."""
        self._what = part
        self.look(done, total)
