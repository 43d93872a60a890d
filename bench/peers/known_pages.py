"""The pages of real web sites as a crawl would have them, read from git: for the bench of known items.

Server-side includes are filled in as the web server would. Pages are read by the same code as fetched ones. What no one
would index (stubs that lead on, pages that a script would have to fill, empty ones) is left out; links to a stub lead
to where the stub leads.
"""

import re
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.fetcher.page_reader import parse_outcome
from vedette.engine.links import LinkResolver
from vedette.engine.messages import Content, FetchSuccess, FetchTask
from vedette.index.fields import StoredPage, choose_title, unpack_page
from vedette.model import FetchResponse, Site
from vedette.parse.html.page import parse_page
from vedette.parse.similarity.minhash import Sketch, build_sketch
from vedette.parse.similarity.shingles import fingerprint_form, normal_form, shingle_form
from vedette.parse.text.charsets import decode_page

__all__ = ["SITES", "KnownPage", "Link", "fill_includes", "known_pages"]

SITES = (
    ("apache+incubator", "content/", "incubator.apache.org"),
    ("apache+kafka-site", "", "kafka.apache.org"),
    ("apache+flink-web", "content/", "flink.apache.org"),
)
BRANCH = "asf-site"
LEFT_OUT = "javadoc"
NOW_S = 1_750_000_000.0
DEEPEST = 5
MOST_BYTES = 4 << 20
_INCLUDE = re.compile(rb'<!--#\s*include\s+(?:virtual|file)="([^"]{1,300})"\s*-->')
_TAILS = ("", "index.html", "/index.html", ".html")


class Link(NamedTuple):
    """A link between two pages, by their positions in the list, and its text."""

    source: int
    target: int
    text: str


class KnownPage(NamedTuple):
    """A page: its URL, its words, all visible text, the fingerprint of its main text, and its parsed content."""

    url: str
    stored: StoredPage
    text: str
    print: bytes
    sketch: Sketch | None
    content: Content

    @property
    def host(self) -> str:
        """Its host."""
        return self.url.split("/")[2]


class _Read(NamedTuple):
    page: KnownPage
    hrefs: tuple[tuple[str, str], ...]
    leads_to: str
    is_worthy: bool


def known_pages(histories: Path, sites: Sequence[tuple[str, str, str]] = SITES) -> tuple[list[KnownPage], list[Link]]:
    """All pages worth indexing, and the links between them."""
    read: dict[str, _Read] = {}
    links = LinkResolver(SiteIndex([Site(f"http://{host}/") for _, _, host in sites]))
    for site, root, host in sites:
        files = dict(_files(histories, site, root))
        for path, body in files.items():
            url = f"http://{host}/{path}"
            read[url] = read_page(url, fill_includes(body, path, files), links)
    kept = [url for url, one in read.items() if one.is_worthy and not one.leads_to]
    places = {url: place for place, url in enumerate(kept)}
    pages = _named([read[url].page for url in kept])
    return pages, [
        Link(source, places[target], text)
        for url, source in places.items()
        for href, text in read[url].hrefs
        if (target := _followed(href, read)) in places and target != url
    ]


def _files(histories: Path, site: str, root: str) -> Iterator[tuple[str, bytes]]:
    """The path of each page below the root, and its bytes."""
    listed = _git(histories, site, "-c", "core.quotePath=false", "ls-tree", "-r", BRANCH, root or ".").decode()
    rows = [line.split(None, 3) for line in listed.splitlines()]
    wanted = [(blob, path) for _, _, blob, path in rows if path.endswith((".html", ".htm")) and LEFT_OUT not in path]
    content = _git(histories, site, "cat-file", "--batch", told="".join(f"{blob}\n" for blob, _ in wanted).encode())
    at = 0
    for _, path in wanted:
        start = content.index(b"\n", at) + 1
        about = content[at : start - 1].split()
        at = start
        if about[1] != b"missing":  # some of the largest may be missing from a copy
            at = start + int(about[2]) + 1
            yield path.removeprefix(root), content[start : at - 1]


def _git(histories: Path, site: str, *words: str, told: bytes = b"") -> bytes:
    command = ["git", "--git-dir", str(histories / site / "repo"), *words]
    return subprocess.run(command, input=told, stdout=subprocess.PIPE, check=True).stdout


def fill_includes(body: bytes, path: str, files: Mapping[str, bytes], depth: int = 0) -> bytes:
    """A page with its server-side includes."""
    if depth >= DEEPEST:
        return body

    def included(match: re.Match[bytes]) -> bytes:
        target = urljoin(f"/{path}", match[1].decode("latin-1")).lstrip("/")
        return fill_includes(files.get(target, b""), target, files, depth + 1)

    return _INCLUDE.sub(included, body)[:MOST_BYTES]


def read_page(url: str, body: bytes, links: LinkResolver) -> _Read:
    headers = (("content-type", "text/html"),)
    host = url.split("/")[2]
    result = parse_outcome(
        FetchTask(1, host, url, "page"),
        FetchResponse(url, "page", 200, headers, body, NOW_S, NOW_S, "127.0.0.1"),
        links,
    )
    if not isinstance(result, FetchSuccess) or result.content is None:
        raise SystemExit(f"{url} was not read as a page")
    page = parse_page(decode_page(body, "text/html").text)
    base = (resolve(page.base, url) if page.base else None) or url
    form = normal_form(page.main)
    content = result.content
    stored = unpack_page(content.stored) or StoredPage(url)
    known = KnownPage(url, stored, page.text, fingerprint_form(form), build_sketch(shingle_form(form)), content)
    hrefs = [(resolve(link.href, base), link.text) for link in page.links]
    leads_to = (resolve(page.refresh[1], base) or "") if page.refresh else ""
    return _Read(known, tuple((href, text) for href, text in hrefs if href), leads_to, not content.objections)


def _followed(href: str, read: Mapping[str, _Read]) -> str:
    """The page that a link leads to in the end; empty if it is none of these."""
    for _ in range(DEEPEST):
        plain = href.partition("#")[0].replace("https://", "http://", 1)
        found = next((plain + tail for tail in _TAILS if plain + tail in read), "")
        if not found or not read[found].leads_to:
            return found
        href = read[found].leads_to
    return ""


def _named(pages: Sequence[KnownPage]) -> list[KnownPage]:
    """The pages under unique names."""
    bearers = Counter((page.host, page.stored.title) for page in pages)
    return [page._replace(stored=_called(page.stored, bearers[page.host, page.stored.title])) for page in pages]


def _called(stored: StoredPage, bearers: int) -> StoredPage:
    return stored._replace(title=choose_title(stored.title, stored.headings, bearers))
