"""Store of alerts ``watch.db``: new pages, the alerts they match, and webhook deliveries.

A page goes through it in three steps, each one transaction, so that a kill at any moment loses nothing and duplicates
nothing: the indexer adds it (``add_new_pages``; its URL is remembered, so it is never added again), the notifier
publishes it (``publish``: it gets the next sequence number, the alerts it matches, and deliveries for their webhooks),
and deliveries end. The sequence number is the cursor of feeds, API and command line.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.files.sqlite_file import SqliteFile, SqliteStore

# Every commit is on disk before it is acknowledged: what the indexer has written here is dropped from the index queue.
# Three processes write, each briefly: the indexer, the notifier, and the one that tests a webhook.

ALERTS_NAME = "watch.db"

# Each entry migrates from one version to the next.
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

ALERTS_FILE = SqliteFile(ALERTS_NAME, _STEPS, "you can delete it; new pages are reported from now on")


# A page that becomes searchable this long after it was found is no longer new.
MAX_NEWS_AGE_S = 30 * 86_400.0
RETENTION_S = 90 * 86_400.0
MAX_ITEMS = 100_000
MAX_DELIVERIES = 10_000
# Maximum deliveries waiting for one webhook; beyond it the oldest are given up.
MAX_WAITING = 1000
_ITEM = "item.seq, page, url, title, snippet, found_s, how, via, born_s, told_s, private"
_DELIVERY = "id, watch, first, last, at_s, next_s, tries, status, error, ended_s"


class NewPage(NamedTuple):
    """A new page that search finds for the first time, for alerts; ``via`` is the page that links to it."""

    print: int
    page: int
    found_s: float
    how: str
    via: str
    at_s: float


class AlertItem(NamedTuple):
    """A new page as published to alerts; ``seq`` is its sequence number, 0 before it has one."""

    seq: int
    page: int
    url: str
    title: str
    snippet: str
    found_s: float
    how: str
    via: str
    born_s: float | None
    told_s: float
    private: str = ""

    @property
    def delay_s(self) -> float:
        """Time from a page's publication to its discovery if known, else from its discovery to the alert."""
        return max(0.0, self.told_s - self.found_s if self.born_s is None else self.found_s - self.born_s)


class MatchedItem(NamedTuple):
    """An alert item with the ids of the alerts it matches, and of those with webhooks to call."""

    print: int
    item: AlertItem
    alerts: tuple[str, ...] = ()
    webhooks: tuple[str, ...] = ()


class Delivery(NamedTuple):
    """A webhook delivery: the items of its alert from ``first`` to ``last``, both 0 for a test.

    Times are wall time. ``next_s`` is None when the delivery has ended; it succeeded if ``error`` is empty.
    """

    id: str
    watch: str
    first: int
    last: int
    at_s: float
    next_s: float | None
    tries: int
    status: int
    error: str
    ended_s: float | None


