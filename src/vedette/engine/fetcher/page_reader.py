"""From an answer to a result: what kind of thing came, what it says, where its links lead, whether it changed."""

from collections.abc import Sequence

import xxhash

from vedette.discover.formats.feeds import FeedEntry, is_feed, read_feed
from vedette.discover.formats.sitemaps import is_sitemap, read_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.engine.fetcher.contents import Context, document_content, page_content
from vedette.engine.links import Links
from vedette.engine.messages import Errand, Fetched, Kind, Result, Silent
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots.meta_tags import Directives, from_headers, from_meta, merge
from vedette.fetch.robots.rules import LIMIT_BYTES
from vedette.model import Answer, Headers, NoAnswer, Outcome
from vedette.parse.html.page import Page, read_page
from vedette.parse.text.charsets import decode
from vedette.parse.text.media_types import is_html, is_pdf

__all__ = ["document_of", "read_document", "read_outcome", "redirect_of"]

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# So much of a page is read: what lies behind it is archived all the same. A hostile page costs seconds at worst.
READ_BYTES = 2 << 20
Dated = tuple[str, float | None]
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


def document_of(result: Result, outcome: Outcome) -> bytes | None:
    """The document in an answer that must be read elsewhere, since nobody can tell how long that takes."""
    if not isinstance(outcome, Answer) or not isinstance(result, Fetched) or result.kind != "document":
        return None
    return outcome.body if outcome.status < 300 else None


def read_document(result: Fetched, answer: Answer, links: Links, *, title: str, text: str, trouble: str) -> Fetched:
    """The result with what was read elsewhere; ``trouble`` is why nothing was."""
    context = _context(result, answer, links, from_headers(answer.headers, PRODUCT))
    content = document_content(title, text, trouble, context)
    changed = content.change.changed if content.change else result.changed
    return result._replace(title=title, content=content, changed=changed)


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


def _kept(headers: Headers) -> Headers:
    return tuple((name, value[:2048]) for name, value in headers if name in KEPT_HEADERS)


def _read(told: Fetched, answer: Answer, links: Links) -> Fetched:
    copy = told.errand.copy
    digest = xxhash.xxh3_128_hexdigest(answer.body)
    told = told._replace(digest=digest, changed=copy is None or copy.digest != digest)
    content_type = answer.header("content-type") or ""
    if is_html(content_type, answer.body):
        return _page(told, answer, content_type, links)
    kind, title, found, sources = _listed(answer, content_type)
    dated = _dated(found, answer.url, links)
    return told._replace(
        kind=kind,
        title=title,
        links=tuple(dated),
        dates=tuple(dated.values()) if any(at_s is not None for at_s in dated.values()) else (),
        sources=links.within(sources, answer.url),
    )


def _dated(found: Sequence[Dated], base: str, links: Links) -> dict[str, float | None]:
    """Where entries lead within the sites, each once, with the latest of their dates."""
    dated: dict[str, float | None] = {}
    for url, (_, at_s) in zip(links.each([url for url, _ in found], base), found, strict=True):
        if url is not None:
            before_s = dated.get(url)
            dated[url] = at_s if before_s is None or (at_s is not None and at_s > before_s) else before_s
    return dated


def _listed(answer: Answer, content_type: str) -> tuple[Kind, str, Sequence[Dated], Sequence[str]]:
    """Kind, title, links to pages with their dates, and links to further sitemaps, of what is no page."""
    if is_pdf(content_type, answer.body):
        return "document", "", (), ()
    if is_sitemap(answer.body, content_type):
        sitemap = read_sitemap(answer.body, answer.url, content_type)
        return "sitemap", "", [(entry.loc, entry.lastmod_s) for entry in sitemap.entries], sitemap.children
    if is_feed(answer.body, content_type):
        feed = read_feed(answer.body, answer.url, content_type)
        return "feed", feed.title, [(entry.link, _date(entry)) for entry in feed.entries if entry.link], ()
    return "other", "", (), ()


def _date(entry: FeedEntry) -> float | None:
    return entry.published_s if entry.updated_s is None else entry.updated_s


def _page(told: Fetched, answer: Answer, content_type: str, links: Links) -> Fetched:
    decoded = decode(answer.body[:READ_BYTES], content_type)
    page = read_page(decoded.text)
    base = (resolve(page.base, answer.url) if page.base else None) or answer.url
    directives = merge(from_headers(answer.headers, PRODUCT), from_meta(page.robots_meta, PRODUCT))
    canonical = resolve(page.canonical, base) if page.canonical else None
    found, anchors, strangers = _followed(page, base, links) if directives.follow else ((), (), ())
    context = _context(told, answer, links, directives)
    content = page_content(page, decoded.text, decoded.charset, context, found, anchors)
    if canonical is not None and canonical != answer.url:
        content = content._replace(canonical=canonical)
    return told._replace(
        kind="page",
        title=page.title,
        links=found,
        sources=links.within(page.feeds, base) if directives.follow else (),
        changed=content.change.changed if content.change else told.changed,
        content=content,
        strangers=links.strangers(strangers) if told.errand.copy is None else (),
    )


def _context(told: Fetched, answer: Answer, links: Links, directives: Directives) -> Context:
    site = links.sites.site_of(answer.url)
    return Context(answer, told.digest, told.errand.copy, site.change if site else "main", directives)


def _followed(page: Page, base: str, links: Links) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Where the page leads within the sites, each once, what it calls the places, and its links that no site takes."""
    wanted = [link for link in page.links if not link.nofollow]
    targets = links.each([link.href for link in wanted], base)
    named: dict[str, str] = {}
    elsewhere: list[str] = []
    for url, link in zip(targets, wanted, strict=True):
        if url is None:
            elsewhere.append(link.href)
        elif not named.get(url):
            named[url] = link.text
    for url in links.within(_hinted(page), base):
        named.setdefault(url, "")
    return tuple(named), tuple(named.values()), elsewhere


def _hinted(page: Page) -> list[str]:
    """Addresses that are no links to click on, and lead to pages all the same."""
    hints = [href for _, href in page.alternates]
    if page.canonical:
        hints.append(page.canonical)
    if page.refresh is not None:
        hints.append(page.refresh[1])
    return hints
