"""From the text of a page to what the keeper is told of it: what it says, how it compares, what speaks against it."""

from dataclasses import dataclass

import numpy as np

from vedette.engine.messages import Content, StoredCopy
from vedette.fetch.robots.meta_tags import UNRESTRICTED, Directives
from vedette.index.snippets import tidied
from vedette.index.stored_text import StoredPage, pack_page
from vedette.model import ChangeRule, FetchResponse, origin_of
from vedette.model import fingerprint as fingerprint_of_url
from vedette.parse.change.blocks import extract_blocks
from vedette.parse.change.comparison import Change, NewVersion, StoredVersion, build_first_version, compare_versions
from vedette.parse.html.page import Page
from vedette.parse.quality.indexability import PageQuality, list_objections
from vedette.parse.quality.soft404 import find_missing_notice
from vedette.parse.quality.spam import extract_features, score_spam
from vedette.parse.similarity.minhash import build_sketch
from vedette.parse.similarity.shingles import fingerprint_form, fingerprint_text, normal_form, shingle_form
from vedette.parse.text.dates import find_dates
from vedette.parse.text.language import detect_language
from vedette.policy import Ints

MAX_DESCRIPTION = 500
MAX_DETAIL = 200
MAX_WORD = 30
MAX_BODY = 1 << 20
MAX_HEADINGS = 200


@dataclass(frozen=True, slots=True)
class PageContext:
    """What is known of an answer before its text is read: what it is held against, and by which rule."""

    answer: FetchResponse
    digest: str
    copy: StoredCopy | None = None
    judged_by: ChangeRule = "main"
    directives: Directives = UNRESTRICTED


def build_page_content(
    page: Page, text: str, charset: str, context: PageContext, links: tuple[str, ...], anchors: tuple[str, ...]
) -> Content:
    """What a page says; ``links`` are those within the sites."""
    answer = context.answer
    form = normal_form(page.main)
    words = _count_words(form)
    sketch = build_sketch(shingle_form(form))
    seen = NewVersion(
        bytes.fromhex(context.digest),
        fingerprint_text(f"{page.title}\n{page.text}") if context.judged_by == "text" else b"",
        fingerprint_form(normal_form(page.title) + b"\n" + form),
        sketch.mins if sketch else b"",
        _hash_links(links),
    )
    change, kept = _compare(seen, text, context)
    dates = find_dates(page.stamps, page.linked_data, answer.url, answer.header("last-modified") or "", answer.ended_s)
    spam = score_spam(
        extract_features(
            origin_of(answer.url).host, page.title, page.main, page.words, page.hidden_words, _pair_links(page)
        )
    )
    worth = PageQuality(
        words=words,
        letters=len(page.main),
        onward_links=len(links),
        noindex=not context.directives.index,
        missing=find_missing_notice(page.title, [heading for _, heading in page.headings], page.main, page.words),
        needs_script=page.needs_script,
        spam_score=spam.score,
        spam_reasons=spam.reasons,
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
    )
    headings = tuple(heading for _, heading in page.headings[:MAX_HEADINGS])
    return _add_stored_text(content, context, page.title, page.main or page.text, headings, "html")


def build_document_content(title: str, text: str, trouble: str, context: PageContext) -> Content:
    """What a document without markup says; ``trouble`` is why nothing could be read, where that is so."""
    form = normal_form(text)
    sketch = build_sketch(shingle_form(form))
    main_print = fingerprint_form(form)
    seen = NewVersion(bytes.fromhex(context.digest), main_print, main_print, sketch.mins if sketch else b"")
    change, kept = _compare(seen, "", context)
    answer = context.answer
    dates = find_dates((), (), answer.url, answer.header("last-modified") or "", answer.ended_s)
    words = _count_words(form)
    worth = PageQuality(words=words, letters=len(text), noindex=not context.directives.index)
    against = tuple((name, trouble if name == "empty" else detail) for name, detail in _list_objections(worth))
    content = Content(
        kept,
        language=detect_language(text, ""),
        directives=_format_directives(context.directives),
        words=words,
        published_s=dates.published_s,
        modified_s=dates.modified_s,
        objections=against,
        change=change,
    )
    return _add_stored_text(content, context, title, text, (), "pdf")


def _add_stored_text(
    content: Content, context: PageContext, title: str, body: str, headings: tuple[str, ...], kind: str
) -> Content:
    """With its text for the index, unless that has it already: the bytes are those of the last time."""
    old = context.copy.baseline if context.copy else None
    if old is not None and old.body_digest == content.baseline.body_digest:
        return content
    changed = content.change is not None and content.change.changed
    body, is_plain = tidied(body[:MAX_BODY])
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
    )
    return content._replace(stored=pack_page(stored), is_unmeasured=changed and context.judged_by == "queries")


def _compare(seen: NewVersion, text: str, context: PageContext) -> tuple[Change | None, StoredVersion]:
    """Blocks cost most, so they are made only where bytes changed that may be a rotating box."""
    old = context.copy.baseline if context.copy else None
    if old is None:
        return None, build_first_version(seen)
    # Whether searches notice is measured when the page is indexed; what does not touch its main text they never do.
    judged_by = "main" if context.judged_by == "queries" else context.judged_by
    if text and old.body_digest != seen.body_digest and judged_by in {"text", "main"}:
        wanted = [(block.place, block.text) for block in extract_blocks(text) if block.in_main or judged_by == "text"]
        seen = NewVersion(seen.body_digest, seen.text_print, seen.main_print, seen.sketch, seen.links, wanted)
    return compare_versions(old, seen, judged_by)


def _count_words(form: bytes) -> int:
    """How many words a text has, by its normal form; what has no spaces at all counts by its length."""
    spaces = np.count_nonzero(np.frombuffer(form, np.uint8) == ord(" "))
    return max(int(spaces) + 1, len(form) // MAX_WORD) if form else 0


def _hash_links(links: tuple[str, ...]) -> Ints:
    return np.fromiter(map(fingerprint_of_url, links), np.int64, len(links))


def _pair_links(page: Page) -> list[tuple[str, str]]:
    return [(link.href, link.text) for link in page.links]


def _list_objections(worth: PageQuality) -> tuple[tuple[str, str], ...]:
    return tuple((one.kind.name.lower(), one.detail[:MAX_DETAIL]) for one in list_objections(worth))


def _format_directives(directives: Directives) -> str:
    """What the owner does not want, in the words in which it is usually said."""
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
