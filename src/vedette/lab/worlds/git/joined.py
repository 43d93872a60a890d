"""Joined web: the pages of several git worlds as they are at the tips of their branches, as one web.

One site answers few queries; several together are a web on which most titles and link texts are queries with answers.
Only the tips are read, by a few patterns and not as a browser would, so that tens of thousands of pages take minutes.
The result for each world is stored in a file of the cache folder, by its commit.
"""

import hashlib
import html
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from vedette.index.fields import IndexEntry, number_tokens, tokenize_entry
from vedette.index.query.retrieval import ForwardTokens
from vedette.lab.worlds.git.links import NO_PAGE, LinkIndex
from vedette.lab.worlds.git.paths import page_for_path
from vedette.lab.worlds.git.repository import GitLocation, Tip, open_tip, parse_location
from vedette.policy import Ints

if TYPE_CHECKING:
    import pygit2

MAX_BYTES = 1 << 19  # of one page
MAX_LINKS = 60  # of one page, with words
MIN_WORDS = 20  # of a page; redirect stubs have fewer
MAX_TEXT, MAX_BODY = 200, 12_000  # characters of a link's words, and of a page's text
_SUFFIXES = (".html", ".htm")
_TITLE = re.compile(r"<title[^>]{0,99}>([^<]{0,500})", re.IGNORECASE)
_HEADING = re.compile(r"<h[1-3][^>]{0,500}>(.{0,400}?)</h[1-3]", re.IGNORECASE | re.DOTALL)
_LINK = re.compile(
    r"<a\s[^>]{0,300}?href=[\"']([^\"'>]{1,500})[\"'][^>]{0,500}>(.{1,400}?)</a", re.IGNORECASE | re.DOTALL
)
_HIDDEN = re.compile(r"<(script|style|head)\b.*?</\1", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]{0,2000}>")


class JoinedWeb(NamedTuple):
    """A joined web: one row per page. Link ``i`` leads from ``source[i]`` to ``target[i]`` with ``texts[text[i]]``.

    ``pages`` has the words of title, headings, URL and body; those of links are left out, since which of them are known
    depends on what was crawled.
    """

    urls: list[str]
    titles: list[str]
    pages: ForwardTokens
    source: Ints
    target: Ints
    text: Ints
    texts: list[str]


class _ReadPage(NamedTuple):
    name: str
    title: str
    headings: tuple[str, ...]
    body: str
    links: list[tuple[str, str]]


def load_joined(locations: Sequence[str], cache: Path) -> JoinedWeb:
    """Load the joined web of git worlds (``PATH#BRANCH:FOLDER``), from the cache folder if it was read before."""
    sites = [_load_site(parse_location(each), cache) for each in locations]
    firsts = np.cumsum([0, *(len(site.urls) for site in sites)])
    names = np.cumsum([0, *(len(site.texts) for site in sites)])
    words = np.concatenate([site.pages.words for site in sites])
    return JoinedWeb(
        [url for site in sites for url in site.urls],
        [title for site in sites for title in site.titles],
        ForwardTokens(words, np.concatenate([site.pages.lengths for site in sites])),
        np.concatenate([site.source + first for site, first in zip(sites, firsts[:-1], strict=True)]),
        np.concatenate([site.target + first for site, first in zip(sites, firsts[:-1], strict=True)]),
        np.concatenate([site.text + first for site, first in zip(sites, names[:-1], strict=True)]),
        [text for site in sites for text in site.texts],
    )


def _load_site(location: GitLocation, cache: Path) -> JoinedWeb:
    tip = open_tip(location)
    key = hashlib.sha256(f"{tip.commit.id} {location.folder}".encode()).hexdigest()[:16]
    place = cache / f"tip-{location.label}-{key}.npz"
    if not place.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        _save(place, _read_site(location, tip))
    with np.load(place, allow_pickle=False) as arrays:
        urls, titles, texts = json.loads(arrays["names"].tobytes())
        pages = ForwardTokens(arrays["words"], arrays["lengths"])
        return JoinedWeb(urls, titles, pages, arrays["source"], arrays["target"], arrays["text"], texts)


def _save(place: Path, web: JoinedWeb) -> None:
    names = np.frombuffer(json.dumps([web.urls, web.titles, web.texts]).encode(), np.uint8)
    draft = place.with_suffix(".new.npz")
    links = {name: getattr(web, name) for name in ("source", "target", "text")}
    np.savez(draft, names=names, words=web.pages.words, lengths=web.pages.lengths, **links)
    draft.replace(place)


def _read_site(location: GitLocation, tip: Tip) -> JoinedWeb:
    read = list(_iter_pages(tip, location.folder))
    names = [page.name for page in read]
    urls = [f"https://{location.label}.test/{name}" for name in names]
    tokens = [
        number_tokens(tokenize_entry(IndexEntry(0, url, page.title, page.headings, page.body)))
        for url, page in zip(urls, read, strict=True)
    ]
    index, texts, links = LinkIndex(names), dict[str, int](), list[tuple[int, int, int]]()
    for row, page in enumerate(read):
        found = {(index.resolve(href, page.name), text) for href, text in page.links}
        links += [
            (row, target, texts.setdefault(text, len(texts)))
            for target, text in sorted(found)
            if target not in (NO_PAGE, row)
        ]
    words = np.concatenate([each for each, _ in tokens])
    lengths = np.array([each for _, each in tokens], np.int64)
    source, target, text = np.array(links, np.int64).reshape(-1, 3).T
    titles = [page.title for page in read]
    return JoinedWeb(urls, titles, ForwardTokens(words, lengths), source, target, text, list(texts))


def _iter_pages(tip: Tip, folder: str) -> Iterator[_ReadPage]:
    """Yield the HTML pages below a folder of a tip."""
    import pygit2

    tree: object = tip.commit.tree[folder] if folder else tip.commit.tree
    assert isinstance(tree, pygit2.Tree), "the folder is one"
    for path, blob in _iter_blobs(tip.repository, tree, ""):
        if path.endswith(_SUFFIXES) and blob.size <= MAX_BYTES:
            page = _read_page(page_for_path(path)[0], blob.data.decode("utf-8", "replace"))
            if page.body.count(" ") >= MIN_WORDS:
                yield page


def _read_page(name: str, source: str) -> _ReadPage:
    title = _TITLE.search(source)
    shown = _HIDDEN.sub(" ", source)
    links = [(match[1], _strip(match[2])[:MAX_TEXT]) for match in _LINK.finditer(shown)][: 4 * MAX_LINKS]
    return _ReadPage(
        name,
        html.unescape(title[1]).strip() if title else "",
        tuple(_strip(match[1]) for match in _HEADING.finditer(shown))[:20],
        _strip(shown[: 8 * MAX_BODY])[:MAX_BODY],
        list(dict.fromkeys((href, text) for href, text in links if text))[:MAX_LINKS],
    )


def _strip(markup: str) -> str:
    return " ".join(html.unescape(_TAG.sub(" ", markup)).split())


def _iter_blobs(
    repository: "pygit2.Repository", tree: "pygit2.Tree", folder: str
) -> Iterator[tuple[str, "pygit2.Blob"]]:
    import pygit2

    for entry in tree:
        found = repository.get(entry.id)  # some of the largest may be missing from a copy
        if isinstance(found, pygit2.Tree):
            yield from _iter_blobs(repository, found, f"{folder}{entry.name}/")
        elif isinstance(found, pygit2.Blob) and str(entry.name).endswith(_SUFFIXES):
            yield f"{folder}{entry.name}", found
