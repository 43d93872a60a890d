"""Work that is shared out over the processors, by processes that end with the one that started them."""

import multiprocessing
import os
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from vedette.adapters.subprocesses import end_with_parent, is_orphan, leave_ctrl_c_to_parent

__all__ = ["pool_of", "processors"]

MOST_PROCESSES = 8


def processors() -> int:
    """How many processes are worth while; a process of a pool may not have children of its own."""
    return 1 if multiprocessing.current_process().daemon else min(len(os.sched_getaffinity(0)), MOST_PROCESSES)


@contextmanager
def pool_of(processes: int) -> Generator[ProcessPoolExecutor]:
    """So many processes; what they have not begun when this is left is not begun any more."""
    # Not forked: a copy of a process with threads may wait for ever for a lock that one of them held.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_attend, initargs=(os.getpid(),))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _attend(parent: int) -> None:
    leave_ctrl_c_to_parent()
    end_with_parent()
    if is_orphan(parent):
        os._exit(1)
