"""Carries a plan out: cells are spread over processes, each worked out from its description alone.

The parent hands out one cell at a time and writes down what comes back. So a run can be interrupted or killed at any
moment: what was finished is kept, the same plan goes on, and the rows come out as if nothing had happened.
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

from vedette.adapters.subprocesses import end_with_parent, is_orphan, leave_ctrl_c_to_parent
from vedette.errors import UsageError, VedetteError
from vedette.lab.core.experiment import Cell, Measured
from vedette.lab.core.registry import experiment_named
from vedette.lab.core.run_folder import RunFolder
from vedette.lab.worlds.catalog import places_known, remember

__all__ = ["CellFailed", "Progress", "cores", "run_cells"]

Progress = Callable[[int, int, Cell], None]


class CellFailed(VedetteError):
    """A cell could not be worked out; the message says which, and what is kept."""


class _Said(NamedTuple):
    """What a process says of a cell: its rows, or what went wrong and whether the person typed it."""

    rows: Sequence[Measured] = ()
    wrong: str = ""
    is_usage: bool = False
    trace: str = ""


@dataclass(slots=True)
class _Hand:
    """A process that works cells out, and the one that it has."""

    process: BaseProcess
    channel: Connection
    cell: Cell | None = field(default=None)


def cores() -> int:
    """How many cells can be worked out at once."""
    return len(os.sched_getaffinity(0))


def run_cells(folder: RunFolder, total: int, progress: Progress, jobs: int = 0) -> None:
    """Work out what the folder lacks. Ends early by ``KeyboardInterrupt`` or a cell that fails; no process is left."""
    left = folder.undone()
    done = total - len(left)
    with _hands(min(jobs or cores(), len(left))) as hands:
        for cell, said in _worked_out(iter(left), hands):
            if said.wrong:
                raise _failure(cell, said)
            folder.keep(cell, said.rows)
            done += 1
            progress(done, total, cell)


def _worked_out(cells: Iterator[Cell], hands: Sequence[_Hand]) -> Iterator[tuple[Cell, _Said]]:
    """What came of each cell, in the order in which they are finished."""
    busy = [hand for hand in hands if _give(hand, cells)]
    while busy:
        ready = wait([hand.channel for hand in busy])
        for hand in [hand for hand in busy if hand.channel in ready]:
            assert hand.cell is not None, "a busy process has a cell"
            yield hand.cell, _hear(hand)
            if not _give(hand, cells):
                busy.remove(hand)


def _give(hand: _Hand, cells: Iterator[Cell]) -> bool:
    hand.cell = next(cells, None)
    if hand.cell is not None:
        # One that has died is heard of at once, by the end of its channel.
        with suppress(OSError):
            hand.channel.send(hand.cell)
    return hand.cell is not None


def _hear(hand: _Hand) -> _Said:
    try:
        said: _Said = hand.channel.recv()
    except (EOFError, OSError):
        hand.process.join(1.0)
        return _Said(wrong=f"its process ended (exit code {hand.process.exitcode}); perhaps memory was short: --jobs 1")
    return said


def _failure(cell: Cell, said: _Said) -> VedetteError:
    if said.is_usage:
        return UsageError(said.wrong)
    named = f"{cell.experiment} on {cell.world} with {cell.policy}, budget {cell.budget:g}, seed {cell.seed}"
    error = CellFailed(f"{named}: {said.wrong}; what was finished is kept")
    if said.trace:
        error.add_note(said.trace)
    return error


@contextmanager
def _hands(count: int) -> Iterator[list[_Hand]]:
    # Not forked: a process that has threads (and libraries start some) cannot be copied safely.
    context = multiprocessing.get_context("spawn")
    hands: list[_Hand] = []
    try:
        for _ in range(count):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, os.getpid(), places_known()), daemon=True)
            process.start()
            there.close()
            hands.append(_Hand(process, here))
        yield hands
    finally:
        for hand in hands:
            # There is nothing to lose in it: what was finished is on disk.
            hand.process.kill()
        for hand in hands:
            hand.process.join()
            hand.channel.close()


def _work(channel: Connection, parent: int, places: Mapping[str, str]) -> None:
    """The life of a process: cells in, rows out, until nobody is there."""
    leave_ctrl_c_to_parent()
    end_with_parent()
    if is_orphan(parent):
        return
    for typed in places.values():
        remember(typed)
    with suppress(EOFError, OSError):
        while True:
            channel.send(_answer(channel.recv()))


def _answer(cell: Cell) -> _Said:
    try:
        return _Said(experiment_named(cell.experiment).run(cell))
    except UsageError as error:
        return _Said(wrong=str(error), is_usage=True)
    except Exception as error:  # noqa: BLE001 - told to the parent, which says it to the person
        return _Said(wrong=f"{type(error).__name__}: {error}", trace=traceback.format_exc())
