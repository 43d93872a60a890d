"""Store of unlisted hosts: pages link to them and no site covers them; suggested, never fetched.

A link counts once for each page, when that page is first fetched. Pages are hostile, so the table is bounded: when it
is full, the least linked tenth is dropped. A part of ``CrawlStore``.
"""

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import xxhash

from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.ports import UnlistedLink
from vedette.engine.search.hidden import is_in_domains
from vedette.model import Site, origin_of, partition_of, registrable_domain

UNLISTED_HOST_SCHEMA = """
CREATE TABLE IF NOT EXISTS stranger (
  host TEXT PRIMARY KEY,
  partition INTEGER NOT NULL,
  pages INTEGER NOT NULL,          -- that link there
  domains INTEGER NOT NULL,        -- theirs, as bits: each registered domain sets one of 63
  first_s REAL NOT NULL,
  last_s REAL NOT NULL,
  example TEXT NOT NULL,           -- URL of the first page that links there
  dismissed INTEGER NOT NULL DEFAULT 0
) STRICT;
"""

MAX_ROWS = 100_000
# SQLite's integers are signed; the sign bit is not used.
DOMAIN_BITS = 63

_UPSERT = """
INSERT INTO stranger (host, partition, pages, domains, first_s, last_s, example) VALUES (?, ?, 1, ?, ?, ?, ?)
ON CONFLICT (host) DO UPDATE SET pages = pages + 1, domains = domains | excluded.domains,
  first_s = iif(pages, first_s, excluded.first_s), last_s = max(last_s, excluded.last_s),
  example = iif(pages, example, excluded.example)
"""
_MIN_LINKED = "SELECT host FROM stranger WHERE NOT dismissed ORDER BY pages, last_s, host LIMIT ?"
_MAX_LINKED = (
    "SELECT host, pages, domains, first_s, last_s, example FROM stranger "
    "WHERE pages AND NOT dismissed ORDER BY pages DESC, host LIMIT ?"
)
_DISMISS = (
    "INSERT INTO stranger VALUES (?, ?, 0, 0, 0, 0, '', 1) ON CONFLICT (host) DO UPDATE SET dismissed = 1 "
    "WHERE NOT dismissed"
)


class UnlistedHostRow(NamedTuple):
    """A stored unlisted host: how many pages of how many domains link to it, since when, and one of them.

    ``domains`` is a lower bound, and at most 63.
    """

    host: str
    pages: int
    domains: int
    first_s: float
    last_s: float
    example: str


class UnlistedHostStore:
    """Store of unlisted hosts, which pages link to and no site covers, in ``state.db``."""

    _db: sqlite3.Connection
    _unlisted_count: int | None = None  # counted on first use: readers never need it

    def add_unlisted_links(self, links: Sequence[UnlistedLink]) -> None:
        """Count links to unlisted hosts, from pages that were fetched for the first time."""
        if not links:
            return
        before = self._count_unlisted() if self._unlisted_count is None else self._unlisted_count
        bits = {page: _domain_bit(page) for page in dict.fromkeys(link.page for link in links)}
        rows = [
            (link.host, partition_of(link.host), bits[link.page], link.at_s, link.at_s, link.page) for link in links
        ]
        self._unlisted_count = before + self._count_unseen(links)
        self._db.executemany(_UPSERT, rows)
        if self._unlisted_count > MAX_ROWS:
            self._trim_unlisted()

    def list_unlisted_hosts(
        self, most: int, leave_out: Callable[[str], bool] = lambda _: False
    ) -> list[UnlistedHostRow]:
        """List the most linked unlisted hosts, except those dismissed or left out."""
        read = most
        while True:
            # SQLite finds the first few of many quickly, while sorting all of them takes long.
            rows = [UnlistedHostRow(*row) for row in self._db.execute(_MAX_LINKED, (read,))] if most > 0 else []
            found = [row for row in rows if not leave_out(row.host)]
            if len(found) >= most or len(rows) < read:
                return [row._replace(domains=row.domains.bit_count()) for row in found[:most]]
            read *= 4

    def delete_unlisted_hosts(self, hosts: Iterable[str]) -> None:
        """Delete hosts from the stored unlisted hosts."""
        sql = "DELETE FROM stranger WHERE host IN (SELECT value FROM json_each(?))"
        self._db.execute(sql, (json.dumps(list(hosts)),))
        self._unlisted_count = None

    def dismiss_unlisted_host(self, host: str) -> bool:
        """Dismiss an unlisted host for good; return whether it was not dismissed before."""
        self._unlisted_count = None
        return self._db.execute(_DISMISS, (host, partition_of(host))).rowcount > 0

    def offer_unlisted_host(self, host: str) -> bool:
        """Undo the dismissal of an unlisted host; return whether it was dismissed."""
        return self._db.execute("UPDATE stranger SET dismissed = 0 WHERE host = ? AND dismissed", (host,)).rowcount > 0

    def _count_unlisted(self) -> int:
        (count,) = self._db.execute("SELECT count(*) FROM stranger").fetchone()
        return int(count)

    def _count_unseen(self, links: Sequence[UnlistedLink]) -> int:
        """Count those of these unlisted hosts that have no row yet."""
        hosts = list(dict.fromkeys(link.host for link in links))
        sql = "SELECT count(*) FROM stranger WHERE host IN (SELECT value FROM json_each(?))"
        (met,) = self._db.execute(sql, (json.dumps(hosts),)).fetchone()
        return len(hosts) - int(met)

    def _trim_unlisted(self) -> None:
        """Delete the least linked tenth of the unlisted hosts.

        Deleting one row at a time would scan the table each time.
        """
        surplus = self._count_unlisted() - MAX_ROWS * 9 // 10
        self.delete_unlisted_hosts(host for (host,) in self._db.execute(_MIN_LINKED, (surplus,)).fetchall())


def build_host_filter(sites: Sequence[Site], rules: Iterable[RuleRow]) -> Callable[[str], bool]:
    """Return a predicate for unlisted hosts to leave out: a site covers them, or their domain is blocked.

    >>> known = build_host_filter([Site("https://example.org/")], [RuleRow("block", "", "example.com", 0.0)])
    >>> known("example.org"), known("www.example.com"), known("badexample.com")
    (True, True, False)
    """
    index = SiteIndex(sites)
    blocked = frozenset(rule.value for rule in rules if rule.kind == "block")
    return lambda host: bool(index.find_by_host(host)) or is_in_domains(host, blocked)


def _domain_bit(page: str) -> int:
    """Return the bit of a linking page's registered domain, to count the domains of an unlisted host."""
    return 1 << xxhash.xxh64_intdigest(registrable_domain(origin_of(page).host).encode()) % DOMAIN_BITS
