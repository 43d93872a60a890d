"""Page reader of the fetcher: turn a response into a result: kind, content, links, and whether the page changed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import xxhash

from vedette.discover.formats.feeds import is_feed, parse_feed
from vedette.discover.formats.sitemaps import is_sitemap, parse_sitemap
from vedette.discover.urls.normalize import resolve
from vedette.engine.links import LinkResolver
from vedette.engine.messages import (
    Content,
    FetchFailure,
    FetchResult,
    FetchSuccess,
    FetchTask,
    Kind,
    Rendering,
    StoredCopy,
)
from vedette.fetch.request import PRODUCT
from vedette.fetch.response_headers import merge_cookies
from vedette.fetch.robots.meta_tags import (
    UNRESTRICTED,
    Directives,
    merge_directives,
    parse_header_directives,
    parse_meta_directives,
)
from vedette.fetch.robots.rules import MAX_ROBOTS_BYTES
from vedette.index.fields import StoredPage, pack_page
from vedette.index.snippets import tidy_text
from vedette.model import ChangeRule, FetchOutcome, FetchResponse, NoResponse, origin_of
from vedette.model import fingerprint as fingerprint_of_url
from vedette.parse.change.blocks import extract_blocks
from vedette.parse.change.comparison import Change, NewVersion, StoredVersion, build_first_version, compare_versions
from vedette.parse.html.page import Page, open_templates, parse_page
from vedette.parse.quality.indexability import FILLED_LINKS, PageQuality, list_objections
from vedette.parse.quality.soft404 import find_missing_notice
from vedette.parse.quality.spam import extract_features, score_spam
from vedette.parse.similarity.identity import build_identity
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import fingerprint_form, fingerprint_text, normal_form, shingle_form
from vedette.parse.text.charsets import decode_page
from vedette.parse.text.dates import PageDates, RebuildDetector, find_dates
from vedette.parse.text.language import detect_language
from vedette.parse.text.media_types import is_document, is_html, is_plain_text
from vedette.timeutil import parse_date

MAX_DESCRIPTION, MAX_DETAIL = 500, 200
MAX_WORD = 30
MAX_BODY = 1 << 20
WORKBOOKS = frozenset({"xlsx", "ods"})  # their headings are names such as "Sheet1"
MIN_TITLE, MAX_TEXT_TITLE = 4, 120


@dataclass(frozen=True, slots=True)
class PageContext:
    """Context for parsing a response: the copy it is compared with, and the rule for comparing."""

    answer: FetchResponse
    digest: str
    copy: StoredCopy | None = None
    judged_by: ChangeRule = "main"
    directives: Directives = UNRESTRICTED
    is_rebuilt: bool = False


def build_page_content(
    page: Page, text: str, charset: str, context: PageContext, links: tuple[str, ...], anchors: tuple[str, ...]
) -> Content:
    """Build the content of an HTML page in the page reader; ``links`` are those within the sites."""
    answer = context.answer
    form = normal_form(page.main)
    words = _count_words(form)
    sketch = build_sketch(shingle_form(form))
    seen = NewVersion(
        bytes.fromhex(context.digest),
        fingerprint_text(f"{page.title}\n{page.text}") if context.judged_by == "text" else b"",
        fingerprint_form(normal_form(page.title) + b"\n" + form),
        sketch.mins if sketch else b"",
        np.fromiter(map(fingerprint_of_url, links), np.int64, len(links)),
    )
    change, kept = _compare(seen, open_templates(text) if page.opens_templates else text, context)
    dates = _find_dates(page, change, context)
    pairs = [(link.href, link.text) for link in page.links]
    spam = score_spam(
        extract_features(origin_of(answer.url).host, page.title, page.main, page.words, page.hidden_words, pairs)
    )
    worth = PageQuality(
        words=words,
        letters=len(page.main),
        onward_links=len(links),
        noindex=not context.directives.index,
        missing=find_missing_notice(page.title, [heading for _, heading in page.headings], page.main, page.words),
        needs_script=page.needs_script,
        needs_script_links=page.needs_script_links,
        spam_score=spam.score,
        spam_reasons=spam.reasons,
        is_titled=bool(page.title),
    )
    content = Content(
        kept,
        charset,
        detect_language(page.main or page.text, page.language),
        page.description[:MAX_DESCRIPTION],
        "",
        _format_directives(context.directives),
        words,
        dates.published_s,
        dates.modified_s,
        spam.score,
        _list_objections(worth),
        change,
        anchors,
        identity=build_identity(page.title, page.headings, page.main, words).pack(),
    )
    headings = tuple(heading for _, heading in page.headings)
    ids = page.anchors if page.main else ()
    return _add_stored_text(content, context, page.title, page.main or page.text, headings, "html", ids)


@dataclass(frozen=True, slots=True)
class Document:
    """What the document reader extracted; ``trouble`` says why nothing was, if so."""

    kind: str
    title: str
    text: str
    trouble: str = ""
    headings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()


def build_document_content(document: Document, context: PageContext) -> Content:
    """Build the content of a document; all of its text is main text."""
    text = document.text
    form = normal_form(text)
    sketch = build_sketch(shingle_form(form))
    main_print = fingerprint_form(form)
    links = np.fromiter(map(fingerprint_of_url, document.links), np.int64, len(document.links))
    seen = NewVersion(bytes.fromhex(context.digest), main_print, main_print, sketch.mins if sketch else b"", links)
    change, kept = _compare(seen, "", context)
    dates = _find_dates(None, change, context)
    words = _count_words(form)
    worth = PageQuality(words, len(text), noindex=not context.directives.index)
    # A short document is just short, unlike an HTML page with almost no text.
    against = [(name, detail) for name, detail in _list_objections(worth) if name != "thin"]
    against = [(name, document.trouble if name == "empty" else detail) for name, detail in against]
    content = Content(
        kept,
        language=detect_language(text, ""),
        directives=_format_directives(context.directives),
        words=words,
        published_s=dates.published_s,
        modified_s=dates.modified_s,
        objections=tuple(against),
        change=change,
        anchors=document.anchors,
        identity=build_identity(document.title, (), text, words).pack(),
    )
    return _add_stored_text(content, context, document.title, text, document.headings, document.kind)


def _add_stored_text(
    content: Content,
    context: PageContext,
    title: str,
    body: str,
    headings: tuple[str, ...],
    kind: str,
    anchors: tuple[str | None, ...] = (),
) -> Content:
    """Add the packed text for the index to a page's content, unless its bytes have not changed."""
    old = context.copy.baseline if context.copy else None
    if old is not None and old.body_digest == content.baseline.body_digest:
        return content
    changed = content.change is not None and content.change.changed
    body, is_plain = tidy_text(body[:MAX_BODY])
    date_s = content.modified_s if content.published_s is None else content.published_s
    stored = StoredPage(
        context.answer.url,
        title,
        content.description,
        headings,
        body,
        kind,
        content.language,
        date_s,
        content.directives,
        is_plain,
        anchors,
    )
    return content._replace(stored=pack_page(stored), is_unmeasured=changed and context.judged_by == "queries")


