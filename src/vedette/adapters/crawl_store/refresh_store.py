"""Store of refresh memory: a refresh policy's state of pages and groups, and change signals.

A part of ``CrawlStore``.
"""

import json
from collections.abc import Sequence
from math import inf
from typing import Any

from vedette.adapters.crawl_store.search_store import SearchStore
from vedette.engine.messages import ArchiveLocation
from vedette.engine.ports import ChangeSignal, KnownPage, PageRow, RefreshState

PAGE_COLUMNS = (
    "id, host, status, kind, fetched_s, changed_s, title, content_type, etag, last_modified, digest, payload_digest, "
    "location, body_bytes, file, offset, length, interval_s, due_s"
)


def page_from_row(row: Sequence[Any]) -> PageRow:
    """Build a stored page from a row of ``PAGE_COLUMNS``, with the archive location in three columns."""
    file, offset, length = row[14:17]
    place = ArchiveLocation(file, offset, length) if file is not None else None
    return PageRow._make((*row[:14], place, *row[17:]))


REFRESH_SCHEMA = """
CREATE TABLE IF NOT EXISTS refresh (
  id INTEGER PRIMARY KEY,          -- that of its page
  before_s REAL,                   -- when the fetch before the latest was made; none where the latest was the first
  gain REAL,                       -- what the latest fetch brought to search, where that was measured
  views REAL,                      -- how often people are shown it, where that was measured
  memory BLOB NOT NULL             -- the mark of a refresh policy, and its numbers of eight bytes
) STRICT;
CREATE TABLE IF NOT EXISTS refresh_group (
  name TEXT PRIMARY KEY,           -- a section or a site, by its URL; empty for everything
  memory BLOB NOT NULL             -- as above
) STRICT;
CREATE TABLE IF NOT EXISTS hint (
  id INTEGER PRIMARY KEY,          -- that of its page
  links INTEGER,                   -- how often pages had named it when it was last fetched
  signal_s REAL,                   -- when something last said that it has changed
  signal_kind TEXT                 -- and what: sitemap, feed, ping
) STRICT;
"""

_KEPT = "url.id, found_s, words, share, before_s, gain, views, hint.links, signal_s, coalesce(memory, x'')"
_JOINED = (
    "LEFT JOIN refresh ON refresh.id = url.id LEFT JOIN content ON content.id = url.id "
    "LEFT JOIN hint ON hint.id = url.id"
)
_KEPT_COUNT = len(RefreshState._fields)
_REMEMBERED = f"SELECT {_KEPT} FROM url {_JOINED} WHERE url.id IN (SELECT value FROM json_each(?))"  # noqa: S608 - our columns
_COLUMNS = ", ".join(f"page.{column.strip()}" for column in PAGE_COLUMNS.split(","))
_LOOKS = f"SELECT url.url, {_KEPT}, {_COLUMNS} FROM page JOIN url ON url.id = page.id {_JOINED}"  # noqa: S608 - our columns
_LOOKS_OF = _LOOKS + " WHERE page.id IN (SELECT value FROM json_each(?)) ORDER BY page.id"  # noqa: S608 - our columns
_LOOKS_AFTER = _LOOKS + (  # noqa: S608 - our columns
    " WHERE page.id > ? AND page.status BETWEEN 200 AND 299 "
    "AND NOT EXISTS (SELECT 1 FROM note WHERE url_id = page.id) ORDER BY page.id LIMIT ?"
)
_GONE = _LOOKS + (  # noqa: S608 - our columns
    " WHERE page.id IN (SELECT value FROM json_each(?)) AND page.status NOT BETWEEN 200 AND 299 ORDER BY page.id"
)
# A page fetched since the signal is up to date; of two signals the later one wins.
_SAID_BEFORE = (
    "SELECT page.id, max(fetched_s, coalesce(signal_s, fetched_s)) FROM page LEFT JOIN hint ON hint.id = page.id "
    "WHERE page.id IN (SELECT value FROM json_each(?))"
)
_SIGNAL = (
    "INSERT INTO hint (id, signal_s, signal_kind) VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE "
    "SET signal_s = excluded.signal_s, signal_kind = excluded.signal_kind"
)
_SAVE_LINKS = (
    "INSERT INTO hint (id, links) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET links = excluded.links "
    "WHERE hint.links IS NOT excluded.links"
)
_SAVE_GROUP = "INSERT INTO refresh_group VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET memory = excluded.memory"


