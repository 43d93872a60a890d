"""Background jobs: run work beside the indexer in a low-priority child process."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC

from vedette.adapters.subprocesses import die_with_parent, is_orphan
from vedette.errors import StoreError

NICENESS = 15
# The next run starts after this many times the CPU time of the last one, and a minimum pause. Not wall time: on a busy
# machine a run takes long, and its result would be delayed twice.
REST_FACTOR = 20.0
MIN_REST_S = 5.0
PARENT_ENV = "VEDETTE_PARENT"


class BackgroundJob:
    """A module that is run in a background process occasionally, one at a time; restarted after a crash."""

    def __init__(self, module: str, sparing_times: float = REST_FACTOR) -> None:
        self._module, self._rest_factor = module, sparing_times
        self._process: subprocess.Popen[bytes] | None = None
        self._next_s = 0.0
        self.started_s = 0.0

    def is_ready(self, now_s: float) -> bool:
        """Check whether the background job may be started: it does not run, and has paused long enough."""
        if self._process is not None:
            pid, status, used = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                self._process = None
                self._next_s = now_s + max(self._rest_factor * (used.ru_utime + used.ru_stime), MIN_REST_S)
        return self._process is None and now_s >= self._next_s

    def start(self, now_s: float, *arguments: str) -> None:
        """Start the background job's process with these arguments."""
        self.started_s = now_s
        command = [sys.executable, "-m", self._module, *arguments]
        environment = {**os.environ, PARENT_ENV: str(os.getpid())}
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)  # noqa: S603 - our own module

    def close(self) -> None:
        """End the background job's process; it holds no state."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def lower_priority() -> None:
    """Lower the priority of a background process and make it exit with its parent; call this first.

    A parent that was killed while its child was still starting is gone already.
    """
    die_with_parent()
    parent = os.environ.get(PARENT_ENV)
    if parent is not None and is_orphan(int(parent)):
        sys.exit(0)
    os.nice(NICENESS)


@contextmanager
def run_in_background() -> Iterator[None]:
    """Do a background job's work at low priority.

    It ends quietly if another generation replaced its own meanwhile, or if the disk is full: the indexer says so, and
    the job runs again later.
    """
    lower_priority()
    try:
        yield
    except (StoreError, FileNotFoundError):
        pass
    except Exception as error:
        if not is_disk_full(error):
            raise


def is_disk_full(error: BaseException | None) -> bool:
    """Check whether an error, or one that it followed, says that the disk is full: then nothing is damaged."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in {ENOSPC, EDQUOT}:
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            return True
        error = error.__context__
    return False
