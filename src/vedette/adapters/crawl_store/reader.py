"""State reader: read what a crawl, running or ended, has committed to ``state.db``, without a lock.

SQLite's write-ahead log lets any process read while one writes, so long queries (counts, sums) run in the reading
process and cost the coordinator nothing. All results of a reader are from one moment.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.crawl_store.url_list import COUNT_NEED_SCRIPT, get_prefix
from vedette.adapters.observers.registry import ObserverRegistry
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.ports import HostRow, UrlState
from vedette.errors import UsageError
from vedette.frontier.traps import PERMIT, TrapDetector, Verdict
from vedette.model import Failure, Refusal, Site, origin_of

_LAST_FATES = "SELECT fate FROM (SELECT url_id, fate, max(id) FROM fate GROUP BY url_id)"
_FETCHED = "status BETWEEN 200 AND 299"
_HAS_PAGE = f"(SELECT 1 FROM page WHERE page.id = url.id AND {_FETCHED})"  # noqa: S608 - our own words
_KNOWN_BY_HOST = "SELECT name, count(*) FROM url JOIN host ON host.id = url.host GROUP BY url.host"
_PAGES_BY_HOST = f"SELECT name, count(*) FROM page JOIN host ON host.id = page.host WHERE {_FETCHED} GROUP BY page.host"  # noqa: S608 - our own words
_URLS_OF_HOSTS = (
    f"SELECT name, url, {_HAS_PAGE} FROM url JOIN host ON host.id = url.host "  # noqa: S608 - our own words
    "WHERE name IN (SELECT value FROM json_each(?))"
)
_WITH_PAGES = f"SELECT url, {_HAS_PAGE} FROM url WHERE partition = ?"  # noqa: S608 - our own words
_LAST_FETCH = "SELECT name, max(fetched_s) FROM page JOIN host ON host.id = page.host GROUP BY page.host"
# For several rows of a group, SQLite returns the other columns of the one with the maximum.
_LAST_FAILURE = (
    "SELECT name, url, why, max(at_s) FROM note JOIN url ON url.id = url_id JOIN host ON host.id = url.host "
    "WHERE NOT EXISTS (SELECT 1 FROM json_each(?) WHERE substr(why, 1, length(value)) = value) GROUP BY url.host"
)
_CONTENT = (
    "SELECT grp, charset, language, description, canonical, marks, words, published_s, modified_s, spam, objections, "
    "share, change FROM content WHERE id = ?"
)
_STANDS = (
    "SELECT copies.canonical, why FROM copies JOIN content ON content.id = copies.canonical "
    "WHERE copies.grp = ? AND content.grp = copies.grp"
)


@dataclass(frozen=True, slots=True)
class UrlRow:
    """A known URL as the state reader returns it: when first seen, link depth, and front queue."""

    id: int
    depth: int
    front: int
    found_s: float


@dataclass(frozen=True, slots=True)
class SiteCount:
    """How many URLs of a site are known, and how many of its pages are stored."""

    known: int
    pages: int


@dataclass(frozen=True, slots=True)
class ArchiveSize:
    """Size of the archive, as the state reader measures it."""

    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FailedFetch:
    """A permanently failed fetch, as the state reader returns it."""

    url: str
    why: str
    at_s: float


class PageContent(NamedTuple):
    """Content of a page as last parsed, its duplicate group, and what changed since the previous version.

    ``objections`` are reasons against indexing it: pairs of a name and its evidence.
    """

    group: int
    charset: str
    language: str
    description: str
    canonical: str
    marks: str
    words: int
    published_s: float | None
    modified_s: float | None
    spam: float
    objections: tuple[tuple[str, str], ...]
    share: float | None
    change: str


@dataclass(frozen=True, slots=True)
class DuplicateGroup:
    """A duplicate group: number of pages, the canonical one and why, and the first few by id and URL."""

    pages: int
    canonical: int
    why: str
    first: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ContentCounts:
    """How many pages are duplicates, not indexable, held back as traps, or need JavaScript."""

    copies: int
    objected: int
    held: int
    need_script: int


class HeldCounts(NamedTuple):
    """How many URLs of a site are held back, and how many of them seem to be real pages."""

    start: str
    urls: int
    real: int


class StateReader:
    """Read one snapshot of the crawl state ``state.db``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection
        self.store = CrawlStore(connection)
        self.observers = ObserverRegistry(connection)

    def find_url(self, url: str) -> UrlRow | None:
        """Find a URL in the crawl state; this scans all URLs, without the coordinator's in-memory table."""
        row = self._db.execute("SELECT id, depth, priority, found_s FROM url WHERE url = ?", (url,)).fetchone()
        return UrlRow(*row) if row else None

    def get_url(self, id_: int) -> UrlRow | None:
        """Return a URL of the crawl state by its id."""
        row = self._db.execute("SELECT id, depth, priority, found_s FROM url WHERE id = ?", (id_,)).fetchone()
        return UrlRow(*row) if row else None

    def find_fate(self, id_: int) -> UrlState | None:
        """Return the final state of a URL from ``state.db``; None while it waits or is leased."""
        row = self._db.execute("SELECT fate FROM fate WHERE url_id = ? ORDER BY id DESC LIMIT 1", (id_,)).fetchone()
        return UrlState(row[0]) if row and row[0] else None

    def is_leased(self, id_: int) -> bool:
        """Check whether a URL is leased, or was when the crawl ended."""
        return self._db.execute("SELECT 1 FROM lease WHERE url_id = ?", (id_,)).fetchone() is not None

    def find_host(self, name: str) -> HostRow | None:
        """Return the stored state of a host."""
        sql = "SELECT name, ready_s, strain, trouble FROM host_state WHERE name = ?"
        row = self._db.execute(sql, (name,)).fetchone()
        return HostRow(*row) if row else None

    def load_content(self, id_: int) -> PageContent | None:
        """Load the stored content of a page; None if there is none."""
        row = self._db.execute(_CONTENT, (id_,)).fetchone()
        if row is None:
            return None
        objections = tuple((str(name), str(detail)) for name, detail in json.loads(row[10]))
        return PageContent._make((*row[:10], objections, *row[11:]))

    def find_duplicates(self, group: int, most: int) -> DuplicateGroup | None:
        """Find a duplicate group with its first members; None if it has one page only.

        The canonical page may have changed its text since: then none is named.
        """
        sql = "SELECT count(*) FROM content JOIN page USING (id) WHERE grp = ? AND grp <> id AND status < 300"
        others = self._query_number(sql, group)
        if not others:
            return None
        first = self.store.get_group_members(group, most)
        canonical, why = self._db.execute(_STANDS, (group,)).fetchone() or (0, "")
        leads = bool(first) and first[0][0] == group
        if others + leads == 1:
            return None
        return DuplicateGroup(others + leads, canonical, why, tuple((id_, url) for id_, url, _ in first))

    def find_hold(self, id_: int) -> str | None:
        """Return the host, port and URL pattern that a held URL waits for."""
        row = self._db.execute("SELECT place FROM held WHERE url_id = ?", (id_,)).fetchone()
        return row[0] if row else None

    def find_yield(self, name: str) -> str | None:
        """Return the stored yield account of a host and port, as JSON."""
        row = self._db.execute("SELECT account FROM yield WHERE name = ?", (name,)).fetchone()
        return row[0] if row else None

    def summarize_held(self, sites: Sequence[Site]) -> list[HeldCounts]:
        """Summarize the held URLs of each site, most real ones first: all but endless patterns count as real."""
        index, traps, counts = SiteIndex(sites), TrapDetector(), Counter[tuple[str, bool]]()
        for host, place, count in self.store.count_held():
            name, pattern, *_ = place.split(" ")
            host_yield = self.find_yield(name) if name not in traps.hosts else None
            if host_yield is not None:
                traps.from_json(name, json.loads(host_yield))
            owner = next(iter(index.find_by_host(host)), None)
            counts[owner.start if owner else "", traps.judge_pattern(name, pattern, is_idle=True) is PERMIT] += count
        starts = dict.fromkeys(start for start, _ in counts)
        held = [HeldCounts(start, counts[start, True] + counts[start, False], counts[start, True]) for start in starts]
        return sorted(held, key=lambda one: (-one.real, -one.urls))

    def judge_held(self, place: str) -> Verdict:
        """Judge again whether URLs that wait for a host and pattern are a trap, once nothing else is queued."""
        name, pattern, *_ = place.split(" ")
        traps, host_yield = TrapDetector(), self.find_yield(name)
        if host_yield is not None:
            traps.from_json(name, json.loads(host_yield))
        return traps.judge_pattern(name, pattern, is_idle=True)

    def count_content(self) -> ContentCounts:
        """Count duplicates, pages that are not indexable or need JavaScript, and held URLs."""
        return ContentCounts(
            self._query_number("SELECT count(*) FROM content WHERE grp <> id"),
            self._query_number("SELECT count(*) FROM content WHERE objections <> '[]'"),
            self._query_number("SELECT count(*) FROM held"),
            self._query_number(COUNT_NEED_SCRIPT),
        )

    def count_unindexed(self, seq: int) -> int:
        """Count the pages that are queued for the index after a sequence number."""
        return self._query_number("SELECT count(DISTINCT page) FROM news WHERE seq > ?", seq)

    def list_refused(self, reason: Refusal | Failure) -> list[tuple[int, str]]:
        """List the ids and URLs in the crawl state that were refused or failed for a reason, whatever its details."""
        sql = "SELECT id, url FROM note JOIN url ON id = url_id WHERE substr(why, 1, ?) = ? ORDER BY id"
        return self._db.execute(sql, (len(reason), str(reason))).fetchall()

    def list_failed(self) -> list[tuple[int, str, str]]:
        """List the id, the URL and the reason of each failed fetch in the crawl state."""
        sql = "SELECT id, url, why FROM note JOIN url ON id = url_id ORDER BY id"
        rows = [row for row in self._db.execute(sql) if _match_refusal(row[2]) is None]
        return [row for row in rows if self.find_fate(row[0]) is UrlState.FAILED]

    def count_known(self) -> int:
        """Count the known URLs of the crawl state."""
        return self._query_number("SELECT coalesce(max(id), 0) FROM url")

    def count_leased(self) -> int:
        """Count the leased URLs of the crawl state."""
        return self._query_number("SELECT count(*) FROM lease")

    def count_waiting(self) -> int:
        """Count the URLs of the crawl state that neither have ended nor are leased."""
        ended = self._query_number(f"SELECT count(*) FROM ({_LAST_FATES}) WHERE fate <> 0")  # noqa: S608 - our own words
        return self.count_known() - ended - self.count_leased()

    def count_pages(self) -> int:
        """Count the stored pages of the crawl state."""
        return self._query_number(f"SELECT count(*) FROM page WHERE {_FETCHED}")  # noqa: S608 - our own words

    def count_fetched(self, since_s: float) -> tuple[int, int]:
        """Count the stored pages that were fetched since then (world time), each once, and their hosts."""
        sql = f"SELECT count(*), count(DISTINCT host) FROM page WHERE {_FETCHED} AND fetched_s >= ?"  # noqa: S608 - our own words
        pages, hosts = self._db.execute(sql, (since_s,)).fetchone()
        return int(pages), int(hosts)

    def list_troubled_hosts(self) -> dict[str, str]:
        """List the hosts whose latest request failed, and why."""
        sql = "SELECT name, trouble FROM host_state WHERE trouble <> '' ORDER BY name"
        return dict(self._db.execute(sql))

    def count_failures(self) -> tuple[Counter[str], Counter[str]]:
        """Count failed and refused URLs of the crawl state by reason."""
        failed, refused = Counter[str](), Counter[str]()
        for why, count in self._db.execute("SELECT why, count(*) FROM note GROUP BY why ORDER BY why"):
            refusal = _match_refusal(why)
            if refusal is None:
                failed[why] += count
            elif refusal is not Refusal.NO_SITEMAP:  # these have no reason
                refused[str(refusal)] += count
        return failed, refused

    def find_last_failure(self) -> FailedFetch | None:
        """Find the latest fetch that failed permanently."""
        sql = "SELECT url, why, at_s FROM note JOIN url ON url.id = url_id ORDER BY at_s DESC, url_id DESC"
        rows = (FailedFetch(*row) for row in self._db.execute(sql))
        return next((one for one in rows if _match_refusal(one.why) is None), None)

    def measure_archive(self) -> ArchiveSize:
        """Measure the acknowledged size of the archive, by the crawl state."""
        row = self._db.execute("SELECT count(*), coalesce(sum(length), 0) FROM archive").fetchone()
        return ArchiveSize(*row)

    def count_sites(self, sites: Sequence[Site]) -> dict[str, SiteCount]:
        """Count the known URLs and the stored pages of each site, by its start URL.

        Only the location of a URL counts; the site's patterns do not matter. Each table is read once, however many
        sites there are.
        """
        url_counts, pages = dict(self._db.execute(_KNOWN_BY_HOST)), dict(self._db.execute(_PAGES_BY_HOST))
        counts = {site.start: SiteCount(0, 0) for site in sites}
        index = SiteIndex(sites)
        for host, urls in url_counts.items():
            for site in index.find_by_host(host):
                if site.scope != "prefix":
                    before = counts[site.start]
                    counts[site.start] = SiteCount(before.known + urls, before.pages + pages.get(host, 0))
        return counts | self._count_prefix_sites([site for site in sites if site.scope == "prefix"])

    def find_last_fetches(self) -> dict[str, float]:
        """Return when each host last responded to a request for a page, by the crawl state."""
        return dict(self._db.execute(_LAST_FETCH))

    def find_last_failures(self) -> dict[str, FailedFetch]:
        """Return the latest permanently failed fetch of each host."""
        refusals = json.dumps([str(refusal) for refusal in Refusal])
        rows = self._db.execute(_LAST_FAILURE, (refusals,))
        return {name: FailedFetch(url, why, at_s) for name, url, why, at_s in rows}

    def iter_urls_with_pages(self, partition: int) -> Iterator[tuple[str, bool]]:
        """Yield all URLs of a partition, and whether a page of each is stored."""
        for url, page in self._db.execute(_WITH_PAGES, (partition,)):
            yield url, bool(page)

    def _count_prefix_sites(self, sites: Sequence[Site]) -> dict[str, SiteCount]:
        folders: dict[str, list[tuple[str, str]]] = {}
        for site in sites:
            folders.setdefault(origin_of(site.start).host, []).append((get_prefix(site), site.start))
        counts = {site.start: [0, 0] for site in sites}
        for host, url, page in self._db.execute(_URLS_OF_HOSTS, (json.dumps(list(folders)),)):
            for folder, start in folders[host]:
                if url.startswith(folder):
                    counts[start][0] += 1
                    counts[start][1] += bool(page)
        return {start: SiteCount(*both) for start, both in counts.items()}

    def _query_number(self, sql: str, *values: int) -> int:
        return int(self._db.execute(sql, values).fetchone()[0])


@contextmanager
def open_state_reader(folder: Path) -> Iterator[StateReader]:
    """Open a state reader on one snapshot of a data folder that holds a crawl; nothing is written or locked."""
    if not (folder / "state.db").exists():
        raise UsageError(
            f'{folder} has no crawl yet: start one with "vedette up SITE", or choose another folder with --data'
        )
    with read_state(folder) as db:
        yield StateReader(db)


def _match_refusal(why: str) -> Refusal | None:
    return next((refusal for refusal in Refusal if why.startswith(refusal)), None)