class RefreshStore(SearchStore):
    """Store of refresh states of pages and groups, and of change signals, in ``state.db``."""

    def save_due_times(self, times: Sequence[tuple[int, float]]) -> None:
        """Save the refresh due times of pages."""
        self._db.executemany("UPDATE page SET due_s = ? WHERE id = ?", [(due_s, id_) for id_, due_s in times])

    def get_refresh_states(self, ids: Sequence[int]) -> dict[int, RefreshState]:
        """Return the stored refresh states of known URLs, fetched or not, by id."""
        return {row[0]: RefreshState(*row) for row in self._db.execute(_REMEMBERED, (json.dumps(list(ids)),))}

    def get_known_pages(self, ids: Sequence[int]) -> list[KnownPage]:
        """Return the stored pages among these URLs, for refresh."""
        return [_page_from_row(row) for row in self._db.execute(_LOOKS_OF, (json.dumps(list(ids)),))] if ids else []

    def scan_known_pages(self, id_: int, most: int) -> list[KnownPage]:
        """Return the next good pages after an id (status 2xx and no note), for refresh."""
        return [_page_from_row(row) for row in self._db.execute(_LOOKS_AFTER, (id_, most))]

    def get_gone_pages(self, ids: Sequence[int]) -> list[KnownPage]:
        """Return those of these URLs whose latest response was not 2xx, for refresh."""
        return [_page_from_row(row) for row in self._db.execute(_GONE, (json.dumps(list(ids)),))] if ids else []

    def add_signals(self, signals: Sequence[ChangeSignal]) -> list[int]:
        """Save change signals for refresh; return the ids of those that came after the last fetch and signal."""
        latest = {one.page: one for one in sorted(signals, key=lambda one: one.at_s)}
        since_s = dict(self._db.execute(_SAID_BEFORE, (json.dumps(list(latest)),)))
        news = [one for one in latest.values() if one.at_s > since_s.get(one.page, inf)]
        self._db.executemany(_SIGNAL, news)
        return [one.page for one in news]

    def find_signal(self, id_: int) -> tuple[float, str] | None:
        """Return time and kind of the last stored change signal of a page."""
        sql = "SELECT signal_s, signal_kind FROM hint WHERE id = ? AND signal_s IS NOT NULL"
        row = self._db.execute(sql, (id_,)).fetchone()
        return (row[0], row[1]) if row else None

    def save_refresh_states(self, rows: Sequence[RefreshState]) -> None:
        """Save the refresh states of pages in ``state.db``."""
        values = [(row.id, row.before_s, row.gain, row.views, row.memory) for row in rows]
        self._db.executemany("INSERT OR REPLACE INTO refresh VALUES (?, ?, ?, ?, ?)", values)
        self._db.executemany(_SAVE_LINKS, [(row.id, row.links) for row in rows if row.links is not None])

    def delete_refresh_states(self, ids: Sequence[int]) -> None:
        """Delete the refresh states of pages from ``state.db``."""
        self._db.executemany("DELETE FROM refresh WHERE id = ?", [(id_,) for id_ in ids])

    def count_refresh_states(self) -> int:
        """Count the pages that have a stored refresh state."""
        return int(self._db.execute("SELECT count(*) FROM refresh").fetchone()[0])

    def get_groups(self) -> list[tuple[str, bytes]]:
        """Return name and refresh memory of each group, in the order in which they were first saved."""
        return self._db.execute("SELECT name, memory FROM refresh_group ORDER BY rowid").fetchall()

    def save_groups(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """Save the refresh memory of groups."""
        self._db.executemany(_SAVE_GROUP, rows)

    def delete_groups(self) -> None:
        """Delete the refresh memory of all groups."""
        self._db.execute("DELETE FROM refresh_group")


def _page_from_row(row: Sequence[Any]) -> KnownPage:
    url, state, page = row[0], row[1 : 1 + _KEPT_COUNT], row[1 + _KEPT_COUNT :]
    return KnownPage(url, page_from_row(page), RefreshState(*state))