class AlertReader:
    """Reader of the alert store ``watch.db``; each query sees one snapshot, empty if there is no file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_items(self, after: int, most: int, watch: str | None = None) -> list[AlertItem]:
        """List published alert items after a sequence number, oldest first; with ``watch`` those of one alert."""
        sql, values = _select_items("> ?", "ASC", after, most, watch)
        return [AlertItem(*row) for row in self._query(sql, *values)]

    def list_latest(self, before: int, most: int, watch: str | None = None) -> list[AlertItem]:
        """List published alert items before a sequence number, newest first."""
        sql, values = _select_items("< ?", "DESC", before, most, watch)
        return [AlertItem(*row) for row in self._query(sql, *values)]

    def read_seq_range(self) -> tuple[int, int]:
        """Return the sequence number of the oldest stored alert item (one too high if none), and of the newest ever."""
        with ALERTS_FILE.read(self._folder) as db:
            if db is None:
                return 1, 0
            row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'item'").fetchone()
            newest = int(row[0]) if row else 0
            (oldest,) = db.execute("SELECT min(seq) FROM item").fetchone()
            return (newest + 1 if oldest is None else int(oldest)), newest

    def list_births(self, since_s: float, most: int) -> list[tuple[float, float | None]]:
        """List when alert items were found and published, newest first."""
        sql = "SELECT found_s, born_s FROM item WHERE found_s >= ? ORDER BY seq DESC LIMIT ?"
        return self._query(sql, since_s, most)

    def count_by_alert(self) -> Mapping[str, int]:
        """Count the published items of each alert, by alert id."""
        return dict(self._query("SELECT watch, count(*) FROM match GROUP BY watch"))

    def list_deliveries(self, most: int, watch: str | None = None) -> list[Delivery]:
        """List the latest webhook deliveries, newest first."""
        where = "" if watch is None else "WHERE watch = ?2"
        sql = f"SELECT {_DELIVERY} FROM delivery {where} ORDER BY number DESC LIMIT ?1"  # noqa: S608 - our columns
        return [Delivery(*row) for row in self._query(sql, most, *(() if watch is None else (watch,)))]

    def list_stalled(self) -> list[tuple[Delivery, int]]:
        """List the failing webhook delivery that each alert is retrying, and how many wait behind it."""
        behind = (
            "SELECT count(*) FROM delivery AS other WHERE other.watch = delivery.watch AND other.next_s IS NOT NULL"
        )
        sql = f"SELECT {_DELIVERY}, ({behind}) - 1 FROM delivery WHERE next_s IS NOT NULL AND tries > 0"  # noqa: S608 - our columns
        return [(Delivery(*row[:-1]), row[-1]) for row in self._query(sql)]

    def _query(self, sql: str, *values: float | str) -> list[Any]:
        return ALERTS_FILE.query(self._folder, sql, *values)


class AlertStore(SqliteStore):
    """Writer of the alert store ``watch.db``."""

    FILE = ALERTS_FILE

    # for the indexer

    def add_new_pages(
        self, fresh: Iterable[NewPage], silent: Iterable[int], moved: Iterable[int], now_s: float
    ) -> None:
        """Add new pages for alerts, pages without alerts, and redirect targets of known pages; each URL counts once."""
        with self._transaction() as db:
            old = "INSERT OR IGNORE INTO once SELECT ?1, ?2"
            db.executemany("INSERT OR REPLACE INTO moved VALUES (?, ?)", ((print_, now_s) for print_ in moved))
            db.executemany(old, ((print_, now_s) for print_ in silent))
            for one in fresh:
                has_moved = db.execute("SELECT 1 FROM moved WHERE print = ?", (one.print,)).fetchone()
                if (
                    db.execute(old, (one.print, now_s)).rowcount
                    and not has_moved
                    and now_s - one.found_s <= MAX_NEWS_AGE_S
                ):
                    db.execute("INSERT OR IGNORE INTO fresh VALUES (?, ?, ?, ?, ?, ?)", one)

    # for the notifier

    def list_new_pages(self, most: int) -> list[NewPage]:
        """List the new pages that wait to be published to alerts, oldest first."""
        sql = "SELECT print, page, found_s, how, via, at_s FROM fresh ORDER BY at_s, print LIMIT ?"
        return [NewPage(*row) for row in self._query(sql, most)]

    def publish(self, items: Sequence[MatchedItem], gone: Iterable[int], wall_s: float) -> None:
        """Publish new pages as alert items, in this order; drop the pages that are gone, by fingerprint."""
        with self._transaction() as db:
            first: dict[str, int] = {}
            last: dict[str, int] = {}
            for one in items:
                if not db.execute("DELETE FROM fresh WHERE print = ?", (one.print,)).rowcount:
                    continue  # another notifier published it
                seq = db.execute(
                    f"INSERT INTO item VALUES (NULL{', ?' * 10}) RETURNING seq",  # noqa: S608 - question marks
                    one.item[1:],
                ).fetchone()[0]
                db.executemany("INSERT INTO match VALUES (?, ?)", ((watch, seq) for watch in one.alerts))
                for watch in one.webhooks:
                    first.setdefault(watch, seq)
                    last[watch] = seq
            db.executemany("DELETE FROM fresh WHERE print = ?", ((print_,) for print_ in gone))
            for watch, start in first.items():
                self._add_delivery(f"{watch}-{last[watch]}", watch, start, last[watch], wall_s)

    def list_due(self, wall_s: float, busy: Sequence[str], most: int) -> list[Delivery]:
        """List due webhook deliveries, the oldest of each alert; skip alerts that are busy."""
        sql = (
            f"SELECT {_DELIVERY} FROM delivery WHERE number IN "  # noqa: S608 - our columns
            "(SELECT min(number) FROM delivery WHERE next_s IS NOT NULL GROUP BY watch) "
            "AND next_s <= ? ORDER BY next_s, number"
        )
        found = [Delivery(*row) for row in self._query(sql, wall_s)]
        return [one for one in found if one.watch not in busy][:most]

    def load_delivery_items(self, delivery: Delivery, most: int) -> list[AlertItem]:
        """Load the alert items of a webhook delivery."""
        sql, values = _select_items("> ?", "ASC", delivery.first - 1, most, delivery.watch)
        items = [AlertItem(*row) for row in self._query(sql, *values)]
        return [item for item in items if item.seq <= delivery.last]

    def record_attempt(self, id_: str, status: int, error: str, wall_s: float, next_s: float | None) -> None:
        """Record the outcome of a webhook delivery attempt; ``next_s`` is the next one, None if there is none."""
        ended_s = wall_s if next_s is None else None
        with self._transaction() as db:
            db.execute(
                "UPDATE delivery SET tries = tries + 1, status = ?, error = ?, next_s = ?, ended_s = ? WHERE id = ?",
                (status, error[:500], next_s, ended_s, id_),
            )

    def add_test(self, id_: str, watch: str, wall_s: float) -> Delivery:
        """Add a test webhook delivery without items, which the caller sends at once; the notifier ignores it."""
        with self._transaction():
            self._add_delivery(id_, watch, 0, 0, wall_s, next_s=None)
        return Delivery(id_, watch, 0, 0, wall_s, None, 0, 0, "", None)

    def abandon_deliveries(self, watch: str, why: str, wall_s: float) -> int:
        """Give up all waiting webhook deliveries of an alert and return their number."""
        sql = "UPDATE delivery SET next_s = NULL, error = ?, ended_s = ? WHERE watch = ? AND next_s IS NOT NULL"
        with self._transaction() as db:
            return db.execute(sql, (why, wall_s, watch)).rowcount

    def list_waiting_alerts(self) -> list[str]:
        """List the ids of alerts that have waiting webhook deliveries."""
        return [row[0] for row in self._query("SELECT DISTINCT watch FROM delivery WHERE next_s IS NOT NULL")]

    def prune(self, now_s: float, wall_s: float) -> None:
        """Delete old alert items and those beyond the limits; keep undelivered ones."""
        with self._transaction() as db:
            sql = "SELECT coalesce(min(first), 1 << 62) FROM delivery WHERE next_s IS NOT NULL AND last > 0"
            (needed,) = db.execute(sql).fetchone()
            row = db.execute("SELECT seq FROM item ORDER BY seq DESC LIMIT 1 OFFSET ?", (MAX_ITEMS,)).fetchone()
            (old,) = db.execute(
                "SELECT coalesce(max(seq), 0) FROM item WHERE told_s < ?", (now_s - RETENTION_S,)
            ).fetchone()
            last = min(max(old, row[0] if row else 0), needed - 1)
            db.execute("DELETE FROM item WHERE seq <= ?", (last,))
            db.execute("DELETE FROM match WHERE seq <= ?", (last,))
            db.execute("DELETE FROM once WHERE at_s < ?", (now_s - RETENTION_S,))
            db.execute("DELETE FROM moved WHERE at_s < ?", (now_s - RETENTION_S,))
            number = "SELECT number FROM delivery ORDER BY number DESC LIMIT 1 OFFSET ?"
            row = db.execute(number, (MAX_DELIVERIES,)).fetchone()
            ended = "DELETE FROM delivery WHERE next_s IS NULL AND (number <= ? OR ended_s < ?)"
            db.execute(ended, (row[0] if row else 0, wall_s - RETENTION_S))

    def _add_delivery(
        self, id_: str, watch: str, first: int, last: int, wall_s: float, next_s: float | None = 0.0
    ) -> None:
        add = (
            "INSERT OR IGNORE INTO delivery (id, watch, first, last, at_s, next_s, tries, status, error) "
            "VALUES (?, ?, ?, ?, ?, ?, 0, 0, '')"
        )
        self._db.execute(add, (id_, watch, first, last, wall_s, next_s))
        too_many = (
            "UPDATE delivery SET next_s = NULL, ended_s = ?, error = 'too many messages waited: it was given up' "
            "WHERE next_s IS NOT NULL AND number IN (SELECT number FROM delivery WHERE watch = ? "
            "AND next_s IS NOT NULL ORDER BY number DESC LIMIT -1 OFFSET ?)"
        )
        self._db.execute(too_many, (wall_s, watch, MAX_WAITING))


def _select_items(side: str, order: str, seq: int, most: int, watch: str | None) -> tuple[str, tuple[int | str, ...]]:
    of_watch = "" if watch is None else "JOIN match ON match.seq = item.seq AND match.watch = ?3"
    sql = f"SELECT {_ITEM} FROM item {of_watch} WHERE item.seq {side}1 ORDER BY item.seq {order} LIMIT ?2"  # noqa: S608 - our words
    return sql, (seq, most) if watch is None else (seq, most, watch)
