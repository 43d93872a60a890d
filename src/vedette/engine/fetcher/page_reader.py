"""From an answer to a result: what kind of thing came, what it says, where its links lead, whether it changed."""

from collections.abc import Sequence

import xxhash

from vedette.discover.formats.feeds import FeedEntry, is_feed, parse_feed
from vedette.discover.formats.sitemaps import is_sitemap, parse_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.engine.fetcher.contents import PageContext, build_document_content, build_page_content
from vedette.engine.links import LinkResolver
from vedette.engine.messages import FetchFailure, FetchResult, FetchSuccess, FetchTask, Kind
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots.meta_tags import Directives, merge_directives, parse_header_directives, parse_meta_directives
from vedette.fetch.robots.rules import MAX_ROBOTS_BYTES
from vedette.model import FetchOutcome, FetchResponse, Headers, NoResponse
from vedette.parse.html.page import Page, parse_page
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.media_types import is_html, is_pdf

REDIRECTS = frozenset({301, 302, 303, 307, 308})
# So much of a page is read: what lies behind it is archived all the same. A hostile page costs seconds at worst.
MAX_PARSED_BYTES = 2 << 20
DatedLink = tuple[str, float | None]
KEPT_HEADERS = frozenset(
    {"cache-control", "content-type", "date", "etag", "last-modified", "location", "retry-after", "x-robots-tag"}
)


def parse_outcome(errand: FetchTask, outcome: FetchOutcome, links: LinkResolver) -> FetchResult:
    """What the keeper is told of a request that ended."""
    if isinstance(outcome, NoResponse):
        return FetchFailure(errand, outcome.failure, outcome.detail, outcome.started_s, outcome.ended_s)
    told = _start_result(errand, outcome)
    if errand.purpose == "robots":
        return told._replace(robots_body=outcome.body[: MAX_ROBOTS_BYTES + 1])
    if outcome.status == 304 and errand.copy is not None:
        return told._replace(digest=errand.copy.digest, changed=False)
    return _parse_body(told, outcome, links) if 200 <= outcome.status < 300 else told


def get_redirect(answer: FetchResponse) -> str | None:
    """Where a redirect leads; None where it is none or leads nowhere."""
    location = answer.header("location")
    return resolve(location, answer.url) if location and answer.status in REDIRECTS else None


def get_document(result: FetchResult, outcome: FetchOutcome) -> bytes | None:
    """The document in an answer that must be read elsewhere, since nobody can tell how long that takes."""
    if not isinstance(outcome, FetchResponse) or not isinstance(result, FetchSuccess) or result.kind != "document":
        return None
    return outcome.body if outcome.status < 300 else None


def add_document(
    result: FetchSuccess, answer: FetchResponse, links: LinkResolver, *, title: str, text: str, trouble: str
) -> FetchSuccess:
    """The result with what was read elsewhere; ``trouble`` is why nothing was."""
    context = _build_context(result, answer, links, parse_header_directives(answer.headers, PRODUCT))
    content = build_document_content(title, text, trouble, context)
    changed = content.change.changed if content.change else result.changed
    return result._replace(title=title, content=content, changed=changed)


def _start_result(errand: FetchTask, answer: FetchResponse) -> FetchSuccess:
    return FetchSuccess(
        errand,
        answer.status,
        answer.started_s,
        answer.ended_s,
        _filter_headers(answer.headers),
        location=get_redirect(answer),
        body_bytes=len(answer.body),
    )


def _filter_headers(headers: Headers) -> Headers:
    return tuple((name, value[:2048]) for name, value in headers if name in KEPT_HEADERS)


def _parse_body(told: FetchSuccess, answer: FetchResponse, links: LinkResolver) -> FetchSuccess:
    copy = told.task.copy
    digest = xxhash.xxh3_128_hexdigest(answer.body)
    told = told._replace(digest=digest, changed=copy is None or copy.digest != digest)
    content_type = answer.header("content-type") or ""
    if is_html(content_type, answer.body):
        return _parse_page(told, answer, content_type, links)
    kind, title, found, sources = _parse_list(answer, content_type)
    dated = _resolve_dated(found, answer.url, links)
    return told._replace(
        kind=kind,
        title=title,
        links=tuple(dated),
        dates=tuple(dated.values()) if any(at_s is not None for at_s in dated.values()) else (),
        sources=links.resolve_within(sources, answer.url),
    )


