"""The record of searches, written: log files are folded in, old rows go, and what is to be forgotten is.

One process, the recorder, writes all the time. Another may write beside it now and then: each change is one
transaction that begins by taking the pen, and how far the log files were read is part of it.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import NamedTuple

from isal import isal_zlib

from vedette.adapters.event_store import time_series as series
from vedette.adapters.event_store.search_log import LOGS, LogFile, blank, log_names, open_logs
from vedette.adapters.event_store.store import DAMAGED, DAY_S, HOUR_S, RECORD_FILE, hour_of
from vedette.errors import StoreBusy
from vedette.learn.bot_filter import too_many
from vedette.learn.events import Event, Record, SlateRecord, read_line

__all__ = ["MANY", "NOT_SHOWN", "UNKNOWN_SLATE", "Folded", "Folding", "RecordBook", "packed", "unpacked"]

# Each slate and each event is counted once, however often and in whatever order they come: an event whose slate is not
# there yet is kept with that as its doubt, which is lifted when the slate comes.


UNKNOWN_SLATE = "of a search that is not known"
NOT_SHOWN = "not among the results"

_LATEST_S = 1e11  # some thousand years; what lies beyond is no time
_LARGEST = 1 << 62

_KEEP_SLATE = (
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
_KEEP_EVENT = "INSERT OR REPLACE INTO event VALUES (?, ?, ?, ?, ?, ?, ?)"
_KNOWN_EVENT = "SELECT 1 FROM event WHERE slate = ? AND kind = ? AND page = ?"
_COUNT_CLICK = "UPDATE asked SET clicks = clicks + 1 WHERE hour_s = ? AND words = ?"


@dataclass(slots=True)
class _Hour:
    """What an hour gained."""

    searches: int = 0
    empty: int = 0
    views: int = 0
    clicks: int = 0
    opened: int = 0


class _Slate(NamedTuple):
    """What is to be known of a slate to judge an event."""

    at_s: float
    words: str
    page: int
    doubt: str
    line: bytes

    @property
    def counts(self) -> bool:
        """Whether it was counted as a search: further pages of results are the same search."""
        return not self.doubt and self.page == 1 and bool(self.words)

    def shows(self, page: int) -> bool:
        """Whether a page was among its results."""
        record = unpacked(self.line)
        return record is not None and any(shown.page == page for shown in record.results)


@dataclass(slots=True)
class Folding:
    """One batch of lines on its way into the tables; the caller commits."""

    db: sqlite3.Connection
    slates: int = 0
    events: int = 0
    garbage: int = 0
    _hours: defaultdict[int, _Hour] = field(default_factory=lambda: defaultdict(_Hour))

    def take(self, line: bytes) -> None:
        """Whatever it is; an empty line is nothing."""
        record = read_line(line) if line else None
        if isinstance(record, SlateRecord) and _storable(record):
            self._slate(record, line)
        elif isinstance(record, Event) and _storable(record):
            self._event(record)
        elif line:
            self.garbage += 1

    def finish(self) -> None:
        """Write the sums."""
        self.db.executemany(_HOUR, ((hour_s, *astuple(gained)) for hour_s, gained in self._hours.items()))
        self._hours.clear()

    # slates

    def _slate(self, slate: SlateRecord, line: bytes) -> None:
        if self.db.execute("SELECT 1 FROM slate WHERE id = ?", (slate.id,)).fetchone():
            return
        self.slates += 1
        doubt = slate.doubt or self._visited(slate.visitor, slate.at_s, searches=1)
        known = _Slate(slate.at_s, slate.words, slate.page, doubt, packed(line))
        empty = int(not slate.total)
        if known.counts:
            self._count(slate, empty)
        self.db.execute(
            _KEEP_SLATE,
            (slate.id, slate.at_s, slate.query, slate.words, slate.visitor, slate.page, empty, doubt, known.line),
        )
        for row in self.db.execute(_WAITING, (slate.id, UNKNOWN_SLATE)).fetchall():
            self._keep(Event(*row), _doubt_by_slate(Event(*row), known), known)

    def _count(self, slate: SlateRecord, empty: int) -> None:
        hour_s = hour_of(slate.at_s)
        before = self.db.execute(_ASKED_BEFORE, (slate.words, slate.visitor, hour_s, hour_s + HOUR_S))
        first = int(before.fetchone() is None)
        self.db.execute(_COUNT, (hour_s, slate.words, first, empty, slate.query, slate.at_s))
        self._hours[hour_s].searches += 1
        self._hours[hour_s].empty += empty

    # events

    def _event(self, event: Event) -> None:
        if self.db.execute(_KNOWN_EVENT, event[:3]).fetchone():
            return
        self.events += 1
        row = self.db.execute(_SLATE, (event.slate,)).fetchone()
        known = _Slate(*row) if row else None
        doubt = event.doubt or self._visited(event.visitor, event.at_s, clicks=int(event.kind == "click"))
        self._keep(event, doubt or _doubt_by_slate(event, known), known)

    def _keep(self, event: Event, doubt: str, slate: _Slate | None) -> None:
        if not doubt and slate is not None:
            self._count_event(event, slate)
        self.db.execute(_KEEP_EVENT, (*event[:6], doubt))

    def _count_event(self, event: Event, slate: _Slate) -> None:
        """It belongs to the hour of its search, so that shares are shares of the same searches."""
        hour_s = hour_of(slate.at_s)
        if event.kind == "view":
            self._hours[hour_s].views += 1
            return
        self._hours[hour_s].clicks += 1
        if slate.counts:
            self.db.execute(_COUNT_CLICK, (hour_s, slate.words))
            self._hours[hour_s].opened += self.db.execute(_OPENED, (event.slate,)).fetchone() is None

    def _visited(self, visitor: str, at_s: float, searches: int = 0, clicks: int = 0) -> str:
        """Count what a visitor does in an hour; why that is more than a person's. Who has no mark speaks for many."""
        if not visitor:
            return ""
        return too_many(*self.db.execute(_VISIT, (visitor, hour_of(at_s), searches, clicks)).fetchone())


