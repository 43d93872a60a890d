"""SQL rows and snapshot file of the URL store, and the fence that checks every write to them.

Rows are appended by increasing id, which SQLite does fastest; only ``lease`` has rows deleted, and it is as small as
the number of leased URLs. The state of a URL is a log (``fate``), not a column: a column would be written all over the
table.

A write is refused if it is based on an outdated state:

- its *epoch* is older than that of a partition's owner: another process owns the hosts by now;
- its *turn* (a number that each write raises by one) is not that of the state: a write was rolled back or failed half
  way, or another process wrote, and the writer's memory does not match the state.
"""

import json
import secrets
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.adapters.files.atomic import replace_file
from vedette.adapters.files.sqlite_file import execute_schemas
from vedette.adapters.url_store.hash_table import UrlTable
from vedette.adapters.url_store.queues import HostQueues
from vedette.errors import StoreCorrupt, StoreError
from vedette.model import PARTITIONS

# The snapshot is optional: a file that is missing, truncated, altered or of another state reads as nothing. It is
# numpy's archive of arrays followed by a checksum; the turn identifies the moment of the state.

_LAYOUT = 1
_SUM_BYTES = 8
_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class UrlSnapshot:
    """A snapshot of the URL store from a file, and the number of writes that the state had seen by then."""

    turn: int
    table: UrlTable
    queues: HostQueues


def write_snapshot(path: Path, secret: int, turn: int, table: UrlTable, queues: HostQueues) -> None:
    """Write a snapshot file of the URL store, atomically."""
    head = np.array([_LAYOUT, turn, secret], np.uint64)
    with replace_file(path) as file:
        np.savez(file, allow_pickle=False, head=head, **table.to_arrays(), **queues.to_arrays())
        file.write(_compute_checksum(file, file.tell()))


def read_snapshot(path: Path, secret: int) -> UrlSnapshot | None:
    """Read a snapshot file of the URL store, if it is whole and of the state with this secret."""
    with suppress(OSError), path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        if size_bytes < _SUM_BYTES or _compute_checksum(file, size_bytes - _SUM_BYTES) != file.read():
            return None
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            layout, turn, of = archive["head"].tolist()
            if (layout, of) != (_LAYOUT, secret):
                return None
            arrays = {name: archive[name] for name in archive.files}
        return UrlSnapshot(turn, UrlTable.from_arrays(secret, arrays), HostQueues.from_arrays(arrays))
    return None


def _compute_checksum(file: IO[bytes], size_bytes: int) -> bytes:
    """Compute the checksum of a URL snapshot's first bytes; the file is left positioned after them."""
    digest = xxhash.xxh3_64()
    file.seek(0)
    while size_bytes and (piece := file.read(min(size_bytes, _PIECE_BYTES))):
        digest.update(piece)
        size_bytes -= len(piece)
    return digest.digest()


_SCHEMA = """
CREATE TABLE IF NOT EXISTS ownership (
  partition_from INTEGER NOT NULL,
  partition_to INTEGER NOT NULL,   -- inclusive
  owner TEXT NOT NULL,
  epoch INTEGER NOT NULL,          -- writes that carry a smaller one are refused
  expires_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS turn (
  turn INTEGER NOT NULL,           -- how many writes there were
  secret BLOB NOT NULL             -- of the fingerprints: what a URL's slot is, no web site may know
) STRICT;
CREATE TABLE IF NOT EXISTS host (
  id INTEGER PRIMARY KEY,          -- from 0, in the order in which hosts were first seen
  partition INTEGER NOT NULL,
  name TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS url (
  id INTEGER PRIMARY KEY,          -- from 1, in the order in which URLs were first seen
  partition INTEGER NOT NULL,
  host INTEGER NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,          -- links from a start URL
  priority INTEGER NOT NULL,       -- its front queue, 0 the best
  found_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS lease (
  url_id INTEGER PRIMARY KEY,      -- one lease for each URL at most
  partition INTEGER NOT NULL,
  host INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  worker INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  until_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS fate (
  id INTEGER PRIMARY KEY,          -- in the order of acknowledgements; the last one of a URL counts
  partition INTEGER NOT NULL,
  url_id INTEGER NOT NULL,
  fate INTEGER NOT NULL
) STRICT;
"""


def create_url_tables(connection: sqlite3.Connection) -> None:
    """Create the missing SQL tables of the URL store, in the caller's transaction if there is one."""
    execute_schemas(connection, _SCHEMA)
    if not connection.execute("SELECT 1 FROM turn").fetchone():
        connection.execute("INSERT INTO turn VALUES (0, ?)", (secrets.token_bytes(8),))


def ids_to_json(ids: Iterable[int]) -> str:
    """Format URL ids for ``json_each``, so that one SQL statement serves a whole batch."""
    return json.dumps([int(id_) for id_ in ids])


class WriteFence:
    """Fence that admits writes to the URL store one at a time, and none from an outdated owner."""

    def __init__(self, connection: sqlite3.Connection, epoch: int) -> None:
        row = connection.execute("SELECT turn, secret FROM turn").fetchone()
        if row is None:
            raise StoreCorrupt("the state has no row in table turn: restore it from a backup")
        self._db, self._epoch = connection, epoch
        self.turn: int = row[0]
        self.secret = int.from_bytes(row[1], "little")
        self._owners: list[tuple[int, int, int]] = []
        self._epochs = _map_epochs(self._owners)

    def begin(self) -> None:
        """Begin a transaction that excludes other writers of the URL store, and check that no write was missed."""
        if not self._db.in_transaction:
            self._db.execute("BEGIN IMMEDIATE")
        turn = self._db.execute("SELECT turn FROM turn").fetchone()[0]
        if turn != self.turn:
            raise StoreError(
                f"the state is at write {turn}, but this process is at write {self.turn}: a write was rolled back "
                "or another process is writing; reopen the state"
            )

    @contextmanager
    def write(self, partitions: npt.NDArray[np.int64]) -> Iterator[None]:
        """Run a fenced write to hosts of these partitions; if it fails half way, refuse all others."""
        self.begin()
        self._check_epoch(partitions)
        self.turn += 1
        yield
        self._db.execute("UPDATE turn SET turn = ?", (self.turn,))

    def _check_epoch(self, partitions: npt.NDArray[np.int64]) -> None:
        owners = self._db.execute("SELECT partition_from, partition_to, epoch FROM ownership").fetchall()
        if owners != self._owners:
            self._owners, self._epochs = owners, _map_epochs(owners)
        newest = int(self._epochs[partitions].max(initial=0))
        if newest > self._epoch:
            raise StoreError(
                f"write from epoch {self._epoch} refused because the owner is at epoch {newest}: "
                "another vedette process has taken over; stop this one"
            )


def _map_epochs(owners: list[tuple[int, int, int]]) -> npt.NDArray[np.int64]:
    """Return the ownership epoch of each partition."""
    epochs = np.zeros(PARTITIONS, np.int64)
    for start, stop, epoch in owners:
        epochs[start : stop + 1] = np.maximum(epochs[start : stop + 1], epoch)
    return epochs
