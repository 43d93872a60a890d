"""Index queue reader: the pages queued for the indexer, and their data in the crawl store."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore, unpack_anchors
from vedette.engine.messages import ArchiveLocation
from vedette.engine.search.hidden import HiddenRules
from vedette.errors import StoreCorrupt
from vedette.model import Site, fingerprint

_KNOWN = (
    "SELECT url.id, url.url, url.host, url.found_s, page.status, page.kind, page.fetched_s, page.location, page.links, "
    "page.file, page.offset, page.length, content.grp, content.canonical, content.marks, content.words, content.spam, "
    "content.objections, content.private, coalesce(copies.canonical, 0), coalesce(find.how, ''), "
    "coalesce(source.url, '') "
    "FROM url JOIN page ON page.id = url.id LEFT JOIN content ON content.id = url.id "
    "LEFT JOIN find ON find.url_id = url.id LEFT JOIN url AS source ON source.id = find.source "
    "LEFT JOIN copies ON copies.grp = content.grp AND copies.members > 0 "
    "WHERE url.id IN (SELECT value FROM json_each(?))"
)


class QueuedPage(NamedTuple):
    """A page in the index queue, with its text if that was just read."""

    seq: int
    page: int
    text: bytes | None


class PageRecord(NamedTuple):
    """A page as the indexer reads it from the crawl store; ``group`` is None if its content was not read.

    ``canonical_page`` is the canonical page of its group, 0 for none. For a discovery, ``how`` is the kind of page it
    was found on, and ``via`` its URL; otherwise they are empty. ``is_replaced`` means that its canonical belongs to
    another shard and can be shown.
    """

    id: int
    url: str
    host: int
    found_s: float
    status: int
    kind: str
    fetched_s: float
    location: str
    links: tuple[tuple[str, str], ...]
    place: ArchiveLocation | None
    group: int | None
    canonical: str
    marks: str
    words: int
    spam: float
    objections: tuple[str, ...]
    private: str
    canonical_page: int
    how: str = ""
    via: str = ""
    is_replaced: bool = False


class IndexQueueReader:
    """Reader of the index queue in ``state.db``, one snapshot at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_batch(self, after: int, most: int) -> tuple[list[QueuedPage], dict[int, PageRecord]]:
        """Read the next pages of the index queue, and their records from the same snapshot."""
        with read_state(self._folder) as db:
            rows = db.execute("SELECT seq, page, text FROM news WHERE seq > ? ORDER BY seq LIMIT ?", (after, most))
            news = [QueuedPage(*row) for row in rows]
            return news, load_page_records(db, [one.page for one in news])

    def load_pages(self, ids: Sequence[int]) -> dict[int, PageRecord]:
        """Load the records of these pages for the indexer."""
        with read_state(self._folder) as db:
            return load_page_records(db, ids)

    def list_page_ids(self, after: int, most: int) -> list[int]:
        """List the next page ids after an id, for an indexer that scans all pages."""
        with read_state(self._folder) as db:
            return [row[0] for row in db.execute("SELECT id FROM page WHERE id > ? ORDER BY id LIMIT ?", (after, most))]

    def load_texts(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Load the latest texts of those of these pages that are still in the index queue."""
        sql = (
            "SELECT page, text FROM news WHERE text IS NOT NULL AND page IN (SELECT value FROM json_each(?)) "
            "ORDER BY seq"
        )
        with read_state(self._folder) as db:
            return dict(db.execute(sql, (json.dumps(list(ids)),)))

    def newest_seq(self) -> int:
        """Return the highest sequence number that the index queue ever had."""
        with read_state(self._folder) as db:
            return CrawlStore(db).newest_seq()

    def count_pages(self) -> int:
        """Count the stored pages for the indexer."""
        with read_state(self._folder) as db:
            return int(db.execute("SELECT count(*) FROM page").fetchone()[0])

    def count_waiting(self, after: int) -> int:
        """Count the changes in the index queue after a sequence number."""
        with read_state(self._folder) as db:
            return int(db.execute("SELECT count(*) FROM news WHERE seq > ?", (after,)).fetchone()[0])

    def load_rules(self) -> tuple[list[Site], HiddenRules]:
        """Load the operator's sites and the rules for hidden pages, for the indexer."""
        with read_state(self._folder) as db:
            store = CrawlStore(db)
            hidden = HiddenRules.from_rules((row.kind, row.value) for row in store.list_search_rules())
            return [row.site for row in store.list_sites()], hidden


def load_page_records(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, PageRecord]:
    """Load the records of pages in a transaction of the caller; damaged links count as none."""
    found: dict[int, PageRecord] = {}
    for row in db.execute(_KNOWN, (json.dumps(list(ids)),)):
        *values, links, file, offset, length = row[:12]
        grp, canonical, marks, words, spam, objections, private, stands, how, via = row[12:]
        place = ArchiveLocation(file, offset, length) if file is not None else None
        names = tuple(str(name) for name, _ in json.loads(objections)) if objections else ()
        rest = (grp, canonical or "", marks or "", words or 0, spam or 0.0, names, private or "", stands, how, via)
        found[row[0]] = PageRecord._make((*values, _unpack_links(links), place, *rest, False))
    prints = {id_: fingerprint(page.canonical) for id_, page in found.items() if page.canonical}
    there = _list_replacing(db, list(prints.values())) if prints else ()
    return found | {id_: found[id_]._replace(is_replaced=True) for id_, print_ in prints.items() if print_ in there}


def _list_replacing(db: sqlite3.Connection, prints: Sequence[int]) -> frozenset[int]:
    """List the canonical URLs that belong to other shards and can be shown; only a shard has any."""
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'foreign_canonical'").fetchone():
        return frozenset()
    sql = "SELECT print FROM foreign_canonical WHERE is_there AND print IN (SELECT value FROM json_each(?))"
    return frozenset(row[0] for row in db.execute(sql, (json.dumps(prints),)))


def _unpack_links(blob: bytes) -> tuple[tuple[str, str], ...]:
    try:
        return unpack_anchors(blob)
    except StoreCorrupt:
        return ()
