"""Store of discoveries, first crawls and alert definitions; a part of ``CrawlStore``."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vedette.engine.ports import ChangeSignal, Discovery, FirstCrawl

DISCOVERY_SCHEMA = """
CREATE TABLE IF NOT EXISTS find (
  url_id INTEGER PRIMARY KEY,
  source INTEGER NOT NULL,         -- the page that named it
  how TEXT NOT NULL,               -- what that is: page, feed, sitemap, ...
  steps INTEGER NOT NULL           -- pages between it and one that was looked at again
) STRICT;
CREATE TABLE IF NOT EXISTS first_crawl (
  host INTEGER PRIMARY KEY,
  rules INTEGER NOT NULL,          -- a number for the scope of its sites
  since_s REAL NOT NULL,           -- since when these rules hold
  over INTEGER NOT NULL            -- 1 when nothing waited any more
) STRICT;
CREATE TABLE IF NOT EXISTS watch (
  name TEXT PRIMARY KEY,
  mark TEXT NOT NULL,              -- by which its finds are known, also when it was removed and came back
  place TEXT NOT NULL,             -- host or host/path; * for everything, empty for a query alone
  query TEXT NOT NULL,
  webhook TEXT NOT NULL,           -- the URL that is told; empty for none
  reader TEXT NOT NULL,            -- who the webhook is for, where private pages may go there
  added_s REAL NOT NULL
) STRICT;
"""


# The date that a list gives for a page that was never fetched is its publication; later dates are changes.
_BIRTHS = (
    "SELECT id, signal_s FROM hint WHERE signal_s IS NOT NULL AND signal_kind IN ('feed', 'sitemap') "
    "AND id IN (SELECT value FROM json_each(?))"
)
_SAVE_BIRTH = (
    "INSERT OR IGNORE INTO hint (id, signal_s, signal_kind) "
    "SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM find WHERE url_id = ?1)"
)


class AlertRow(NamedTuple):
    """An alert definition: new pages of a place, for a query, or both; optionally with a webhook.

    ``alert_id`` is random. The key that signs the webhook's messages is derived from it and the folder's secret, so it
    is not stored.
    """

    name: str
    alert_id: str
    place: str = ""
    query: str = ""
    webhook: str = ""
    reader: str = ""
    added_s: float = 0.0


class NewPageStore:
    """Store of discoveries, first crawls and alert definitions in ``state.db``."""

    _db: sqlite3.Connection

    def get_discoveries(self, ids: Sequence[int]) -> Mapping[int, Discovery]:
        """Return the stored discoveries of new pages among these URLs, by id."""
        sql = "SELECT url_id, source, how, steps FROM find WHERE url_id IN (SELECT value FROM json_each(?))"
        return {row[0]: Discovery(*row) for row in self._db.execute(sql, (json.dumps(list(ids)),))} if ids else {}

    def save_discoveries(self, finds: Sequence[Discovery]) -> None:
        """Save discoveries of new pages; the first one of a URL counts."""
        self._db.executemany("INSERT OR IGNORE INTO find VALUES (?, ?, ?, ?)", finds)

    def find_births(self, ids: Sequence[int]) -> Mapping[int, float]:
        """Return the publication dates that feeds and sitemaps gave for new pages; call it when they are reported."""
        return dict(self._db.execute(_BIRTHS, (json.dumps(list(ids)),))) if ids else {}

    def save_births(self, births: Sequence[ChangeSignal]) -> None:
        """Save the publication dates of discovered new pages; the first one counts, other URLs are ignored."""
        self._db.executemany(_SAVE_BIRTH, births)

    def get_first_crawls(self) -> Sequence[FirstCrawl]:
        """Return the stored state of the first crawl of each host."""
        rows = self._db.execute("SELECT host, rules, since_s, over FROM first_crawl ORDER BY host")
        return [FirstCrawl(host, rules, since_s, bool(over)) for host, rules, since_s, over in rows]

    def save_first_crawls(self, rows: Sequence[FirstCrawl]) -> None:
        """Save the state of first crawls of hosts."""
        self._db.executemany("INSERT OR REPLACE INTO first_crawl VALUES (?, ?, ?, ?)", rows)

    def list_alerts(self) -> list[AlertRow]:
        """List all stored alert definitions, oldest first."""
        sql = "SELECT name, mark, place, query, webhook, reader, added_s FROM watch ORDER BY added_s, name"
        return [AlertRow(*row) for row in self._db.execute(sql)]

    def get_alert_places(self) -> list[str]:
        """Return the hosts and paths that stored alerts watch, each once; ``*`` is everywhere."""
        sql = "SELECT DISTINCT place FROM watch WHERE place != '' ORDER BY place"
        return [place for (place,) in self._db.execute(sql)]

    def add_alert(self, row: AlertRow) -> None:
        """Add an alert definition to the crawl store."""
        self._db.execute("INSERT INTO watch VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def delete_alert(self, name: str) -> None:
        """Delete an alert definition from the crawl store."""
        self._db.execute("DELETE FROM watch WHERE name = ?", (name,))
