"""``ledger.db`` of a data folder: what was shown of sponsored results, who owes what for it, and counts for reports.

SQLite with a write-ahead log, every commit on the disk before it is answered. Each server process writes, one at a
time. Entries are only ever added: the database itself refuses to change or drop one, and to hold or close a showing
twice. It has a number of its own, as ``record.db`` has.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vedette.adapters.files.sqlite_file import SideFile

__all__ = ["LEDGER", "LEDGER_FILE", "read_ledger"]

LEDGER = "ledger.db"
# A search waits for it: rather no ad than a slow page.
BUSY_S = 2.0

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,              -- held, charged, refused, let go
  token TEXT NOT NULL,             -- of the showing
  payer TEXT NOT NULL,             -- the campaign
  day TEXT NOT NULL,               -- whose budget it is of
  amount TEXT NOT NULL,            -- exact
  at_s REAL NOT NULL,              -- wall time, as all times here
  reason TEXT NOT NULL             -- why a click was refused
) STRICT;
-- Held once, and then closed once.
CREATE UNIQUE INDEX entry_once ON entry (token, kind = 'held');
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TRIGGER entry_lasts BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TABLE balance (
  payer TEXT NOT NULL,
  day TEXT NOT NULL,
  charged TEXT NOT NULL,           -- what all entries add up to
  held TEXT NOT NULL,
  PRIMARY KEY (payer, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE showing (
  token TEXT PRIMARY KEY,
  at_s REAL NOT NULL,
  day TEXT NOT NULL,
  payer TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,            -- the target that took the query
  slot INTEGER NOT NULL,           -- from 0
  score REAL NOT NULL,
  propensity REAL NOT NULL,
  price TEXT NOT NULL,             -- of a click
  reason TEXT NOT NULL,            -- why it was chosen
  closed TEXT NOT NULL,            -- what became of it; empty while it is open
  said TEXT NOT NULL,              -- why its click was refused
  mark TEXT NOT NULL               -- of the address that clicked, good for one day
) STRICT, WITHOUT ROWID;
CREATE INDEX showing_open ON showing (at_s) WHERE closed = '';
CREATE INDEX showing_at ON showing (at_s);
CREATE INDEX showing_mark ON showing (payer, day, mark) WHERE mark <> '';
CREATE TABLE tally (
  day TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,
  payer TEXT NOT NULL,
  shown INTEGER NOT NULL,
  views REAL NOT NULL,             -- showings by how much their slots are seen
  clicked INTEGER NOT NULL,        -- and charged
  charged TEXT NOT NULL,
  lost_budget INTEGER NOT NULL,    -- queries that it would have taken part in with more money
  lost_rank INTEGER NOT NULL,
  lost_reserve INTEGER NOT NULL,
  PRIMARY KEY (day, ad, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE asked (
  day TEXT NOT NULL,
  hour INTEGER NOT NULL,           -- where the operator is
  phrase TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, hour, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE refusal (
  day TEXT NOT NULL,
  payer TEXT NOT NULL,             -- empty where nobody's token was shown
  reason TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, payer, reason)
) STRICT, WITHOUT ROWID
""",
)

LEDGER_FILE = SideFile(LEDGER, _STEPS, "restore it, for it says who owes what", busy_s=BUSY_S)


@contextmanager
def read_ledger(folder: Path) -> Iterator[sqlite3.Connection | None]:
    """One moment of it, beside the writers; None where nothing was ever shown."""
    with LEDGER_FILE.read(folder) as db:
        if db is not None:
            db.execute("BEGIN")
        yield db
