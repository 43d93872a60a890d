"""Alert publisher: give new pages a sequence number once they are searchable, with the alerts they match.

Places are compared with the URL. Queries are run on the index itself, with only the new pages as candidates, so that an
alert finds what a search with the same words would.
"""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from vedette.adapters.alerts.alert_store import AlertItem, AlertStore, MatchedItem, NewPage
from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.index_store.generations import Generations
from vedette.engine.search.hidden import HiddenRules
from vedette.engine.search.search import Searcher, build_excerpts
from vedette.index.fields import PUBLIC, StoredPage, list_site_values
from vedette.index.query.retrieval import Or, Range
from vedette.model import Site
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot, refresh_snapshot
from vedette.runtime.search.searcher import build_rules
from vedette.serve.slate import SearchRequest
from vedette.timeutil import DAY_S
from vedette.web.auth.access import Identity, allowed_sites

BATCH_SIZE = 100
ANYWHERE = "*"
# A page that is not searchable after this long (wall time) has disappeared again, and is not reported.
FIND_TIMEOUT_S = 600.0
MAX_TEXT = 300


def is_in_place(place: str, url: str) -> bool:
    """Check whether a new page is in the place that an alert watches.

    >>> places = ("example.org", "docs.example.org/ops", "ops", "*")
    >>> [is_in_place(place, "https://docs.example.org/ops/lag") for place in places]
    [True, True, False, True]
    """
    return place == ANYWHERE or place in list_site_values(url)


def can_notify(watch: AlertRow, private: str, sites: Sequence[Site]) -> bool:
    """Check whether an alert's webhook may get a page: a public one always, a private one if its user may see it."""
    if not private:
        return True
    reader = Identity(watch.reader, ("search", "private"), auth_method="key")
    return bool(watch.reader) and private in allowed_sites(reader, sites)


class AlertClaims(Protocol):
    """Port by which a shard of a cluster sends only what no other has. Pairs are of alert and page fingerprint."""

    def claim(self, pairs: Collection[tuple[str, int]]) -> Collection[tuple[str, int]]:
        """Return the pairs that may be sent; raise ``ClusterError`` if that is unknown for now."""

    def confirm(self, pairs: Collection[tuple[str, int]]) -> None:
        """Note that these pairs were saved; raise ``ClusterError`` if that is impossible for now."""


class AlertMatcher:
    """Match the new pages that the indexer reported with alerts and publish them, step by step.

    One machine needs no ``claims``.
    """

    def __init__(self, folder: Path, clock: Clock, store: AlertStore, claims: AlertClaims | None = None) -> None:
        self._folder, self._clock, self._store, self._claims = folder, clock, store, claims
        self._generations = Generations(folder)
        self._snapshot: LiveIndexSnapshot | None = None
        self._first_seen_s: dict[int, float] = {}

    def step(self) -> int:
        """Publish the new pages that are searchable by now to alerts; return their number."""
        fresh = self._store.list_new_pages(BATCH_SIZE)
        snapshot = refresh_snapshot(self._generations, self._snapshot) if fresh else None
        if snapshot is None:
            return 0
        self._snapshot = snapshot
        wall_s = time.monotonic()
        findable = _select_findable([one.page for one in fresh], snapshot)
        ready = [one for one in fresh if one.page in findable]
        self._first_seen_s = {one.print: self._first_seen_s.get(one.print, wall_s) for one in fresh if one not in ready}
        gone = [print_ for print_, since_s in self._first_seen_s.items() if wall_s - since_s > FIND_TIMEOUT_S]
        if not self._generations.is_complete(snapshot.generation):
            gone = []
        if ready or gone:
            claimed = self._claim(self._match_pages(ready, snapshot))
            passed = {one.print for one in claimed}
            gone += [one.print for one in ready if one.print not in passed]
            self._store.publish(claimed, gone, time.time())
            pairs = _list_pairs(claimed)
            if self._claims is not None and pairs:
                self._claims.confirm(pairs)
        return len(ready)

    def _claim(self, found: list[MatchedItem]) -> list[MatchedItem]:
        """Leave out the alerts that another shard has sent about a page."""
        pairs = _list_pairs(found)
        if self._claims is None or not pairs:
            return found
        own = set(self._claims.claim(pairs))
        return [
            one._replace(
                alerts=tuple(mark for mark in one.alerts if (mark, one.print) in own),
                webhooks=tuple(mark for mark in one.webhooks if (mark, one.print) in own),
            )
            for one in found
        ]

    def _match_pages(self, fresh: Sequence[NewPage], snapshot: LiveIndexSnapshot) -> list[MatchedItem]:
        with read_state(self._folder) as db:
            store = CrawlStore(db)
            watches, rules = store.list_alerts(), store.list_search_rules()
            sites = [row.site for row in store.list_sites()]
            births = store.find_births([one.page for one in fresh])
        concealed = HiddenRules.from_rules((row.kind, row.value) for row in rules)
        items = {}
        for one in fresh:
            stored = snapshot.table.read_stored(one.page)
            if stored is not None and not concealed.get_reason(stored.url):
                access = snapshot.get_access(np.array([one.page]))[0]
                private = "" if access == PUBLIC else access
                items[one.page] = _build_item(one, stored, births.get(one.page), private, self._clock.now())
        found = self._match_alerts(watches, items, Searcher(snapshot, build_rules(rules)), sites)
        return [_build_match(one, items[one.page], found, watches, sites) for one in fresh if one.page in items]

    def _match_alerts(
        self, watches: Sequence[AlertRow], items: Mapping[int, AlertItem], searcher: Searcher, sites: Sequence[Site]
    ) -> dict[str, list[int]]:
        """Return the new pages that match each alert, by alert id."""
        everywhere = tuple(site.start for site in sites if site.secrets)
        found = {}
        for watch in watches:
            pages = [id_ for id_, item in items.items() if not watch.place or is_in_place(watch.place, item.url)]
            if watch.query:
                pages = searcher.filter_matching(
                    SearchRequest(watch.query, allowed=everywhere), pages, self._clock.now()
                )
            found[watch.alert_id] = pages
        return found