def _resolve_dated(found: Sequence[DatedLink], base: str, links: LinkResolver) -> dict[str, float | None]:
    """Where entries lead within the sites, each once, with the latest of their dates."""
    dated: dict[str, float | None] = {}
    for url, (_, at_s) in zip(links.resolve_each([url for url, _ in found], base), found, strict=True):
        if url is not None:
            before_s = dated.get(url)
            dated[url] = at_s if before_s is None or (at_s is not None and at_s > before_s) else before_s
    return dated


def _parse_list(answer: FetchResponse, content_type: str) -> tuple[Kind, str, Sequence[DatedLink], Sequence[str]]:
    """Kind, title, links to pages with their dates, and links to further sitemaps, of what is no page."""
    if is_pdf(content_type, answer.body):
        return "document", "", (), ()
    if is_sitemap(answer.body, content_type):
        sitemap = parse_sitemap(answer.body, answer.url, content_type)
        return "sitemap", "", [(entry.loc, entry.lastmod_s) for entry in sitemap.entries], sitemap.children
    if is_feed(answer.body, content_type):
        feed = parse_feed(answer.body, answer.url, content_type)
        return "feed", feed.title, [(entry.link, _entry_date(entry)) for entry in feed.entries if entry.link], ()
    return "other", "", (), ()


def _entry_date(entry: FeedEntry) -> float | None:
    return entry.published_s if entry.updated_s is None else entry.updated_s


def _parse_page(told: FetchSuccess, answer: FetchResponse, content_type: str, links: LinkResolver) -> FetchSuccess:
    decoded = decode_page(answer.body[:MAX_PARSED_BYTES], content_type)
    page = parse_page(decoded.text)
    base = (resolve(page.base, answer.url) if page.base else None) or answer.url
    directives = merge_directives(
        parse_header_directives(answer.headers, PRODUCT), parse_meta_directives(page.robots_meta, PRODUCT)
    )
    canonical = resolve(page.canonical, base) if page.canonical else None
    found, anchors, strangers = _collect_links(page, base, links) if directives.follow else ((), (), ())
    context = _build_context(told, answer, links, directives)
    content = build_page_content(page, decoded.text, decoded.charset, context, found, anchors)
    if canonical is not None and canonical != answer.url:
        content = content._replace(canonical=canonical)
    return told._replace(
        kind="page",
        title=page.title,
        links=found,
        sources=links.resolve_within(page.feeds, base) if directives.follow else (),
        changed=content.change.changed if content.change else told.changed,
        content=content,
        unlisted_hosts=links.find_unlisted_hosts(strangers) if told.task.copy is None else (),
    )


def _build_context(
    told: FetchSuccess, answer: FetchResponse, links: LinkResolver, directives: Directives
) -> PageContext:
    site = links.sites.find_site(answer.url)
    return PageContext(answer, told.digest, told.task.copy, site.change if site else "main", directives)


def _collect_links(page: Page, base: str, links: LinkResolver) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Where the page leads within the sites, each once, what it calls the places, and its links that no site takes."""
    wanted = [link for link in page.links if not link.nofollow]
    targets = links.resolve_each([link.href for link in wanted], base)
    named: dict[str, str] = {}
    elsewhere: list[str] = []
    for url, link in zip(targets, wanted, strict=True):
        if url is None:
            elsewhere.append(link.href)
        elif not named.get(url):
            named[url] = link.text
    for url in links.resolve_within(_collect_hints(page), base):
        named.setdefault(url, "")
    return tuple(named), tuple(named.values()), elsewhere


def _collect_hints(page: Page) -> list[str]:
    """Addresses that are no links to click on, and lead to pages all the same."""
    hints = [href for _, href in page.alternates]
    if page.canonical:
        hints.append(page.canonical)
    if page.refresh is not None:
        hints.append(page.refresh[1])
    return hints
