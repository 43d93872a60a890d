"""What is said of a new page, the same for API, webhooks and command line."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.model import origin_of
from vedette.web.api.responses import format_iso_time


class ItemBatch(NamedTuple):
    """Some items, where to go on (``cursor``), and whether there are more at once.

    ``missed`` says that some after the cursor that was asked for are not kept any more.
    """

    items: tuple[AlertItem, ...] = ()
    cursor: int = 0
    more: bool = False
    missed: bool = False


class NewPages(Protocol):
    """The pages that were new. Quick to ask.

    ``watch`` is the name of a watch; without one all new pages are meant. ``allowed`` are the private sites that the
    reader may see, as in ``SearchService``.
    """

    def has_alert(self, name: str) -> bool:
        """Whether there is a watch of this name."""

    def list_after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """The items after a cursor, the oldest first."""

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:
        """The latest items, the newest first; where ``before`` is given, those before it, and so does ``cursor``."""


class _NoNewPages:
    """Where nothing is kept."""

    def has_alert(self, name: str) -> bool:  # noqa: ARG002 - the port's
        return False

    def list_after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:  # noqa: ARG002 - the port's
        return ItemBatch(cursor=cursor)

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:  # noqa: ARG002 - the port's
        return ItemBatch()


NO_NEW_PAGES: Final = _NoNewPages()


_SOURCE_LABELS = {
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


def item_to_json(item: AlertItem) -> dict[str, object]:
    """An item for programs. ``delay_from`` says what the delay counts from: its birth, else when it was first seen."""
    return {
        "cursor": str(item.seq),
        "url": item.url,
        "title": item.title,
        "snippet": item.snippet,
        "site": origin_of(item.url).host,
        "first_seen_at": format_iso_time(item.found_s),
        "found_via": {"how": item.how, "url": item.via},
        "published_at": None if item.born_s is None else format_iso_time(item.born_s),
        "told_at": format_iso_time(item.told_s),
        "delay_s": round(item.delay_s, 3),
        "delay_from": "first_seen" if item.born_s is None else "birth",
    }


def describe_source(item: AlertItem) -> str:
    """In words, where a page was found.

    >>> describe_source(AlertItem(1, 7, "https://example.org/a", "A", "", 0.0, "feed", "https://example.org/feed", None, 1.0))
    'a feed'
    """
    return _SOURCE_LABELS.get(item.how, "a link")
