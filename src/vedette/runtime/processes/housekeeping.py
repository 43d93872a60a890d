"""What the keeper does on the side, a little every second: retention, and an eye on the disk.

With too little room on the disk nothing more is fetched, and it is said; when there is room again, things go on by
themselves. The mark at which they do lies a little higher, so that it does not go back and forth.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vedette.adapters.archive.retention import DAY_S, Keeping, Retention
from vedette.adapters.crawl_store.data_folder import State
from vedette.config import Store, format_size

__all__ = ["Chores", "rotate_bytes"]

GO_ON_ABOVE = 1.1
LARGEST_FILE_BYTES = 1_000_000_000
SMALLEST_FILE_BYTES = 1 << 20


def rotate_bytes(store: Store, workers: int) -> int:
    """How large an archive file may grow: with a limit, the files that are being written must be a small part of it.

    >>> rotate_bytes(Store(max_bytes=160_000_000), workers=1)
    10000000
    """
    if not store.max_bytes:
        return LARGEST_FILE_BYTES
    return min(max(store.max_bytes // (8 * (workers + 1)), SMALLEST_FILE_BYTES), LARGEST_FILE_BYTES)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(slots=True)
class Chores:
    """The keeper's housekeeping over an open state."""

    state: State
    store: Store
    software: str
    workers: int = 1
    free_bytes: Callable[[Path], int] = _free_bytes
    _retention: Retention = field(init=False)
    _short_of_room: bool = False
    _trouble: str = ""

    def __post_init__(self) -> None:
        keeping = Keeping(self.store.keep_days * DAY_S, self.store.max_bytes)
        self._retention = Retention(self.state, keeping, self.software, rotate_bytes(self.store, self.workers))

    def step(self, now_s: float, wall_s: float) -> None:
        """To be called once a second, between two commits."""
        self._look_at_disk()
        try:
            self._retention.step(now_s, wall_s, roomy=not self._short_of_room)
            self._trouble = ""
        except OSError as error:
            self._trouble = f"the archive could not be tidied: {error.strerror or error}"
            self._retention.give_in()

    def close(self) -> None:
        """Let go of files."""
        self._retention.close()

    def paused(self) -> str:
        """Why nothing is to be fetched now; empty where there is no reason."""
        if not self._short_of_room:
            return ""
        return (
            f"less than {format_size(self.store.min_free_bytes)} free on the disk of {self.state.folder} "
            "(store.min_free): fetching goes on when there is room"
        )

    def trouble(self) -> str:
        """What the operator should know."""
        return self.paused() or self._trouble

    def _look_at_disk(self) -> None:
        free = self.free_bytes(self.state.folder)
        least = self.store.min_free_bytes * (GO_ON_ABOVE if self._short_of_room else 1.0)
        self._short_of_room = free < least
