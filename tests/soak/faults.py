"""Faults for a running process tree that do not need root: kills, stops, limits, clock steps, DNS outages.

A full disk is a limit on file sizes (RLIMIT_FSIZE, set from outside with ``prlimit``): every write beyond a few
kilobytes fails as on a full disk, in every process of the tree, until the limit is removed.
"""

import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.tree_runs import children

T = TypeVar("T")
ROLES = ("keeper", "w0", "w1", "indexer", "herald", "record", "push", "server")
MEMORY_BYTES = 64 << 20


@dataclass(slots=True)
class Tree:
    """The process tree of the soak, started again whenever it is killed."""

    start: Callable[[float], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes]
    shift_s: float = 0.0
    ended: list[int] = field(default_factory=list)

    def roles(self) -> dict[str, int]:
        """The processes by role, and the supervisor itself."""
        found = {name.removeprefix("vedette "): pid for name, pid in children(self.process.pid).items()}
        return {**found, "supervisor": self.process.pid}

    def kill(self, role: str) -> None:
        """Kill one process with SIGKILL."""
        with suppress(KeyError, ProcessLookupError):
            os.kill(self.roles()[role], signal.SIGKILL)

    def kill_all(self) -> None:
        """Kill the whole tree at once, as a power cut would, and start it again."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.process = self.start(self.shift_s)

    def restart(self, step_s: float) -> None:
        """Stop the tree cleanly, and start it with a clock that was set by this much."""
        self.ended.append(self.stop())
        self.shift_s += step_s
        self.process = self.start(self.shift_s)

    def stop(self) -> int:
        """Stop the tree cleanly; return its exit code."""
        self.process.terminate()
        try:
            return self.process.wait(120)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            return self.process.wait()

    def pause(self, role: str, seconds: float) -> None:
        """Stop a process for a while, as a debugger or a busy machine does."""
        pid = self.roles().get(role)
        if pid is None:
            return
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def limit(self, kind: int, most: int, *roles: str) -> Iterator[None]:
        """Lower a resource limit of some processes, or of all, for a while."""
        pids = [pid for role, pid in self.roles().items() if not roles or role in roles]
        for pid in pids:
            _set_limit(pid, kind, most)
        try:
            yield
        finally:
            # A process that died meanwhile was started again by a supervisor with the same limit.
            for pid in [self.process.pid, *self.roles().values(), *pids]:
                _set_limit(pid, kind, None)


def _set_limit(pid: int, kind: int, most: int | None) -> None:
    with suppress(ProcessLookupError, PermissionError):
        _, hard = resource.prlimit(pid, kind)
        resource.prlimit(pid, kind, (hard if most is None else most, hard))


@contextmanager
def outage(flag: Path) -> Iterator[None]:
    """Let the resolver not answer for a while."""
    flag.touch()
    try:
        yield
    finally:
        flag.unlink(missing_ok=True)