def _compare(seen: NewVersion, text: str, context: PageContext) -> tuple[Change | None, StoredVersion]:
    """Compare a fetched page with its stored baseline to classify the change.

    Blocks cost the most, so they are built only where the changed bytes may be a rotating box.
    """
    old = context.copy.baseline if context.copy else None
    if old is None:
        return None, build_first_version(seen)
    # Whether searches notice is measured at indexing; they never notice changes outside the main text.
    judged_by = "main" if context.judged_by == "queries" else context.judged_by
    if text and old.body_digest != seen.body_digest and judged_by in {"text", "main"}:
        wanted = [(block.place, block.text) for block in extract_blocks(text) if block.in_main or judged_by == "text"]
        seen = NewVersion(seen.body_digest, seen.text_print, seen.main_print, seen.sketch, seen.links, wanted)
    return compare_versions(old, seen, judged_by)


def _find_dates(page: Page | None, change: Change | None, context: PageContext) -> PageDates:
    """Find the dates of a page; ignore a new Last-Modified over the same text, or one that a whole host shares."""
    answer, copy = context.answer, context.copy
    header = answer.header("last-modified") or ""
    if context.is_rebuilt or (change is not None and not change.changed):
        header = ""
    stamps, linked_data, lines = (page.stamps, page.linked_data, page.date_lines) if page else ((), (), ())
    dates = find_dates(stamps, linked_data, answer.url, header, answer.ended_s, lines)
    if dates.modified_s is None and change is not None and not change.changed and copy is not None:
        return replace(dates, modified_s=copy.modified_s)
    return dates


