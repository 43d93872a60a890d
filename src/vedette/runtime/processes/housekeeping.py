"""Housekeeping of the coordinator process, a little every second: archive retention and disk space checks.

With too little disk space nothing more is fetched, and a warning is shown; when there is space again, fetching resumes
by itself. The threshold for that is a little higher, to prevent oscillation.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from vedette.adapters.archive.retention import Retention, RetentionPolicy
from vedette.adapters.crawl_store.data_folder import State
from vedette.config import Store, format_size
from vedette.timeutil import DAY_S

RESUME_FACTOR = 1.1
MAX_FILE_BYTES = 1_000_000_000
MIN_FILE_BYTES = 1 << 20


def archive_file_limit(store: Store, workers: int) -> int:
    """Return how large an archive file may grow: files being written must be a small part of the size limit.

    >>> archive_file_limit(Store(max_bytes=160_000_000), workers=1)
    10000000
    """
    if not store.max_bytes:
        return MAX_FILE_BYTES
    return min(max(store.max_bytes // (8 * (workers + 1)), MIN_FILE_BYTES), MAX_FILE_BYTES)


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass(slots=True)
class Housekeeper:
    """The coordinator's housekeeping over an open state: retention, and pausing on low disk space."""

    state: State
    store: Store
    software: str
    workers: int = 1
    free_bytes: Callable[[Path], int] = _free_bytes
    _retention: Retention = field(init=False)
    _is_disk_low: bool = False
    _retention_error: str = ""

    def __post_init__(self) -> None:
        keeping = RetentionPolicy(self.store.keep_days * DAY_S, self.store.max_bytes)
        self._retention = Retention(self.state, keeping, self.software, archive_file_limit(self.store, self.workers))

    def step(self, now_s: float, wall_s: float) -> None:
        """Do a bit of housekeeping; call it once a second, between two commits."""
        self._check_disk()
        try:
            self._retention.step(now_s, wall_s, roomy=not self._is_disk_low)
            self._retention_error = ""
        except OSError as error:
            self._retention_error = f"the archive could not be cleaned up: {error.strerror or error}"
            self._retention.abandon_file()

    def close(self) -> None:
        """Close the files of the housekeeping."""
        self._retention.close()

    def get_pause_reason(self) -> str:
        """Return why fetching is paused (low disk space); empty if it is not."""
        if not self._is_disk_low:
            return ""
        return (
            f"less than {format_size(self.store.min_free_bytes)} free on the disk of {self.state.folder} "
            "(store.min_free): fetching resumes when there is enough space"
        )

    def get_warning(self) -> str:
        """Return the housekeeping's warning for the operator, such as low disk space."""
        return self.get_pause_reason() or self._retention_error

    def _check_disk(self) -> None:
        free = self.free_bytes(self.state.folder)
        least = self.store.min_free_bytes * (RESUME_FACTOR if self._is_disk_low else 1.0)
        self._is_disk_low = free < least
