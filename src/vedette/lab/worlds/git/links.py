"""Resolve links of a git history: which page of the world each URL means.

A URL is resolved as a browser would, and then as the server of such a folder would: ``a/index.html`` is ``a/``, and
``a`` is ``a/`` or ``a.html`` if it is no page itself. In a world of sources ``a``, ``a/``, ``a.html`` and ``a.md`` are
one, as a link may be written for the source or for its build. Query and fragment are ignored.

Absolute URLs lead here if they name the world's own host. It is not declared, so it is detected: the host of most URLs
that match pages here, if at least a quarter of those with that host do (the others may be served from elsewhere). Its
``www.`` twin is the same.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from vedette.lab.worlds.git.paths import is_host, page_for_path

NO_PAGE = -1
MIN_HOST_LINKS = 3  # matching URLs that make a host the world's own
MAX_URL_LENGTH = 4000
_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_SOURCE_SUFFIXES = (".md", ".rst", ".markdown", ".txt")


class _ParsedHref(NamedTuple):
    """A link of a git page as written: its host (None: that of the page) and its path, without query and fragment."""

    host: str | None
    path: str


class LinkIndex:
    """Index of all pages that a git history ever had, by name, to resolve links; pages are numbered in given order."""

    def __init__(self, pages: Sequence[str], host: str = "") -> None:
        self._numbers = {page: number for number, page in enumerate(pages)}
        self._host = _normalize_host(host)

    def resolve(self, written: str, page: str) -> int:
        """Resolve a link written on a git page to the number of the page it means; ``NO_PAGE`` if none.

        >>> links = LinkIndex(["", "a/", "a/b.html", "c.md"], "www.example.org")
        >>> [links.resolve(written, "a/b.html") for written in ("../", ".", "b.html?x#y", "/c", "http://example.org/a")]
        [0, 1, 2, 3, 1]
        """
        address = _parse_href(written)
        if address is None or (address.host is None and not address.path):
            return NO_PAGE
        first, slash, rest = page.partition("/")
        root = first + slash if slash and is_host(first) else ""
        folder = (rest if root else page).rpartition("/")[0]
        if address.host is not None:
            if _normalize_host(address.host) not in (self._host, _normalize_host(first if root else "")):
                return self.find_page(address.path, f"{address.host}/")
            folder = ""
        path = address.path if address.path.startswith("/") or not folder else f"{folder}/{address.path}"
        return self.find_page(path, root)

    def find_page(self, path: str, root: str = "") -> int:
        """Find the git page that a link's path below a root means."""
        plain = root + _normalize_path(path)
        for tried in _candidate_names(plain):
            if (number := self._numbers.get(page_for_path(tried)[0])) is not None:
                return number
        return NO_PAGE


def detect_own_host(written: Iterable[str], pages: Sequence[str]) -> str:
    """Detect the own host of a git world from its pages' absolute links; empty if there is none.

    >>> detect_own_host([f"https://example.org/{name}.html" for name in "abcde"], ["", "a.html", "b.html", "c.html"])
    'example.org'
    """
    links = LinkIndex(pages)
    found: dict[str, int] = {}
    named: dict[str, int] = {}
    for one in written:
        address = _parse_href(one) if "//" in one[:8] else None
        if address is None or not address.host or address.path in ("", "/", "/index.html"):
            continue
        named[address.host] = named.get(address.host, 0) + 1
        found[address.host] = found.get(address.host, 0) + (links.find_page(address.path) != NO_PAGE)
    most = sorted(
        (-count, host) for host, count in found.items() if count >= MIN_HOST_LINKS and 4 * count >= named[host]
    )
    return most[0][1] if most else ""


def _parse_href(written: str) -> _ParsedHref | None:
    """Parse a link of a git page without query and fragment; None if it cannot be fetched (``mailto:``)."""
    address = written.strip().partition("#")[0].partition("?")[0]
    scheme, colon, rest = address.partition(":")
    if colon and "/" not in scheme:
        if scheme.lower() not in ("http", "https") or not rest.startswith("//"):
            return None
        address = rest
    if len(address) > MAX_URL_LENGTH:
        return None
    if address.startswith("//"):
        host, _, path = address[2:].partition("/")
        return _ParsedHref(host.lower().rpartition("@")[2].partition(":")[0], f"/{path}")
    return _ParsedHref(None, address)


def _normalize_host(host: str) -> str:
    return host.lower().removeprefix("www.")


def _normalize_path(path: str) -> str:
    """Normalize a link's path: no dot segments, percent escapes or leading slash."""
    decoded = unquote_to_bytes(path).decode(errors="surrogateescape") if "%" in path else path
    parts: list[str] = []
    for part in decoded.split("/"):
        if part == "..":
            parts[-1:] = []
        elif part not in (".", ""):
            parts.append(part)
    folder = decoded.endswith(("/", "/.", "/..")) or decoded in (".", "..")
    return "/".join(parts) + ("/" if folder and parts else "")


def _candidate_names(path: str) -> Iterable[str]:
    """Return the names of git pages that a link's path may mean, best first."""
    yield path
    stem = path.rstrip("/")
    if not path.endswith("/"):
        yield f"{path}/"
        yield f"{path}.html"
    for ending in _HTML_SUFFIXES:
        stem = stem.removesuffix(ending)
    if stem:
        yield from (stem + ending for ending in _SOURCE_SUFFIXES)
        yield f"{stem}/"