def _count_words(form: bytes) -> int:
    """Count the words of a page's normalized text; text without spaces counts by its length."""
    spaces = np.count_nonzero(np.frombuffer(form, np.uint8) == ord(" "))
    return max(int(spaces) + 1, len(form) // MAX_WORD) if form else 0


def _list_objections(worth: PageQuality) -> tuple[tuple[str, str], ...]:
    return tuple((one.kind.name.lower(), one.detail[:MAX_DETAIL]) for one in list_objections(worth))


def _format_directives(directives: Directives) -> str:
    """Format the robots directives of a page (noindex, nofollow, ...) in their usual spelling."""
    if directives is UNRESTRICTED or directives == UNRESTRICTED:
        return ""
    wishes = {
        "noindex": not directives.index,
        "nofollow": not directives.follow,
        "noarchive": not directives.archive,
        "nosnippet": not directives.snippet,
        f"max-snippet:{directives.max_snippet}": directives.max_snippet is not None,
        f"unavailable_after:{directives.unavailable_after_s}": directives.unavailable_after_s is not None,
    }
    return ", ".join(wish for wish, holds in wishes.items() if holds)


REDIRECTS = frozenset({301, 302, 303, 307, 308})
# How much of a page is parsed; the rest is archived all the same. A hostile page costs seconds at worst.
MAX_PARSED_BYTES = 2 << 20
_ASCII = bytes(range(128)).decode()
DatedLink = tuple[str, float | None]
KEPT_HEADERS = frozenset(
    {"cache-control", "content-type", "date", "etag", "last-modified", "location", "retry-after", "x-robots-tag"}
)


def parse_outcome(
    task: FetchTask, outcome: FetchOutcome, links: LinkResolver, rebuilds: RebuildDetector | None = None
) -> FetchResult:
    """Parse the outcome of a request into the fetch result that the fetcher reports."""
    if isinstance(outcome, NoResponse):
        return FetchFailure(task, outcome.failure, outcome.detail, outcome.started_s, outcome.ended_s)
    told = FetchSuccess(
        task,
        outcome.status,
        outcome.started_s,
        outcome.ended_s,
        tuple((name, value[:2048]) for name, value in outcome.headers if name in KEPT_HEADERS),
        location=get_redirect(outcome),
        body_bytes=len(outcome.body),
        is_rebuilt=rebuilds is not None and _is_rebuilt(task, outcome, rebuilds),
    )
    if told.location is not None and origin_of(told.location).host == task.host:
        cookies = merge_cookies(task.cookies, outcome.headers, outcome.url, outcome.ended_s)
        told = told._replace(cookies=cookies)
    if task.purpose == "robots":
        return told._replace(robots_body=outcome.body[: MAX_ROBOTS_BYTES + 1])
    if task.purpose == "part":
        return told._replace(part_body=outcome.body)
    if outcome.status == 304 and task.copy is not None:
        return told._replace(digest=task.copy.digest, changed=False)
    return _parse_body(told, outcome, links) if 200 <= outcome.status < 300 else told


def _is_rebuilt(task: FetchTask, answer: FetchResponse, rebuilds: RebuildDetector) -> bool:
    """Check whether the Last-Modified of a page fetched for the first time is not its own."""
    is_first = answer.status == 200 and task.copy is None and task.purpose == "page"
    modified_s = parse_date(answer.header("last-modified") or "") if is_first else None
    return modified_s is not None and rebuilds.is_rebuild(task.host, modified_s, answer.ended_s)


def get_redirect(answer: FetchResponse) -> str | None:
    """Return the target of a redirect response; None if it is no redirect or has no usable target."""
    location = answer.header("location")
    if not location or answer.status not in REDIRECTS:
        return None
    # Browsers use the bytes of the header as they are, in whatever charset.
    return resolve(quote(location, safe=_ASCII, encoding="latin-1", errors="replace"), answer.url)


def add_document(
    result: FetchSuccess,
    answer: FetchResponse,
    links: LinkResolver,
    *,
    title: str,
    text: str,
    trouble: str,
    kind: str = "pdf",
) -> FetchSuccess:
    """Add to a fetch result what the document reader extracted; ``trouble`` is why it extracted nothing.

    The text of a PDF is plain; that of other documents is HTML.
    """
    directives = parse_header_directives(answer.headers, PRODUCT)
    document = Document(kind, title, text, trouble)
    if kind != "pdf" and not trouble:
        document = _parse_document(document, answer.url, links, follows=directives.follow)
    content = build_document_content(document, _build_context(result, answer, links, directives))
    changed = content.change.changed if content.change else result.changed
    return result._replace(title=document.title, content=content, changed=changed, links=document.links)


def _parse_document(document: Document, url: str, links: LinkResolver, *, follows: bool) -> Document:
    """Parse the HTML that was made from a document: its text, headings and links."""
    page = parse_page(document.text)
    found, anchors, _ = _collect_links(page, url, links) if follows else ((), (), ())
    headings = tuple(heading for _, heading in page.headings)
    title = document.title or _choose_document_title(document.kind, headings, page.text, url)
    return Document(document.kind, title, page.text, "", headings, found, anchors)


def _choose_document_title(kind: str, headings: tuple[str, ...], text: str, url: str) -> str:
    """Choose the title of a document that states none: its first heading or line; for a workbook, the file name."""
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    lines = (line.strip() for line in text[: 4 * MAX_DETAIL].split("\n"))
    first = next((line for line in lines if len(line) >= MIN_TITLE), "")[:MAX_DETAIL]
    return name if kind in WORKBOOKS and name else next(iter(headings), first) or name


def add_rendering(
    result: FetchSuccess, rendered: FetchResponse | None, links: LinkResolver, rendering: Rendering
) -> FetchSuccess:
    """Add the content of the rendered page to a fetch result, or why rendering produced nothing.

    A server's validators describe the HTML it sent, not what a script made of it, so they are dropped. If rendering
    fails, a stored version is kept as if the page had not been modified, unless only links are missing.
    """
    again = _parse_body(result, rendered, links) if rendered is not None else result
    new_words = _count_content_words(again) - _count_content_words(result)
    rendering = rendering._replace(new_words=new_words, new_links=len(again.links) - len(result.links))
    cost_s = result.connection_s + rendering.seconds
    if rendered is not None and rendering.has_helped:
        headers = tuple((name, value) for name, value in rendered.headers if name in KEPT_HEADERS)
        told = again._replace(headers=headers, body_bytes=len(rendered.body))
        return told._replace(connection_s=cost_s, rendering=rendering)
    told = result._replace(connection_s=cost_s, rendering=rendering)
    has_text = result.content is not None and ("script", FILLED_LINKS) in result.content.objections
    if rendering.trouble and result.task.copy is not None and not has_text:
        return told._replace(status=304, digest=result.task.copy.digest, changed=False, content=None)
    why = f"rendering failed: {rendering.trouble}" if rendering.trouble else "rendering brought nothing"
    return told._replace(content=_explain_script(result.content, why) if result.content else None)


def _explain_script(content: Content, why: str) -> Content:
    """Explain the objection to a page that needs a script: why it was not rendered, or why that failed."""
    found = tuple((name, why[:MAX_DETAIL] if name == "script" else detail) for name, detail in content.objections)
    return content._replace(objections=found)


def _count_content_words(result: FetchSuccess) -> int:
    return result.content.words if result.content else 0


def _parse_body(told: FetchSuccess, answer: FetchResponse, links: LinkResolver) -> FetchSuccess:
    copy = told.task.copy
    digest = xxhash.xxh3_128_hexdigest(answer.body)
    told = told._replace(digest=digest, changed=copy is None or copy.digest != digest)
    content_type = answer.header("content-type") or ""
    if is_html(content_type, answer.body):
        return _parse_page(told, answer, content_type, links)
    kind, title, found, sources = _parse_list(answer, content_type)
    if kind == "other" and is_plain_text(content_type, answer.body):
        return _parse_plain_text(told, answer, content_type, links)
    dated = _resolve_dated(found, answer.url, links)
    return told._replace(
        kind=kind,
        title=title,
        links=tuple(dated),
        dates=tuple(dated.values()) if any(at_s is not None for at_s in dated.values()) else (),
        sources=links.resolve_within(sources, answer.url),
    )


def _resolve_dated(found: Sequence[DatedLink], base: str, links: LinkResolver) -> dict[str, float | None]:
    """Resolve the dated entries of a sitemap or feed within the sites, each once, with the latest date."""
    dated: dict[str, float | None] = {}
    for url, (_, at_s) in zip(links.resolve_each([url for url, _ in found], base), found, strict=True):
        if url is not None:
            before_s = dated.get(url)
            dated[url] = at_s if before_s is None or (at_s is not None and at_s > before_s) else before_s
    return dated


def _parse_list(answer: FetchResponse, content_type: str) -> tuple[Kind, str, Sequence[DatedLink], Sequence[str]]:
    """Parse a sitemap or feed: kind, title, dated links to pages, and links to further sitemaps."""
    if is_document(content_type, answer.body, answer.url):
        return "document", "", (), ()
    if is_sitemap(answer.body, content_type):
        sitemap = parse_sitemap(answer.body, answer.url, content_type)
        return "sitemap", "", [(entry.loc, entry.lastmod_s) for entry in sitemap.entries], sitemap.children
    if is_feed(answer.body, content_type):
        feed = parse_feed(answer.body, answer.url, content_type)
        return "feed", feed.title, [(entry.link, entry.date_s) for entry in feed.entries if entry.link], ()
    return "other", "", (), ()


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
    if told.task.render_why:
        content = _explain_script(content, f"not rendered: {told.task.render_why}")
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


def _parse_plain_text(
    told: FetchSuccess, answer: FetchResponse, content_type: str, links: LinkResolver
) -> FetchSuccess:
    decoded = decode_page(answer.body[:MAX_PARSED_BYTES], content_type)
    title = _choose_text_title(decoded.text, answer.url)
    context = _build_context(told, answer, links, parse_header_directives(answer.headers, PRODUCT))
    content = build_document_content(Document("txt", title, decoded.text), context)._replace(charset=decoded.charset)
    changed = content.change.changed if content.change else told.changed
    return told._replace(kind="page", title=title, content=content, changed=changed)


def _choose_text_title(text: str, url: str) -> str:
    """Choose a title for plain text: its first line with words, or its file name."""
    lines = (" ".join(line.split()) for line in text[: 8 * MAX_TEXT_TITLE].splitlines())
    first = next((line for line in lines if any(map(str.isalpha, line))), "")
    if 0 < len(first) <= MAX_TEXT_TITLE:
        return first
    return unquote(urlsplit(url).path.rpartition("/")[2]) or first[:MAX_TEXT_TITLE]


def _build_context(
    told: FetchSuccess, answer: FetchResponse, links: LinkResolver, directives: Directives
) -> PageContext:
    site = links.sites.find_site(answer.url)
    return PageContext(
        answer, told.digest, told.task.copy, site.change if site else "main", directives, told.is_rebuilt
    )


def _collect_links(page: Page, base: str, links: LinkResolver) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Collect a page's links within the sites, their anchor texts, and its links that no site covers."""
    wanted = [link for link in page.links if not link.nofollow]
    targets = links.resolve_each([link.href for link in wanted], base)
    named: dict[str, str] = {}
    elsewhere: list[str] = []
    for url, link in zip(targets, wanted, strict=True):
        if url is None:
            elsewhere.append(link.href)
        elif not named.get(url):
            named[url] = link.text
    # URLs that are no clickable links but lead to pages all the same.
    hints = [href for _, href in page.alternates]
    hints += [page.canonical] if page.canonical else []
    hints += [page.refresh[1]] if page.refresh is not None else []
    for url in links.resolve_within(hints, base):
        named.setdefault(url, "")
    return tuple(named), tuple(named.values()), elsewhere
