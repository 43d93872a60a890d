"""How far a measuring demo is, for whoever waits; and what ends it before its time."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vedette.cli.output import span

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

__all__ = ["Progress", "signals"]

SAY_EVERY_S = 10.0


@contextmanager
def signals() -> Iterator[Callable[[], None]]:
    """What ends it, once somebody wants it to end and it is asked.

    An interrupt that is raised wherever the program happens to be gets lost in callbacks around a fork.
    """
    wanted: list[int] = []

    def heed() -> None:
        if wanted:
            raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: wanted.append(number)) for number in numbers}
    try:
        yield heed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Progress:
    """A bar on a terminal, a line now and then elsewhere; drawn by whoever tells, as a thread would not bear forks."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._began_s = time.monotonic()
        self._said_s, self._said = self._began_s, ""

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            words = TextColumn("{task.description}", markup=False)
            columns = (BarColumn(), TimeRemainingColumn(), words)
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self._total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt) and not self._quiet:
            print("vedette: stopped before its time; nothing was measured.", file=sys.stderr)

    def say(self, words: str) -> None:
        """What is being done."""
        self._tell(None, words)

    def look(self, done: int, words: str) -> None:
        """So much of it is done."""
        self._tell(done, words)

    def _tell(self, done: int | None, words: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=words, refresh=True)
            return
        now_s = time.monotonic()
        if not self._quiet and (words.partition(" ")[0] != self._said or now_s - self._said_s >= SAY_EVERY_S):
            self._said_s, self._said = now_s, words.partition(" ")[0]
            print(f"{span(now_s - self._began_s):>10}  {words}", file=sys.stderr, flush=True)
