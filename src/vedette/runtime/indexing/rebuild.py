"""A new generation of the index, built by itself when half of the old one is what nobody needs any more.

python -m vedette.runtime.indexing.rebuild FOLDER CLOCK
"""

import sys
from pathlib import Path

from vedette.adapters.clock import Clock, read_clock
from vedette.adapters.index_store.page_table import PageTable
from vedette.runtime.indexing.indexer import rebuild
from vedette.runtime.processes.background import Aside, give_way

__all__ = ["Renewal"]

UNUSED_SHARE = 0.5
LEAST_BYTES = 256 << 20
LOOK_EVERY_S = 60.0


class Renewal:
    """When to build anew, and the process that does. The indexer turns to what it built, as after ``reindex``."""

    def __init__(self, folder: Path, clock: Clock, least_bytes: int = LEAST_BYTES) -> None:
        self._aside = Aside("vedette.runtime.indexing.rebuild")
        self._folder = folder
        self._clock = clock
        self._least_bytes = least_bytes
        self._look_s = 0.0

    def step(self, table: PageTable, now_s: float) -> None:
        """Begin where it is time."""
        if now_s < self._look_s or not self._aside.is_free(now_s):
            return
        self._look_s = now_s + LOOK_EVERY_S
        text = table.folder / "text"
        if text.exists() and text.stat().st_size >= self._least_bytes and table.unused_share() > UNUSED_SHARE:
            self._aside.begin(now_s, str(self._folder), str(self._clock))

    def close(self) -> None:
        """What it was building is thrown away."""
        self._aside.close()


if __name__ == "__main__":
    give_way()
    rebuild(Path(sys.argv[1]), read_clock(sys.argv[2]), lambda _done, _pages: None)
