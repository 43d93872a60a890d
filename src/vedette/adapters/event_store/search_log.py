"""Search log: one append-only file of events per server process, read on from where the last reader stopped.

Only complete lines count. A file may end with half a line: it is left until the rest arrives, and dropped when its
writer is gone, which its lock shows. A file that was read and whose writer is gone can be removed.
"""

import errno
import fcntl
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from threading import Lock

from vedette.errors import StoreError
from vedette.learn.events import LoggedEvent, encode_event

# A line is handed to the kernel before ``append`` returns, so even a sudden end of the process loses no acknowledged
# line. While the writer lives it holds a lock on its file: a reader that gets the lock knows that no more lines will
# come. log/server-1800000000000000000.jsonl   the lines of one process, from one start log/salt-2027-01-15
# the salt of visitor hashes, that day only

LOG_DIR = "log"
MAX_BYTES = 16 << 20
SALT_BYTES = 32
_SALT = "salt-"
_PRIVATE = 0o600
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class EventLog:
    """The search log of one server process, in the ``log`` folder of its data folder."""

    def __init__(self, folder: Path, name: str, largest_bytes: int = MAX_BYTES) -> None:
        self._folder = folder / LOG_DIR
        self._name = name
        self._largest_bytes = largest_bytes
        self._file: int | None = None
        self._size = 0
        self._turn = Lock()  # searches may be answered by several threads

    def append(self, record: LoggedEvent) -> None:
        """Append an event to the search log; raise ``StoreError`` if it cannot be logged."""
        line = encode_event(record)
        try:
            with self._turn:
                self._write(line)
        except OSError as error:
            why = error.strerror or str(error)
            raise StoreError(f"{self._folder}: {why}. Free up disk space or check permissions.") from error

    def close(self) -> None:
        """Close the search log of this process; it appends no more."""
        with self._turn:
            self._close_file()

    def _write(self, line: bytes) -> None:
        file = self._open_file()
        try:
            written = os.write(file, line)
        except OSError:
            self._truncate(file)
            raise
        if written < len(line):
            self._truncate(file)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._size += written

    def _truncate(self, file: int) -> None:
        """Truncate a search log after a failed write, so that half a line does not prefix the next one."""
        try:
            os.ftruncate(file, self._size)
        except OSError:
            self._close_file()  # a reader drops its last half line

    def _open_file(self) -> int:
        """Return the search log file to append to: a new one if this one is large or was removed."""
        file = self._file
        if file is not None and (self._size >= self._largest_bytes or not os.fstat(file).st_nlink):
            self._close_file()
            file = None
        if file is None:
            file = self._file = self._create_file()
        return file

    def _create_file(self) -> int:
        """Create a search log file that is named only once it is locked, so that readers see it has a writer."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        start = self._folder / f"{self._name}-{time.time_ns()}"
        draft = start.with_suffix(".new")
        file = os.open(draft, _NEW | os.O_APPEND, _PRIVATE)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            draft.rename(start.with_suffix(".jsonl"))
        except OSError:
            os.close(file)
            raise
        self._size = 0
        return file

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file = None


def get_day_salt(folder: Path, day: str) -> bytes:
    """Return the salt of visitor hashes of a day (``2027-01-15``), shared by all servers of a data folder.

    The first server creates it. Salts of other days are removed, so that older hashes identify no one.
    """
    logs = folder / LOG_DIR
    try:
        logs.mkdir(mode=0o700, exist_ok=True)
        salt = _read_salt(logs, day) or _make_salt(logs, day)
        delete_old_salts(folder, day)
    except OSError as error:
        why = error.strerror or str(error)
        raise StoreError(f"{logs}: {why}. Free up disk space or check permissions.") from error
    return salt


def delete_old_salts(folder: Path, day: str) -> None:
    """Delete the salts of visitor hashes of all days but this one and the next, which a server may use already."""
    prefixes = (_SALT + day, _SALT + str(date.fromisoformat(day) + timedelta(1)))
    for path in (folder / LOG_DIR).glob(f"{_SALT}*"):
        if not path.name.startswith(prefixes):
            path.unlink(missing_ok=True)


def _read_salt(logs: Path, day: str) -> bytes | None:
    with suppress(FileNotFoundError):
        salt = (logs / (_SALT + day)).read_bytes()
        if len(salt) == SALT_BYTES:
            return salt
        (logs / (_SALT + day)).unlink(missing_ok=True)  # a damaged disk: it cannot have been used
    return None


def _make_salt(logs: Path, day: str) -> bytes:
    """Create the salt of visitor hashes of a day.

    It is a link to a complete file: if several are created at once, one gets the name.
    """
    draft = logs / f"{_SALT}{day}-{secrets.token_hex(8)}.new"
    file = os.open(draft, _NEW, _PRIVATE)
    try:
        os.write(file, secrets.token_bytes(SALT_BYTES))
        with suppress(FileExistsError):
            (logs / (_SALT + day)).hardlink_to(draft)
    finally:
        os.close(file)
        draft.unlink()
    salt = _read_salt(logs, day)
    if salt is None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return salt


MAX_LINE_BYTES = 1 << 20
MAX_FILES = 500


@dataclass(slots=True)
class LogFile:
    """An open search log file; ``at`` is how much of it was read, ``ended`` that no more will come."""

    path: Path
    descriptor: int
    at: int
    ended: bool

    def read_lines(self, most_bytes: int) -> list[bytes]:
        """Read the next whole lines of a search log file, about ``most_bytes`` but at least one line."""
        data = os.pread(self.descriptor, most_bytes, self.at)
        if len(data) == most_bytes < MAX_LINE_BYTES and b"\n" not in data:
            data = os.pread(self.descriptor, MAX_LINE_BYTES, self.at)
        whole = data.rfind(b"\n") + 1
        if not whole and (self.ended or len(data) >= MAX_LINE_BYTES):
            whole = len(data)  # it will never become a line
        self.at += whole
        return data[:whole].split(b"\n")

    @property
    def unread_bytes(self) -> int:
        """Number of bytes of a search log file that were not read yet."""
        return max(os.fstat(self.descriptor).st_size - self.at, 0)

    def remove_if_done(self) -> None:
        """Remove a search log file that was read and has no writer; call it when its data is durable."""
        if self.ended and not self.unread_bytes:
            with suppress(OSError):  # next time
                self.path.unlink()


def list_logs(folder: Path) -> list[str]:
    """List the search log files of a data folder."""
    return sorted(path.name for path in (folder / LOG_DIR).glob("*.jsonl"))


@contextmanager
def open_logs(folder: Path, offsets: Mapping[str, int]) -> Iterator[list[LogFile]]:
    """Open the search log files at their offsets; hold the locks of files without a writer until the end."""
    files: list[LogFile] = []
    try:
        for name in list_logs(folder)[:MAX_FILES]:
            with suppress(FileNotFoundError):
                path = folder / LOG_DIR / name
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


def blank_lines(path: Path, start: int, end: int) -> None:
    """Overwrite lines of a search log that are durable elsewhere with blanks, while the writer may append."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            while start < end:
                start += os.pwrite(descriptor, b"\n" * min(end - start, 1 << 20), start)
        finally:
            os.close(descriptor)
