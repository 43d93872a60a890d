"""Crawl store: pages, robots.txt copies, hosts, sites, notes and archive files in ``state.db``.

Nothing is committed here: the coordinator commits once for a whole batch of reports.
"""

import json
import sqlite3
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, NamedTuple

from isal import isal_zlib

from vedette.adapters.ads.campaign_store import AD_SCHEMA
from vedette.adapters.crawl_store.content_store import CONTENT_SCHEMA, ContentStore
from vedette.adapters.crawl_store.new_page_store import DISCOVERY_SCHEMA, NewPageStore
from vedette.adapters.crawl_store.operator_store import OPERATOR_SCHEMA, OperatorStore
from vedette.adapters.crawl_store.refresh_store import PAGE_COLUMNS, REFRESH_SCHEMA, RefreshStore, page_from_row
from vedette.adapters.crawl_store.search_store import SEARCH_SCHEMA
from vedette.adapters.crawl_store.unlisted_host_store import UNLISTED_HOST_SCHEMA, UnlistedHostStore
from vedette.adapters.files.inflate import inflate
from vedette.adapters.files.sqlite_file import execute_schemas
from vedette.engine.ports import DuePage, FailedUrl, HostRow, Outlinks, PageRow, RetryCounts
from vedette.errors import StoreCorrupt
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots.state import RobotsState, state_from_json, state_to_json
from vedette.model import Origin, Site, origin_of, partition_of

_SCHEMA = """
CREATE TABLE IF NOT EXISTS page (
  id INTEGER PRIMARY KEY,          -- that of its url
  partition INTEGER NOT NULL,
  host INTEGER NOT NULL,
  status INTEGER NOT NULL,
  kind TEXT NOT NULL,              -- page, document, feed, sitemap, other
  fetched_s REAL NOT NULL,
  changed_s REAL NOT NULL,
  title TEXT NOT NULL,
  content_type TEXT NOT NULL,
  etag TEXT NOT NULL,
  last_modified TEXT NOT NULL,
  digest TEXT NOT NULL,            -- of the decoded body
  payload_digest TEXT NOT NULL,    -- of the body as sent, as the archive writes it
  location TEXT NOT NULL,          -- where a redirect leads
  body_bytes INTEGER NOT NULL,
  file TEXT,                       -- archive file, and where in it
  offset INTEGER,
  length INTEGER,
  interval_s REAL NOT NULL,
  due_s REAL NOT NULL,             -- when it is to be fetched again; infinity for never
  links BLOB NOT NULL              -- all out-links within the sites, packed
) STRICT;
CREATE INDEX IF NOT EXISTS page_due ON page (due_s);
CREATE INDEX IF NOT EXISTS page_place ON page (file, offset, length) WHERE file IS NOT NULL;
CREATE TABLE IF NOT EXISTS note (
  url_id INTEGER PRIMARY KEY,
  why TEXT NOT NULL,               -- why it was refused or could not be fetched
  at_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS retry (
  url_id INTEGER PRIMARY KEY,
  rounds INTEGER NOT NULL,         -- how often a few attempts in a row have failed since its last answer
  since_s REAL NOT NULL,           -- when the first of them failed
  due_s REAL NOT NULL              -- when it is tried again; infinity while it waits and once it is given up
) STRICT;
CREATE INDEX IF NOT EXISTS retry_due ON retry (due_s);
CREATE TABLE IF NOT EXISTS robots (
  origin TEXT PRIMARY KEY,
  partition INTEGER NOT NULL,
  state TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS host_state (
  name TEXT PRIMARY KEY,
  partition INTEGER NOT NULL,
  ready_s REAL NOT NULL,           -- world time before which it is not asked
  strain INTEGER NOT NULL,
  trouble TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS site (
  id INTEGER PRIMARY KEY,
  start TEXT NOT NULL UNIQUE,
  settings TEXT NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  added_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS archive (
  file TEXT PRIMARY KEY,
  length INTEGER NOT NULL,         -- acknowledged: what lies beyond it is cut off at a start
  newest_s REAL NOT NULL           -- nothing in it was fetched later
) STRICT;
CREATE TABLE IF NOT EXISTS life (
  what TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;
"""

