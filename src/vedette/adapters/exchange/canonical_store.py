"""Canonical store of a shard in ``state.db``: canonical URLs that pages name across shards.

A page whose author declares a page of another shard as canonical leaves the index as long as that page can be shown.
The shard of the canonical remembers who named it, and says so again when the answer changes. The indexer reads the
answers with the pages of its queue.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence

from vedette.adapters.crawl_store.index_queue import PageRecord, load_page_records
from vedette.engine.coordinator.shard import ForeignCanonical
from vedette.engine.search.indexable import IndexCandidate, explain_exclusion
from vedette.model import fingerprint, origin_of, partition_of

CANONICAL_SCHEMA = """
CREATE TABLE IF NOT EXISTS foreign_canonical (
  print INTEGER PRIMARY KEY,       -- fingerprint of a URL of another shard that a page names as canonical
  is_there INTEGER NOT NULL        -- whether it can be shown instead of the page
) STRICT;
CREATE TABLE IF NOT EXISTS canonical_asker (
  target INTEGER NOT NULL,         -- fingerprint of a URL of this shard
  page TEXT NOT NULL,              -- a page of another shard that names it as canonical
  url TEXT NOT NULL,               -- as that page spells it
  is_there INTEGER NOT NULL,       -- the last answer
  partition INTEGER NOT NULL,
  PRIMARY KEY (target, page)
) STRICT, WITHOUT ROWID;
"""


class CanonicalStore:
    """The canonical URLs that pages of this shard name in others, and the other way round.

    ``find_id`` returns the id of a known URL, 0 if it is unknown.
    """

    def __init__(self, db: sqlite3.Connection, find_id: Callable[[str], int]) -> None:
        self._db, self._find_id = db, find_id

    def answer(self, asked: ForeignCanonical, url: str) -> ForeignCanonical:
        """Remember a page that names a URL of this shard, ``url`` in its normal form, and say whether it is there."""
        is_there = self._is_there(url)
        row = (fingerprint(url), asked.page, asked.url, is_there, partition_of(origin_of(url).host))
        self._db.execute("INSERT OR REPLACE INTO canonical_asker VALUES (?, ?, ?, ?, ?)", row)
        return asked._replace(is_there=is_there)

    def list_changed(self, urls: Sequence[str]) -> list[ForeignCanonical]:
        """List the answers about URLs of this shard that were fetched and are now others; they count as given."""
        prints = {fingerprint(url): url for url in urls}
        sql = "SELECT target, page, url, is_there FROM canonical_asker WHERE target IN (SELECT value FROM json_each(?))"
        rows = self._db.execute(sql, (json.dumps(list(prints)),)).fetchall()
        now = {target: self._is_there(prints[target]) for target in dict.fromkeys(row[0] for row in rows)}
        changed = [(target, page, url) for target, page, url, before in rows if now[target] != bool(before)]
        sql = "UPDATE canonical_asker SET is_there = ? WHERE target = ? AND page = ?"
        self._db.executemany(sql, [(now[target], target, page) for target, page, _ in changed])
        return [ForeignCanonical(url, page, now[target]) for target, page, url in changed]

    def save_answer(self, answer: ForeignCanonical) -> None:
        """Save whether a URL of another shard is there, and queue the page that names it for the indexer."""
        row = (fingerprint(answer.url), bool(answer.is_there))
        self._db.execute("INSERT OR REPLACE INTO foreign_canonical VALUES (?, ?)", row)
        if id_ := self._find_id(answer.page):
            self._db.execute("INSERT INTO news (page) SELECT id FROM page WHERE id = ?", (id_,))

    def _is_there(self, url: str) -> bool:
        id_ = self._find_id(url)
        page = load_page_records(self._db, [id_]).get(id_) if id_ else None
        return page is not None and can_replace(page)


def can_replace(page: PageRecord) -> bool:
    """Check whether a page can be shown to everyone instead of one that names it as canonical.

    A page that names another one cannot, because the two may name each other.
    """
    facts = IndexCandidate(
        page.status, page.kind, page.group is not None, page.objections, page.marks, words=page.words
    )
    return not page.canonical and not page.private and not explain_exclusion(facts, (), page.fetched_s)