def packed(line: bytes) -> bytes:
    """A line as it is kept."""
    return isal_zlib.compress(line, 1)


def unpacked(line: bytes) -> SlateRecord | None:
    """The slate of a line that was kept."""
    record = read_line(isal_zlib.decompress(line))
    return record if isinstance(record, SlateRecord) else None


def _doubt_by_slate(event: Event, slate: _Slate | None) -> str:
    if slate is None:
        return UNKNOWN_SLATE
    return slate.doubt or (NOT_SHOWN if event.kind == "click" and not slate.shows(event.page) else "")


def _storable(record: Record) -> bool:
    """Whether its numbers are such that the tables can hold them."""
    return 0.0 <= record.at_s < _LATEST_S and -_LARGEST < record.page < _LARGEST


# A query that so many asked in the same hour says nothing of any of them.
MANY = 3
FOLD_BYTES = 4 << 20
YEAR_S = 365 * DAY_S
VISITS_KEPT_S = 2 * DAY_S
ROWS_AT_ONCE = 20_000

_TABLES = ("slate", "event", "asked", "hour", "visit")
_ADD_UP = (
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


class Folded(NamedTuple):
    """What a fold brought: new slates and events, lines that were none, bytes read, and bytes left for the next."""

    slates: int
    events: int
    garbage: int
    size_bytes: int
    left_bytes: int


class RecordBook:
    """``record.db`` and the log files of a data folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = RECORD_FILE.open(folder)

    def close(self) -> None:
        """Let go."""
        self._db.close()

    def fold(self, most_bytes: int = FOLD_BYTES) -> Folded:
        """Take in what the servers have logged since the last time, about that many bytes of it, each line once."""
        with self._writing() as db:
            folding = Folding(db)
            offsets = {file: int(at) for file, at in db.execute("SELECT file, at FROM folded")}
            with open_logs(self._folder, offsets) as files:
                for file in files:
                    if most_bytes > 0 and file.left:
                        most_bytes -= self._take(file, folding, most_bytes)
                folding.finish()
                read = self._keep_offsets(files, offsets)
                left = sum(file.left for file in files)
                # The locks are held until the files are gone, so nobody else counts on what is in them.
                db.execute("COMMIT")
                for file in files:
                    file.remove_if_done()
        return Folded(folding.slates, folding.events, folding.garbage, read, left)

    def fold_all(self) -> None:
        """Take in all of it; half a line of somebody who is writing may be left."""
        while (folded := self.fold()).left_bytes and folded.size_bytes:
            pass

    def tidy(self, now_s: float, keep_days: int) -> int:
        """Let go of what is older than may be kept; how many rows went. With 0 days nothing of any search stays."""
        gone = self._drop_old(now_s - keep_days * DAY_S, now_s) if keep_days else self._drop_all()
        with self._writing() as db:
            series.thin_out(db, now_s)
        self._blank_logs()
        return gone

    def forget(
        self,
        words: str | None = None,
        visitor: str | None = None,
        before_s: float | None = None,
        *,
        everything: bool = False,
    ) -> int:
        """Delete every trace of some words, of a visitor, of a time, or of all; how many rows went.

        Sums that name no query stay, unless everything goes. Copies of files that could not be read go in any case,
        as nobody can say what is in them.
        """
        self.fold_all()
        with self._writing() as db:
            before = db.total_changes
            if everything:
                for table in (*_TABLES, "imported"):
                    db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own words
            if words is not None:
                self._forget_words(words)
            if visitor is not None:
                self._forget_visitor(visitor)
            if before_s is not None:
                self._forget_before(before_s)
            gone = db.total_changes - before
        self._blank_logs()
        self._drop_damaged()
        self._rewrite()
        return gone

    def import_queries(self, rows: Iterable[tuple[str, float, int]]) -> int:
        """Queries from elsewhere: words, when, how often; the same rows again change nothing. How many there are."""
        counted = Counter[tuple[str, float]]()
        for words, at_s, times in rows:
            counted[words, at_s] += times
        with self._writing() as db:
            db.executemany(
                "INSERT OR REPLACE INTO imported VALUES (?, ?, ?)", ((*key, n) for key, n in counted.items())
            )
        return len(counted)

    def drop_imported(self) -> int:
        """Let go of them; how many there were."""
        with self._writing() as db:
            return db.execute("DELETE FROM imported").rowcount

    def note(self, at_s: float, values: Mapping[str, float]) -> None:
        """Numbers of a moment, by the names of ``series.SERIES``."""
        with self._writing() as db:
            series.note(db, at_s, values)

    # folding

    @staticmethod
    def _take(file: LogFile, folding: Folding, most_bytes: int) -> int:
        before = file.at
        for line in file.read(most_bytes):
            folding.take(line)
        return file.at - before

    def _keep_offsets(self, files: list[LogFile], offsets: dict[str, int]) -> int:
        moved = [(file.path.name, file.at) for file in files if file.at != offsets.get(file.path.name, 0)]
        keep = "INSERT INTO folded VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET at = excluded.at"
        self._db.executemany(keep, moved)
        there = frozenset(log_names(self._folder))
        gone = [(name,) for name in offsets if name not in there]
        self._db.executemany("DELETE FROM folded WHERE file = ?", gone)
        return sum(at - offsets.get(name, 0) for name, at in moved)

    def _blank_logs(self) -> None:
        """What is folded need not stand in the files of servers that run on for months."""
        with self._writing() as db:
            rows = db.execute("SELECT file, at, blanked FROM folded WHERE blanked < at").fetchall()
            for file, at, blanked in rows:
                blank(self._folder / LOGS / file, blanked, at)
                db.execute("UPDATE folded SET blanked = ? WHERE file = ?", (at, file))

    # letting go

    def _drop_old(self, before_s: float, now_s: float) -> int:
        gone = self._drop_slates(before_s)
        with self._writing() as db:
            before = db.total_changes
            db.execute("DELETE FROM event WHERE at_s < ?", (before_s,))
            db.execute("DELETE FROM asked WHERE hour_s < ? AND visitors < ?", (before_s - HOUR_S, MANY))
            db.execute("DELETE FROM visit WHERE hour_s < ?", (now_s - VISITS_KEPT_S,))
            gone += db.total_changes - before
            year_ago = {"before": now_s - YEAR_S, "day": DAY_S}
            db.execute(_ADD_UP, year_ago)
            db.execute("DELETE FROM asked WHERE hour_s < :before AND hour_s % :day <> 0", year_ago)
        for path in self._folder.glob(DAMAGED):
            if path.stat().st_mtime < before_s:
                path.unlink(missing_ok=True)
        return gone

    def _drop_slates(self, before_s: float) -> int:
        """A part at a time, so that nobody waits long for the pen."""
        sql = "DELETE FROM slate WHERE number IN (SELECT number FROM slate WHERE at_s < ? LIMIT ?)"
        gone = 0
        while True:
            with self._writing() as db:
                part = db.execute(sql, (before_s, ROWS_AT_ONCE)).rowcount
            gone += part
            if part < ROWS_AT_ONCE:
                return gone

    def _drop_all(self) -> int:
        with self._writing() as db:
            gone = sum(db.execute(f"DELETE FROM {table}").rowcount for table in _TABLES)  # noqa: S608 - our own words
        self._drop_damaged()
        if gone:
            self._rewrite()
        return gone

    def _drop_damaged(self) -> None:
        for path in self._folder.glob(DAMAGED):
            path.unlink(missing_ok=True)

    def _forget_words(self, words: str) -> None:
        self._db.execute("DELETE FROM event WHERE slate IN (SELECT id FROM slate WHERE words = ?)", (words,))
        for table in ("slate", "asked", "imported"):
            self._db.execute(f"DELETE FROM {table} WHERE words = ?", (words,))  # noqa: S608 - our own words

    def _forget_visitor(self, visitor: str) -> None:
        """Counts that the visitor is part of are made again from the others."""
        asked = self._db.execute(_ASKED_BY, (visitor,)).fetchall()
        own = "slate IN (SELECT id FROM slate WHERE visitor = ?)"
        self._db.execute(f"DELETE FROM event WHERE visitor = ? OR {own}", (visitor, visitor))  # noqa: S608 - our own words
        for table in ("slate", "visit"):
            self._db.execute(f"DELETE FROM {table} WHERE visitor = ?", (visitor,))  # noqa: S608 - our own words
        for hour_s, words in asked:
            self._db.execute("DELETE FROM asked WHERE hour_s = ? AND words = ?", (hour_s, words))
            self._db.execute(_RECOUNT, {"hour": hour_s, "words": words, "end": hour_s + HOUR_S})

    def _forget_before(self, before_s: float) -> None:
        """An hour that had begun by then goes as a whole."""
        for table, time in (("slate", "at_s"), ("event", "at_s"), ("asked", "hour_s"), ("imported", "at_s")):
            self._db.execute(f"DELETE FROM {table} WHERE {time} < ?", (before_s,))  # noqa: S608 - our own words

    def _rewrite(self) -> None:
        """Leave no copy behind: rows that were moved within the file leave some, and so does the log of changes."""
        with RECORD_FILE.said_plainly(self._folder):
            self._db.execute("VACUUM")
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise StoreBusy(
                f"{self._folder}: it is deleted, but somebody reads an older copy of it: do the same again in a moment"
            )

    def _writing(self) -> AbstractContextManager[sqlite3.Connection]:
        return RECORD_FILE.writing(self._db, self._folder)
