"""What a fetch of a URL would be for, what it costs, and what its site got of the budget today."""

from typing import Any

from vedette.adapters.crawl_store.reader import StateView
from vedette.engine.ports import PageRow
from vedette.engine.scheduling.schedule import is_good, is_source
from vedette.model import Site
from vedette.runtime.monitoring.budget import site_today

__all__ = ["budget_facts"]

Told = dict[str, Any]


def budget_facts(url: str, page: PageRow | None, site: Site, said: Told, view: StateView, now_s: float) -> Told:
    """Plain values; ``said`` is what ``refresh`` and ``look`` say of the page. ``cost`` is None where nobody says."""
    own, everything = site_today(view.book, site.start, now_s)
    kind = _kind(url, page, is_looked_at=said["look"] is not None)
    refresh = said["refresh"] if kind == "refresh" else None
    return {
        "kind": kind,
        "cost": refresh["cost"] if refresh else None,
        "site_today": int(own),
        "all_today": int(everything),
        "site_share": site.share,
    }


def _kind(url: str, page: PageRow | None, *, is_looked_at: bool) -> str:
    if page is None:
        return "first"
    if not is_good(page.status):
        return "gone"
    return "look" if is_looked_at or is_source(url, page.kind) else "refresh"
