"""Facts about a URL as ``runtime.explain`` collects them, and a site service that returns them."""

from typing import Any

from tests.web.small_operator import SmallDesk
from tests.web.small_search import NOW_S

from vedette.model import Site

DOCS = Site("https://docs.example.org/", delay_s=2.0, exclude=("/old/*",))


def facts(url: str, **changed: Any) -> dict[str, Any]:
    """Return the facts of a page that was fetched."""
    robots = {"url": "https://docs.example.org/robots.txt", "ignored": False, "verdict": "allowed", "line": None}
    page = {"status": 200, "kind": "page", "title": "Lag", "fetched_s": NOW_S - 240, "changed_s": NOW_S - 240}
    known = {"found_s": NOW_S - 900, "depth": 1, "standing": "fetched", "front": None, "ahead": None}
    return {
        "url": url,
        "known_as": url,
        "running": True,
        "now_s": NOW_S,
        "steps": [],
        "site": {"start": DOCS.start, "scope": "host", "paused": False, "change": "main", "overrule": ()},
        "refusal": None,
        "robots": {**robots, "state": "It was read.", "crawl_delay_s": None},
        "host": {"name": "docs.example.org", "wait": "", "ready_s": 0.0},
        "known": {**known, "why": None, "ended_s": None, "copy_lost": None},
        "page": {**page, "bytes": 10, "location": "", "due_s": NOW_S + 7300, "rule": "a rule", "archived": None},
        "refresh": None,
        "content": None,
        "copies": None,
        "index": None,
        "change": None,
        "held": None,
        "spared": None,
        "hidden": [],
        **changed,
    }


class Desk(SmallDesk):
    """An operator interface that returns ``facts``; ``changed`` are the overrides."""

    def __init__(self, *sites: Site, **changed: Any) -> None:
        super().__init__(*sites)
        self.changed = changed

    def explain_url(self, url: str) -> dict[str, Any]:
        """Return the facts for any URL."""
        return facts(url, **self.changed)
