"""Replicator process of a shard: keep its copy in object storage up to date, and tell the cluster how new it is.

What the copy has, the mailbox need not keep. A shard whose copy gets too old stops sending requests, by the lease that
all its processes share. While the storage or PostgreSQL is away, the replicator tries again.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vedette.adapters.durability.shard_copy import ShardCopy
from vedette.adapters.exchange.mailbox import drop_copied_links
from vedette.adapters.registry.database import LeaseLost, explain_database, fence, open_connection
from vedette.adapters.registry.registry import save_copy
from vedette.errors import ClusterError
from vedette.runtime.cluster.lease import MAX_UNCOPIED_S, ShardSettings, read_clock_s
from vedette.runtime.processes.loop import StepLoop, print_error
from vedette.runtime.processes.settings import RuntimeSettings

if TYPE_CHECKING:
    import psycopg

COPY_EVERY_S = 1.0
RETRY_EVERY_S = 5.0
GARBAGE_EVERY_S = 600.0
# Deleted in one transaction, which PostgreSQL ends when it is idle for too long.
GARBAGE_KEYS = 20


class Replicator:
    """The replicator of one shard."""

    def __init__(self, settings: RuntimeSettings, shard: ShardSettings) -> None:
        self._folder, self._shard = settings.folder, shard
        self._copy: ShardCopy | None = None
        self._connection: psycopg.Connection[Any] | None = None
        self._trouble = ""
        self._garbage_s = 0.0

    def step(self) -> None:
        """Copy what is new; an error is reported once."""
        try:
            self.copy_once()
        except LeaseLost:
            return  # the node is about to stop this tree
        except ClusterError as error:
            self.close()
            if self._trouble != str(error):
                bound = f"the shard pauses when its copy is {MAX_UNCOPIED_S / 60:.0f} minutes old"
                print_error(f"shard {self._shard.number}: {error}; {bound}")
            self._trouble = str(error)
            time.sleep(RETRY_EVERY_S)  # nothing signals that the storage is back
            return
        if self._trouble:
            print_error(f"shard {self._shard.number}: the storage responds again")
        self._trouble = ""

    def copy_once(self) -> None:
        """Copy what is new, and save that it was."""
        shard, began_s = self._shard, read_clock_s()
        if self._copy is None:
            self._copy = ShardCopy(shard.storage, self._folder, shard.number, shard.epoch, shard.copy)
        positions = self._copy.step()
        with self._transact() as connection:
            is_first = save_copy(connection, shard.number, shard.epoch, read_clock_s() - began_s)
            drop_copied_links(connection, shard.number, positions)
        shard.lease.note_copied(began_s)
        if is_first or read_clock_s() >= self._garbage_s:
            self._garbage_s = read_clock_s() + GARBAGE_EVERY_S
            self._collect_garbage(self._copy)

    def close(self) -> None:
        """Stop copying."""
        if self._copy is not None:
            self._copy.close()
        self._copy = None
        if self._connection is not None:
            with suppress(Exception):
                self._connection.close()
        self._connection = None

    @contextmanager
    def _transact(self) -> "Iterator[psycopg.Connection[Any]]":
        """Begin a fenced transaction."""
        with explain_database(self._shard.dsn):
            if self._connection is None:
                self._connection = open_connection(self._shard.dsn)
            with self._connection.transaction():
                fence(self._connection, self._shard.number, self._shard.epoch)
                yield self._connection

    def _collect_garbage(self, copy: ShardCopy) -> None:
        """Delete what no copy needs, while the fence keeps other nodes from claiming the shard and reading it."""
        keys = copy.list_garbage()
        while keys:
            with self._transact():
                copy.delete(keys[:GARBAGE_KEYS])
            keys = keys[GARBAGE_KEYS:]


def run_replicator(settings: RuntimeSettings) -> int:
    """Run the replicator process until SIGTERM."""
    assert settings.shard is not None, "only a shard is copied"
    loop = StepLoop(COPY_EVERY_S)
    loop.wait_for_folder(settings.folder)
    with closing(Replicator(settings, settings.shard)) as replicator:
        loop.run(replicator.step)
    return 0


def finish_copy(settings: RuntimeSettings) -> None:
    """Copy the last changes of a shard that has stopped, so that its next owner continues where it ended."""
    assert settings.shard is not None, "only a shard is copied"
    with closing(Replicator(settings, settings.shard)) as replicator:
        replicator.copy_once()
