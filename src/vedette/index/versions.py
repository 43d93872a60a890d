"""Documentation versions: which pages are one page of several releases, and which release is the newest.

A manual that is published for every release repeats each page: ``/docs/2.8/setup``, ``/docs/3.0/setup``,
``/docs/setup``. Their texts differ too much to be copies. Pages of one *family* have the same host, title and path,
apart from one folder that names a release. Other numbers (rooms, articles, days) are ignored: a plain number counts
only as the first folder, or after a folder such as ``docs``, and the title must be the same.
"""

import re
from typing import NamedTuple

import xxhash

from vedette.model import origin_of

_DOTTED = re.compile(r"(?P<before>(?:[a-z][a-z_-]*)?)(?P<number>\d+(?:\.(?:\d+|x))+)(?P<after>[a-z0-9._-]*)", re.ASCII)
_PREFIXED = re.compile(r"v(?P<number>\d{1,4})", re.ASCII)
_PLAIN = re.compile(r"(?!(?:19|20)\d\d$)\d{1,4}", re.ASCII)
_MANUALS = frozenset(
    (
        "api",
        "doc",
        "docs",
        "documentation",
        "guide",
        "manual",
        "reference",
        "release",
        "releases",
        "version",
        "versions",
    )
)
_NEWEST = frozenset(("current", "latest", "stable"))
_UNRELEASED = frozenset(("dev", "devel", "edge", "main", "master", "next", "nightly", "snapshot", "trunk", "unstable"))
_ENDING = re.compile(r"(?:/|/index)?(?:\.html?|\.php)?/?$")
_DIGITS = 1000.0
# A page without a release in its path belongs to the current one; unreleased versions come last.
PRESENT, UNRELEASED = 1e6, -1.0


class VersionKey(NamedTuple):
    """The family of a page, as a number above 0, and its release as a number that grows with it."""

    family: int
    release: float


NO_VERSION = VersionKey(0, 0.0)


def version_key_of(url: str, title: str) -> VersionKey:
    """Return the family and the release of a page.

    >>> old = version_key_of("http://a.example/2.8/setup.html", "Setup")
    >>> new = version_key_of("http://a.example/setup", "Setup")
    >>> old.family == new.family, old.release < new.release
    (True, True)
    """
    origin = origin_of(url)
    path, release = split_release(url.partition("://")[2].partition("/")[2].partition("#")[0])
    text = f"{origin.host.removeprefix('www.')}/{path}\n{title}"
    return VersionKey(xxhash.xxh32_intdigest(text.encode("utf-8", "replace")) or 1, release)


def split_release(path: str) -> tuple[str, float]:
    """Split a path (without its first slash) into the path without its release, and the release.

    >>> split_release("docs/2.8/setup.html"), split_release("0100/documentation.html"), split_release("rooms/12/plan")
    (('docs/setup', 2.008), ('documentation', 0.001), ('rooms/12/plan', 1000000.0))
    """
    path, mark, query = path.partition("?")
    path = _ENDING.sub("", path)
    *folders, page = path.split("/")
    for at, folder in enumerate(folders):
        read = _read_release(folder.lower(), folders[at - 1].lower() if at else "")
        if read is not None:
            left, release = read
            kept = [*folders[:at], *([left] if left else []), *folders[at + 1 :], page]
            return f"{'/'.join(kept)}{mark}{query}", release
    return f"{path}{mark}{query}", PRESENT


def _read_release(folder: str, before: str) -> tuple[str, float] | None:
    """Parse a folder's name as a release: the rest of the name without it, and the release."""
    if folder in _NEWEST:
        return "", PRESENT
    if folder in _UNRELEASED:
        return "", UNRELEASED
    if found := _DOTTED.fullmatch(folder):
        return found["before"].strip("-_v"), _to_number(found["number"].split("."))
    if found := _PREFIXED.fullmatch(folder):
        return "", _to_number([found["number"]])
    if _PLAIN.fullmatch(folder) and (not before or before in _MANUALS):
        # Written without dots, 0100 means 0.1.0.0 or the like, which is older than 10.
        return "", _to_number(list(folder) if folder.startswith("0") else [folder])
    return None


def _to_number(parts: list[str]) -> float:
    return sum(float(part if part.isdecimal() else "999") / _DIGITS**place for place, part in enumerate(parts[:4]))
