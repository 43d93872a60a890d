"""From an answer to a result: what kind of thing came, what it is called, where its links lead, whether it changed."""

from collections.abc import Iterable

import xxhash

from vedette.discover.feeds import is_feed, read_feed
from vedette.discover.normalize import resolve
from vedette.discover.sitemaps import is_sitemap, read_sitemap
from vedette.facts import Answer, Headers, NoAnswer, Outcome
from vedette.fetch.directives import from_headers, from_meta, merge
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots import LIMIT_BYTES
from vedette.parse.html import decode_text, is_html, read_html
from vedette.ring.links import Links
from vedette.ring.orders import Errand, Fetched, Kind, Result, Silent

__all__ = ["read_outcome", "redirect_of"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
KEPT_HEADERS = frozenset(
    {"cache-control", "content-type", "date", "etag", "last-modified", "location", "retry-after", "x-robots-tag"}
)


def read_outcome(errand: Errand, outcome: Outcome, links: Links) -> Result:
    """What the keeper is told of a request that ended."""
    if isinstance(outcome, NoAnswer):
        return Silent(errand, outcome.failure, outcome.detail, outcome.started_s, outcome.ended_s)
    told = _told(errand, outcome)
    if errand.purpose == "robots":
        return told._replace(robots=outcome.body[: LIMIT_BYTES + 1])
    if outcome.status == 304 and errand.copy is not None:
        return told._replace(digest=errand.copy.digest, changed=False)
    return _read(told, outcome, links) if 200 <= outcome.status < 300 else told


def redirect_of(answer: Answer) -> str | None:
    """Where a redirect leads; None where it is none or leads nowhere."""
    location = answer.header("location")
    return resolve(location, answer.url) if location and answer.status in REDIRECTS else None


def _told(errand: Errand, answer: Answer) -> Fetched:
    return Fetched(
        errand,
        answer.status,
        answer.started_s,
        answer.ended_s,
        _kept(answer.headers),
        location=redirect_of(answer),
        body_bytes=len(answer.body),
    )


def _read(told: Fetched, answer: Answer, links: Links) -> Fetched:
    copy = told.errand.copy
    digest = xxhash.xxh3_128_hexdigest(answer.body)
    kind, title, found, sources, base = _content(answer)
    return told._replace(
        kind=kind,
        title=title,
        links=links.within(found, base),
        sources=links.within(sources, base),
        digest=digest,
        changed=copy is None or copy.digest != digest,
    )


def _kept(headers: Headers) -> Headers:
    return tuple((name, value[:2048]) for name, value in headers if name in KEPT_HEADERS)


def _content(answer: Answer) -> tuple[Kind, str, Iterable[str], Iterable[str], str]:
    """Kind, title, links to pages, links to feeds and sitemaps, and the base of both."""
    content_type = answer.header("content-type") or ""
    if is_html(content_type, answer.body):
        return _html(answer, content_type)
    if is_sitemap(answer.body, content_type):
        sitemap = read_sitemap(answer.body, answer.url, content_type)
        return "sitemap", "", [entry.loc for entry in sitemap.entries], sitemap.children, answer.url
    if is_feed(answer.body, content_type):
        feed = read_feed(answer.body, answer.url, content_type)
        return "feed", feed.title, [entry.link for entry in feed.entries if entry.link], (), answer.url
    return "other", "", (), (), answer.url


def _html(answer: Answer, content_type: str) -> tuple[Kind, str, Iterable[str], Iterable[str], str]:
    reading = read_html(decode_text(answer.body, content_type))
    if not merge(from_headers(answer.headers, PRODUCT), from_meta(reading.robots_meta, PRODUCT)).follow:
        return "page", reading.title, (), (), answer.url
    base = (resolve(reading.base, answer.url) if reading.base else None) or answer.url
    return "page", reading.title, reading.links, reading.feeds, base
