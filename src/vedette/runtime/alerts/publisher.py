"""Telling of new pages: each gets its number once it can be found, together with the watches that it fits.

Places are compared with the URL. Queries are asked of the index itself, with nothing but the new pages among the
candidates, so that a watch finds what a search with the same words would.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vedette.adapters.alerts.alert_store import Fresh, Item, Told, WatchBook
from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.hidden import Concealed
from vedette.engine.search.search import Searcher, snippet_for
from vedette.errors import StoreError
from vedette.index.fields import PUBLIC, places_of
from vedette.index.query.retrieval import Any, Between
from vedette.index.stored_text import Stored
from vedette.model import Site
from vedette.runtime.search.index_snapshot import LiveShelf
from vedette.runtime.search.searcher import rules_of
from vedette.serve.slate import Wish
from vedette.web.auth.access import Reader, allowed_sites

__all__ = ["EVERYTHING", "Telling", "fits_place", "may_hear"]

AT_ONCE = 100
EVERYTHING = "*"
# What cannot be found after so long (wall time) went away again, and is told to nobody.
PATIENCE_S = 600.0
LONGEST_TEXT = 300
DAY_S = 86_400.0


def fits_place(place: str, url: str) -> bool:
    """Whether a page lies where a watch looks.

    >>> [fits_place(p, "https://docs.example.org/ops/lag") for p in ("example.org", "docs.example.org/ops", "ops", "*")]
    [True, True, False, True]
    """
    return place == EVERYTHING or place in places_of(url)


def may_hear(watch: WatchRow, private: str, sites: Sequence[Site]) -> bool:
    """Whether a webhook may hear of a page: of public ones always, of private ones where its reader may see them."""
    if not private:
        return True
    reader = Reader(watch.reader, ("search", "private"), known_by="key")
    return bool(watch.reader) and private in allowed_sites(reader, sites)


class Telling:
    """Follows what the indexer notes; one step at a time."""

    def __init__(self, folder: Path, clock: Clock, book: WatchBook) -> None:
        self._folder, self._clock, self._book = folder, clock, book
        self._generations = Generations(folder)
        self._shelf: LiveShelf | None = None
        self._seen_s: dict[int, float] = {}

    def step(self) -> int:
        """Tell what can be found by now; how many pages that were."""
        fresh = self._book.fresh(AT_ONCE)
        shelf = self._look() if fresh else None
        if shelf is None:
            return 0
        wall_s = time.monotonic()
        findable = _findable([one.page for one in fresh], shelf)
        ready = [one for one in fresh if one.page in findable]
        self._seen_s = {one.print: self._seen_s.get(one.print, wall_s) for one in fresh if one not in ready}
        gone = [print_ for print_, since_s in self._seen_s.items() if wall_s - since_s > PATIENCE_S]
        if not self._generations.is_complete(shelf.generation):
            gone = []
        if ready or gone:
            told = self._told(ready, shelf)
            passed = {one.print for one in told}
            gone += [one.print for one in ready if one.print not in passed]
            self._book.tell(told, gone, time.time())
        return len(ready)

    def _look(self) -> LiveShelf | None:
        generation = self._generations.current()
        if generation is None:
            return None
        if self._shelf is None or self._shelf.generation != generation:
            try:
                self._shelf = LiveShelf(generation)
            except StoreError:  # it is just being made
                return None
        self._shelf.refresh()
        return self._shelf

    def _told(self, fresh: Sequence[Fresh], shelf: LiveShelf) -> list[Told]:
        with read_state(self._folder) as db:
            book = StateBook(db)
            watches, rules = book.watches(), book.search_rules()
            sites = [row.site for row in book.sites()]
            births = book.births([one.page for one in fresh])
        concealed = Concealed.of((row.kind, row.value) for row in rules)
        items = {}
        for one in fresh:
            stored = shelf.table.stored(one.page)
            if stored is not None and not concealed.why(stored.url):
                access = shelf.access(np.array([one.page]))[0]
                private = "" if access == PUBLIC else access
                items[one.page] = _item(one, stored, births.get(one.page), private, self._clock.now())
        found = self._fitting(watches, items, Searcher(shelf, rules_of(rules)), sites)
        return [_told(one, items[one.page], found, watches, sites) for one in fresh if one.page in items]

    def _fitting(
        self, watches: Sequence[WatchRow], items: Mapping[int, Item], searcher: Searcher, sites: Sequence[Site]
    ) -> dict[str, list[int]]:
        """The pages that each watch wants, by its mark."""
        everywhere = tuple(site.start for site in sites if site.secrets)
        found = {}
        for watch in watches:
            pages = [id_ for id_, item in items.items() if not watch.place or fits_place(watch.place, item.url)]
            if watch.query:
                pages = searcher.matching(Wish(watch.query, allowed=everywhere), pages, self._clock.now())
            found[watch.mark] = pages
        return found


def _told(
    fresh: Fresh, item: Item, found: Mapping[str, list[int]], watches: Sequence[WatchRow], sites: Sequence[Site]
) -> Told:
    fitting = [watch for watch in watches if item.page in found[watch.mark]]
    hooks = [watch.mark for watch in fitting if watch.webhook and may_hear(watch, item.private, sites)]
    return Told(fresh.print, item, tuple(watch.mark for watch in fitting), tuple(hooks))


def _findable(ids: Sequence[int], shelf: LiveShelf) -> list[int]:
    """Those that a search finds: the table beside the index may be a moment ahead of it."""
    among = Any(tuple(Between("id", id_, id_) for id_ in ids))
    return [id_ for id_ in shelf.finder.find(among, len(ids)).ids.tolist() if shelf.has(id_)]


def _item(fresh: Fresh, stored: Stored, listed_s: float | None, private: str, now_s: float) -> Item:
    """What is said of a page. A date that lies after its discovery is not that of its birth."""
    born_s = _born_s(stored.published_s, listed_s)
    if born_s is not None and born_s > fresh.found_s:
        born_s = None
    text = snippet_for(stored, ()).text[:LONGEST_TEXT]
    title = stored.title[:LONGEST_TEXT]
    return Item(0, fresh.page, stored.url, title, text, fresh.found_s, fresh.how, fresh.via, born_s, now_s, private)


def _born_s(own_s: float | None, listed_s: float | None) -> float | None:
    """The date of a page by its own words, or by those of the list that named it where its own say only the day.

    >>> _born_s(86_400.0, 90_000.0), _born_s(90_001.0, 90_000.0), _born_s(None, 90_000.0), _born_s(86_400.0, None)
    (90000.0, 90001.0, 90000.0, 86400.0)
    """
    if own_s is None or listed_s is None:
        return listed_s if own_s is None else own_s
    return listed_s if own_s % DAY_S == 0 else own_s
