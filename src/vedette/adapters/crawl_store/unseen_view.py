"""URLs that were never fetched, read out of the state a batch at a time; each holds the state for a moment only.

Ids are given in the order of finding and never again, so what is read batch by batch fits together.
"""

from pathlib import Path
from typing import NamedTuple

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.url_store.rows import as_json

__all__ = ["UrlFacts", "facts_of", "fetched_pages", "unseen_after"]

_UNSEEN = (
    "SELECT id, url, depth FROM url WHERE id > ? AND NOT EXISTS (SELECT 1 FROM page WHERE page.id = url.id) "
    "AND NOT EXISTS (SELECT 1 FROM note WHERE url_id = url.id) ORDER BY id LIMIT ?"
)
_FACTS = "SELECT id, url, depth FROM url WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
_FETCHED = "SELECT id FROM page WHERE kind IN ('page', 'document', 'other') ORDER BY id DESC LIMIT ?"


class UrlFacts(NamedTuple):
    """A URL, and how many links it is from a start."""

    id: int
    url: str
    depth: int


def unseen_after(folder: Path, id_: int, most: int) -> list[UrlFacts]:
    """The next URLs behind an id that were neither fetched nor refused."""
    with read_state(folder) as db:
        return [UrlFacts(*row) for row in db.execute(_UNSEEN, (id_, most))]


def facts_of(folder: Path, ids: list[int]) -> list[UrlFacts]:
    """These URLs, by ascending id."""
    with read_state(folder) as db:
        return [UrlFacts(*row) for row in db.execute(_FACTS, (as_json(ids),))]


def fetched_pages(folder: Path, seq: int, most: int) -> list[int]:
    """The latest found of those that were fetched and of which the index, up to this news, has seen all there is."""
    with read_state(folder) as db:
        pending = {row[0] for row in db.execute("SELECT DISTINCT page FROM news WHERE seq > ?", (seq,))}
        return [row[0] for row in db.execute(_FETCHED, (most,)) if row[0] not in pending]
