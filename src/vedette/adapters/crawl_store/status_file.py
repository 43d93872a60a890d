"""Status file: the numbers of a running crawl, written every second by the coordinator for other processes.

A coordinator that is busy, or stopped by a debugger, does not respond. Its last numbers can still be read, and the
file's time shows how old they are. Beside it, the supervisor lists the processes that keep failing.
"""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import convert

from vedette.adapters.files.atomic import replace_text
from vedette.adapters.net.ipc import is_listening

SOCKET = "keeper.sock"
STATUS_FILE = "status.json"
FAILING_FILE = "failing.json"
# Numbers are written every second. Only older ones are shown with their age.
FRESH_S = 5.0


class LiveStatus(NamedTuple):
    """The last numbers of a running coordinator, empty while it starts, and their age."""

    numbers: dict[str, Any]
    age_s: float

    @property
    def is_late(self) -> bool:
        """Whether the coordinator has written nothing for so long that its numbers need their age."""
        return self.age_s >= FRESH_S or not self.numbers


class FailingProcess(NamedTuple):
    """A process of the running tree that keeps failing: its role, how often recently, and how it ended last."""

    role: str
    failures: int
    why: str

    def __str__(self) -> str:
        return f"the {self.role} keeps failing ({self.failures} times recently, last: {self.why})"


def write_failing(folder: Path, failing: Sequence[FailingProcess]) -> None:
    """Replace the list of failing processes of a data folder; without any there is no file."""
    if failing:
        replace_text(folder / FAILING_FILE, json.dumps(failing))
    else:
        (folder / FAILING_FILE).unlink(missing_ok=True)


def read_failing(folder: Path) -> tuple[FailingProcess, ...]:
    """Read which processes of a running tree keep failing; none where the list cannot be read."""
    try:
        return convert(json.loads((folder / FAILING_FILE).read_bytes()), tuple[FailingProcess, ...])
    except (OSError, ValueError):
        return ()


def write_status(folder: Path, numbers: dict[str, object]) -> None:
    """Replace the status file of a data folder."""
    replace_text(folder / STATUS_FILE, json.dumps(numbers))


def read_status(folder: Path) -> LiveStatus:
    """Read the status file of a data folder, whether or not its coordinator still runs; no numbers if it has none."""
    path = folder / STATUS_FILE
    try:
        written_s, numbers = path.stat().st_mtime, json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return LiveStatus({}, 0.0)
    return LiveStatus(numbers if isinstance(numbers, dict) else {}, max(time.time() - written_s, 0.0))


def read_live_status(folder: Path) -> LiveStatus | None:
    """Read the status of a data folder's running coordinator, without waiting for it; None if none runs."""
    return read_status(folder) if is_listening(folder / SOCKET) else None
