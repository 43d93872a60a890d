"""Link store of a shard in ``state.db``: an outbox of links for other shards, and the position in each shard's links.

Links are put into the outbox in the transaction that saves their page, and removed after the mailbox has them. A row is
identified by (shard, epoch, sequence), so a later row never has the same key as one that was lost in a power failure.
The owner applies the rows of a shard in this order, and saves its position in the transaction that applies them. So
each link is applied exactly once, even if it is sent again.
"""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from vedette.adapters.exchange.anchor_store import ANCHOR_SCHEMA
from vedette.adapters.exchange.canonical_store import CANONICAL_SCHEMA
from vedette.adapters.files.sqlite_file import execute_schemas
from vedette.engine.coordinator.shard import ForeignLinks
from vedette.engine.coordinator.url_states import LAST_FRONT
from vedette.model import origin_of

EXCHANGE_SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- never used again
  epoch INTEGER NOT NULL,
  target INTEGER NOT NULL,                     -- the shard that owns the hosts
  links BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS inbox_position (
  source INTEGER PRIMARY KEY,
  epoch INTEGER NOT NULL,
  sequence INTEGER NOT NULL                    -- the last row of this shard that was applied
) STRICT;
"""

MAX_NUMBER = 1 << 20  # of depths and redirects

_decode = msgspec.msgpack.Decoder(tuple[ForeignLinks, ...]).decode


Position = tuple[int, int]
"""The (epoch, sequence) up to which the rows of a shard were sent or applied."""


class OutboxRow(NamedTuple):
    """A row of the outbox: links of one transaction for one shard."""

    epoch: int
    sequence: int
    target: int
    links: bytes


def create_exchange_tables(db: sqlite3.Connection) -> None:
    """Create the tables of the link store that are missing."""
    execute_schemas(db, EXCHANGE_SCHEMA, ANCHOR_SCHEMA, CANONICAL_SCHEMA)


def read_outbox(db: sqlite3.Connection, after: tuple[int, int], most: int) -> list[OutboxRow]:
    """Read the next rows of the outbox after an (epoch, sequence), in order."""
    sql = "SELECT epoch, sequence, target, links FROM outbox WHERE (epoch, sequence) > (?, ?) ORDER BY epoch, sequence"
    return [OutboxRow(*row) for row in db.execute(f"{sql} LIMIT ?", (*after, most))]


def copy_exchange(source: Path, target: Path, partitions: range, *, is_successor: bool) -> None:
    """Copy what other shards have sent for some partitions from an unused folder to a new one.

    The successor of a shard also gets its outbox and its positions in the links of other shards.
    """
    with closing(sqlite3.connect(target / "state.db", isolation_level=None, uri=True)) as db:
        create_exchange_tables(db)
        db.execute("ATTACH ? AS source", (f"{(source / 'state.db').resolve().as_uri()}?mode=ro",))
        db.execute("BEGIN IMMEDIATE")
        for table in ("outbox", "inbox_position") if is_successor else ():
            db.execute(f"INSERT INTO main.{table} SELECT * FROM source.{table}")  # noqa: S608 - our own names
        for table in ("foreign_anchor", "canonical_asker"):
            sql = f"INSERT INTO main.{table} SELECT * FROM source.{table} WHERE partition BETWEEN ? AND ?"  # noqa: S608 - our own names
            db.execute(sql, (partitions[0], partitions[-1]))
        db.execute("INSERT INTO main.foreign_canonical SELECT * FROM source.foreign_canonical")
        db.execute("COMMIT")


class LinkStore:
    """Outbox and positions of one shard; rows in the outbox carry its epoch."""

    def __init__(self, db: sqlite3.Connection, epoch: int = 0) -> None:
        self._db, self._epoch = db, epoch

    def put_links(self, links: Mapping[int, Sequence[ForeignLinks]]) -> None:
        """Put links into the outbox, one row per shard."""
        rows = [(self._epoch, target, msgspec.msgpack.encode(groups)) for target, groups in links.items()]
        self._db.executemany("INSERT INTO outbox (epoch, target, links) VALUES (?, ?, ?)", rows)

    def drop_sent(self, last: tuple[int, int]) -> None:
        """Delete the rows of the outbox up to an (epoch, sequence), because the mailbox has them."""
        self._db.execute("DELETE FROM outbox WHERE (epoch, sequence) <= (?, ?)", last)

    def get_positions(self) -> dict[int, Position]:
        """Return the last applied row of each shard."""
        rows = self._db.execute("SELECT source, epoch, sequence FROM inbox_position")
        return {source: (epoch, sequence) for source, epoch, sequence in rows}

    def apply_once(
        self, source: int, rows: Sequence[tuple[int, int, bytes]], apply: Callable[[Sequence[ForeignLinks]], object]
    ) -> int:
        """Apply those rows (epoch, sequence, links) of a shard that were not applied yet.

        Unreadable rows are skipped, because they would never become readable; return their number.
        """
        position = self.get_positions().get(source, (0, 0))
        new = [row for row in rows if row[:2] > position]
        if not new:
            return 0
        read = [links for _, _, packed in new if (links := decode_links(packed)) is not None]
        apply([one for links in read for one in links])
        last = new[-1]
        self._db.execute("INSERT OR REPLACE INTO inbox_position VALUES (?, ?, ?)", (source, last[0], last[1]))
        return len(new) - len(read)


def decode_links(packed: bytes) -> tuple[ForeignLinks, ...] | None:
    """Decode a row of links; None if no shard of this version could have sent it."""
    try:
        links = _decode(packed)
        for one in links:
            named = (one.source, *(one.canonical[:2] if one.canonical else ()))
            for url in named:
                if url is not None:
                    origin_of(url)
    except (msgspec.DecodeError, ValueError):
        return None
    numbers = [number for one in links for number in (one.depth, one.hops)]
    fronts = [one.front for one in links if one.front is not None]
    is_sound = all(0 <= one <= MAX_NUMBER for one in numbers) and all(0 <= one <= LAST_FRONT for one in fronts)
    return links if is_sound else None
