"""``watch.db`` of a data folder: the pages that were new, who was to be told of which, and what became of it.

SQLite with a write-ahead log, every commit on the disk before it is answered: what the indexer has written here is
dropped from the keeper's news. Three processes write, each for a moment: the indexer what is new, the herald what is
told, and whoever tests a webhook. It has a number of its own, as ``record.db`` has.
"""

from vedette.adapters.files.sqlite_file import SideFile

__all__ = ["WATCHES", "WATCH_FILE"]

WATCHES = "watch.db"

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE once (
  print INTEGER PRIMARY KEY,       -- of the URL: a page is told of once, whatever is built anew
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE fresh (
  print INTEGER PRIMARY KEY,
  page INTEGER NOT NULL,
  found_s REAL NOT NULL,
  how TEXT NOT NULL,
  via TEXT NOT NULL,               -- the URL of the page that named it
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE moved (
  print INTEGER PRIMARY KEY,       -- of the URL that a known page leads to by now
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE item (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  page INTEGER NOT NULL,
  url TEXT NOT NULL,
  title TEXT NOT NULL,
  snippet TEXT NOT NULL,
  found_s REAL NOT NULL,
  how TEXT NOT NULL,
  via TEXT NOT NULL,
  born_s REAL,                     -- what the page says of its date
  told_s REAL NOT NULL,
  private TEXT NOT NULL            -- the site with whose secrets it was fetched, where it was
) STRICT;
CREATE TABLE match (
  watch TEXT NOT NULL,             -- the mark of a watch
  seq INTEGER NOT NULL,
  PRIMARY KEY (watch, seq)
) STRICT, WITHOUT ROWID;
CREATE TABLE delivery (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,         -- as the receiver sees it, the same at every try
  watch TEXT NOT NULL,
  first INTEGER NOT NULL,          -- the items from this one
  last INTEGER NOT NULL,           -- to that one, as far as they match; 0 for a test
  at_s REAL NOT NULL,              -- wall time, as all times of deliveries
  next_s REAL,                     -- when it is tried next; none where it is over
  tries INTEGER NOT NULL,
  status INTEGER NOT NULL,         -- what the receiver last answered; 0 for nothing
  error TEXT NOT NULL,             -- why the last try failed; empty where it did not
  ended_s REAL
) STRICT;
CREATE INDEX delivery_next ON delivery (next_s) WHERE next_s IS NOT NULL;
CREATE INDEX delivery_watch ON delivery (watch, number)
""",
)

WATCH_FILE = SideFile(WATCHES, _STEPS, "it may be deleted, new pages are told anew")
