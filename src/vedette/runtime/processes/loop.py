"""Process loop: run a process in steps, at low priority, until SIGTERM, and report each error once."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from vedette.adapters.files.sqlite_file import SqliteFile
from vedette.errors import StoreCorrupt, StoreError

NICENESS = 5


class StepLoop:
    """Run steps until SIGTERM at low priority; ``every_s`` is the pause if nothing is new."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._is_stopping = False
        signal.signal(signal.SIGTERM, self._stop)
        os.nice(NICENESS)

    def wait_for_folder(self, folder: Path) -> None:
        """Wait in a process's loop until the coordinator has created the data folder."""
        while not (folder / "format").exists() and not self._is_stopping:
            time.sleep(self._every_s)

    def run(self, step: Callable[[], object]) -> None:
        """Run steps in a loop; one that returns true is followed by the next at once."""
        while not self._is_stopping:
            if not step():
                time.sleep(self._every_s)

    def _stop(self, _number: int, _frame: object) -> None:
        self._is_stopping = True


class StoreGuard:
    """Guard work on a store that may be unreadable for a while: the process continues, errors are printed once."""

    def __init__(self, folder: Path, file: SqliteFile, *, trouble: str, recovered: str) -> None:
        self._folder, self._file = folder, file
        self._trouble_words, self._recovered_words = trouble, recovered
        self._trouble = ""

    def run(self, work: Callable[[], bool], close: Callable[[], None]) -> bool:
        """Run guarded work on a store and return its result; a corrupt store is closed and moved aside."""
        try:
            more = work()
        except StoreCorrupt as error:
            close()
            print_error(f"{error}; moved to {self._file.move_aside(self._folder).name}")
            return False
        except (StoreError, OSError) as error:
            self._report(str(error))
            return False
        self._report("")
        return more

    def _report(self, trouble: str) -> None:
        if trouble and trouble != self._trouble:
            print_error(f"{self._trouble_words}: {trouble}")
        elif self._trouble and not trouble:
            print_error(self._recovered_words)
        self._trouble = trouble


def print_error(words: str) -> None:
    """Print an error of a process to the standard error stream."""
    sys.stderr.write(f"vedette: {words}\n")
    sys.stderr.flush()
