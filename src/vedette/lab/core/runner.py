"""Runner of the lab: compute the cells of a plan in worker processes, each from its description alone.

The parent assigns one cell at a time and saves the result. So a run can be interrupted or killed at any moment:
finished cells are kept, the same plan continues, and the rows are the same as without the interruption.
"""

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import NamedTuple

from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan
from vedette.errors import UsageError, VedetteError
from vedette.lab.core.experiment import Cell, Measurements
from vedette.lab.core.registry import find_experiment
from vedette.lab.core.run_folder import RunFolder
from vedette.lab.worlds.catalog import register_world, registered_worlds

Progress = Callable[[int, int, Cell], None]


class CellFailed(VedetteError):
    """A cell of a lab run failed; the message says which cell, and what is kept."""


class _CellResult(NamedTuple):
    """The result of computing a cell: its rows, or the error and whether it is a usage error."""

    rows: Sequence[Measurements] = ()
    error: str = ""
    is_usage: bool = False
    trace: str = ""


@dataclass(slots=True)
class _WorkerProcess:
    """A worker process of the lab runner, and its current cell."""

    process: BaseProcess
    channel: Connection
    cell: Cell | None = field(default=None)


def count_cores() -> int:
    """Return how many cells the lab runner can compute at once."""
    return len(os.sched_getaffinity(0))


def run_cells(folder: RunFolder, total: int, progress: Progress, jobs: int = 0) -> None:
    """Compute the cells that a run folder lacks; leave no process behind on ``KeyboardInterrupt`` or a failed cell."""
    left = folder.list_pending()
    done = total - len(left)
    with _start_workers(min(jobs or count_cores(), len(left))) as hands:
        for cell, result in _iter_results(iter(left), hands):
            if result.error:
                raise _build_error(cell, result)
            folder.store_cell(cell, result.rows)
            done += 1
            progress(done, total, cell)


def _iter_results(cells: Iterator[Cell], hands: Sequence[_WorkerProcess]) -> Iterator[tuple[Cell, _CellResult]]:
    """Assign cells to worker processes and yield the result of each, in the order in which they finish."""
    busy = [hand for hand in hands if _send_next(hand, cells)]
    while busy:
        ready = wait([hand.channel for hand in busy])
        for hand in [hand for hand in busy if hand.channel in ready]:
            assert hand.cell is not None, "a busy process has a cell"
            yield hand.cell, _receive(hand)
            if not _send_next(hand, cells):
                busy.remove(hand)


def _send_next(hand: _WorkerProcess, cells: Iterator[Cell]) -> bool:
    hand.cell = next(cells, None)
    if hand.cell is not None:
        # A dead worker is noticed at once, by the end of its channel.
        with suppress(OSError):
            hand.channel.send(hand.cell)
    return hand.cell is not None


def _receive(hand: _WorkerProcess) -> _CellResult:
    try:
        result: _CellResult = hand.channel.recv()
    except (EOFError, OSError):
        hand.process.join(1.0)
        return _CellResult(
            error=f"its process ended (exit code {hand.process.exitcode}); if it ran out of memory, try --jobs 1"
        )
    return result


def _build_error(cell: Cell, result: _CellResult) -> VedetteError:
    if result.is_usage:
        return UsageError(result.error)
    named = f"{cell.experiment} on {cell.world} with {cell.policy}, budget {cell.budget:g}, seed {cell.seed}"
    error = CellFailed(f"{named}: {result.error}; finished cells are kept")
    if result.trace:
        error.add_note(result.trace)
    return error


@contextmanager
def _start_workers(count: int) -> Iterator[list[_WorkerProcess]]:
    # Not forked: a process with threads (and libraries start some) cannot be copied safely.
    context = multiprocessing.get_context("spawn")
    hands: list[_WorkerProcess] = []
    try:
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_run_worker, args=(there, os.getpid(), registered_worlds()), daemon=True)
            process.start()
            there.close()
            hands.append(_WorkerProcess(process, here))
        yield hands
    finally:
        for hand in hands:
            # Nothing is lost: finished cells are on disk.
            hand.process.kill()
        for hand in hands:
            hand.process.join()
            hand.channel.close()


def _run_worker(channel: Connection, parent: int, places: Mapping[str, str]) -> None:
    """Run a worker process of the lab runner: receive cells and send back rows until the parent is gone."""
    ignore_sigint()
    die_with_parent()
    if is_orphan(parent):
        return
    for typed in places.values():
        register_world(typed)
    with suppress(EOFError, OSError):
        while True:
            channel.send(_run_cell(channel.recv()))


def _run_cell(cell: Cell) -> _CellResult:
    try:
        return _CellResult(find_experiment(cell.experiment).run(cell))
    except UsageError as error:
        return _CellResult(error=str(error), is_usage=True)
    except Exception as error:  # noqa: BLE001 - sent to the parent, which shows it
        return _CellResult(error=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
