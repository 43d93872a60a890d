"""Event store ``record.db``: ingest search logs, prune old rows, erase data on request.

One process, the event recorder, writes continuously. Others may write occasionally: each change is one transaction that
starts by taking the lock, and the read offsets of the log files are part of it.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from isal import isal_zlib

from vedette.adapters.event_store import time_series as series
from vedette.adapters.event_store.schema import DAMAGED_GLOB, DAY_S, EVENTS_FILE, HOUR_S, hour_start
from vedette.adapters.event_store.search_log import LOG_DIR, LogFile, blank_lines, list_logs, open_logs
from vedette.adapters.files.inflate import inflate
from vedette.adapters.files.sqlite_file import SqliteStore
from vedette.errors import StoreBusy
from vedette.learn.bot_filter import check_hourly_rate
from vedette.learn.events import ClickEvent, LoggedEvent, SearchEvent, decode_event

# Each search and each click is counted once, however often and in whatever order they arrive: a click whose search is
# missing is stored with that as its filter reason, which is removed when the search arrives.

UNKNOWN_SEARCH = "of a search that is not known"
NOT_SHOWN = "not among the results"

_LATEST_S = 1e11  # some thousand years; later values are no times
_LARGEST = 1 << 62
_MAX_LINE_BYTES = 1 << 24

_SAVE_SLATE = (
    "INSERT INTO slate (id, at_s, query, words, visitor, page, empty, doubt, line) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_ASKED_BEFORE = (
    "SELECT 1 FROM slate WHERE words = ? AND visitor = ? AND at_s >= ? AND at_s < ? AND page = 1 AND doubt = '' LIMIT 1"
)
_COUNT = (
    "INSERT INTO asked VALUES (?, ?, 1, ?, ?, 0, ?, ?) ON CONFLICT DO UPDATE SET searches = searches + 1, "
    "visitors = visitors + excluded.visitors, empty = empty + excluded.empty, "
    "query = iif(excluded.last_s >= last_s, excluded.query, query), last_s = max(last_s, excluded.last_s)"
)
_VISIT = (
    "INSERT INTO visit VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET searches = searches + excluded.searches, "
    "clicks = clicks + excluded.clicks RETURNING searches, clicks"
)
_HOUR = (
    "INSERT INTO hour VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET searches = searches + excluded.searches, "
    "empty = empty + excluded.empty, views = views + excluded.views, clicks = clicks + excluded.clicks, "
    "opened = opened + excluded.opened"
)
_SLATE = "SELECT at_s, words, page, doubt, line FROM slate WHERE id = ?"
_WAITING = "SELECT slate, kind, page, at_s, after_s, visitor, doubt FROM event WHERE slate = ? AND doubt = ?"
_OPENED = "SELECT 1 FROM event WHERE slate = ? AND kind = 'click' AND doubt = '' LIMIT 1"
_SAVE_EVENT = "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)"
_KNOWN_EVENT = "SELECT 1 FROM event WHERE slate = ? AND kind = ? AND page = ?"
_COUNT_CLICK = "UPDATE asked SET clicks = clicks + 1 WHERE hour_s = ? AND words = ?"


@dataclass(slots=True)
class _HourCounts:
    """What a batch of log lines adds to the event store's counts of an hour."""

    searches: int = 0
    empty: int = 0
    views: int = 0
    clicks: int = 0
    opened: int = 0


class _StoredSearch(NamedTuple):
    """A recorded search, with what is needed to judge a click on it."""

    at_s: float
    words: str
    page: int
    filter_reason: str
    line: bytes

    @property
    def is_counted(self) -> bool:
        """Whether the recorded search counts as one: further result pages belong to the same search."""
        return not self.filter_reason and self.page == 1 and bool(self.words)

    def shows(self, page: int) -> bool:
        """Check whether a page was among the results of the recorded search."""
        record = unpack_line(self.line)
        return record is not None and any(shown.page == page for shown in record.results)