MAX_LINKS_BYTES = 1 << 28

_SAVE_PAGE = f"INSERT OR REPLACE INTO page VALUES ({', '.join('?' * 21)})"  # noqa: S608 - question marks only


@dataclass(frozen=True, slots=True)
class SiteRow:
    """A stored site and its state, running or paused."""

    site: Site
    paused: bool
    added_s: float


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of the crawl store that are missing."""
    own = (_SCHEMA, CONTENT_SCHEMA, SEARCH_SCHEMA, OPERATOR_SCHEMA)
    execute_schemas(connection, *own, UNLISTED_HOST_SCHEMA, REFRESH_SCHEMA, DISCOVERY_SCHEMA, AD_SCHEMA)


class DueUrl(NamedTuple):
    """A known page that becomes due soon."""

    url: str
    page: PageRow


class CrawlStore(ContentStore, OperatorStore, UnlistedHostStore, RefreshStore, NewPageStore):
    """Crawl store over ``state.db``: implements ``engine.ports.CrawlStore``, and more for start-up and commands."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._partitions: dict[int, int] = {}

    # the coordinator

    def forget_versions(self, ids: Sequence[int]) -> None:
        """Forget the stored versions of pages that cannot be trusted: they are fetched unconditionally next."""
        sql = "UPDATE page SET etag = '', last_modified = '', digest = '', payload_digest = '' WHERE id = ?"
        self._db.executemany(sql, [(id_,) for id_ in ids])

    def save_pages(
        self, pages: Sequence[tuple[PageRow, Outlinks | None]], with_content: Container[int] = frozenset()
    ) -> None:
        """Save the latest responses of pages, each with its links; None keeps the stored links.

        The contents of ``with_content`` are saved next; that queues them for the index.
        """
        unchanged = json.dumps([page.id for page, links in pages if links is None])
        anchors = dict(
            self._db.execute("SELECT id, links FROM page WHERE id IN (SELECT value FROM json_each(?))", (unchanged,))
        )
        rows = [
            (
                *(
                    page[0],
                    self._get_partition(page.host),
                    *page[1:14],
                    *(page.place or (None, None, None)),
                    *page[15:],
                ),
                _pack_anchors(*links) if links is not None else anchors.get(page.id) or _pack_anchors((), ()),
            )
            for page, links in pages
        ]
        self._db.executemany(_SAVE_PAGE, rows)
        ids = json.dumps([page.id for page, _ in pages])
        for table in ("note", "retry"):
            self._db.execute(f"DELETE FROM {table} WHERE url_id IN (SELECT value FROM json_each(?))", (ids,))  # noqa: S608 - our own names
        self.enqueue_page_ids([page.id for page, _ in pages if page.id not in with_content])

    def get_pages(self, ids: Sequence[int]) -> Mapping[int, PageRow]:
        """Return the stored pages among these URLs, by id, from the crawl store."""
        sql = f"SELECT {PAGE_COLUMNS} FROM page WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608 - our columns
        return {row[0]: page_from_row(row) for row in self._db.execute(sql, (json.dumps(list(ids)),))} if ids else {}

    def add_note(self, id_: int, why: str, at_s: float) -> None:
        """Note in the crawl store why a URL was refused or could not be fetched."""
        self._db.execute("INSERT OR REPLACE INTO note VALUES (?, ?, ?)", (id_, why[:500], at_s))

    def list_pages(self, host: int, first: int, last: int) -> list[tuple[int, str]]:
        """List the id and URL of the stored pages of a host in a range of ids."""
        sql = (
            "SELECT id, url FROM url WHERE id BETWEEN ? AND ? AND host = ? AND id IN (SELECT id FROM page) ORDER BY id"
        )
        return self._db.execute(sql, (first, last, host)).fetchall()

    def take_refused(self, host: int, why: str, first: int, last: int) -> list[int]:
        """Take URLs of a host and a range of ids that were refused for a reason; their notes are deleted."""
        sql = (
            "SELECT url_id FROM note JOIN url ON id = url_id "
            "WHERE url_id BETWEEN ? AND ? AND host = ? AND substr(why, 1, ?) = ? ORDER BY url_id"
        )
        ids = [row[0] for row in self._db.execute(sql, (first, last, host, len(why), why))]
        self.delete_url_data(ids, pages=False)
        return ids

    def get_failure(self, id_: int) -> FailedUrl | None:
        """Return from the crawl store how a URL has failed since its last response; None if it has not."""
        row = self._db.execute("SELECT url_id, rounds, since_s, due_s FROM retry WHERE url_id = ?", (id_,)).fetchone()
        return FailedUrl(*row) if row else None

    def save_failure(self, row: FailedUrl) -> None:
        """Save in the crawl store when a failed URL will be retried."""
        self._db.execute("INSERT OR REPLACE INTO retry VALUES (?, ?, ?, ?)", row)

    def delete_failures(self, ids: Sequence[int]) -> None:
        """Delete from the crawl store how URLs have failed, as if they had never been tried."""
        self._db.execute("DELETE FROM retry WHERE url_id IN (SELECT value FROM json_each(?))", (json.dumps(list(ids)),))

    def take_due_retries(self, now_s: float, most: int) -> list[DuePage]:
        """Take failed URLs that are due for a retry, the most overdue first; their notes are deleted."""
        sql = "SELECT url_id, name FROM retry JOIN url ON url.id = url_id JOIN host ON host.id = url.host"
        rows = self._db.execute(f"{sql} WHERE due_s <= ? ORDER BY due_s LIMIT ?", (now_s, most))
        due = [DuePage(*row) for row in rows]
        ids = json.dumps([one.id for one in due])
        if due:
            self._db.execute("UPDATE retry SET due_s = ? WHERE url_id IN (SELECT value FROM json_each(?))", (inf, ids))
            self._db.execute("DELETE FROM note WHERE url_id IN (SELECT value FROM json_each(?))", (ids,))
        return due

    def count_retries(self) -> RetryCounts:
        """Count the failed URLs of the crawl store that will be retried, and return when the first retry is due."""
        row = self._db.execute("SELECT count(*), min(due_s) FROM retry WHERE due_s < ?", (inf,)).fetchone()
        return RetryCounts(row[0], inf if row[1] is None else row[1])

    def postpone(self, id_: int, due_s: float) -> None:
        """Set when a stored page is due; nothing else changes."""
        self._db.execute("UPDATE page SET due_s = ? WHERE id = ?", (due_s, id_))

    def save_robots(self, origin: Origin, state: RobotsState) -> None:
        """Save the robots.txt state of an origin in the crawl store."""
        row = (str(origin), partition_of(origin.host), json.dumps(state_to_json(state)))
        self._db.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", row)

    def save_hosts(self, hosts: Sequence[HostRow]) -> None:
        """Save host states in the crawl store: when each may be requested again, and its failures."""
        rows = [(host.name, partition_of(host.name), *host[1:]) for host in hosts]
        self._db.executemany("INSERT OR REPLACE INTO host_state VALUES (?, ?, ?, ?, ?)", rows)

    def get_due(self, now_s: float, most: int) -> Sequence[DuePage]:
        """Return due pages, most overdue first, and take them off the schedule until they are fetched."""
        sql = "SELECT page.id, name FROM page JOIN host ON host.id = page.host WHERE due_s <= ? ORDER BY due_s LIMIT ?"
        due = [DuePage(*row) for row in self._db.execute(sql, (now_s, most))]
        ids = json.dumps([one.id for one in due])
        self._db.execute("UPDATE page SET due_s = ? WHERE id IN (SELECT value FROM json_each(?))", (inf, ids))
        return due

    def list_due_soon(self, hosts: Sequence[str], from_s: float, until_s: float, most: int) -> list["DueUrl"]:
        """List the good pages of some hosts that become due within a time, first ones first."""
        columns = ", ".join(f"page.{name.strip()}" for name in PAGE_COLUMNS.split(","))
        sql = (
            f"SELECT url.url, {columns} FROM page JOIN url ON url.id = page.id JOIN host ON host.id = page.host "  # noqa: S608 - our columns
            "WHERE due_s > ? AND due_s < ? AND status = 200 AND name IN (SELECT value FROM json_each(?)) "
            "ORDER BY due_s LIMIT ?"
        )
        rows = self._db.execute(sql, (from_s, until_s, json.dumps(list(hosts)), most))
        return [DueUrl(url, page_from_row(tuple(row))) for url, *row in rows]

    # start-up

    def load_robots(self) -> dict[Origin, RobotsState]:
        """Load all robots.txt states from the crawl store."""
        rows = self._db.execute("SELECT origin, state FROM robots")
        return {origin_of(f"{text}/"): _parse_robots(text, state) for text, state in rows}

    def get_robots(self, origin: Origin) -> RobotsState | None:
        """Return the stored robots.txt state of one origin."""
        row = self._db.execute("SELECT state FROM robots WHERE origin = ?", (str(origin),)).fetchone()
        return state_from_json(json.loads(row[0]), PRODUCT) if row else None

    def load_hosts(self) -> list[HostRow]:
        """Load the stored state of each host: when it may be requested again, and its failures."""
        return [HostRow(*row) for row in self._db.execute("SELECT name, ready_s, strain, trouble FROM host_state")]

    def load_archive_lengths(self) -> dict[str, int]:
        """Load the acknowledged length of each archive file from the crawl store."""
        return dict(self._db.execute("SELECT file, length FROM archive"))

    def acknowledge_archive(self, lengths: Mapping[str, int], newest_s: float) -> None:
        """Acknowledge archive files up to these lengths; nothing in them was fetched after ``newest_s``."""
        self._db.executemany(
            "INSERT INTO archive VALUES (?, ?, ?) ON CONFLICT (file) DO UPDATE "
            "SET length = excluded.length, newest_s = max(newest_s, excluded.newest_s)",
            [(file, length, newest_s) for file, length in lengths.items()],
        )

    # commands of the operator

    def list_sites(self) -> list[SiteRow]:
        """List the stored sites in the order in which they were added."""
        rows = self._db.execute("SELECT start, settings, paused, added_s FROM site ORDER BY id")
        return [
            SiteRow(_parse_site(start, settings), bool(paused), added_s) for start, settings, paused, added_s in rows
        ]

    def save_site(self, row: SiteRow) -> None:
        """Save a site, new or with changed settings, in the crawl store."""
        settings = {key: value for key, value in asdict(row.site).items() if key != "start"}
        values = (row.site.start, json.dumps(settings), int(row.paused), row.added_s)
        self._db.execute(
            "INSERT INTO site (start, settings, paused, added_s) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (start) DO UPDATE SET settings = excluded.settings, paused = excluded.paused",
            values,
        )

    def delete_site(self, start: str) -> None:
        """Delete a site from the crawl store; its pages stay."""
        self._db.execute("DELETE FROM site WHERE start = ?", (start,))

    def find_urls_by_note(self, why: str) -> list[tuple[int, str]]:
        """Find the ids and URLs that were refused or failed for exactly this reason, by the crawl store's notes."""
        sql = "SELECT url.id, url.url FROM note JOIN url ON url.id = note.url_id WHERE why = ? ORDER BY url.id"
        return self._db.execute(sql, (why,)).fetchall()

    def iter_partition_urls(self, partition: int) -> Iterator[tuple[int, str]]:
        """Yield the ids and URLs of a partition from the crawl store."""
        yield from self._db.execute("SELECT id, url FROM url WHERE partition = ? ORDER BY id", (partition,))

    def delete_url_data(self, ids: Sequence[int], *, pages: bool) -> None:
        """Delete the notes of URLs from the crawl store, and with ``pages`` everything stored about them."""
        notes, page_tables = ("note", "held"), ("page", "content", "refresh", "hint")
        tables = [*((table, "url_id") for table in notes), *((table, "id") for table in page_tables if pages)]
        for table, key in [*tables, *([("retry", "url_id")] if pages else [])]:
            sql = f"DELETE FROM {table} WHERE {key} IN (SELECT value FROM json_each(?))"  # noqa: S608 - our own names
            self._db.execute(sql, (json.dumps(list(ids)),))
        if pages:
            self.enqueue_page_ids(ids)

    # explanations

    def get_page(self, id_: int) -> PageRow | None:
        """Return the latest stored response for a URL."""
        return self.get_pages([id_]).get(id_)

    def get_note(self, id_: int) -> tuple[str, float] | None:
        """Return why a URL was refused or failed, and when, by the crawl store's note."""
        row = self._db.execute("SELECT why, at_s FROM note WHERE url_id = ?", (id_,)).fetchone()
        return (row[0], row[1]) if row else None

    def get_links(self, id_: int) -> tuple[str, ...]:
        """Return the stored link targets of a page."""
        return tuple(url for url, _ in self.get_anchors(id_))

    def get_anchors(self, id_: int) -> tuple[tuple[str, str], ...]:
        """Return the target and the anchor text of each stored link of a page."""
        row = self._db.execute("SELECT links FROM page WHERE id = ?", (id_,)).fetchone()
        return unpack_anchors(row[0]) if row else ()

    def iter_pages(self) -> Iterator[tuple[str, PageRow]]:
        """Yield every stored page with its URL, in the order in which URLs were first seen."""
        columns = ", ".join(f"page.{column.strip()}" for column in PAGE_COLUMNS.split(","))
        sql = f"SELECT url.url, {columns} FROM page JOIN url ON url.id = page.id ORDER BY page.id"  # noqa: S608 - our columns
        for url, *row in self._db.execute(sql):
            yield url, page_from_row(row)

    def _get_partition(self, host: int) -> int:
        """Return the partition of a host for the crawl store; cached, since it never changes."""
        if host not in self._partitions:
            row = self._db.execute("SELECT partition FROM host WHERE id = ?", (host,)).fetchone()
            self._partitions[host] = int(row[0])
        return self._partitions[host]


