"""URL list reader: the known URLs of a data folder filtered by site and state, page by page.

There may be millions, and no index maps a status to its URLs. So they are scanned in the order in which they were first
seen, a batch at a time, until there are enough rows for a page or its time is up; the next page continues there.
"""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.url_store.rows import ids_to_json
from vedette.discover.urls.scope import SiteIndex
from vedette.model import Refusal, Site

# Ids are assigned in order of discovery and never reused, so batches fit together.


_UNSEEN = (
    "SELECT id, url, depth FROM url WHERE id > ? AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = url.id) "
    "AND NOT EXISTS (SELECT 1 FROM note WHERE url_id = url.id) ORDER BY id LIMIT ?"
)
_FACTS = "SELECT id, url, depth FROM url WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
_FETCHED = "SELECT id FROM page WHERE kind IN ('page', 'document', 'other') ORDER BY id DESC LIMIT ?"


class UrlFacts(NamedTuple):
    """A URL of the URL list, and how many links it is away from a start URL."""

    id: int
    url: str
    depth: int


def list_unfetched(folder: Path, id_: int, most: int) -> list[UrlFacts]:
    """List the next URLs after an id that were neither fetched nor refused, from the crawl state."""
    with read_state(folder) as db:
        return [UrlFacts(*row) for row in db.execute(_UNSEEN, (id_, most))]


def load_url_facts(folder: Path, ids: list[int]) -> list[UrlFacts]:
    """Load the URL list entries of these ids, in ascending order."""
    with read_state(folder) as db:
        return [UrlFacts(*row) for row in db.execute(_FACTS, (ids_to_json(ids),))]


def list_fetched(folder: Path, seq: int, most: int) -> list[int]:
    """List the latest pages that were fully indexed up to a sequence number."""
    with read_state(folder) as db:
        pending = {row[0] for row in db.execute("SELECT DISTINCT page FROM news WHERE seq > ?", (seq,))}
        return [row[0] for row in db.execute(_FETCHED, (most,)) if row[0] not in pending]


def get_prefix(site: Site) -> str:
    """Return the folder of a site's start URL, the prefix of all URLs of a prefix site."""
    return site.start.partition("?")[0].rpartition("/")[0] + "/"


UrlKind = Literal["all", "kept", "script", "moved", "errors", "failed", "refused", "new"]
URL_KINDS: Final[tuple[UrlKind, ...]] = get_args(UrlKind)
BATCH_URLS: Final = 5_000  # URLs
TIME_LIMIT_S: Final = 1.0
_REFUSALS = json.dumps([str(refusal) for refusal in Refusal])
_IS_REFUSAL = "EXISTS (SELECT 1 FROM json_each(:refusals) WHERE substr(why, 1, length(value)) = value)"
# The first condition matches an index; objections are pairs of a name and its evidence, as JSON.
_NEEDS_SCRIPT = "objections <> '[]' AND instr(objections, '[\"script\"') > 0"
COUNT_NEED_SCRIPT: Final = (
    "SELECT count(*) FROM content JOIN page ON page.id = content.id "  # noqa: S608 - our own words
    f"WHERE status BETWEEN 200 AND 299 AND {_NEEDS_SCRIPT}"
)
_CONDITIONS: Final[dict[UrlKind, str]] = {
    "all": "1",
    "kept": "status BETWEEN 200 AND 299",
    "script": "status BETWEEN 200 AND 299 "  # noqa: S608 - our own words
    f"AND EXISTS (SELECT 1 FROM content WHERE content.id = url.id AND {_NEEDS_SCRIPT})",
    "moved": "status BETWEEN 300 AND 399",
    "errors": "status >= 400 AND (:why = '' OR status = :why)",
    "failed": f"why IS NOT NULL AND NOT {_IS_REFUSAL} AND (:why = '' OR why = :why)",
    "refused": f"why IS NOT NULL AND {_IS_REFUSAL} AND substr(why, 1, length(:why)) = :why",
    "new": "status IS NULL AND why IS NULL",
}
_ROWS = (
    "SELECT url.id, url.url, status, coalesce(title, ''), fetched_s, "
    "nullif(min(coalesce(page.due_s, 9e999), coalesce(retry.due_s, 9e999)), 9e999), coalesce(why, ''), "
    "at_s FROM url "
    "LEFT JOIN page ON page.id = url.id LEFT JOIN note ON note.url_id = url.id "
    "LEFT JOIN retry ON retry.url_id = url.id "
    "WHERE url.id > :after AND url.id <= :until AND ({}) "
    "AND (:part = '' OR instr(url.url, :part) > 0) AND substr(url.url, 1, length(:folder)) = :folder "
    "AND (:hosts IS NULL OR url.host IN (SELECT value FROM json_each(:hosts))) ORDER BY url.id LIMIT :most"
)


