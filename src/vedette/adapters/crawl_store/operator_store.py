"""Store of the operator's actions, sessions and the folder's secret; a part of ``CrawlStore``."""

import json
import secrets
import sqlite3
from dataclasses import dataclass

OPERATOR_SCHEMA = """
CREATE TABLE IF NOT EXISTS action (
  id INTEGER PRIMARY KEY,
  at_s REAL NOT NULL,
  what TEXT NOT NULL,
  who TEXT NOT NULL DEFAULT '',    -- where it was ordered: the console, the command line, a key
  undo TEXT,                       -- the orders that take it back, as JSON
  undone_s REAL                    -- since when it is taken back
) STRICT;
CREATE TABLE IF NOT EXISTS session (
  digest TEXT PRIMARY KEY,         -- of the secret in the cookie, which is kept nowhere
  opened_s REAL NOT NULL           -- wall time
) STRICT;
"""
SECRET_KEY = "secret"  # noqa: S105 - the name of a row
TOKEN_KEY = "operator_token"  # noqa: S105 - the name of a row, which holds a digest
MAX_SESSION_S = 12 * 3600.0


@dataclass(frozen=True, slots=True)
class Action:
    """Something that the operator did, and the orders that take it back, as JSON says them."""

    at_s: float
    what: str
    who: str = ""
    undo: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class ActionRow:
    """An action as it is kept; ``undone_s`` is when it was taken back."""

    id: int
    action: Action
    undone_s: float | None


class OperatorStore:
    """Actions, sessions and the folder's own secret, over the connection it is given."""

    _db: sqlite3.Connection

    def log_action(self, action: Action) -> int:
        """Remember what the operator did; its number."""
        undo = json.dumps(action.undo) if action.undo else None
        row = self._db.execute(
            "INSERT INTO action (at_s, what, who, undo) VALUES (?, ?, ?, ?) RETURNING id",
            (action.at_s, action.what, action.who, undo),
        ).fetchone()
        return int(row[0])

    def list_actions(self, most: int, before: int | None = None) -> list[ActionRow]:
        """The latest actions, the last one first; only those before a number where one is given."""
        sql = "SELECT id, at_s, what, who, undo, undone_s FROM action WHERE id < ? ORDER BY id DESC LIMIT ?"
        last = (1 << 62) if before is None else before
        return [_parse_action(*row) for row in self._db.execute(sql, (last, most))]

    def find_action(self, id_: int) -> ActionRow | None:
        """One of them."""
        return next((row for row in self.list_actions(1, id_ + 1) if row.id == id_), None)

    def mark_undone(self, id_: int, at_s: float) -> None:
        """It was taken back."""
        self._db.execute("UPDATE action SET undone_s = ? WHERE id = ?", (at_s, id_))

    # who comes in

    def read_secret(self) -> bytes:
        """What this folder's servers sign with; none before the first keeper has opened it."""
        return bytes.fromhex(self._read_setting(SECRET_KEY))

    def create_secret(self) -> None:
        """Once for each folder."""
        self._db.execute("INSERT OR IGNORE INTO life VALUES (?, ?)", (SECRET_KEY, secrets.token_hex(32)))

    def read_token_digest(self) -> str:
        """The digest of the operator's token; empty where there is none yet."""
        return self._read_setting(TOKEN_KEY)

    def set_token(self, digest: str) -> None:
        """Another token; whoever is signed in is so no longer."""
        self._db.execute("INSERT OR REPLACE INTO life VALUES (?, ?)", (TOKEN_KEY, digest))
        self._db.execute("DELETE FROM session")

    def open_session(self, digest: str, wall_s: float) -> None:
        """Somebody signed in; those who did so long ago are forgotten."""
        self._db.execute("DELETE FROM session WHERE opened_s < ?", (wall_s - MAX_SESSION_S,))
        self._db.execute("INSERT OR REPLACE INTO session VALUES (?, ?)", (digest, wall_s))

    def close_session(self, digest: str) -> None:
        """And out."""
        self._db.execute("DELETE FROM session WHERE digest = ?", (digest,))

    def read_session_start(self, digest: str) -> float | None:
        """When somebody signed in, by wall time."""
        row = self._db.execute("SELECT opened_s FROM session WHERE digest = ?", (digest,)).fetchone()
        return float(row[0]) if row else None

    def _read_setting(self, what: str) -> str:
        row = self._db.execute("SELECT value FROM life WHERE what = ?", (what,)).fetchone()
        return str(row[0]) if row else ""


def _parse_action(id_: int, at_s: float, what: str, who: str, undo: str | None, undone_s: float | None) -> ActionRow:
    return ActionRow(id_, Action(at_s, what, who, tuple(json.loads(undo)) if undo else ()), undone_s)
