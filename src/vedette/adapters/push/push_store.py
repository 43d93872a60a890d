"""Push store: WebSub subscriptions, unchecked change signals, trust in their sources, ping keys.

Its tables are in ``state.db`` and are created if missing, so no folder needs another format. The caller commits. Times
named ``wall_s`` are wall time: hubs know no other.
"""

import json
import sqlite3
from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

from vedette.adapters.files.sqlite_file import execute_schemas
from vedette.discover.push.credit import NEW_SOURCE, SignalTrust
from vedette.engine.messages import ArchiveLocation

SubscriptionStatus = Literal["wanted", "asked", "active", "denied", "ended"]
KeyStatus = Literal["asked", "good", "bad"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS push_subscription (
  topic TEXT PRIMARY KEY,          -- the feed, by the address that it gives as its own
  hub TEXT NOT NULL,
  feed TEXT NOT NULL,              -- by which address it is known here
  token TEXT NOT NULL UNIQUE,      -- the last part of the address that the hub calls; nobody can guess it
  secret TEXT NOT NULL,            -- with which the hub signs
  standing TEXT NOT NULL,          -- wanted, asked, active, denied, ended
  asked INTEGER NOT NULL,          -- whether an answer of the hub is waited for
  tries INTEGER NOT NULL,          -- in vain, in a row
  next_wall_s REAL NOT NULL,       -- when the hub is asked next
  lease_wall_s REAL NOT NULL,      -- until when it promised to push
  heard_wall_s REAL,               -- when it last pushed something that was believed
  why TEXT NOT NULL                -- what went wrong last
) STRICT;
CREATE INDEX IF NOT EXISTS push_next ON push_subscription (next_wall_s);
CREATE TABLE IF NOT EXISTS push_signal (
  url_id INTEGER PRIMARY KEY,
  source TEXT NOT NULL,
  at_s REAL NOT NULL,              -- when it was said that the page is new or has changed
  wake_s REAL NOT NULL,            -- when it is fetched for that; infinity where it is not, or was woken
  is_new INTEGER NOT NULL          -- whether nobody here knew the URL before
) STRICT;
CREATE INDEX IF NOT EXISTS push_wake ON push_signal (wake_s);
CREATE INDEX IF NOT EXISTS push_source ON push_signal (source);
CREATE TABLE IF NOT EXISTS push_credit (
  source TEXT PRIMARY KEY,
  came_true REAL NOT NULL,
  did_not REAL NOT NULL,
  signals INTEGER NOT NULL,        -- that were ever taken
  heard_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS push_ignored (
  source TEXT NOT NULL,
  why TEXT NOT NULL,
  times INTEGER NOT NULL,
  last_s REAL NOT NULL,
  PRIMARY KEY (source, why)
) STRICT;
CREATE TABLE IF NOT EXISTS push_key (
  url TEXT NOT NULL,               -- of the key file
  key TEXT NOT NULL,
  host TEXT NOT NULL,
  standing TEXT NOT NULL,          -- asked, good, bad
  asked_s REAL NOT NULL,
  PRIMARY KEY (url, key)
) STRICT;
CREATE INDEX IF NOT EXISTS push_key_host ON push_key (host);
CREATE INDEX IF NOT EXISTS page_feeds ON page (id) WHERE kind = 'feed';
"""
_FEEDS = (
    "SELECT page.id, url.url, digest, content_type, file, offset, length FROM page JOIN url ON url.id = page.id "
    "WHERE kind = 'feed' AND page.id > ? ORDER BY page.id LIMIT ?"
)
_JUDGEABLE = (
    "SELECT url_id, source, at_s, fetched_s, changed_s, status, is_new FROM push_signal JOIN page ON page.id = url_id "
    "WHERE fetched_s > at_s ORDER BY url_id LIMIT ?"
)
_IGNORE = (
    "INSERT INTO push_ignored VALUES (?, ?, ?, ?) ON CONFLICT (source, why) DO UPDATE "
    "SET times = times + excluded.times, last_s = excluded.last_s"
)
_SAVE_CREDIT = (
    "INSERT INTO push_credit VALUES (?, ?, ?, ?, ?) ON CONFLICT (source) DO UPDATE SET came_true = excluded.came_true, "
    "did_not = excluded.did_not, signals = signals + excluded.signals, heard_s = max(heard_s, excluded.heard_s)"
)


class Subscription(NamedTuple):
    """A WebSub subscription to a feed, active or requested."""

    topic: str
    hub: str
    feed: str
    token: str
    secret: str
    standing: SubscriptionStatus = "wanted"
    asked: bool = False
    tries: int = 0
    next_wall_s: float = 0.0
    lease_wall_s: float = 0.0
    heard_wall_s: float | None = None
    why: str = ""


class SignalRow(NamedTuple):
    """A stored push signal: a URL that a source reports as new or changed, and when it will be fetched."""

    url_id: int
    source: str
    at_s: float
    wake_s: float = inf
    is_new: bool = False


class FetchedSignal(NamedTuple):
    """A page with a push signal that was fetched since; ``changed_s`` is when a fetch last found it changed."""

    url_id: int
    source: str
    at_s: float
    fetched_s: float
    changed_s: float
    status: int
    is_new: bool


class CreditRow(NamedTuple):
    """A stored source of push signals, the trust in it, and how many signals it gave."""

    source: str
    credit: SignalTrust
    signals: int
    heard_s: float


class IgnoredSignals(NamedTuple):
    """Push signals of a source that were ignored: why, and how often."""

    source: str
    why: str
    times: int
    last_s: float


class PingKeyRow(NamedTuple):
    """An IndexNow ping key shown for a host, and whether its key file has been verified."""

    url: str
    key: str
    host: str
    standing: KeyStatus
    asked_s: float


class FeedRow(NamedTuple):
    """A stored feed, and where its latest version is archived."""

    id: int
    url: str
    digest: str
    content_type: str
    place: ArchiveLocation | None


def create_push_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of the push store that are missing."""
    execute_schemas(connection, _SCHEMA)


class PushStore:
    """Push store: WebSub subscriptions, signals, trust in sources and ping keys, over ``state.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def has_tables(self) -> bool:
        """Check whether ``state.db`` has the push tables; an older one has none before a coordinator opens it."""
        sql = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'push@_%' ESCAPE '@' AND type = 'table'"
        return bool(self._db.execute(sql).fetchone()[0])

    # subscriptions

    def list_subscriptions(self, most: int) -> list[Subscription]:
        """List the first WebSub subscriptions, by topic."""
        return self._query_subscriptions("ORDER BY topic LIMIT ?", most)

    def count_subscriptions(self) -> int:
        """Count the WebSub subscriptions."""
        return int(self._db.execute("SELECT count(*) FROM push_subscription").fetchone()[0])

    def find_by_token(self, token: str) -> Subscription | None:
        """Find a WebSub subscription by the token of its callback."""
        return next(iter(self._query_subscriptions("WHERE token = ?", token)), None)

    def find_by_topic(self, topic: str) -> Subscription | None:
        """Find the WebSub subscription to a topic."""
        return next(iter(self._query_subscriptions("WHERE topic = ?", topic)), None)

    def list_due_subscriptions(self, wall_s: float, most: int) -> list[Subscription]:
        """List the WebSub subscriptions whose hub is due for a request, most overdue first."""
        return self._query_subscriptions("WHERE next_wall_s <= ? ORDER BY next_wall_s LIMIT ?", wall_s, most)

    def save_subscription(self, row: Subscription) -> None:
        """Save a WebSub subscription, new or changed."""
        self._db.execute(f"INSERT OR REPLACE INTO push_subscription VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - question marks only

    def _query_subscriptions(self, where: str, *values: object) -> list[Subscription]:
        rows = self._db.execute(f"SELECT * FROM push_subscription {where}", values)  # noqa: S608 - our own clauses
        return [Subscription(*row)._replace(asked=bool(row[6])) for row in rows]

    def list_feeds(self, id_: int, most: int) -> list[FeedRow]:
        """List the next stored feeds after an id, which may name a WebSub hub."""
        rows = self._db.execute(_FEEDS, (id_, most))
        return [
            FeedRow(id_, url, digest, kind, ArchiveLocation(*place) if place[0] is not None else None)
            for id_, url, digest, kind, *place in rows
        ]

    # signals

    def save_signals(self, rows: Sequence[SignalRow]) -> None:
        """Save push signals; the last one of a URL counts."""
        self._db.executemany("INSERT OR REPLACE INTO push_signal VALUES (?, ?, ?, ?, ?)", rows)

    def find_signalled(self, ids: Sequence[int]) -> list[int]:
        """Return those of these URLs whose push signal is not checked yet."""
        sql = "SELECT url_id FROM push_signal WHERE url_id IN (SELECT value FROM json_each(?))"
        return [id_ for (id_,) in self._db.execute(sql, (json.dumps(list(ids)),))]

    def count_signals(self, source: str) -> int:
        """Count the push signals of a source that are not checked yet."""
        return int(self._db.execute("SELECT count(*) FROM push_signal WHERE source = ?", (source,)).fetchone()[0])

    def list_due_signals(self, now_s: float, most: int) -> list[tuple[int, str]]:
        """List id and URL of due push signals, most overdue first."""
        sql = "SELECT url_id, url FROM push_signal JOIN url ON id = url_id WHERE wake_s <= ? ORDER BY wake_s LIMIT ?"
        return self._db.execute(sql, (now_s, most)).fetchall()

    def mark_woken(self, ids: Sequence[int]) -> None:
        """Take push signals off the schedule; they are still to be checked."""
        self.postpone_signals(inf, ids)

    def postpone_signals(self, wake_s: float, ids: Sequence[int]) -> None:
        """Postpone push signals, since their host has no capacity before."""
        self._db.executemany("UPDATE push_signal SET wake_s = ? WHERE url_id = ?", [(wake_s, id_) for id_ in ids])

    def list_judgeable(self, most: int) -> list[FetchedSignal]:
        """List pages with a push signal that were fetched since, so that it can be checked."""
        return [FetchedSignal(*row)._replace(is_new=bool(row[-1])) for row in self._db.execute(_JUDGEABLE, (most,))]

    def delete_signals(self, ids: Sequence[int]) -> None:
        """Delete push signals that were checked."""
        self._db.executemany("DELETE FROM push_signal WHERE url_id = ?", [(id_,) for id_ in ids])

    def delete_signals_before(self, at_s: float) -> None:
        """Delete push signals from before a time."""
        self._db.execute("DELETE FROM push_signal WHERE at_s < ?", (at_s,))

    # credit

    def get_credit(self, source: str) -> SignalTrust:
        """Return the trust in a source of push signals."""
        row = self._db.execute("SELECT came_true, did_not FROM push_credit WHERE source = ?", (source,)).fetchone()
        return SignalTrust(*row) if row else NEW_SOURCE

    def save_credit(self, source: str, credit: SignalTrust, signals: int, heard_s: float) -> None:
        """Save the trust in a source of push signals, and how many more it gave."""
        self._db.execute(_SAVE_CREDIT, (source, *credit, signals, heard_s))

    def list_credits(self, most: int) -> list[CreditRow]:
        """List the sources of push signals, most recent first."""
        sql = "SELECT source, came_true, did_not, signals, heard_s FROM push_credit ORDER BY heard_s DESC LIMIT ?"
        return [CreditRow(row[0], SignalTrust(*row[1:3]), *row[3:]) for row in self._db.execute(sql, (most,))]

    def count_ignored(self, source: str, why: str, times: int, at_s: float) -> None:
        """Count push signals of a source that were ignored."""
        self._db.execute(_IGNORE, (source, why, times, at_s))

    def list_ignored(self, most: int) -> list[IgnoredSignals]:
        """List ignored push signals, newest first."""
        sql = "SELECT source, why, times, last_s FROM push_ignored ORDER BY last_s DESC LIMIT ?"
        return [IgnoredSignals(*row) for row in self._db.execute(sql, (most,))]

    # keys

    def get_key(self, url: str, key: str) -> PingKeyRow | None:
        """Return an IndexNow ping key."""
        row = self._db.execute("SELECT * FROM push_key WHERE url = ? AND key = ?", (url, key)).fetchone()
        return PingKeyRow(*row) if row else None

    def list_keys(self, host: str) -> list[PingKeyRow]:
        """List the IndexNow ping keys of a host."""
        return [PingKeyRow(*row) for row in self._db.execute("SELECT * FROM push_key WHERE host = ?", (host,))]

    def list_pending_keys(self, most: int) -> list[PingKeyRow]:
        """List the IndexNow ping keys that are not verified yet."""
        rows = self._db.execute("SELECT * FROM push_key WHERE standing = 'asked' LIMIT ?", (most,))
        return [PingKeyRow(*row) for row in rows]

    def save_key(self, row: PingKeyRow) -> None:
        """Save an IndexNow ping key, new or changed."""
        self._db.execute("INSERT OR REPLACE INTO push_key VALUES (?, ?, ?, ?, ?)", row)

    def delete_key(self, url: str, key: str) -> None:
        """Delete an IndexNow ping key."""
        self._db.execute("DELETE FROM push_key WHERE url = ? AND key = ?", (url, key))
