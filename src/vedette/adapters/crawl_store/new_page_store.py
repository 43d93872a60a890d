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


# The date that a list gives to a page which nobody has fetched yet is that of its birth; later ones are of changes.
_BIRTHS = (
    "SELECT id, signal_s FROM hint WHERE signal_s IS NOT NULL AND signal_kind IN ('feed', 'sitemap') "
    "AND id IN (SELECT value FROM json_each(?))"
)
_SAVE_BIRTH = (
    "INSERT OR IGNORE INTO hint (id, signal_s, signal_kind) "
    "SELECT ?1, ?2, ?3 WHERE EXISTS (SELECT 1 FROM find WHERE url_id = ?1)"
)


class AlertRow(NamedTuple):
    """Somebody wants to hear of new pages: of a place, of a query, or of both; perhaps at a webhook.

    ``alert_id`` is made once at random. What the webhook's messages are signed with is made of it and the folder's
    secret, so it is kept nowhere.
    """

    name: str
    alert_id: str
    place: str = ""
    query: str = ""
    webhook: str = ""
    reader: str = ""
    added_s: float = 0.0


class NewPageStore:
    """Finds, first crawls and watches, over the connection it is given."""

    _db: sqlite3.Connection

    def get_discoveries(self, ids: Sequence[int]) -> Mapping[int, Discovery]:
        """Those of these URLs that were news."""
        sql = "SELECT url_id, source, how, steps FROM find WHERE url_id IN (SELECT value FROM json_each(?))"
        return {row[0]: Discovery(*row) for row in self._db.execute(sql, (json.dumps(list(ids)),))} if ids else {}

    def save_discoveries(self, finds: Sequence[Discovery]) -> None:
        """URLs that are news."""
        self._db.executemany("INSERT OR IGNORE INTO find VALUES (?, ?, ?, ?)", finds)

    def find_births(self, ids: Sequence[int]) -> Mapping[int, float]:
        """When those of these URLs were made of which a list said so; it is to be asked when they are told of."""
        return dict(self._db.execute(_BIRTHS, (json.dumps(list(ids)),))) if ids else {}

    def save_births(self, said: Sequence[ChangeSignal]) -> None:
        """What lists say of the dates of URLs that are news; what was said first holds, and of others nothing is."""
        self._db.executemany(_SAVE_BIRTH, said)

    def get_first_crawls(self) -> Sequence[FirstCrawl]:
        """How the first crawls of all hosts go."""
        rows = self._db.execute("SELECT host, rules, since_s, over FROM first_crawl ORDER BY host")
        return [FirstCrawl(host, rules, since_s, bool(over)) for host, rules, since_s, over in rows]

    def save_first_crawls(self, rows: Sequence[FirstCrawl]) -> None:
        """How some of them go from now on."""
        self._db.executemany("INSERT OR REPLACE INTO first_crawl VALUES (?, ?, ?, ?)", rows)

    def list_alerts(self) -> list[AlertRow]:
        """All watches, the oldest first."""
        sql = "SELECT name, mark, place, query, webhook, reader, added_s FROM watch ORDER BY added_s, name"
        return [AlertRow(*row) for row in self._db.execute(sql)]

    def get_alert_places(self) -> list[str]:
        """Hosts and paths at which somebody waits for new pages, each once; ``*`` is everywhere."""
        sql = "SELECT DISTINCT place FROM watch WHERE place != '' ORDER BY place"
        return [place for (place,) in self._db.execute(sql)]

    def add_alert(self, row: AlertRow) -> None:
        """A new watch."""
        self._db.execute("INSERT INTO watch VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def delete_alert(self, name: str) -> None:
        """Nobody wants to hear of it any more."""
        self._db.execute("DELETE FROM watch WHERE name = ?", (name,))
