"""What pages call the pages that they link to, read off a repository once more: histories keep links, not their words.

Only the versions that live at one moment are read, a few thousand. A version's digest begins its blob's name, by which
the repository finds it. Worlds that are no repositories have no anchor texts here; URLs have to do then.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from vedette.lab.worlds.git.blobs import MOST_BYTES
from vedette.lab.worlds.git.links import NOWHERE, Links
from vedette.lab.worlds.git.place import open_tip, read_place
from vedette.lab.worlds.history import History
from vedette.lab.worlds.world_names import place_of
from vedette.parse.html.page import read_page
from vedette.parse.text.charsets import decode

if TYPE_CHECKING:
    import pygit2

__all__ = ["Anchor", "anchors_of", "markdown_anchors"]

MOST_LINKS = 2000
_MARKDOWN = re.compile(r"(?<!!)\[([^\[\]]{1,300})\]\(\s{0,9}<?([^\s()<>]{1,2000}+)")
_BUILT = (".html", ".htm", ".xhtml", "/")


class Anchor(NamedTuple):
    """A link from one page to another, and its words."""

    source: int
    target: int
    text: str


def anchors_of(world: str, web: History) -> list[Anchor]:
    """All links with words between the pages of a web of one version a page, in the order of pages."""
    place = place_of(world)
    if place.kind != "git" or place.path.is_file():
        return []
    written = f"{place.path}#{place.part}" if place.part else str(place.path)
    repository = open_tip(read_place(written)).repository
    host = urlsplit(web.urls[0]).netloc if len(web.urls) else ""
    names = [_name(url) for url in web.urls]
    links = Links(names, host)
    found: list[Anchor] = []
    for page, digest in enumerate(web.digest.tolist()):
        body = _body(repository, digest)
        found += _resolved(page, _written(body, names[page]), links, names)
    return found


def markdown_anchors(source: str) -> list[tuple[str, str]]:
    """Address and words of the links of a Markdown file.

    >>> markdown_anchors("See [this *one*](b.md#top) and ![no](c.png).")
    [('b.md#top', 'this *one*')]
    """
    return [(match[2], match[1]) for match in _MARKDOWN.finditer(source)][:MOST_LINKS]


def _body(repository: "pygit2.Repository", digest: int) -> bytes:
    import pygit2

    blob = repository.get(f"{digest:016x}")
    return blob.data[:MOST_BYTES] if isinstance(blob, pygit2.Blob) else b""


def _written(body: bytes, name: str) -> list[tuple[str, str]]:
    is_markdown = b"](" in body and b"<html" not in body[:2000].lower()
    if is_markdown or name.endswith((".md", ".markdown")):
        return markdown_anchors(decode(body, "text/plain; charset=utf-8").text)
    if name.endswith(_BUILT) or not name:
        return [(link.href, link.text) for link in read_page(decode(body, "").text).links][:MOST_LINKS]
    return []


def _resolved(page: int, written: Sequence[tuple[str, str]], links: Links, names: Sequence[str]) -> Iterator[Anchor]:
    for href, text in written:
        target = links.number(href, names[page])
        if target not in (NOWHERE, page) and text.strip():
            yield Anchor(page, target, text)


def _name(url: str) -> str:
    """The name of a page in its folder, from its address."""
    return unquote_to_bytes(urlsplit(url).path.lstrip("/")).decode(errors="surrogateescape")
