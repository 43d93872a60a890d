"""Searching a data folder: what the server and ``vedette search`` ask. It reads beside the keeper and the indexer."""

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.archive.replay import Old, body_of
from vedette.adapters.archive.warc_reader import read_place
from vedette.adapters.archive.warc_writer import Place
from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import database_said_plainly, read_state
from vedette.adapters.crawl_store.search_store import KeyRow, RuleRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.indexer_store import page_known
from vedette.engine.search.hidden import nearest
from vedette.engine.search.search import Searcher
from vedette.errors import StoreError
from vedette.index.fields import PUBLIC
from vedette.index.query.retrieval import All, OneOf, Term
from vedette.index.query.retrieval import Any as AnyOf
from vedette.model import Failure, Site, fingerprint, origin_of
from vedette.runtime.commands.setting_commands import learns
from vedette.runtime.search.index_counts import counted
from vedette.runtime.search.index_snapshot import LiveShelf
from vedette.runtime.search.reputation_store import read_told
from vedette.serve.rank.rules import Rules, read_rules
from vedette.serve.slate import Result, Slate, Snippet, Wish
from vedette.text import words_of
from vedette.web.console.ports.monitoring import RankingTold
from vedette.web.ports import CachedCopy, Overview

__all__ = ["FolderSearch"]

LOOK_EVERY_S = 0.25
STATE_EVERY_S = 1.0
COUNT_EVERY_S = 3.0
FAVOUR_EVERY_S = 10.0
FAVOURS = {"raise": 1.0, "lower": -1.0}
MOST_ENDINGS = 50
MOST_ID = 1 << 40
MOST_SIMILAR = 50
MOST_READERS = 64
MOST_BODY_BYTES = 16 << 20
# Copies are found by the index over them; any other page is a group of itself, which its id finds.
_GROUPS = (
    "WITH asked (grp) AS (SELECT value FROM json_each(?1)), member (id) AS "
    "(SELECT id FROM content WHERE grp <> id AND grp IN asked UNION SELECT grp FROM asked) "
)
_MEMBERS = _GROUPS + (
    "SELECT content.id, url.url, page.title, page.fetched_s, url.found_s, content.language, content.private "
    "FROM content JOIN url ON url.id = content.id JOIN page ON page.id = content.id "
    "WHERE content.id IN member AND content.grp IN asked AND content.id <> ?2 "
    "AND page.status BETWEEN 200 AND 299 AND content.marks NOT LIKE '%noindex%' ORDER BY content.id LIMIT ?3"
)
_COUNTS = _GROUPS + (  # noqa: S608 - two texts of our own
    "SELECT content.grp, count(*) FROM content JOIN page ON page.id = content.id "
    "WHERE content.id IN member AND content.grp IN asked "
    "AND page.status BETWEEN 200 AND 299 AND content.marks NOT LIKE '%noindex%' "
    "AND content.private IN (SELECT value FROM json_each(?2)) GROUP BY content.grp"
)
_SHARED = "SELECT grp, members FROM copies WHERE members > 1 AND grp IN (SELECT value FROM json_each(?))"
_PLACE = (
    "SELECT file, offset, length, status, content_type, fetched_s, charset, marks, private "
    "FROM page JOIN content USING (id) WHERE id = ? AND file IS NOT NULL"
)


