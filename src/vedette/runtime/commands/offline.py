"""Change a data folder offline, while no coordinator runs: lock, open, commit and close it.

A folder whose last crawl was killed stays marked so, no matter what is written in between: the next crawl must still be
as cautious as after a crash.
"""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import State, lock_folder, open_state


@contextmanager
def open_for_write(folder: Path, wall_s: float) -> Iterator[State]:
    """Open the state of an offline data folder for writing; commit at the end, or roll back on an exception."""
    with lock_folder(folder):
        state = open_state(folder, socket.gethostname(), wall_s)
        try:
            yield state
        except BaseException:
            if state.db.in_transaction:
                state.db.execute("ROLLBACK")
            if state.clean:
                state.store.set_value("end", "clean")
            state.db.close()
            raise
        state.close(clean=state.clean)