def _list_pairs(found: Sequence[MatchedItem]) -> list[tuple[str, int]]:
    return [(mark, one.print) for one in found for mark in one.alerts]


def _build_match(
    fresh: NewPage, item: AlertItem, found: Mapping[str, list[int]], watches: Sequence[AlertRow], sites: Sequence[Site]
) -> MatchedItem:
    fitting = [watch for watch in watches if item.page in found[watch.alert_id]]
    hooks = [watch.alert_id for watch in fitting if watch.webhook and can_notify(watch, item.private, sites)]
    return MatchedItem(fresh.print, item, tuple(watch.alert_id for watch in fitting), tuple(hooks))


def _select_findable(ids: Sequence[int], snapshot: LiveIndexSnapshot) -> list[int]:
    """Select the new pages that a search finds: the page table may be a moment ahead of the index."""
    among = Or(tuple(Range("id", id_, id_) for id_ in ids))
    return [id_ for id_ in snapshot.finder.find(among, len(ids)).ids.tolist() if snapshot.has(id_)]


def _build_item(fresh: NewPage, stored: StoredPage, listed_s: float | None, private: str, now_s: float) -> AlertItem:
    """Build the alert item of a new page; a date after its discovery is not its publication date."""
    born_s = _choose_birth_s(stored.published_s, listed_s)
    if born_s is not None and born_s > fresh.found_s:
        born_s = None
    text = build_excerpts(stored, ())[0].text[:MAX_TEXT]
    title = stored.title[:MAX_TEXT]
    return AlertItem(
        0, fresh.page, stored.url, title, text, fresh.found_s, fresh.how, fresh.via, born_s, now_s, private
    )


def _choose_birth_s(own_s: float | None, listed_s: float | None) -> float | None:
    """Choose a new page's publication date: its own, or the listing's if its own has only the day.

    >>> pairs = ((86_400.0, 90_000.0), (90_001.0, 90_000.0), (None, 90_000.0), (86_400.0, None))
    >>> [_choose_birth_s(*pair) for pair in pairs]
    [90000.0, 90001.0, 90000.0, 86400.0]
    """
    if own_s is None or listed_s is None:
        return listed_s if own_s is None else own_s
    return listed_s if own_s % DAY_S == 0 else own_s


_PRIVATE_SQL = (
    "SELECT page.id, coalesce(content.private, '') FROM page LEFT JOIN content ON content.id = page.id "
    "WHERE page.id IN (SELECT value FROM json_each(?))"
)


def filter_visible(folder: Path, items: Sequence[AlertItem], allowed: Collection[str]) -> list[AlertItem]:
    """Return the alert items visible to a user who may see these private sites (by their start URL).

    The current state counts: a page may have become private, been hidden or deleted since it was published.
    """
    if not items:
        return []
    with read_state(folder) as db:
        private = dict(db.execute(_PRIVATE_SQL, (json.dumps([item.page for item in items]),)))
        concealed = HiddenRules.from_rules((row.kind, row.value) for row in CrawlStore(db).list_search_rules())
    visible = {"", *allowed}
    return [
        item
        for item in items
        if item.private in visible and private.get(item.page) in visible and not concealed.get_reason(item.url)
    ]
