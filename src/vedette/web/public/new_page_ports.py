"""What is said of a new page, the same for API, webhooks and command line."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import Item
from vedette.model import origin_of
from vedette.web.api.responses import iso_time

__all__ = ["ITEM_EXAMPLE", "NO_NEW_PAGES", "Batch", "NewPages", "how_found", "item_as_json"]


class Batch(NamedTuple):
    """Some items, where to go on (``cursor``), and whether there are more at once.

    ``missed`` says that some after the cursor that was asked for are not kept any more.
    """

    items: tuple[Item, ...] = ()
    cursor: int = 0
    more: bool = False
    missed: bool = False


class NewPages(Protocol):
    """The pages that were new. Quick to ask.

    ``watch`` is the name of a watch; without one all new pages are meant. ``allowed`` are the private sites that the
    reader may see, as in ``Search``.
    """

    def is_watch(self, name: str) -> bool:
        """Whether there is a watch of this name."""

    def after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:
        """The items after a cursor, the oldest first."""

    def latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> Batch:
        """The latest items, the newest first; where ``before`` is given, those before it, and so does ``cursor``."""


class _None:
    """Where nothing is kept."""

    def is_watch(self, name: str) -> bool:  # noqa: ARG002 - the port's
        return False

    def after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:  # noqa: ARG002 - the port's
        return Batch(cursor=cursor)

    def latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> Batch:  # noqa: ARG002 - the port's
        return Batch()


NO_NEW_PAGES: Final = _None()


_HOW = {
    "page": "a link on a page",
    "feed": "a feed",
    "sitemap": "a sitemap",
    "document": "a link in a document",
    "redirect": "a redirect",
    "push": "a push message",
}
ITEM_EXAMPLE = {
    "cursor": "4711",
    "url": "https://docs.example.org/2026/01/harbour",
    "title": "The harbour opens again",
    "snippet": "Ships may enter the harbour from Monday on.",
    "site": "docs.example.org",
    "first_seen_at": "2026-01-31T09:26:53Z",
    "found_via": {"how": "feed", "url": "https://docs.example.org/feed.xml"},
    "published_at": "2026-01-31T09:20:00Z",
    "told_at": "2026-01-31T09:27:02Z",
    "delay_s": 413.0,
    "delay_from": "birth",
}


def item_as_json(item: Item) -> dict[str, object]:
    """An item for programs. ``delay_from`` says what the delay counts from: its birth, else when it was first seen."""
    return {
        "cursor": str(item.seq),
        "url": item.url,
        "title": item.title,
        "snippet": item.snippet,
        "site": origin_of(item.url).host,
        "first_seen_at": iso_time(item.found_s),
        "found_via": {"how": item.how, "url": item.via},
        "published_at": None if item.born_s is None else iso_time(item.born_s),
        "told_at": iso_time(item.told_s),
        "delay_s": round(item.delay_s, 3),
        "delay_from": "first_seen" if item.born_s is None else "birth",
    }


def how_found(item: Item) -> str:
    """In words, where a page was found.

    >>> how_found(Item(1, 7, "https://example.org/a", "A", "", 0.0, "feed", "https://example.org/feed", None, 1.0))
    'a feed'
    """
    return _HOW.get(item.how, "a link")
