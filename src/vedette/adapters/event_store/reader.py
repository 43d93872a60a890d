"""Event reader: read recorded searches, clicks and time series from ``record.db`` while it is written.

Each query uses its own connection: the file may be replaced between two of them. The result is empty if nothing was
recorded.
"""

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.event_store.schema import EVENTS_FILE, HOUR_S, hour_start
from vedette.adapters.event_store.store import unpack_line
from vedette.adapters.event_store.time_series import SERIES
from vedette.learn.events import ClickEvent, SearchEvent

BATCH_SEARCHES = 500
BATCH_COUNTS = 10_000

_BY_WORDS = (
    "SELECT words, query, sum(searches) AS searches, sum(visitors), sum(empty) AS empty, sum(clicks), max(last_s) "
    "FROM asked WHERE hour_s > ? GROUP BY words "
)
_COUNTS = "SELECT hour_s, words, searches FROM asked WHERE (hour_s, words) > (?, ?) ORDER BY hour_s, words LIMIT ?"
_SPAN = "SELECT min(at_s), max(at_s), count(*) FROM series WHERE name = ? AND at_s >= ?"
_ALL_POINTS = "SELECT at_s, value FROM series WHERE name = ? AND at_s >= ? ORDER BY at_s"
_POINTS = (  # of each interval the last one
    "SELECT max(at_s), value FROM series WHERE name = ?1 AND at_s >= ?2 "
    "GROUP BY min(cast((at_s - ?2) / ?3 AS INTEGER), ?4 - 1) ORDER BY 1"
)
_LATEST = (
    "SELECT each.value, (SELECT value FROM series WHERE name = each.value ORDER BY at_s DESC LIMIT 1) "
    "FROM json_each(?) AS each"
)
_SLATES = "SELECT number, doubt, line FROM slate WHERE number > ? AND at_s >= ? ORDER BY number LIMIT ?"
_HOURS = (
    "SELECT coalesce(sum(searches), 0), coalesce(sum(empty), 0), coalesce(sum(views), 0), coalesce(sum(clicks), 0), "
    "coalesce(sum(opened), 0) FROM hour WHERE hour_s > ?"
)
_FILTER_REASONS = (
    "SELECT doubt, count(*) FROM slate WHERE at_s >= ?1 AND doubt <> '' GROUP BY doubt UNION ALL "
    "SELECT doubt, count(*) FROM event WHERE at_s >= ?1 AND doubt <> '' GROUP BY doubt"
)


class QueryCount(NamedTuple):
    """Event store counts of one query: its words, how it was last typed, searches, visitors and clicks.

    ``visitors`` are the distinct ones within each hour, summed. ``empty`` is how many of the searches found nothing.
    """

    words: str
    query: str
    searches: int
    visitors: int
    empty: int
    clicks: int
    last_s: float


@dataclass(frozen=True, slots=True)
class Totals:
    """Event store sums over all queries; ``filtered`` has uncounted events, by reason.

    ``opened`` is how many searches had at least one result opened.
    """

    searches: int = 0
    empty: int = 0
    views: int = 0
    clicks: int = 0
    filtered: dict[str, int] = field(default_factory=dict)
    opened: int = 0


