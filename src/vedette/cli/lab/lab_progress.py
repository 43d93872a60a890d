"""How far a run of the lab is: a bar on a terminal, a plain line now and then elsewhere, nothing with ``--quiet``."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vedette.cli.output import counted, plain, span
from vedette.lab.core.experiment import Cell

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["RunProgress"]

EVERY_S = 5.0


class RunProgress:
    """Shows how many cells are done, which was the last, and how long the rest may take; a context manager."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began_s = self._said_s = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._start()
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        # What stands in a cell's name is not markup.
        words = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        self._bar = Progress(
            MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), words, console=console, transient=True
        )
        self._bar.start()
        self._task = self._bar.add_task("starting", total=self._total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def look(self, done: int, total: int, cell: Cell) -> None:
        """So many cells are done; this was the last."""
        self._first = done - 1 if self._first is None else self._first
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=plain(f"{cell.world} {cell.policy}", 60))
            return
        now_s = time.monotonic()
        if not self._quiet and (now_s - self._said_s >= EVERY_S or done == total):
            self._said_s = now_s
            print(self._line(done, total, now_s), file=sys.stderr, flush=True)

    def _line(self, done: int, total: int, now_s: float) -> str:
        here = done - (self._first or 0)
        left = f", about {span((now_s - self._began_s) / here * (total - done))} left" if done < total else ""
        return f"{done} of {counted(total, 'cell')} after {span(now_s - self._began_s)}{left}"
