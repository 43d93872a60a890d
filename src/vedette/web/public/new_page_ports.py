"""The port of the service that lists new pages, and new pages as API, webhooks and command line show them."""

from typing import Annotated, Final, Literal, NamedTuple, Protocol

from msgspec import Meta, to_builtins

from vedette.adapters.alerts.alert_store import AlertItem
from vedette.model import origin_of
from vedette.web.api.responses import format_iso_time
from vedette.web.api.schema import Answer, Time

# On one machine a few digits; in a cluster, the positions in all of its shards.
MAX_CURSOR_DIGITS = 4000
Cursor = Annotated[str, Meta(pattern=f"^[0-9]{{1,{MAX_CURSOR_DIGITS}}}$")]


class ItemBatch(NamedTuple):
    """A batch of new pages, the ``cursor`` to continue from, and whether there are more at once.

    ``missed`` means that some pages after the requested cursor are no longer stored.
    """

    items: tuple[AlertItem, ...] = ()
    cursor: int = 0
    more: bool = False
    missed: bool = False


class NewPages(Protocol):
    """The service that lists new pages, for ``/new``, its feed and API; the runtime implements it. Quick to call.

    ``watch`` is the name of an alert; empty for all new pages. ``allowed`` are the private sites that the user may see,
    as in ``SearchService``.
    """

    def has_alert(self, name: str) -> bool:
        """Check whether there is an alert of this name on new pages."""

    def list_after(self, cursor: int | None, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """Return the new pages after a cursor, oldest first; None is the end, after which there are none yet."""

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:
        """Return the latest new pages, newest first; with ``before`` those before it, and ``cursor`` likewise."""


class _NoNewPages:
    """The service of a server that stores no new pages."""

    def has_alert(self, name: str) -> bool:  # noqa: ARG002 - the port's
        return False

    def list_after(self, cursor: int | None, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:  # noqa: ARG002 - the port's
        return ItemBatch(cursor=cursor or 0)

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


class FoundVia(Answer):
    """Where a link to a page was found."""

    how: Annotated[str, Meta(description="Kind of source: page, feed, sitemap and so on.")]
    url: Annotated[str, Meta(description="URL of the source.")]


class NewItem(Answer):
    """A page that is new."""

    cursor: Annotated[Cursor, Meta(description="Sequence number.")]
    url: str
    title: str
    snippet: Annotated[str, Meta(description="Excerpt of its text: plain text, never HTML.")]
    site: Annotated[str, Meta(description="Its host.")]
    first_seen_at: Annotated[Time, Meta(description="When a link to it was first seen.")]
    found_via: FoundVia
    published_at: Annotated[Time | None, Meta(description="Publication date, if known.")]
    told_at: Annotated[Time, Meta(description="When it became searchable and was reported.")]
    delay_s: Annotated[
        float, Meta(ge=0, description="From publication to discovery or, without a date, from discovery to report.")
    ]
    delay_from: Annotated[Literal["birth", "first_seen"], Meta(description="Start of the delay.")]


def describe_item(item: AlertItem) -> NewItem:
    """Convert a new page to the API's item. The delay counts from its publication, else from when it was first seen."""
    return NewItem(
        cursor=str(item.seq),
        url=item.url,
        title=item.title,
        snippet=item.snippet,
        site=origin_of(item.url).host,
        first_seen_at=format_iso_time(item.found_s),
        found_via=FoundVia(item.how, item.via),
        published_at=None if item.born_s is None else format_iso_time(item.born_s),
        told_at=format_iso_time(item.told_s),
        delay_s=round(item.delay_s, 3),
        delay_from="first_seen" if item.born_s is None else "birth",
    )


def item_to_json(item: AlertItem) -> dict[str, object]:
    """Return a new page as a JSON dictionary, for API and webhooks."""
    data: dict[str, object] = to_builtins(describe_item(item))
    return data


def describe_source(item: AlertItem) -> str:
    """Describe in words where a new page was found, such as "a feed".

    >>> describe_source(AlertItem(1, 7, "https://example.org/a", "A", "", 0.0, "feed", "", None, 1.0))
    'a feed'
    """
    return _SOURCE_LABELS.get(item.how, "a link")
