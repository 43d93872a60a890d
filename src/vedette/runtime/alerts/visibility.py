"""Visibility of published alert items to a user: private pages, and pages that the operator has hidden since.

The current state counts: a page may have become private, been hidden or deleted since it was published.
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.engine.search.hidden import HiddenRules

_PRIVATE_SQL = (
    "SELECT page.id, coalesce(content.private, '') FROM page LEFT JOIN content ON content.id = page.id "
    "WHERE page.id IN (SELECT value FROM json_each(?))"
)


def filter_visible(folder: Path, items: Sequence[AlertItem], allowed: Collection[str]) -> list[AlertItem]:
    """Return the alert items visible to a user who may see these private sites (by their start URL)."""
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
