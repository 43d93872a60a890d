"""Store of the operator's actions, answers to commands and the folder's secret; a part of ``CrawlStore``."""

import json
import secrets
import sqlite3
from collections.abc import Mapping
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
# The table session is part of format 8 but unused: sessions are files (``session_files``).
SECRET_KEY = "secret"  # noqa: S105 - the name of a row
TOKEN_KEY = "operator_token"  # noqa: S105 - the name of a row, which holds a digest
ANSWERS_KEY = "answers to commands"
MAX_ANSWERS, KEEP_ANSWERS_S = 200, 600.0


@dataclass(frozen=True, slots=True)
class Action:
    """An operator's action, and the commands that undo it, as JSON objects."""

    at_s: float
    what: str
    who: str = ""
    undo: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class ActionRow:
    """A stored operator's action; ``undone_s`` is when it was undone."""

    id: int
    action: Action
    undone_s: float | None


class OperatorStore:
    """Store of operator's actions, answers to commands and the folder's secret in ``state.db``."""

    _db: sqlite3.Connection

    def get_value(self, what: str) -> str | None:
        """Return a named value about the data folder itself from the operator store."""
        row = self._db.execute("SELECT value FROM life WHERE what = ?", (what,)).fetchone()
        return row[0] if row else None

    def set_value(self, what: str, value: str) -> None:
        """Set a named value about the data folder itself in the operator store."""
        self._db.execute("INSERT OR REPLACE INTO life VALUES (?, ?)", (what, value))

    def log_action(self, action: Action) -> int:
        """Log an operator's action and return its number."""
        undo = json.dumps(action.undo) if action.undo else None
        row = self._db.execute(
            "INSERT INTO action (at_s, what, who, undo) VALUES (?, ?, ?, ?) RETURNING id",
            (action.at_s, action.what, action.who, undo),
        ).fetchone()
        return int(row[0])

    def list_actions(self, most: int, before: int | None = None) -> list[ActionRow]:
        """List the operator's latest actions, newest first; with ``before`` only those with a smaller number."""
        sql = "SELECT id, at_s, what, who, undo, undone_s FROM action WHERE id < ? ORDER BY id DESC LIMIT ?"
        last = (1 << 62) if before is None else before
        return [_parse_action(*row) for row in self._db.execute(sql, (last, most))]

    def find_action(self, id_: int) -> ActionRow | None:
        """Find an operator's action by its number."""
        return next((row for row in self.list_actions(1, id_ + 1) if row.id == id_), None)

    def mark_undone(self, id_: int, at_s: float) -> None:
        """Mark an operator's action as undone."""
        self._db.execute("UPDATE action SET undone_s = ? WHERE id = ?", (at_s, id_))

    # commands that are executed once

    def save_answer(self, id_: str, answer: Mapping[str, object], wall_s: float) -> None:
        """Save the answer to a command by the command's id; those of the last minutes are kept."""
        answers = {name: row for name, row in self._load_answers().items() if abs(wall_s - row[0]) < KEEP_ANSWERS_S}
        rows = list({**answers, id_: (wall_s, dict(answer))}.items())[-MAX_ANSWERS:]
        self.set_value(ANSWERS_KEY, json.dumps(dict(rows)))

    def find_answer(self, id_: str) -> dict[str, object] | None:
        """Find the answer to a command by the command's id; None if it was not executed, or long ago."""
        row = self._load_answers().get(id_)
        return row[1] if row else None

    def _load_answers(self) -> dict[str, tuple[float, dict[str, object]]]:
        rows = json.loads(self.get_value(ANSWERS_KEY) or "{}")
        return {id_: (at_s, answer) for id_, (at_s, answer) in rows.items()}

    # signing in

    def read_secret(self) -> bytes:
        """Return the folder's secret that servers sign with; empty before a coordinator first opened the folder."""
        return bytes.fromhex(self.get_value(SECRET_KEY) or "")

    def create_secret(self) -> None:
        """Create the secret of a data folder, once."""
        self._db.execute("INSERT OR IGNORE INTO life VALUES (?, ?)", (SECRET_KEY, secrets.token_hex(32)))

    def read_token_digest(self) -> str:
        """Return the digest of the operator's sign-in token; empty if there is none yet."""
        return self.get_value(TOKEN_KEY) or ""

    def set_token(self, digest: str) -> None:
        """Replace the operator's sign-in token; this closes all sessions opened with the previous one."""
        self.set_value(TOKEN_KEY, digest)


def _parse_action(id_: int, at_s: float, what: str, who: str, undo: str | None, undone_s: float | None) -> ActionRow:
    return ActionRow(id_, Action(at_s, what, who, tuple(json.loads(undo)) if undo else ()), undone_s)
