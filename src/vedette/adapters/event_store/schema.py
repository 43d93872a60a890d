"""Schema of the event store ``record.db``: searches, shown results, clicks, and numbers over time.

SQLite with a write-ahead log. Deleted data is overwritten, not merely released, and erasing rewrites the whole file. It
has its own version, independent of the folder's format: it can be deleted, and the crawl continues.
"""

from vedette.adapters.files.sqlite_file import SqliteFile

EVENTS_NAME = "record.db"
DAMAGED_GLOB = "record-damaged-*.db*"
HOUR_S = 3600
DAY_S = 86_400
# Each entry migrates from one version to the next.
_STEPS = (
    """
CREATE TABLE slate (
  number INTEGER PRIMARY KEY,      -- in the order in which they came
  id TEXT NOT NULL UNIQUE,
  at_s REAL NOT NULL,
  query TEXT NOT NULL,             -- as it was typed
  words TEXT NOT NULL,             -- in the form in which queries are counted together
  visitor TEXT NOT NULL,
  page INTEGER NOT NULL,           -- of the results, from 1
  empty INTEGER NOT NULL,          -- 1 where there was no result
  doubt TEXT NOT NULL,             -- why it is not counted
  line BLOB NOT NULL               -- all of it, as it was logged, packed
) STRICT;
CREATE INDEX slate_at ON slate (at_s);
CREATE INDEX slate_asked ON slate (words, visitor, at_s);
CREATE INDEX slate_visitor ON slate (visitor);
CREATE INDEX slate_doubted ON slate (at_s, doubt) WHERE doubt <> '';
CREATE TABLE event (
  slate TEXT NOT NULL,
  kind TEXT NOT NULL,              -- view, click
  page INTEGER NOT NULL,           -- that was opened; 0 for a view
  at_s REAL NOT NULL,
  after_s REAL NOT NULL,
  visitor TEXT NOT NULL,
  doubt TEXT NOT NULL,
  PRIMARY KEY (slate, kind, page)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_at ON event (at_s);
CREATE INDEX event_visitor ON event (visitor);
CREATE INDEX event_doubted ON event (at_s, doubt) WHERE doubt <> '';
CREATE TABLE asked (
  hour_s INTEGER NOT NULL,         -- when the hour began; after a year, the day
  words TEXT NOT NULL,
  searches INTEGER NOT NULL,
  visitors INTEGER NOT NULL,       -- different marks in that hour
  empty INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  query TEXT NOT NULL,             -- as it was last typed
  last_s REAL NOT NULL,
  PRIMARY KEY (hour_s, words)
) STRICT, WITHOUT ROWID;
CREATE INDEX asked_words ON asked (words);
CREATE TABLE hour (
  hour_s INTEGER PRIMARY KEY,
  searches INTEGER NOT NULL,
  empty INTEGER NOT NULL,
  views INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  opened INTEGER NOT NULL          -- searches of which at least one result was opened
) STRICT;
CREATE TABLE visit (
  visitor TEXT NOT NULL,
  hour_s INTEGER NOT NULL,
  searches INTEGER NOT NULL,
  clicks INTEGER NOT NULL,
  PRIMARY KEY (visitor, hour_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE imported (
  words TEXT NOT NULL,
  at_s REAL NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (words, at_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE series (
  name TEXT NOT NULL,
  at_s REAL NOT NULL,
  value REAL NOT NULL,
  PRIMARY KEY (name, at_s)
) STRICT, WITHOUT ROWID;
CREATE TABLE folded (
  file TEXT PRIMARY KEY,
  at INTEGER NOT NULL,             -- how many of its bytes are in the tables
  blanked INTEGER NOT NULL         -- how many of these are overwritten in the file
) STRICT, WITHOUT ROWID;
CREATE TABLE life (what TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
""",
)

EVENTS_FILE = SqliteFile(
    EVENTS_NAME,
    _STEPS,
    "you can delete it; recording starts from scratch",
    pragmas=("synchronous = NORMAL", "secure_delete = ON"),
    max_wal_bytes=64 << 20,
)


def hour_start(at_s: float) -> int:
    """Return when the hour of a time began, for the hourly counts of the event store.

    >>> hour_start(7300.5)
    7200
    """
    return int(at_s // HOUR_S) * HOUR_S
