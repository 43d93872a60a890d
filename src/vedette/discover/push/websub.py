"""Find the WebSub hub that pushes a feed: in its Link headers, else in the feed (WebSub, section 4).

A hub notifies its subscribers when a *topic* has changed: the URL that the feed gives as its own. A topic that differs
from where the feed was found is rejected, since otherwise anyone could subscribe us to someone else's.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from vedette.discover.formats.feeds import Feed
from vedette.discover.urls.normalize import resolve
from vedette.model import origin_of

MAX_HEADER_LENGTH = 8_192
MAX_URL_LENGTH = 2_048
MAX_LINKS = 64
_LINK = re.compile(r"<([^<>]{1,2048})>((?:[^<,\"]|\"[^\"]*\")*+)")
_RELATION = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,\"]+))", re.IGNORECASE)


class HubOffer(NamedTuple):
    """The WebSub hub that offers to push a feed, and the topic under which it does."""

    hub: str
    topic: str


def find_offer(url: str, feed: Feed, link_headers: Iterable[str] = ()) -> HubOffer | None:
    """Find the WebSub hub that a feed fetched from ``url`` offers; None if it names no hub.

    >>> find_offer("https://example.org/feed", Feed(hub="https://hub.example.net/"))
    HubOffer(hub='https://hub.example.net/', topic='https://example.org/feed')
    >>> find_offer("https://example.org/feed", Feed(), ['<https://hub.example.net/>; rel="hub"']).hub
    'https://hub.example.net/'
    """
    headers = list(link_headers)
    hub = find_link(headers, "hub", url) or feed.hub
    if hub is None or len(hub) > MAX_URL_LENGTH:
        return None
    own = find_link(headers, "self", url) or feed.self_link or url
    is_near = len(own) <= MAX_URL_LENGTH and origin_of(own).host == origin_of(url).host
    return HubOffer(hub, own if is_near else url)


def find_link(headers: Iterable[str], relation: str, base: str) -> str | None:
    """Return the first absolute URL of a relation in Link headers (RFC 8288), for WebSub; None for none.

    >>> find_link(['</a>; rel="next", <b>; rel="self hub"'], "hub", "https://example.org/x/")
    'https://example.org/x/b'
    """
    found = (resolve(href, base) for header in headers for href, words in _parse_links(header) if relation in words)
    return next((url for url in found if url is not None), None)


def _parse_links(header: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the URLs in a Link header with their relations; only the first ``rel`` of a link counts."""
    for number, link in enumerate(_LINK.finditer(header[:MAX_HEADER_LENGTH])):
        if number == MAX_LINKS:
            return
        named = _RELATION.search(link[2])
        words = (named[1] or named[2] or "") if named else ""
        yield link[1], tuple(words.lower().split())
