"""From the text of a page to what the keeper is told of it: what it says, how it compares, what speaks against it."""

from dataclasses import dataclass

import numpy as np

from vedette.engine.messages import Content, Copy
from vedette.fetch.robots.meta_tags import FREE, Directives
from vedette.index.snippets import tidied
from vedette.index.stored_text import Stored, pack
from vedette.model import Answer, JudgedBy, origin_of
from vedette.model import fingerprint as fingerprint_of_url
from vedette.parse.change.blocks import blocks_of
from vedette.parse.change.comparison import Change, Kept, Seen, compare, first
from vedette.parse.html.page import Page
from vedette.parse.quality.indexability import Worth, objections
from vedette.parse.quality.soft404 import looks_missing
from vedette.parse.quality.spam import signs_of, spam_score
from vedette.parse.similarity.minhash import sketch_of
from vedette.parse.similarity.shingles import fingerprint, fingerprint_of, normal_form, shingles_of
from vedette.parse.text.dates import dates_of
from vedette.parse.text.language import language_of
from vedette.policy import Ints

__all__ = ["Context", "document_content", "page_content"]

LONGEST_DESCRIPTION = 500
LONGEST_DETAIL = 200
LONGEST_WORD = 30
LONGEST_BODY = 1 << 20
MOST_HEADINGS = 200


@dataclass(frozen=True, slots=True)
class Context:
    """What is known of an answer before its text is read: what it is held against, and by which rule."""

    answer: Answer
    digest: str
    copy: Copy | None = None
    judged_by: JudgedBy = "main"
    directives: Directives = FREE


def page_content(
    page: Page, text: str, charset: str, context: Context, links: tuple[str, ...], anchors: tuple[str, ...]
) -> Content:
    """What a page says; ``links`` are those within the sites."""
    answer = context.answer
    form = normal_form(page.main)
    words = _words(form)
    sketch = sketch_of(shingles_of(form))
    seen = Seen(
        bytes.fromhex(context.digest),
        fingerprint(f"{page.title}\n{page.text}") if context.judged_by == "text" else b"",
        fingerprint_of(normal_form(page.title) + b"\n" + form),
        sketch.mins if sketch else b"",
        _prints(links),
    )
    change, kept = _compared(seen, text, context)
    dates = dates_of(page.stamps, page.linked_data, answer.url, answer.header("last-modified") or "", answer.ended_s)
    spam = spam_score(
        signs_of(origin_of(answer.url).host, page.title, page.main, page.words, page.hidden_words, _pairs(page))
    )
    worth = Worth(
        words=words,
        letters=len(page.main),
        onward_links=len(links),
        noindex=not context.directives.index,
        missing=looks_missing(page.title, [heading for _, heading in page.headings], page.main, page.words),
        needs_script=page.needs_script,
        spam_score=spam.score,
        spam_reasons=spam.reasons,
    )
    content = Content(
        kept,
        charset,
        language_of(page.main or page.text, page.language),
        page.description[:LONGEST_DESCRIPTION],
        "",
        _marks(context.directives),
        words,
        dates.published_s,
        dates.modified_s,
        spam.score,
        _objections(worth),
        change,
        anchors,
    )
    headings = tuple(heading for _, heading in page.headings[:MOST_HEADINGS])
    return _stored(content, context, page.title, page.main or page.text, headings, "html")


def document_content(title: str, text: str, trouble: str, context: Context) -> Content:
    """What a document without markup says; ``trouble`` is why nothing could be read, where that is so."""
    form = normal_form(text)
    sketch = sketch_of(shingles_of(form))
    main_print = fingerprint_of(form)
    seen = Seen(bytes.fromhex(context.digest), main_print, main_print, sketch.mins if sketch else b"")
    change, kept = _compared(seen, "", context)
    answer = context.answer
    dates = dates_of((), (), answer.url, answer.header("last-modified") or "", answer.ended_s)
    words = _words(form)
    worth = Worth(words=words, letters=len(text), noindex=not context.directives.index)
    against = tuple((name, trouble if name == "empty" else detail) for name, detail in _objections(worth))
    content = Content(
        kept,
        language=language_of(text, ""),
        marks=_marks(context.directives),
        words=words,
        published_s=dates.published_s,
        modified_s=dates.modified_s,
        objections=against,
        change=change,
    )
    return _stored(content, context, title, text, (), "pdf")


def _stored(content: Content, context: Context, title: str, body: str, headings: tuple[str, ...], kind: str) -> Content:
    """With its text for the index, unless that has it already: the bytes are those of the last time."""
    old = context.copy.kept if context.copy else None
    if old is not None and old.body_digest == content.kept.body_digest:
        return content
    changed = content.change is not None and content.change.changed
    body, is_plain = tidied(body[:LONGEST_BODY])
    date_s = content.modified_s if content.published_s is None else content.published_s
    stored = Stored(
        context.answer.url,
        title,
        content.description,
        headings,
        body,
        kind,
        content.language,
        date_s,
        content.marks,
        is_plain,
    )
    return content._replace(stored=pack(stored), unweighed=changed and context.judged_by == "queries")


def _compared(seen: Seen, text: str, context: Context) -> tuple[Change | None, Kept]:
    """Blocks cost most, so they are made only where bytes changed that may be a rotating box."""
    old = context.copy.kept if context.copy else None
    if old is None:
        return None, first(seen)
    # Whether searches notice is measured when the page is indexed; what does not touch its main text they never do.
    judged_by = "main" if context.judged_by == "queries" else context.judged_by
    if text and old.body_digest != seen.body_digest and judged_by in {"text", "main"}:
        wanted = [(block.place, block.text) for block in blocks_of(text) if block.in_main or judged_by == "text"]
        seen = Seen(seen.body_digest, seen.text_print, seen.main_print, seen.sketch, seen.links, wanted)
    return compare(old, seen, judged_by)


def _words(form: bytes) -> int:
    """How many words a text has, by its normal form; what has no spaces at all counts by its length."""
    spaces = np.count_nonzero(np.frombuffer(form, np.uint8) == ord(" "))
    return max(int(spaces) + 1, len(form) // LONGEST_WORD) if form else 0


def _prints(links: tuple[str, ...]) -> Ints:
    return np.fromiter(map(fingerprint_of_url, links), np.int64, len(links))


def _pairs(page: Page) -> list[tuple[str, str]]:
    return [(link.href, link.text) for link in page.links]


def _objections(worth: Worth) -> tuple[tuple[str, str], ...]:
    return tuple((one.kind.name.lower(), one.detail[:LONGEST_DETAIL]) for one in objections(worth))


def _marks(directives: Directives) -> str:
    """What the owner does not want, in the words in which it is usually said."""
    if directives is FREE or directives == FREE:
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