@dataclass(slots=True)
class LogIngester:
    """Writes one batch of search log lines to the event store's tables; the caller commits."""

    db: sqlite3.Connection
    slates: int = 0
    events: int = 0
    garbage: int = 0
    _hours: defaultdict[int, _HourCounts] = field(default_factory=lambda: defaultdict(_HourCounts))

    def ingest_line(self, line: bytes) -> None:
        """Ingest a line of a search log; skip an empty one."""
        record = decode_event(line) if line else None
        if isinstance(record, SearchEvent) and _is_storable(record):
            self._ingest_search(record, line)
        elif isinstance(record, ClickEvent) and _is_storable(record):
            self._ingest_event(record)
        elif line:
            self.garbage += 1

    def write_totals(self) -> None:
        """Write the hourly sums of the ingested log lines to the event store."""
        self.db.executemany(_HOUR, ((hour_s, *astuple(gained)) for hour_s, gained in self._hours.items()))
        self._hours.clear()

    # searches

    def _ingest_search(self, slate: SearchEvent, line: bytes) -> None:
        if self.db.execute("SELECT 1 FROM slate WHERE id = ?", (slate.id,)).fetchone():
            return
        self.slates += 1
        doubt = slate.filter_reason or self._check_visitor_rate(slate.visitor, slate.at_s, searches=1)
        search = _StoredSearch(slate.at_s, slate.words, slate.page, doubt, pack_line(line))
        empty = int(not slate.total)
        if search.is_counted:
            self._count_search(slate, empty)
        self.db.execute(
            _SAVE_SLATE,
            (slate.id, slate.at_s, slate.query, slate.words, slate.visitor, slate.page, empty, doubt, search.line),
        )
        for row in self.db.execute(_WAITING, (slate.id, UNKNOWN_SEARCH)).fetchall():
            self._save_event(ClickEvent(*row), _find_filter_reason(ClickEvent(*row), search), search)

    def _count_search(self, slate: SearchEvent, empty: int) -> None:
        hour_s = hour_start(slate.at_s)
        before = self.db.execute(_ASKED_BEFORE, (slate.words, slate.visitor, hour_s, hour_s + HOUR_S))
        first = int(before.fetchone() is None)
        self.db.execute(_COUNT, (hour_s, slate.words, first, empty, slate.query, slate.at_s))
        self._hours[hour_s].searches += 1
        self._hours[hour_s].empty += empty

    # clicks

    def _ingest_event(self, event: ClickEvent) -> None:
        if self.db.execute(_KNOWN_EVENT, event[:3]).fetchone():
            return
        self.events += 1
        row = self.db.execute(_SLATE, (event.slate,)).fetchone()
        search = _StoredSearch(*row) if row else None
        doubt = event.filter_reason or self._check_visitor_rate(
            event.visitor, event.at_s, clicks=int(event.kind == "click")
        )
        self._save_event(event, doubt or _find_filter_reason(event, search), search)

    def _save_event(self, event: ClickEvent, doubt: str, slate: _StoredSearch | None) -> None:
        if not doubt and slate is not None:
            self._count_event(event, slate)
        self.db.execute(_SAVE_EVENT, (*event[:6], doubt))

    def _count_event(self, event: ClickEvent, slate: _StoredSearch) -> None:
        """Count a view or click in the hour of its search, so that shares refer to the same searches."""
        hour_s = hour_start(slate.at_s)
        if event.kind == "view":
            self._hours[hour_s].views += 1
            return
        self._hours[hour_s].clicks += 1
        if slate.is_counted:
            self.db.execute(_COUNT_CLICK, (hour_s, slate.words))
            self._hours[hour_s].opened += self.db.execute(_OPENED, (event.slate,)).fetchone() is None

    def _check_visitor_rate(self, visitor: str, at_s: float, searches: int = 0, clicks: int = 0) -> str:
        """Count a visitor's searches and clicks in an hour; return the filter reason if no person does that many."""
        if not visitor:
            return ""
        return check_hourly_rate(*self.db.execute(_VISIT, (visitor, hour_start(at_s), searches, clicks)).fetchone())


def pack_line(line: bytes) -> bytes:
    """Compress a search log line for the event store."""
    return isal_zlib.compress(line, 1)


def unpack_line(line: bytes) -> SearchEvent | None:
    """Parse the search of a log line compressed in the event store; None if it is damaged."""
    with suppress(ValueError):
        record = decode_event(inflate(line, _MAX_LINE_BYTES))
        return record if isinstance(record, SearchEvent) else None
    return None


def _find_filter_reason(event: ClickEvent, slate: _StoredSearch | None) -> str:
    if slate is None:
        return UNKNOWN_SEARCH
    return slate.filter_reason or (NOT_SHOWN if event.kind == "click" and not slate.shows(event.page) else "")


def _is_storable(record: LoggedEvent) -> bool:
    """Check whether the event store's tables can hold the numbers of a logged event."""
    return 0.0 <= record.at_s < _LATEST_S and -_LARGEST < record.page < _LARGEST


# A query searched by this many people in the same hour identifies none of them.
MIN_ANONYMOUS_VISITORS = 3
INGEST_BYTES = 4 << 20
YEAR_S = 365 * DAY_S
VISITS_KEPT_S = 2 * DAY_S
BATCH_ROWS = 20_000