def _parse_robots(origin: str, state: str) -> RobotsState:
    with _report_corruption(f"the robots.txt of {origin}"):
        return state_from_json(json.loads(state), PRODUCT)


def _parse_site(start: str, settings: str) -> Site:
    with _report_corruption(f"the site {start}"):
        read: Any = json.loads(settings)
        lists: Any = {key: tuple(value) if isinstance(value, list) else value for key, value in read.items()}
        return Site(start, **lists)


def _pack_anchors(urls: Sequence[str], anchors: Sequence[str]) -> bytes:
    """Pack a page's links for the crawl store as lines: the URL and, after a tab, the anchor text."""
    if anchors:
        urls = [f"{url}\t{text}" if text else url for url, text in zip(urls, anchors, strict=True)]
    return isal_zlib.compress("\n".join(urls).encode("utf-8", "replace"), 1)


def unpack_anchors(blob: bytes) -> tuple[tuple[str, str], ...]:
    """Unpack the links of a stored page: URL and anchor text of each."""
    with _report_corruption("the links of a page"):
        text = inflate(blob, MAX_LINKS_BYTES).decode()
        lines = [line.partition("\t") for line in text.split("\n")] if text else []
        return tuple((url, anchor) for url, _, anchor in lines)


@contextmanager
def _report_corruption(what: str) -> Iterator[None]:
    """Report an invalid crawl store row as a corrupt store."""
    try:
        yield
    except (ValueError, TypeError, AttributeError) as error:
        raise StoreCorrupt(f"{what}: its row in state.db cannot be read ({error}): restore a backup") from error