class FolderSearch:
    """A ``web.ports.Search`` over one data folder."""

    def __init__(self, folder: Path, clock: Clock, *, demo: bool = False, learn: bool = True) -> None:
        self._folder = folder
        self._clock = clock
        self._started_s = clock.now()
        self._demo = demo
        self._learn, self._learns = learn, learn
        self._generations = Generations(folder)
        self._shelf: LiveShelf | None = None
        self._searcher: Searcher | None = None
        self._db: sqlite3.Connection | None = None
        self._looked_s = self._ruled_s = float("-inf")
        self._sites: tuple[Site, ...] = ()
        self._rules = Rules()
        self._overviews: dict[tuple[str, ...], tuple[float, Overview]] = {}
        self._keys: list[KeyRow] = []
        self._said: dict[str, float] = {}
        self._favoured: dict[int, float] = {}
        self._favoured_s = float("-inf")

    # the port

    def search(self, wish: Wish) -> Slate:
        """Results, with how many others say the same."""
        shelf = self._look()
        if shelf is None or self._searcher is None:
            return Slate(wish, 0)
        return self._with_copies(self._searcher.search(wish, self._clock.now()), shelf)

    def suggest(self, typed: str, most: int, site: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """How what is being typed may go on."""
        shelf = self._look()
        if shelf is None:
            return ()
        if site:
            return self._titles_within(shelf, typed, most, site, allowed)
        return shelf.lexicon.suggestions.complete(typed, most)

    def overview(self, allowed: tuple[str, ...]) -> Overview:
        """Counted every few seconds for each kind of reader."""
        shelf, now_s = self._look(), time.monotonic()
        counted_s, kept = self._overviews.get(allowed, (float("-inf"), Overview()))
        if shelf is None or now_s - counted_s < COUNT_EVERY_S:
            return kept
        if len(self._overviews) >= MOST_READERS:
            self._overviews.clear()
        since_s = self._started_s if self._demo else None
        hosts = dict(self._ask("SELECT id, name FROM host"))
        self._overviews[allowed] = now_s, counted(shelf, hosts, self._sites, allowed, self._clock.now(), since_s)
        return self._overviews[allowed][1]

    def copy(self, id_: int, allowed: tuple[str, ...]) -> CachedCopy | None:
        """Out of the archive, where the page can be found, and neither its owner nor its site objects.

        What counts is the state, since that names the copy; the index may be a moment behind it.
        """
        shelf = self._look()
        stored = shelf.table.stored(id_) if shelf and self._may_see(shelf, id_, allowed) else None
        row = self._ask(_PLACE, id_) if stored else []
        if stored is None or not row:
            return None
        file, offset, length, status, content_type, fetched_s, charset, marks, private = row[0]
        if "noarchive" in marks.split(", ") or private not in {"", *allowed}:
            return None
        try:
            found = read_place(self._folder / "warc", Place(file, offset, length))
        except StoreError:
            return None
        body = body_of(Old(stored.url, fetched_s, status, found.headers, found.payload, ""), MOST_BODY_BYTES)
        if isinstance(body, Failure):
            return None
        return CachedCopy(
            stored.url,
            stored.title,
            fetched_s,
            content_type,
            body,
            charset,
            stored.body if stored.kind != "html" else "",
        )

    def find(self, url: str, allowed: tuple[str, ...]) -> int | None:
        """By its fingerprint, which two URLs might share: so the URL itself is compared, too."""
        shelf = self._look()
        id_ = page_known(shelf.generation, fingerprint(url)) if shelf else 0
        if shelf is None or not self._may_see(shelf, id_, allowed):
            return None
        stored = shelf.table.stored(id_)
        return id_ if stored is not None and stored.url == url else None

    def similar(self, id_: int, allowed: tuple[str, ...]) -> tuple[Result, ...]:
        """Its group of copies, those left out of the index too."""
        shelf = self._look()
        if shelf is None or not self._may_see(shelf, id_, allowed):
            return ()
        group = int(shelf.table.rows[id_]["group"])
        rows = self._ask(_MEMBERS, json.dumps([group]), id_, MOST_SIMILAR)
        return tuple(
            Result(page, url, title, Snippet(), origin_of(url).host, "html", language, fetched_s, found_s, None, 0.0)
            for page, url, title, fetched_s, found_s, language, private in rows
            if not private or private in allowed
        )

    def sites(self) -> tuple[Site, ...]:
        """All of them."""
        self._look()
        return self._sites

    def reader_keys(self) -> list[KeyRow]:
        """The keys as they are now: whoever shows one is judged before anything is searched."""
        self._look()
        return self._keys

    def is_behind(self) -> str:
        """Whether there is an index at all, and whether it has all pages."""
        shelf = self._look()
        if shelf is None:
            return "there is no index yet: it is built as soon as pages are fetched"
        return "" if self._generations.is_complete(shelf.generation) else "the index is being built"

    def ranking(self) -> RankingTold | None:
        """How learning from clicks stands, as it was last told beside the index."""
        return read_told(self._generations.folder)

    def now_s(self) -> float:
        """World time."""
        return self._clock.now()

    # looking

    def _look(self) -> LiveShelf | None:
        """What is there now; looked at anew several times a second."""
        wall_s = time.monotonic()
        if wall_s - self._looked_s >= LOOK_EVERY_S:
            self._looked_s = wall_s
            self._see_index()
        if wall_s - self._ruled_s >= STATE_EVERY_S:
            self._ruled_s = wall_s
            self._see_state()
        return self._shelf

    def _see_index(self) -> None:
        generation = self._generations.current()
        if generation is None:
            return
        if self._shelf is None or self._shelf.generation != generation:
            try:
                self._shelf = LiveShelf(generation)
            except StoreError:  # it is just being made
                return
            self._searcher = None
        self._shelf.refresh()
        if self._shelf.learned.look() or self._searcher is None:
            self._searcher = self._search_by(self._shelf)

    def _see_state(self) -> None:
        if not (self._folder / "state.db").exists():
            return
        try:
            with read_state(self._folder) as db:
                book = StateBook(db)
                self._sites = tuple(row.site for row in book.sites())
                self._keys = book.reader_keys()
                rows = book.search_rules()
                rules = rules_of(rows)._replace(favoured=self._favours(rows, db))
                is_learning = learns(book, configured=self._learn)
        except StoreError:  # it is just being made; what is at hand stays
            return
        if (rules, is_learning) != (self._rules, self._learns) and self._shelf is not None:
            self._rules, self._learns = rules, is_learning
            self._searcher = self._search_by(self._shelf)

    def _search_by(self, shelf: LiveShelf) -> Searcher:
        """By the operator's rules, and by what was learned where that is wanted."""
        return Searcher(shelf, self._rules, shelf.learned.reputation if self._learns else None)

    def _favours(self, rows: Sequence[RuleRow], db: sqlite3.Connection) -> Mapping[int, float]:
        """Hosts that the operator raised or lowered, by number; there may be many, so that is done now and then."""
        said = {row.value: FAVOURS[row.kind] for row in rows if row.kind in FAVOURS}
        wall_s = time.monotonic()
        if said != self._said or (said and wall_s - self._favoured_s >= FAVOUR_EVERY_S):
            self._said, self._favoured_s = said, wall_s
            hosts = db.execute("SELECT id, name FROM host").fetchall() if said else []
            self._favoured = {id_: said[near] for id_, name in hosts if (near := nearest(name, said)) is not None}
        return self._favoured

    def _ask(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Something of the state as it is now."""
        if self._db is None:
            path = (self._folder / "state.db").resolve().as_uri()
            self._db = sqlite3.connect(f"{path}?mode=ro", uri=True, isolation_level=None)
        with database_said_plainly(self._folder):
            return self._db.execute(sql, values).fetchall()

    # what is shown

    def _with_copies(self, slate: Slate, shelf: LiveShelf) -> Slate:
        """How many other pages of its group each result has, as far as the reader may see them."""
        if not slate.results or not slate.wish.folded:
            return slate
        groups = shelf.table.at(np.array([result.id for result in slate.results], np.int64))["group"].tolist()
        shared = dict(self._ask(_SHARED, json.dumps(groups)))
        if shared and any(site.secrets for site in self._sites):
            visible = json.dumps(["", *slate.wish.allowed])
            shared = dict(self._ask(_COUNTS, json.dumps(list(shared)), visible))
        others = {group: members - 1 for group, members in shared.items()}
        results = [
            result._replace(similar=max(others.get(group, 0), 0))
            for result, group in zip(slate.results, groups, strict=True)
        ]
        return slate._replace(results=tuple(results))

    def _titles_within(
        self, shelf: LiveShelf, typed: str, most: int, site: str, allowed: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The titles of pages of a site that have all words, the last one perhaps unfinished."""
        *whole, last = words_of(typed)[:8] or [""]
        if not last:
            return ()
        rows = shelf.lexicon.vocabulary.with_prefix(last)[:MOST_ENDINGS]
        ends = {last: None, **{shelf.lexicon.vocabulary.word(row): None for row in rows}}
        node = All(
            (
                OneOf("site", (site.lower().rstrip("/"),)),
                OneOf("access", (PUBLIC, *allowed)),
                *(Term("title", word) for word in whole),
                AnyOf(tuple(Term("title", word) for word in ends)),
            )
        )
        found = shelf.stored(shelf.finder.find(node, most).ids)
        return tuple(dict.fromkeys(stored.title for stored in found if stored is not None))

    def _may_see(self, shelf: LiveShelf, id_: int, allowed: tuple[str, ...]) -> bool:
        if not 0 <= id_ < MOST_ID or not shelf.has(id_):
            return False
        return shelf.access(np.array([id_]))[0] in {PUBLIC, *allowed}


def rules_of(rows: Sequence[RuleRow]) -> Rules:
    """The operator's rules for single queries, as ranking takes them."""
    kinds = {kind: [(row.query, row.value) for row in rows if row.kind == kind] for kind in ("synonym", "pin", "hide")}
    return read_rules(kinds["synonym"], kinds["pin"], kinds["hide"])
