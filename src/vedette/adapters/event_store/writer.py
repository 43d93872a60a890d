"""The record of searches, written: log files are folded in, old rows go, and what is to be forgotten is.

One process, the recorder, writes all the time. Another may write beside it now and then: each change is one
transaction that begins by taking the pen, and how far the log files were read is part of it.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.event_store import time_series as series
from vedette.adapters.event_store.record_folding import Folding
from vedette.adapters.event_store.search_log import LogFile, blank, log_names, open_logs
from vedette.adapters.event_store.slate_log import LOGS
from vedette.adapters.event_store.store import DAMAGED, DAY_S, HOUR_S, RECORD_FILE
from vedette.errors import StoreBusy

__all__ = ["MANY", "Folded", "RecordBook"]

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
