"""What becomes of a logged line: a row, and a count where nothing speaks against it.

Each slate and each event is counted once, however often and in whatever order they come: an event whose slate is not
there yet is kept with that as its doubt, which is lifted when the slate comes.
"""

import sqlite3
from collections import defaultdict
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from isal import isal_zlib

from vedette.adapters.event_store.store import HOUR_S, hour_of
from vedette.learn.bot_filter import too_many
from vedette.learn.events import Event, Record, SlateRecord, read_line

__all__ = ["NOT_SHOWN", "UNKNOWN_SLATE", "Folding", "packed", "unpacked"]

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
