"""Work that is shared out over the processors, by processes that end with the one that started them."""

import multiprocessing
import os
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager

from vedette.adapters.subprocesses import die_with_parent, ignore_sigint, is_orphan

MAX_PROCESSES = 8


def worker_count() -> int:
    """How many processes are worth while; a process of a pool may not have children of its own."""
    return 1 if multiprocessing.current_process().daemon else min(len(os.sched_getaffinity(0)), MAX_PROCESSES)


@contextmanager
def open_process_pool(processes: int) -> Generator[ProcessPoolExecutor]:
    """So many processes; what they have not begun when this is left is not begun any more."""
    # Not forked: a copy of a process with threads may wait for ever for a lock that one of them held.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_init_worker, initargs=(os.getpid(),))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _init_worker(parent: int) -> None:
    ignore_sigint()
    die_with_parent()
    if is_orphan(parent):
        os._exit(1)
