"""Index queue reader: the pages that the indexer should look at again, and what the state has of them."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore, unpack_anchors
from vedette.engine.messages import ArchiveLocation
from vedette.engine.search.hidden import HiddenRules
from vedette.errors import StoreCorrupt
from vedette.model import Site

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
    """A page that should be looked at again, and its text where that was just read."""

    seq: int
    page: int
    text: bytes | None


class PageRecord(NamedTuple):
    """What the state has of a page that was asked for; ``group`` is None where nothing was read in it.

    ``canonical_page`` is the page that stands for its group, 0 where it has none. Where it was news when it was found,
    ``how`` says on what kind of page that was, and ``via`` which; otherwise they are empty.
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


class IndexQueueReader:
    """Looks into a data folder, a moment at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_batch(self, after: int, most: int) -> tuple[list[QueuedPage], dict[int, PageRecord]]:
        """The next pieces of news, and what is known of their pages at the same moment."""
        with read_state(self._folder) as db:
            rows = db.execute("SELECT seq, page, text FROM news WHERE seq > ? ORDER BY seq LIMIT ?", (after, most))
            news = [QueuedPage(*row) for row in rows]
            return news, _load_pages(db, [one.page for one in news])

    def load_pages(self, ids: Sequence[int]) -> dict[int, PageRecord]:
        """What is known of these pages."""
        with read_state(self._folder) as db:
            return _load_pages(db, ids)

    def list_page_ids(self, after: int, most: int) -> list[int]:
        """Pages in the order of their ids, so many at a time."""
        with read_state(self._folder) as db:
            return [row[0] for row in db.execute("SELECT id FROM page WHERE id > ? ORDER BY id LIMIT ?", (after, most))]

    def load_texts(self, ids: Sequence[int]) -> dict[int, bytes]:
        """The latest texts of pages that still wait to be taken, where they do."""
        sql = (
            "SELECT page, text FROM news WHERE text IS NOT NULL AND page IN (SELECT value FROM json_each(?)) "
            "ORDER BY seq"
        )
        with read_state(self._folder) as db:
            return dict(db.execute(sql, (json.dumps(list(ids)),)))

    def newest_seq(self) -> int:
        """The number of the last piece of news there ever was."""
        with read_state(self._folder) as db:
            return CrawlStore(db).newest_seq()

    def count_pages(self) -> int:
        """How many pages there are."""
        with read_state(self._folder) as db:
            return int(db.execute("SELECT count(*) FROM page").fetchone()[0])

    def count_waiting(self, after: int) -> int:
        """How many pieces of news come after this one."""
        with read_state(self._folder) as db:
            return int(db.execute("SELECT count(*) FROM news WHERE seq > ?", (after,)).fetchone()[0])

    def load_rules(self) -> tuple[list[Site], HiddenRules]:
        """The operator's sites, and what is not to be shown."""
        with read_state(self._folder) as db:
            book = CrawlStore(db)
            concealed = HiddenRules.from_rules((row.kind, row.value) for row in book.list_search_rules())
            return [row.site for row in book.list_sites()], concealed


def _load_pages(db: sqlite3.Connection, ids: Sequence[int]) -> dict[int, PageRecord]:
    rows = db.execute(_KNOWN, (json.dumps(list(ids)),))
    return {row[0]: _parse_row(row) for row in rows}


def _parse_row(row: Sequence[Any]) -> PageRecord:
    """A row of ``_KNOWN``; what is damaged in it is taken for nothing."""
    *values, links, file, offset, length = row[:12]
    grp, canonical, marks, words, spam, objections, private, stands, how, via = row[12:]
    place = ArchiveLocation(file, offset, length) if file is not None else None
    names = tuple(str(name) for name, _ in json.loads(objections)) if objections else ()
    rest = (grp, canonical or "", marks or "", words or 0, spam or 0.0, names, private or "", stands, how, via)
    return PageRecord._make((*values, _unpack_links(links), place, *rest))


def _unpack_links(blob: bytes) -> tuple[tuple[str, str], ...]:
    try:
        return unpack_anchors(blob)
    except StoreCorrupt:
        return ()
