"""A job in its own process: a node must renew its leases while a shard is restored or copied.

Object storage is only used in such processes and in replicators: its library starts threads, which do not survive a
fork.
"""

import os
import signal
import traceback
from collections.abc import Callable

from vedette.adapters.subprocesses import die_with_parent, ignore_sigint
from vedette.errors import VedetteError

MAX_ERROR_BYTES = 4096


class ForkedJob:
    """A function that runs in a forked process."""

    def __init__(self, work: Callable[[], object]) -> None:
        self._result, writer = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run(work, writer)
        os.close(writer)

    def poll(self) -> str | None:
        """Return None while the job is running, then its error in one line, or an empty string if it succeeded."""
        return self._collect(os.WNOHANG)

    def wait(self) -> str:
        """Wait for the job; return its error in one line, or an empty string if it succeeded."""
        return self._collect(0) or ""

    def kill(self) -> None:
        """Kill the job if it is still running."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            self.wait()

    def _collect(self, flags: int) -> str | None:
        assert self._pid, "a job is collected once"
        pid, status = os.waitpid(self._pid, flags)
        if not pid:
            return None
        self._pid = 0
        with os.fdopen(self._result, "rb") as pipe:
            error = pipe.read(MAX_ERROR_BYTES).decode("utf-8", "replace")
        return error or ("" if status == 0 else f"its process ended with status {os.waitstatus_to_exitcode(status)}")


def run_apart(work: Callable[[], object], kind: type[VedetteError]) -> None:
    """Run a function in its own process, and raise its error in this one."""
    if error := ForkedJob(work).wait():
        raise kind(error)


def _run(work: Callable[[], object], writer: int) -> None:
    """Run a job in its forked process; never returns."""
    code = 1
    try:
        die_with_parent()
        ignore_sigint()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        work()
        code = 0
    except VedetteError as error:
        os.write(writer, str(error).encode()[:MAX_ERROR_BYTES])
    except BaseException as error:  # noqa: BLE001 - the last frame of the process: every exception is reported
        traceback.print_exc()
        os.write(writer, f"{type(error).__name__}: {error}".encode()[:MAX_ERROR_BYTES])
    finally:
        os._exit(code)
