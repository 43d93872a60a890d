"""The log files of servers, read from where the last reader stopped.

A line counts when it is whole. What a file ends with may be half a line: it is left until the rest comes, and dropped
when its writer is gone, which is known by its lock. A file that is read and whose writer is gone can be removed.
"""

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vedette.adapters.event_store.slate_log import LOGS

__all__ = ["LogFile", "blank", "log_names", "open_logs"]

LONGEST_LINE = 1 << 20
MOST_FILES = 500


@dataclass(slots=True)
class LogFile:
    """A log file that is open; ``at`` is how much of it was read, ``ended`` that no more will come."""

    path: Path
    descriptor: int
    at: int
    ended: bool

    def read(self, most_bytes: int) -> list[bytes]:
        """The next whole lines, about as many bytes as that but at least one line."""
        data = os.pread(self.descriptor, most_bytes, self.at)
        if len(data) == most_bytes < LONGEST_LINE and b"\n" not in data:
            data = os.pread(self.descriptor, LONGEST_LINE, self.at)
        whole = data.rfind(b"\n") + 1
        if not whole and (self.ended or len(data) >= LONGEST_LINE):
            whole = len(data)  # no line will ever come of it
        self.at += whole
        return data[:whole].split(b"\n")

    @property
    def left(self) -> int:
        """How many bytes there are that were not read."""
        return max(os.fstat(self.descriptor).st_size - self.at, 0)

    def remove_if_done(self) -> None:
        """To be called when what was read is durable."""
        if self.ended and not self.left:
            with suppress(OSError):  # next time
                self.path.unlink()


def log_names(folder: Path) -> list[str]:
    """The log files of a data folder."""
    return sorted(path.name for path in (folder / LOGS).glob("*.jsonl"))


@contextmanager
def open_logs(folder: Path, offsets: Mapping[str, int]) -> Iterator[list[LogFile]]:
    """The log files, each from its offset on; the locks of those whose writers are gone are held until the end."""
    files: list[LogFile] = []
    try:
        for name in log_names(folder)[:MOST_FILES]:
            with suppress(FileNotFoundError):
                path = folder / LOGS / name
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                files.append(LogFile(path, descriptor, offsets.get(name, 0), ended=_can_lock(descriptor)))
        yield files
    finally:
        for file in files:
            os.close(file.descriptor)


def _can_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def blank(path: Path, start: int, end: int) -> None:
    """Overwrite lines that are durable elsewhere with empty ones, while the writer may go on appending."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while start < end:
                start += os.pwrite(descriptor, b"\n" * min(end - start, 1 << 20), start)
        finally:
            os.close(descriptor)