_TABLES = ("slate", "event", "asked", "hour", "visit")
_AGGREGATE = (
    "INSERT INTO asked SELECT hour_s / :day * :day, words, sum(searches), sum(visitors), sum(empty), sum(clicks), "
    "query, max(last_s) FROM asked WHERE hour_s < :before AND hour_s % :day <> 0 GROUP BY 1, 2 "
    "ON CONFLICT DO UPDATE SET searches = searches + excluded.searches, visitors = visitors + excluded.visitors, "
    "empty = empty + excluded.empty, clicks = clicks + excluded.clicks, last_s = max(last_s, excluded.last_s)"
)
_ASKED_BY = (
    f"SELECT DISTINCT cast(at_s / {HOUR_S} AS INTEGER) * {HOUR_S}, words FROM slate "  # noqa: S608 - a number
    "WHERE visitor = ? AND page = 1 AND words <> '' AND doubt = ''"
)
_RECOUNT = (
    "INSERT INTO asked SELECT :hour, words, count(*), count(DISTINCT visitor), sum(empty), "
    "sum((SELECT count(*) FROM event WHERE slate = id AND kind = 'click' AND event.doubt = '')), query, max(at_s) "
    "FROM slate WHERE words = :words AND at_s >= :hour AND at_s < :end AND page = 1 AND doubt = '' GROUP BY words"
)


class IngestResult(NamedTuple):
    """Result of ingesting search logs: new searches and clicks, bad lines, bytes read, and bytes left."""

    slates: int
    events: int
    garbage: int
    size_bytes: int
    left_bytes: int


