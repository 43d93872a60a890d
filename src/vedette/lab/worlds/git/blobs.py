"""Reads every distinct blob once: what it says, how many words that is, and the addresses that it links to.

Most of the time of an import goes here, so blobs are shared out over the processors where there are many of them. A
history writes most pages many times with small changes; blobs are read page by page, so that alike texts lie side by
side, where they compress best.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urljoin

from vedette.discover.formats.feeds import is_feed, read_feed
from vedette.discover.formats.sitemaps import is_sitemap, read_sitemap
from vedette.lab.worlds.git.paths import HTML, XML, group_of
from vedette.lab.worlds.history import FEED, SITEMAP
from vedette.lab.worlds.pools import pool_of, processors
from vedette.parse.html.page import read_page, word_count
from vedette.parse.text.charsets import decode

__all__ = ["Content", "Marked", "Task", "announced", "body_of", "contents", "read_markdown", "read_restructured"]

# No reader of the languages: it finds links as they are usually written, and takes the marks off the words.
# Everything is one pass of patterns that are bounded and never try the same piece twice, so that no text takes long.


MOST_LINKS = 5000
_SHORT, _LONG = 300, 2000  # of a link's words, and of its address

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ ]{0,3}(```|~~~)[^\n]{0,200}\n(.*?)(?:^[ ]{0,3}\1[^\n]{0,200}$|\Z)", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(rf"!?\[([^\[\]]{{0,{_SHORT}}})\]\(\s{{0,9}}<?([^\s()<>]{{1,{_LONG}}}+)>?[^()\n]{{0,{_SHORT}}}+\)")
_NAMED = re.compile(
    rf"^[ ]{{0,3}}\[[^\[\]\n]{{1,{_SHORT}}}\]:[ \t]{{0,9}}<?([^\s<>]{{1,{_LONG}}}+)>?[^\n]{{0,{_SHORT}}}+$",
    re.MULTILINE,
)
_BARE = re.compile(rf"<(https?://[^\s<>]{{1,{_LONG}}})>")
_HREF = re.compile(rf"\bhref\s{{0,3}}=\s{{0,3}}[\"']([^\"'\s<>]{{1,{_LONG}}})[\"']", re.IGNORECASE)
_TAG = re.compile(r"<[/!a-zA-Z][^<>]{0,500}>|\{[%{][^{}\n]{0,500}[%}]\}")
_MARKS = re.compile(r"^[ \t]{0,20}(?:#{1,6}|>+|[-*+]|\d{1,9}[.)]|[=~^-]{3,})(?=\s|$)|[*_`|]{1,3}", re.MULTILINE)

_ROLE = re.compile(rf":doc:`(?:[^`<]{{0,{_SHORT}}}<([^`<>\s]{{1,{_LONG}}})>|([^`<>\s]{{1,{_LONG}}}))`")
_QUOTED = re.compile(rf"`([^`<]{{0,{_SHORT}}})<([^`<>\s]{{1,{_LONG}}})>`__?")
_TARGET = re.compile(rf"^\.\. _[^:\n]{{1,{_SHORT}}}:[ \t]{{1,9}}([^\s]{{1,{_LONG}}})[ \t]*$", re.MULTILINE)
_TREE = re.compile(r"^([ \t]{0,40})\.\. toctree::[^\n]*\n((?:\1[ \t]+[^\n]*\n?|[ \t]*\n)*)", re.MULTILINE)
_ENTRY = re.compile(
    rf"^[ \t]{{1,40}}+(?:[^:\n<][^\n<]{{0,{_SHORT}}}<([^<>\s]{{1,{_LONG}}})>|([^:\s<][^\s<]{{0,{_LONG}}}+))[ \t]*$",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]{0,40}(?:\.\. [^\n]*|:[\w -]{1,40}:[^\n]*|[=~^\"'`#*+-]{3,}[ \t]*)$", re.MULTILINE)
_ROLE_MARK = re.compile(r":[\w:-]{1,40}:(?=`)|[`*|]{1,2}_{0,2}")
_LINES = re.compile(r"\n\s*\n+")


class Marked(NamedTuple):
    """The words without their marks, and the addresses as written, in the order of the page as far as that is cheap."""

    text: str
    links: tuple[str, ...]


def read_markdown(source: str) -> Marked:
    r"""What a Markdown file says.

    >>> read_markdown("---\ntitle: x\n---\n# A *page*\n\nSee [this one](b.md#top \"B\") and <https://example.org/>.\n")
    Marked(text='A page\nSee this one and .', links=('b.md#top', 'https://example.org/'))
    """
    body = _FRONT_MATTER.sub("", source.replace("\r\n", "\n"), count=1)
    prose = _FENCE.sub("\n", body)
    links = [match[2] for match in _INLINE.finditer(prose) if not match[0].startswith("!")]
    links += [match[1] for pattern in (_NAMED, _BARE, _HREF) for match in pattern.finditer(prose)]
    plain = _NAMED.sub("", _FENCE.sub(r"\n\2\n", body))
    text = _MARKS.sub("", _TAG.sub("", _INLINE.sub(r"\1", plain)))
    return Marked(_folded(text), tuple(links[:MOST_LINKS]))


def read_restructured(source: str) -> Marked:
    r"""What a reStructuredText file says.

    >>> read_restructured("Title\n=====\n\nSee :doc:`/b/c` and `it <https://example.org/>`_.\n\n.. toctree::\n\n   d\n")
    Marked(text='Title\nSee /b/c and it .', links=('/b/c', 'https://example.org/', 'd'))
    """
    body = source.replace("\r\n", "\n")
    links = [match[1] or match[2] for match in _ROLE.finditer(body)]
    links += [match[2] for match in _QUOTED.finditer(_ROLE.sub("", body))]
    links += [match[1] for match in _TARGET.finditer(body)]
    links += [one[1] or one[2] for tree in _TREE.finditer(body) for one in _ENTRY.finditer(tree[2])]
    plain = _DIRECTIVE.sub("", _QUOTED.sub(r"\1", _TREE.sub("", body)))
    return Marked(_folded(_ROLE_MARK.sub("", plain)), tuple(links[:MOST_LINKS]))


def _folded(text: str) -> str:
    return "\n".join(" ".join(block.split()) for block in _LINES.split(text.strip()) if block.strip())


if TYPE_CHECKING:
    import pygit2


MOST_BYTES = 4 << 20  # what lies behind in a blob makes no difference
MANY = 4000  # blobs; for fewer, other processes are not worth their start
PART = 64
_HERE = "https://here.invalid"


class Task(NamedTuple):
    """A blob by its id, and the name of a file that it is the content of: the ending says how to read it."""

    blob: bytes
    path: str


class Content(NamedTuple):
    """What a blob says, without markup; the addresses that it links to are as written."""

    text: str
    words: int
    links: tuple[str, ...]


def contents(repository: "pygit2.Repository", tasks: Sequence[Task]) -> Iterator[Content | None]:
    """What each blob says, in the order of the tasks; None where the repository does not have it."""
    processes = processors() if len(tasks) >= MANY else 1
    if processes == 1:
        return (_content(repository, task) for task in tasks)
    return _shared_out(repository.path, tasks, processes)


def body_of(repository: "pygit2.Repository", blob: bytes) -> bytes | None:
    """The bytes of a blob, up to a limit; None where they are not there or cannot be read."""
    import pygit2

    try:
        found = repository[pygit2.Oid(raw=blob)]
    except (KeyError, OSError, ValueError, pygit2.GitError):
        return None
    return found.data[:MOST_BYTES] if isinstance(found, pygit2.Blob) else None


def announced(body: bytes) -> int | None:
    """Whether the bytes of an XML file announce pages, and how: ``FEED``, ``SITEMAP``, or None.

    >>> announced(b"<rss version='2.0'>") == FEED, announced(b"<urlset>") == SITEMAP, announced(b"<project>")
    (True, True, None)
    """
    if is_feed(body):
        return FEED
    return SITEMAP if is_sitemap(body) else None


def _content(repository: "pygit2.Repository", task: Task) -> Content | None:
    body = body_of(repository, task.blob)
    return None if body is None else _read(body, task.path)


def _read(body: bytes, path: str) -> Content:
    group = group_of(path, "docs")  # whatever comes here is a page; text files are so in such a folder only
    if group == XML:
        return _read_announcement(body, path)
    if group == HTML:
        return _read_html(decode(body, "").text)
    text = decode(body, "text/plain; charset=utf-8").text
    found = read_restructured(text) if path.lower().endswith((".rst", ".txt")) else read_markdown(text)
    return Content(found.text, word_count(found.text), found.links)


def _read_html(text: str) -> Content:
    page = read_page(text)
    written = [link.href for link in page.links]
    written += [*page.feeds, *([page.refresh[1]] if page.refresh else [])]
    if page.base:
        written = [_joined(page.base, href) for href in written]
    return Content(page.main, page.words, tuple(written))


def _read_announcement(body: bytes, path: str) -> Content:
    """The pages that a feed or sitemap announces; the text of a feed is its titles."""
    url = f"{_HERE}/{quote(path.encode(errors='surrogateescape'))}"
    if is_feed(body):
        entries = read_feed(body, url).entries
        text = "\n".join(entry.title for entry in entries if entry.title)
        return Content(text, word_count(text), tuple(entry.link.removeprefix(_HERE) for entry in entries))
    sitemap = read_sitemap(body, url)
    named = (*sitemap.children, *(entry.loc for entry in sitemap.entries))
    return Content("", 0, tuple(link.removeprefix(_HERE) for link in named))


def _joined(base: str, href: str) -> str:
    try:
        return urljoin(base, href)
    except ValueError:
        return href


def _shared_out(path: str, tasks: Sequence[Task], processes: int) -> Iterator[Content | None]:
    parts = [tasks[at : at + PART] for at in range(0, len(tasks), PART)]
    with pool_of(processes) as pool:
        for done in pool.map(_part, ((path, part) for part in parts)):
            yield from done


def _part(work: tuple[str, Iterable[Task]]) -> list[Content | None]:
    path, tasks = work
    return [_content(_repository(path), task) for task in tasks]


@cache
def _repository(path: str) -> "pygit2.Repository":
    import pygit2

    return pygit2.Repository(path)