class UrlFilter(NamedTuple):
    """Filter of the URL list: by site, state and reason, and a part of the URL.

    ``why`` is a status of ``errors``, the whole reason of ``failed``, the beginning of one of ``refused``.
    """

    site: Site | None = None
    kind: UrlKind = "all"
    why: str = ""
    part: str = ""


class ListedUrl(NamedTuple):
    """A row of the URL list: last response and when, next fetch, and why there is none."""

    id: int
    url: str
    status: int | None
    title: str
    fetched_s: float | None
    due_s: float | None
    why: str
    noted_s: float | None


class UrlPage(NamedTuple):
    """A page of the URL list; ``after`` is the id of the last URL that was scanned, None at the end.

    ``start`` is how many URLs come before those that were scanned, if that is not the id that was asked for.
    """

    rows: tuple[ListedUrl, ...]
    after: int | None
    scanned: int
    known: int
    start: int | None = None


class UrlList:
    """List the known URLs of an open crawl state."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def read_page(self, which: UrlFilter, after: int, most: int, patience_s: float = TIME_LIMIT_S) -> UrlPage:
        """Read at most ``most`` rows of the URL list after an id; fewer, perhaps none, if matches are rare."""
        (last_id,) = self._db.execute("SELECT coalesce(max(id), 0) FROM url").fetchone()
        rows: list[ListedUrl] = []
        place, end_s = max(after, 0), time.monotonic() + patience_s
        for found, reached in self._scan_batches(which, place, last_id, most):
            rows += found
            place = reached
            if len(rows) >= most or time.monotonic() > end_s:
                break
        looked_at = max(place - max(after, 0), 0)
        return UrlPage(tuple(rows), place if place < last_id else None, looked_at, last_id)

    def _scan_batches(
        self, which: UrlFilter, after: int, last_id: int, most: int
    ) -> Iterator[tuple[list[ListedUrl], int]]:
        """Yield the URL list rows of each batch, and up to which URL it was scanned."""
        sql = _ROWS.format(_CONDITIONS[which.kind])
        params: dict[str, object] = {
            "why": which.why,
            "part": which.part,
            "refusals": _REFUSALS,
            **self._build_site_condition(which),
        }
        left = most
        while after < last_id and left:
            until = min(after + BATCH_URLS, last_id)
            values = params | {"after": after, "until": until, "most": left}
            found = [ListedUrl._make(row) for row in self._db.execute(sql, values)]
            left -= len(found)
            after = until if left else found[-1].id
            yield found, after

    def _build_site_condition(self, which: UrlFilter) -> dict[str, object]:
        """Build the URL list's condition on a site's location, ignoring its patterns, so that counts agree."""
        site = which.site
        if site is None:
            return {"hosts": None, "folder": ""}
        index = SiteIndex([site])
        hosts = [id_ for id_, name in self._db.execute("SELECT id, name FROM host") if index.find_by_host(name)]
        return {"hosts": json.dumps(hosts), "folder": get_prefix(site) if site.scope == "prefix" else ""}


@contextmanager
def open_url_list(folder: Path) -> Iterator[UrlList]:
    """Open the URL list of a data folder; nothing is written or locked."""
    with read_state(folder) as db:
        yield UrlList(db)
