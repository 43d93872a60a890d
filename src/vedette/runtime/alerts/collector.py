"""New page collector for alerts: the indexer reports pages that are new and searchable for the first time.

A page that nearly repeats an earlier page, or that a known page now redirects to, is not new: a site that was rebuilt
under other URLs triggers no alerts. Collected pages are on disk before the index is, and so before the coordinator
drops their source.
"""

import sys
from pathlib import Path

from vedette.adapters.alerts.alert_store import ALERTS_FILE, AlertStore, NewPage
from vedette.adapters.crawl_store.index_queue import PageRecord
from vedette.errors import StoreCorrupt
from vedette.model import fingerprint


class NewPageCollector:
    """Collect new pages for alerts until the indexer's next commit.

    An index generation that is built in the background collects them too: a page counts once.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store: AlertStore | None = None
        self._fresh: dict[int, NewPage] = {}
        self._duplicates: dict[int, None] = {}
        self._moved: dict[int, None] = {}
        self._now_s = 0.0

    def add_page(self, page: PageRecord) -> None:
        """Collect a page that has become searchable as new for alerts, unless it is a duplicate."""
        if not page.how:
            return
        print_ = fingerprint(page.url)
        self._now_s = max(self._now_s, page.fetched_s)
        if page.group in {None, page.id}:
            self._fresh.setdefault(print_, NewPage(print_, page.id, page.found_s, page.how, page.via, page.fetched_s))
        else:
            self._duplicates[print_] = None

    def drop_page(self, page: PageRecord, *, could_be_found: bool) -> None:
        """Drop a page that is not searchable from the new pages; its redirect target is not new either."""
        self._fresh.pop(fingerprint(page.url), None)
        if could_be_found and (page.location or page.canonical):
            self._now_s = max(self._now_s, page.fetched_s)
            self._moved[fingerprint(page.location or page.canonical)] = None

    def commit(self) -> None:
        """Save the collected new pages to the alert store; they are durable on return."""
        if not (self._fresh or self._duplicates or self._moved):
            return
        try:
            self._save()
        except StoreCorrupt as error:
            self.close()
            sys.stderr.write(f"vedette: {error}; moved to {ALERTS_FILE.move_aside(self._folder).name}\n")
            self._save()
        self._fresh, self._duplicates, self._moved = {}, {}, {}

    def close(self) -> None:
        """Close the new page collector; uncommitted pages will be reported again."""
        if self._store is not None:
            self._store.close()
        self._store = None

    def _save(self) -> None:
        if self._store is None:
            self._store = AlertStore(self._folder)
        self._store.add_new_pages(self._fresh.values(), self._duplicates, self._moved, self._now_s)
