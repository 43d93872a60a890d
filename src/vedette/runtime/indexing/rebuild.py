"""Rebuild job: build a new index generation when half of the old one is no longer used.

python -m vedette.runtime.indexing.rebuild FOLDER CLOCK
"""

import sys
from pathlib import Path

from vedette.adapters.clock import Clock, parse_clock
from vedette.adapters.index_store.page_table import PageTable
from vedette.runtime.indexing.indexer import rebuild
from vedette.runtime.processes.background import BackgroundJob, lower_priority

UNUSED_SHARE = 0.5
MIN_BYTES = 256 << 20
CHECK_EVERY_S = 60.0


class RebuildJob:
    """When to build anew, and the process that does. The indexer turns to what it built, as after ``reindex``."""

    def __init__(self, folder: Path, clock: Clock, least_bytes: int = MIN_BYTES) -> None:
        self._job = BackgroundJob("vedette.runtime.indexing.rebuild")
        self._folder = folder
        self._clock = clock
        self._least_bytes = least_bytes
        self._next_check_s = 0.0

    def step(self, table: PageTable, now_s: float) -> None:
        """Begin where it is time."""
        if now_s < self._next_check_s or not self._job.is_ready(now_s):
            return
        self._next_check_s = now_s + CHECK_EVERY_S
        text = table.folder / "text"
        if text.exists() and text.stat().st_size >= self._least_bytes and table.unused_share() > UNUSED_SHARE:
            self._job.start(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """What it was building is thrown away."""
        self._job.close()


if __name__ == "__main__":
    lower_priority()
    rebuild(Path(sys.argv[1]), parse_clock(sys.argv[2]), lambda _done, _pages: None)
