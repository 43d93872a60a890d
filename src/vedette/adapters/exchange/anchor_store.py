"""Anchor store of a shard in ``state.db``: the anchor texts of links that other shards have sent.

The coordinator adds them in the transaction that admits the links, so each one counts once. Each change gets a higher
number. The indexer reads changes by number, and counts the texts like links from the shard's own pages.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.model import fingerprint, origin_of, partition_of

ANCHOR_SCHEMA = """
CREATE TABLE IF NOT EXISTS foreign_anchor (
  target INTEGER NOT NULL,         -- fingerprint of a URL of this shard
  text TEXT NOT NULL,
  times INTEGER NOT NULL,          -- how many pages of other shards call it that
  partition INTEGER NOT NULL,
  number INTEGER NOT NULL,         -- raised by each change
  PRIMARY KEY (target, text)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS foreign_anchor_number ON foreign_anchor (number);
"""
MAX_TEXT_LENGTH = 120

_ADD = """
INSERT INTO foreign_anchor VALUES (?, ?, 1, ?, ?)
ON CONFLICT DO UPDATE SET times = times + 1, number = excluded.number WHERE NOT ?
"""


class ForeignAnchor(NamedTuple):
    """How many pages of other shards link to a URL, given by its fingerprint, with this text."""

    number: int
    target: int
    text: str
    times: int


class AnchorStore:
    """The anchor texts that other shards have sent."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def add(self, links: Iterable[tuple[str, str, bool]]) -> None:
        """Add links in the open transaction: URL, text, and whether the page was counted before."""
        (last,) = self._db.execute("SELECT coalesce(max(number), 0) FROM foreign_anchor").fetchone()
        rows = [
            (fingerprint(url), text[:MAX_TEXT_LENGTH], partition_of(origin_of(url).host), last + place, again)
            for place, (url, text, again) in enumerate(links, 1)
        ]
        self._db.executemany(_ADD, rows)


def read_anchors_after(folder: Path, number: int, most: int) -> list[ForeignAnchor]:
    """Read the next changes after a number, in order; a folder without anchors has none."""
    sql = "SELECT number, target, text, times FROM foreign_anchor WHERE number > ? ORDER BY number LIMIT ?"
    with read_state(folder) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'foreign_anchor'").fetchone():
            return []
        return [ForeignAnchor(*row) for row in db.execute(sql, (number, most))]
