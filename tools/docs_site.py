"""MkDocs hooks: pages for the files at the root of the repository, and links that leave ``docs/``.

A link to a file without a page becomes its path, as code. ``docs_reference.py`` adds what is generated from the source.
"""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).parents[1]
ICON: Final = ROOT / "src" / "vedette" / "web" / "static" / "icon.svg"
COPIED: Final = {
    f"{name.lower()}.md": f"{name}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY")
}
# Pages by the file that a link names: in a repository it leads to the source, on the site to the page.
PAGES: Final = {
    **{source: page for page, source in COPIED.items()},
    "README.md": "index.md",
    "docs/results": "results/index.md",
    "src/vedette/web/api/openapi.py": "reference/api.md",
    "src/vedette/web/metrics.py": "reference/metrics.md",
    "src/vedette/api.py": "reference/python.md",
}
_FENCE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"`[^`\n]+`")
_CELL = re.compile(r"(<td[^>]*><code>)([^<]{16,})(?=</code>)")
_LIST = re.compile(r"^(?![-*|#>\s\d])(.+\n)(?=- )", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose source is at the root, and the icon."""
    for page, source in COPIED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs' names
    """Rewrite what MkDocs would read otherwise than GitHub, outside of fenced code."""
    place = page.file.src_uri
    pieces = _FENCE.split(markdown)
    # A list may follow a paragraph without an empty line on GitHub.
    pieces[::2] = [_LIST.sub(r"\1\n", _unescape_pipes(rewrite_links(prose, place))) for prose in pieces[::2]]
    return "".join(pieces)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs' names
    """Let long names in tables break where a reader would break them."""
    return _CELL.sub(lambda cell: cell[1] + re.sub(r"([._/])(?=\w)", r"\1<wbr>", cell[2]), html)


def rewrite_links(prose: str, place: str) -> str:
    """Rewrite the links of a page at ``place``, relative to the docs folder or copied from the root.

    >>> rewrite_links("[scope](src/vedette/discover/urls/scope.py), [words](docs/glossary.md#a)", "architecture.md")
    'scope (`discover/urls/scope.py`), [words](glossary.md#a)'
    >>> rewrite_links("[it](../../ARCHITECTURE.md), [examples/a.py](../../examples/a.py)", "results/lab.md")
    '[it](../architecture.md), `examples/a.py`'
    """
    folder = "" if place in COPIED else posixpath.dirname(f"docs/{place}")

    def rewrite(link: re.Match[str]) -> str:
        text, target, fragment = link[1], link[2], link[3] or ""
        if re.match(r"[a-z]+:", target):
            return link[0]
        path = posixpath.normpath(posixpath.join(folder, target))
        page = PAGES.get(path) or _find_page(path)
        if page is not None:
            return f"[{text}]({posixpath.relpath(page, posixpath.dirname(place) or '.')}{fragment})"
        named = text.strip("`")
        return f"`{named}`" if path.endswith(named) else f"{text} (`{path.removeprefix('src/vedette/')}`)"

    return _LINK.sub(rewrite, prose)


def _find_page(path: str) -> str | None:
    """Return the place of a file of the docs folder in that folder."""
    return path.removeprefix("docs/") if path.startswith("docs/") and (ROOT / path).is_file() else None


def _unescape_pipes(prose: str) -> str:
    r"""Write ``\|`` in code in tables as ``|``, which Python-Markdown takes for code there, unlike GitHub."""
    rows = prose.split("\n")
    return "\n".join(
        _CODE.sub(lambda code: code[0].replace("\\|", "|"), row) if row[:1] == "|" else row for row in rows
    )
