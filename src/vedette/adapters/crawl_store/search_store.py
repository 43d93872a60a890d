"""Store of the index queue, user keys and search rules; a part of ``CrawlStore``."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SEARCH_SCHEMA = """
CREATE TABLE IF NOT EXISTS news (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  page INTEGER NOT NULL,           -- which the index should look at again
  text BLOB                        -- what it says, where that was just read
) STRICT;
CREATE TABLE IF NOT EXISTS reader_key (
  name TEXT PRIMARY KEY,
  digest TEXT NOT NULL,            -- of the secret, which is kept nowhere
  settings TEXT NOT NULL,
  created_s REAL NOT NULL,
  revoked_s REAL                   -- since when it opens nothing
) STRICT;
CREATE TABLE IF NOT EXISTS search_rule (
  kind TEXT NOT NULL,              -- synonym, pin, hide
  query TEXT NOT NULL,             -- in its words
  value TEXT NOT NULL,             -- another word, or a URL
  added_s REAL NOT NULL,
  PRIMARY KEY (kind, query, value)
) STRICT;
"""


class UserKeyRow(NamedTuple):
    """A stored user key: the digest of its secret, and its permissions, as ``web.auth`` writes them."""

    name: str
    digest: str
    settings: dict[str, object]
    created_s: float
    revoked_s: float | None = None


class RuleRow(NamedTuple):
    """A stored search rule of the operator for one query: a synonym, or a URL to pin or hide."""

    kind: str
    query: str
    value: str
    added_s: float


class SearchStore:
    """Store of the index queue, user keys and search rules, over a connection to ``state.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def enqueue_pages(self, news: Iterable[tuple[int, bytes | None]]) -> None:
        """Add pages to the index queue, each with its text if that was just parsed."""
        self._db.executemany("INSERT INTO news (page, text) VALUES (?, ?)", news)

    def enqueue_page_ids(self, ids: Sequence[int]) -> None:
        """Add pages to the index queue when something other than their text changed."""
        self.enqueue_pages((id_, None) for id_ in ids)

    def delete_indexed(self, seq: int) -> None:
        """Delete the index queue up to a sequence number, which is durable in the index."""
        self._db.execute("DELETE FROM news WHERE seq <= ?", (seq,))

    def newest_seq(self) -> int:
        """Return the highest sequence number that the index queue ever had."""
        row = self._db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'news'").fetchone()
        return int(row[0]) if row else 0

    def list_user_keys(self) -> list[UserKeyRow]:
        """List all stored user keys, oldest first, including revoked ones."""
        rows = self._db.execute("SELECT name, digest, settings, created_s, revoked_s FROM reader_key ORDER BY rowid")
        return [UserKeyRow(name, digest, json.loads(settings), *times) for name, digest, settings, *times in rows]

    def save_user_key(self, key: UserKeyRow) -> None:
        """Save a user key, new or changed."""
        values = (key.name, key.digest, json.dumps(key.settings), key.created_s, key.revoked_s)
        self._db.execute(
            "INSERT INTO reader_key VALUES (?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, "
            "settings = excluded.settings, created_s = excluded.created_s, revoked_s = excluded.revoked_s",
            values,
        )

    def list_search_rules(self) -> list[RuleRow]:
        """List all stored search rules, oldest first."""
        sql = "SELECT kind, query, value, added_s FROM search_rule ORDER BY added_s, kind, query, value"
        return [RuleRow(*row) for row in self._db.execute(sql)]

    def add_search_rule(self, rule: RuleRow) -> bool:
        """Add a search rule and return whether it is new."""
        return self._db.execute("INSERT OR IGNORE INTO search_rule VALUES (?, ?, ?, ?)", rule).rowcount > 0

    def delete_search_rule(self, kind: str, query: str, value: str) -> bool:
        """Delete a search rule and return whether it was there."""
        sql = "DELETE FROM search_rule WHERE kind = ? AND query = ? AND value = ?"
        return self._db.execute(sql, (kind, query, value)).rowcount > 0
