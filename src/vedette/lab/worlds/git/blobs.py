"""Parse the blobs of a git repository, each once: text, number of words, and the URLs it links to.

Most of the time of an import is spent here, so large numbers of blobs are divided among the CPUs. A history rewrites
most pages many times with small changes; blobs are read page by page, so that similar texts are adjacent, where they
compress best.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin

from vedette.discover.formats.feeds import is_feed, parse_feed
from vedette.discover.formats.sitemaps import is_sitemap, parse_sitemap
from vedette.lab.worlds.git.paths import HTML, XML, classify_path
from vedette.lab.worlds.git.repository import find_blob, open_process_pool, reopen_repository, worker_count
from vedette.lab.worlds.history import FEED, SITEMAP
from vedette.parse.html.page import count_words, parse_page
from vedette.parse.text.charsets import decode_page

if TYPE_CHECKING:
    import pygit2

# Not a full parser: it finds links in their usual form, and removes markup from the words. Everything is one pass of
# bounded patterns that never backtrack over the same piece, so that no text takes long.


MAX_LINKS = 5000
_MAX_LABEL, _MAX_URL = 300, 2000  # of a link's words, and of its URL

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ ]{0,3}(```|~~~)[^\n]{0,200}\n(.*?)(?:^[ ]{0,3}\1[^\n]{0,200}$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(
    rf"!?\[([^\[\]]{{0,{_MAX_LABEL}}})\]\(\s{{0,9}}<?([^\s()<>]{{1,{_MAX_URL}}}+)>?[^()\n]{{0,{_MAX_LABEL}}}+\)"
)
_REFERENCE = re.compile(
    rf"^[ ]{{0,3}}\[[^\[\]\n]{{1,{_MAX_LABEL}}}\]:[ \t]{{0,9}}<?([^\s<>]{{1,{_MAX_URL}}}+)>?[^\n]{{0,{_MAX_LABEL}}}+$",
    re.MULTILINE,
)
_AUTOLINK = re.compile(rf"<(https?://[^\s<>]{{1,{_MAX_URL}}})>")
_HREF = re.compile(rf"\bhref\s{{0,3}}=\s{{0,3}}[\"']([^\"'\s<>]{{1,{_MAX_URL}}})[\"']", re.IGNORECASE)
_TAG = re.compile(r"<[/!a-zA-Z][^<>]{0,500}>|\{[%{][^{}\n]{0,500}[%}]\}")
_MARKS = re.compile(r"^[ \t]{0,20}(?:#{1,6}|>+|[-*+]|\d{1,9}[.)]|[=~^-]{3,})(?=\s|$)|[*_`|]{1,3}", re.MULTILINE)

_ROLE = re.compile(rf":doc:`(?:[^`<]{{0,{_MAX_LABEL}}}<([^`<>\s]{{1,{_MAX_URL}}})>|([^`<>\s]{{1,{_MAX_URL}}}))`")
_EMBEDDED_URI = re.compile(rf"`([^`<]{{0,{_MAX_LABEL}}})<([^`<>\s]{{1,{_MAX_URL}}})>`__?")
_TARGET = re.compile(rf"^\.\. _[^:\n]{{1,{_MAX_LABEL}}}:[ \t]{{1,9}}([^\s]{{1,{_MAX_URL}}})[ \t]*$", re.MULTILINE)
_TOCTREE = re.compile(r"^([ \t]{0,40})\.\. toctree::[^\n]*\n((?:\1[ \t]+[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE)
_TOCTREE_ENTRY = re.compile(
    rf"^[ \t]{{1,40}}+(?:[^:\n<][^\n<]{{0,{_MAX_LABEL}}}<([^<>\s]{{1,{_MAX_URL}}})>"
    rf"|([^:\s<][^\s<]{{0,{_MAX_URL}}}+))[ \t]*$",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]{0,40}(?:\.\. [^\n]*|:[\w -]{1,40}:[^\n]*|[=~^\"'`#*+-]{3,}[ \t]*)$", re.MULTILINE)
_ROLE_MARK = re.compile(r":[\w:-]{1,40}:(?=`)|[`*|]{1,2}_{0,2}")
_BLANK_LINES = re.compile(r"\n\s*\n+")


class ParsedMarkup(NamedTuple):
    """Parsed markup of a git blob: words without marks, and link URLs as written, roughly in page order."""

    text: str
    links: tuple[str, ...]


def read_markdown(source: str) -> ParsedMarkup:
    r"""Parse the text and links of a Markdown blob.

    >>> read_markdown("---\ntitle: x\n---\n# A *page*\n\nSee [this one](b.md#top \"B\") and <https://example.org/>.\n")
    ParsedMarkup(text='A page\nSee this one and .', links=('b.md#top', 'https://example.org/'))
    """
    body = _FRONT_MATTER.sub("", source.replace("\r\n", "\n"), count=1)
    prose = _FENCE.sub("\n", body)
    links = [match[2] for match in _INLINE.finditer(prose) if not match[0].startswith("!")]
    links += [match[1] for pattern in (_REFERENCE, _AUTOLINK, _HREF) for match in pattern.finditer(prose)]
    plain = _REFERENCE.sub("", _FENCE.sub(r"\n\2\n", body))
    text = _MARKS.sub("", _TAG.sub("", _INLINE.sub(r"\1", plain)))
    return ParsedMarkup(_collapse_whitespace(text), tuple(links[:MAX_LINKS]))


def read_rst(source: str) -> ParsedMarkup:
    r"""Parse the text and links of a reStructuredText blob.

    >>> read_rst("Title\n=====\n\nSee :doc:`/b/c` and `it <https://example.org/>`_.\n\n.. toctree::\n\n   d\n")
    ParsedMarkup(text='Title\nSee /b/c and it .', links=('/b/c', 'https://example.org/', 'd'))
    """
    body = source.replace("\r\n", "\n")
    links = [match[1] or match[2] for match in _ROLE.finditer(body)]
    links += [match[2] for match in _EMBEDDED_URI.finditer(_ROLE.sub("", body))]
    links += [match[1] for match in _TARGET.finditer(body)]
    links += [one[1] or one[2] for tree in _TOCTREE.finditer(body) for one in _TOCTREE_ENTRY.finditer(tree[2])]
    plain = _DIRECTIVE.sub("", _EMBEDDED_URI.sub(r"\1", _TOCTREE.sub("", body)))
    return ParsedMarkup(_collapse_whitespace(_ROLE_MARK.sub("", plain)), tuple(links[:MAX_LINKS]))


def _collapse_whitespace(text: str) -> str:
    return "\n".join(" ".join(block.split()) for block in _BLANK_LINES.split(text.strip()) if block.strip())


MAX_BYTES = 4 << 20  # the rest of a blob makes no difference
PARALLEL_FROM = 4000  # blobs; for fewer, other processes are not worth their start
BATCH_SIZE = 64
_PLACEHOLDER_ORIGIN = "https://here.invalid"


class BlobTask(NamedTuple):
    """A git blob to parse, by its id and the name of a file with this content: its extension determines the parser."""

    blob: bytes
    path: str


class Content(NamedTuple):
    """Parsed content of a git blob: its text without markup, and the URLs that it links to as written."""

    text: str
    words: int
    links: tuple[str, ...]


def read_contents(repository: "pygit2.Repository", tasks: Sequence[BlobTask]) -> Iterator[Content | None]:
    """Read and parse git blobs in the order of the tasks; None for a blob that the repository lacks."""
    processes = worker_count() if len(tasks) >= PARALLEL_FROM else 1
    if processes == 1:
        return (_read_content(repository, task) for task in tasks)
    return _read_in_parallel(repository.path, tasks, processes)


def read_blob(repository: "pygit2.Repository", blob: bytes) -> bytes | None:
    """Read the bytes of a git blob, up to a limit; None if it is missing or unreadable."""
    found = find_blob(repository, blob)
    return None if found is None else found.data[:MAX_BYTES]


def detect_listing_kind(body: bytes) -> int | None:
    """Detect whether an XML blob is a listing of pages: ``FEED``, ``SITEMAP``, or None.

    >>> bodies = (b"<rss version='2.0'>", b"<urlset>", b"<project>")
    >>> [detect_listing_kind(body) for body in bodies] == [FEED, SITEMAP, None]
    True
    """
    if is_feed(body):
        return FEED
    return SITEMAP if is_sitemap(body) else None


def _read_content(repository: "pygit2.Repository", task: BlobTask) -> Content | None:
    body = read_blob(repository, task.blob)
    return None if body is None else _parse_content(body, task.path)


def _parse_content(body: bytes, path: str) -> Content:
    group = classify_path(path, "docs")  # other text is a page; text files only in such a folder
    if group == XML:
        return _parse_listing(body, path)
    if group == HTML:
        return _parse_html(decode_page(body, "").text)
    text = decode_page(body, "text/plain; charset=utf-8").text
    found = read_rst(text) if path.lower().endswith((".rst", ".txt")) else read_markdown(text)
    return Content(found.text, count_words(found.text), found.links)


def _parse_html(text: str) -> Content:
    page = parse_page(text)
    written = [link.href for link in page.links]
    written += [*page.feeds, *([page.refresh[1]] if page.refresh else [])]
    if page.base:
        written = [_join_url(page.base, href) for href in written]
    return Content(page.main, page.words, tuple(written))


def _parse_listing(body: bytes, path: str) -> Content:
    """Parse the page URLs that a feed or sitemap blob lists; the text of a feed is its titles."""
    url = f"{_PLACEHOLDER_ORIGIN}/{quote(path.encode(errors='surrogateescape'))}"
    if is_feed(body):
        entries = parse_feed(body, url).entries
        text = "\n".join(entry.title for entry in entries if entry.title)
        return Content(
            text, count_words(text), tuple(entry.link.removeprefix(_PLACEHOLDER_ORIGIN) for entry in entries)
        )
    sitemap = parse_sitemap(body, url)
    named = (*sitemap.children, *(entry.loc for entry in sitemap.entries))
    return Content("", 0, tuple(link.removeprefix(_PLACEHOLDER_ORIGIN) for link in named))


def _join_url(base: str, href: str) -> str:
    try:
        return urljoin(base, href)
    except ValueError:
        return href


def _read_in_parallel(path: str, tasks: Sequence[BlobTask], processes: int) -> Iterator[Content | None]:
    parts = [tasks[at : at + BATCH_SIZE] for at in range(0, len(tasks), BATCH_SIZE)]
    with open_process_pool(processes) as pool:
        for done in pool.map(_read_batch, ((path, part) for part in parts)):
            yield from done


def _read_batch(work: tuple[str, Iterable[BlobTask]]) -> list[Content | None]:
    path, tasks = work
    return [_read_content(reopen_repository(path), task) for task in tasks]