class EventStore(SqliteStore):
    """Writer of the event store ``record.db``, which ingests the search logs of a data folder."""

    FILE = EVENTS_FILE

    def ingest_logs(self, most_bytes: int = INGEST_BYTES) -> IngestResult:
        """Ingest about ``most_bytes`` of what servers have logged since the last time, each line once."""
        with self._transaction() as db:
            folding = LogIngester(db)
            offsets = {file: int(at) for file, at in db.execute("SELECT file, at FROM folded")}
            with open_logs(self._folder, offsets) as files:
                for file in files:
                    if most_bytes > 0 and file.unread_bytes:
                        most_bytes -= self._ingest_file(file, folding, most_bytes)
                folding.write_totals()
                read = self._save_offsets(files, offsets)
                left = sum(file.unread_bytes for file in files)
                # The locks are held until the files are gone, so no one else counts their content.
                db.execute("COMMIT")
                for file in files:
                    file.remove_if_done()
        return IngestResult(folding.slates, folding.events, folding.garbage, read, left)

    def ingest_all_logs(self) -> None:
        """Ingest all search logs into the event store; half a line may be left."""
        while (folded := self.ingest_logs()).left_bytes and folded.size_bytes:
            pass

    def prune(self, now_s: float, keep_days: int) -> int:
        """Delete recorded searches older than ``keep_days`` and return the number of rows; 0 days keeps none."""
        gone = self._drop_old(now_s - keep_days * DAY_S, now_s) if keep_days else self._drop_all()
        with self._transaction() as db:
            series.downsample(db, now_s)
        self._blank_logs()
        return gone

    def erase(
        self,
        words: str | None = None,
        visitor: str | None = None,
        before_s: float | None = None,
        *,
        everything: bool = False,
    ) -> int:
        """Erase words, a visitor, a time range or everything from the event store; return the number of rows.

        Sums without a query stay, unless everything is erased. Copies of unreadable files are always deleted, since
        their content is unknown.
        """
        self.ingest_all_logs()
        with self._transaction() as db:
            before = db.total_changes
            if everything:
                for table in (*_TABLES, "imported"):
                    db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own words
            if words is not None:
                self._erase_words(words)
            if visitor is not None:
                self._erase_visitor(visitor)
            if before_s is not None:
                self._erase_before(before_s)
            gone = db.total_changes - before
        self._blank_logs()
        self._drop_damaged()
        self._vacuum()
        return gone

    def import_queries(self, rows: Iterable[tuple[str, float, int]]) -> int:
        """Import queries (words, time, count) into the event store and return their number; duplicates are ignored."""
        counted = Counter[tuple[str, float]]()
        for words, at_s, times in rows:
            counted[words, at_s] += times
        with self._transaction() as db:
            db.executemany(
                "INSERT OR REPLACE INTO imported VALUES (?, ?, ?)", ((*key, n) for key, n in counted.items())
            )
        return len(counted)

    def delete_imported(self) -> int:
        """Delete the imported queries of the event store and return their number."""
        with self._transaction() as db:
            return db.execute("DELETE FROM imported").rowcount

    def add_points(self, at_s: float, values: Mapping[str, float]) -> None:
        """Add a point to recorded time series, by the names of ``time_series.SERIES``."""
        with self._transaction() as db:
            series.add_points(db, at_s, values)

    # ingesting

    @staticmethod
    def _ingest_file(file: LogFile, folding: LogIngester, most_bytes: int) -> int:
        before = file.at
        for line in file.read_lines(most_bytes):
            folding.ingest_line(line)
        return file.at - before

    def _save_offsets(self, files: list[LogFile], offsets: dict[str, int]) -> int:
        moved = [(file.path.name, file.at) for file in files if file.at != offsets.get(file.path.name, 0)]
        keep = "INSERT INTO folded VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET at = excluded.at"
        self._db.executemany(keep, moved)
        there = frozenset(list_logs(self._folder))
        gone = [(name,) for name in offsets if name not in there]
        self._db.executemany("DELETE FROM folded WHERE file = ?", gone)
        return sum(at - offsets.get(name, 0) for name, at in moved)

    def _blank_logs(self) -> None:
        """Blank out ingested lines in the search logs of servers that run for months."""
        with self._transaction() as db:
            rows = db.execute("SELECT file, at, blanked FROM folded WHERE blanked < at").fetchall()
            for file, at, blanked in rows:
                blank_lines(self._folder / LOG_DIR / file, blanked, at)
                db.execute("UPDATE folded SET blanked = ? WHERE file = ?", (at, file))

    # deleting

    def _drop_old(self, before_s: float, now_s: float) -> int:
        gone = self._drop_slates(before_s)
        with self._transaction() as db:
            before = db.total_changes
            db.execute("DELETE FROM event WHERE at_s < ?", (before_s,))
            db.execute(
                "DELETE FROM asked WHERE hour_s < ? AND visitors < ?", (before_s - HOUR_S, MIN_ANONYMOUS_VISITORS)
            )
            db.execute("DELETE FROM visit WHERE hour_s < ?", (now_s - VISITS_KEPT_S,))
            gone += db.total_changes - before
            year_ago = {"before": now_s - YEAR_S, "day": DAY_S}
            db.execute(_AGGREGATE, year_ago)
            db.execute("DELETE FROM asked WHERE hour_s < :before AND hour_s % :day <> 0", year_ago)
        for path in self._folder.glob(DAMAGED_GLOB):
            if path.stat().st_mtime < before_s:
                path.unlink(missing_ok=True)
        return gone

    def _drop_slates(self, before_s: float) -> int:
        """Delete old recorded searches in parts, so that no other writer waits long."""
        sql = "DELETE FROM slate WHERE number IN (SELECT number FROM slate WHERE at_s < ? LIMIT ?)"
        gone = 0
        while True:
            with self._transaction() as db:
                part = db.execute(sql, (before_s, BATCH_ROWS)).rowcount
            gone += part
            if part < BATCH_ROWS:
                return gone

    def _drop_all(self) -> int:
        with self._transaction() as db:
            gone = sum(db.execute(f"DELETE FROM {table}").rowcount for table in _TABLES)  # noqa: S608 - our own words
        self._drop_damaged()
        if gone:
            self._vacuum()
        return gone

    def _drop_damaged(self) -> None:
        for path in self._folder.glob(DAMAGED_GLOB):
            path.unlink(missing_ok=True)

    def _erase_words(self, words: str) -> None:
        self._db.execute("DELETE FROM event WHERE slate IN (SELECT id FROM slate WHERE words = ?)", (words,))
        for table in ("slate", "asked", "imported"):
            self._db.execute(f"DELETE FROM {table} WHERE words = ?", (words,))  # noqa: S608 - our own words

    def _erase_visitor(self, visitor: str) -> None:
        """Erase a visitor from the event store; recompute the counts that included it from the others."""
        searches = self._db.execute(_ASKED_BY, (visitor,)).fetchall()
        own = "slate IN (SELECT id FROM slate WHERE visitor = ?)"
        self._db.execute(f"DELETE FROM event WHERE visitor = ? OR {own}", (visitor, visitor))  # noqa: S608 - our own words
        for table in ("slate", "visit"):
            self._db.execute(f"DELETE FROM {table} WHERE visitor = ?", (visitor,))  # noqa: S608 - our own words
        for hour_s, words in searches:
            self._db.execute("DELETE FROM asked WHERE hour_s = ? AND words = ?", (hour_s, words))
            self._db.execute(_RECOUNT, {"hour": hour_s, "words": words, "end": hour_s + HOUR_S})

    def _erase_before(self, before_s: float) -> None:
        """Erase everything recorded before a time; an hour that had started by then is erased as a whole."""
        for table, time in (("slate", "at_s"), ("event", "at_s"), ("asked", "hour_s"), ("imported", "at_s")):
            self._db.execute(f"DELETE FROM {table} WHERE {time} < ?", (before_s,))  # noqa: S608 - our own words

    def _vacuum(self) -> None:
        """Rewrite the event store's file, so that no copy of erased rows is left in it or in the write-ahead log."""
        with EVENTS_FILE.explain_errors(self._folder):
            self._db.execute("VACUUM")
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(
                f"{self._folder}: deleted, but another process still reads an old copy. Run the command again."
            )
