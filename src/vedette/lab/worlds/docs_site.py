"""Vedette's own documentation as a website: a small real corpus for the demo, beside the synthetic web.

Its host is below ``localhost``, which browsers resolve to this machine (RFC 6761), so its pages can be opened.
"""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Final

import xxhash
from markdown_it import MarkdownIt
from markdown_it.token import Token

from vedette.errors import UsageError
from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest

DOCS_HOST: Final = "docs.localhost"
START_S: Final = 1_704_067_200.0
HTML: Final = "text/html; charset=utf-8"
STYLE: Final = (
    "body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}"
    "nav a{margin-right:1em}pre,table{display:block;overflow-x:auto}td,th{padding:.2em .6em;"
    "text-align:left;vertical-align:top}code{font-size:.9em}"
)


@dataclass(frozen=True, slots=True)
class DocsSite:
    """World with one host that serves pages by path; each page links to all others."""

    replies: Mapping[str, Reply]
    name: str = "docs"
    start_s: float = START_S

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return the only host of the documentation."""
        return (WorldHost(DOCS_HOST, "127.0.0.1"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:  # noqa: ARG002 - it does not change
        """Return a page of the documentation, or that it is unchanged or missing."""
        found = self.replies.get(question.target.partition("?")[0])
        if found is None:
            return Reply(404, (("content-type", HTML),), _render_page("Not found", "<p>There is no such page.</p>", {}))
        is_known = question.if_none_match is not None and ("etag", question.if_none_match) in found.headers
        return Reply(304, found.headers, b"") if is_known else found


def find_docs() -> Path | None:
    """Find the folder of Markdown files: the checkout that Vedette runs from, or that of its wheel."""
    package = Path(__file__).parents[2]
    checkout = package.parents[1]
    found = (folder for folder in (checkout, package / "site") if (folder / "docs" / "configuration.md").is_file())
    return next(found, None)


def open_docs_site(_seed: int = 0) -> DocsSite:
    """Open the documentation as a world."""
    folder = find_docs()
    if folder is None:
        raise UsageError("the documentation is not installed: run the demo from a source checkout")
    files = sorted([*folder.glob("*.md"), *folder.glob("docs/**/*.md")])
    return build_site({file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files})


def build_site(sources: Mapping[str, str]) -> DocsSite:
    """Build the site of Markdown sources by path.

    >>> site = build_site({"README.md": "[how](docs/how.md#a) [code](src/x.py)", "docs/how.md": "# How"})
    >>> '<p><a href="/docs/how.html#a">how</a> code</p>' in site.replies["/"].body.decode()
    True
    """
    pages = {path: _page_path(path) for path in sources}
    titles = {pages[path]: _find_title(text, path) for path, text in sources.items()}
    replies = {}
    for path, text in sources.items():
        body = _render_page(titles[pages[path]], _render_markdown(text, path, pages), titles)
        replies[pages[path]] = _build_reply(body)
    return DocsSite(MappingProxyType(replies))


def _page_path(path: str) -> str:
    return "/" if path == "README.md" else f"/{path.removesuffix('.md').lower()}.html"


def _find_title(text: str, path: str) -> str:
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].replace("`", "").strip() if match else path


def _render_markdown(text: str, path: str, pages: Mapping[str, str]) -> str:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            heading.attrSet("id", re.sub(r"[^\w -]", "", inline.content.lower()).replace(" ", "-"))
    for token in tokens:
        if token.children:
            token.children = list(_rewrite_links(token.children, path, pages))
    return str(parser.renderer.render(tokens, parser.options, {}))


def _rewrite_links(tokens: Sequence[Token], path: str, pages: Mapping[str, str]) -> Iterator[Token]:
    """Point links between sources to pages; links to other files, and images, are dropped."""
    is_dropped = False
    for token in tokens:
        if token.type == "link_open":
            target = _find_target(str(token.attrGet("href") or ""), path, pages)
            is_dropped = target is None
            token.attrSet("href", target or "")
        if token.type != "image" and not (is_dropped and token.type in {"link_open", "link_close"}):
            yield token


def _find_target(href: str, path: str, pages: Mapping[str, str]) -> str | None:
    if re.match(r"https?:|#", href):
        return href
    file, sign, fragment = href.partition("#")
    page = pages.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), file)))
    return None if page is None else f"{page}{sign}{fragment}"


def _render_page(title: str, body: str, pages: Mapping[str, str]) -> bytes:
    links = "".join(f'<a href="{escape(path)}">{escape(name)}</a> ' for path, name in pages.items())
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head>'
    )
    return f"{head}<body><main>{body}</main><nav>{links}</nav></body></html>".encode()


def _build_reply(body: bytes) -> Reply:
    return Reply(200, (("content-type", HTML), ("etag", f'"{xxhash.xxh64_hexdigest(body)}"')), body)