class EventReader:
    """Reader of the event store ``record.db``; counts are by whole hours, beginning with that of ``since_s``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def list_top_queries(self, since_s: float, most: int) -> list[QueryCount]:
        """List the most frequent recorded queries."""
        rows = self._query(f"{_BY_WORDS} ORDER BY searches DESC, words LIMIT ?", since_s - HOUR_S, most)
        return [QueryCount(*row) for row in rows]

    def list_empty_queries(self, since_s: float, most: int) -> list[QueryCount]:
        """List the recorded queries without results, most frequent first."""
        sql = f"{_BY_WORDS} HAVING sum(empty) > 0 ORDER BY empty DESC, words LIMIT ?"
        return [QueryCount(*row) for row in self._query(sql, since_s - HOUR_S, most)]

    def iter_counts(self, since_s: float) -> Iterator[tuple[int, str, int]]:
        """Yield the recorded searches of each hour by query words, oldest hour first."""
        last: tuple[int, str] = (hour_start(max(since_s, 0.0)) - 1, "")
        while rows := self._query(_COUNTS, *last, BATCH_COUNTS):
            yield from rows
            last = rows[-1][:2]

    def list_imported(self) -> list[tuple[str, float, int]]:
        """List imported queries of the event store: words, time, count."""
        return self._query("SELECT words, at_s, times FROM imported ORDER BY words, at_s")

    def read_series(self, name: str, since_s: float, most_points: int) -> list[tuple[float, float]]:
        """Read a recorded time series, thinned evenly to ``most_points``; it always has the newest point."""
        first, last, points = self._query_row(_SPAN, name, since_s) or (0.0, 0.0, 0)
        if points <= most_points:
            return self._query(_ALL_POINTS, name, since_s)
        most = max(most_points, 1)
        return self._query(_POINTS, name, first, (last - first) / most, most)

    def read_latest(self) -> dict[str, float]:
        """Read the newest value of each recorded time series."""
        rows = self._query(_LATEST, json.dumps(list(SERIES)))
        return {name: value for name, value in rows if value is not None}

    def read_totals(self, since_s: float) -> Totals:
        """Sum recorded searches and clicks over all queries."""
        searches, empty, views, clicks, opened = self._query_row(_HOURS, since_s - HOUR_S) or (0, 0, 0, 0, 0)
        doubted: dict[str, int] = {}
        for doubt, times in self._query(_FILTER_REASONS, since_s):
            doubted[doubt] = doubted.get(doubt, 0) + times
        return Totals(searches, empty, views, clicks, doubted, opened)

    def find_search(self, id_: str) -> SearchEvent | None:
        """Find a recorded search by its id."""
        row = self._query_row("SELECT doubt, line FROM slate WHERE id = ?", id_)
        return _parse_search(*row) if row else None

    def iter_searches(self, since_s: float) -> Iterator[SearchEvent]:
        """Yield all recorded searches, in the order in which they were recorded."""
        last = 0
        while rows := self._query(_SLATES, last, since_s, BATCH_SEARCHES):
            last = rows[-1][0]
            yield from filter(None, (_parse_search(doubt, line) for _, doubt, line in rows))

    def list_clicks(self, slate: str) -> list[ClickEvent]:
        """List the recorded views and clicks of a search."""
        sql = "SELECT slate, kind, page, at_s, after_s, visitor, doubt FROM event WHERE slate = ? ORDER BY at_s"
        return [ClickEvent(*row) for row in self._query(sql, slate)]

    def _query(self, sql: str, *values: float | str) -> list[Any]:
        return EVENTS_FILE.query(self._folder, sql, *values)

    def _query_row(self, sql: str, *values: float | str) -> Any:  # noqa: ANN401 - as many columns as were requested
        return next(iter(self._query(sql, *values)), None)


def _parse_search(doubt: str, line: bytes) -> SearchEvent | None:
    """Parse a recorded search from its log line, with the filter reason that it got later."""
    record = unpack_line(line)
    return record._replace(filter_reason=doubt) if record is not None else None


_EVENTS = (
    "SELECT slate, kind, page, at_s, after_s, visitor, doubt FROM event WHERE at_s >= ? AND doubt = '' ORDER BY at_s"
)


def load_latest_searches(folder: Path, since_s: float, most: int) -> list[SearchEvent]:
    """Load the latest recorded searches that were not filtered out, oldest first."""
    counting = (slate for slate in EventReader(folder).iter_searches(since_s) if not slate.filter_reason)
    return list(deque(counting, most))


def load_counted_clicks(folder: Path, since_s: float) -> list[ClickEvent]:
    """Load all recorded views and clicks that were not filtered out as a bot's."""
    return [ClickEvent(*row) for row in EVENTS_FILE.query(folder, _EVENTS, since_s)]
