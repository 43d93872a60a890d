"""Documentation versions: which pages are one page of several releases, and which release is the newest.

A manual that is published for every release repeats each page: ``/docs/2.8/setup``, ``/docs/3.0/setup``,
``/docs/setup``. Their texts differ too much to be copies. Pages of one *family* have the same host, title and path,
apart from one folder that names a release, and release numbers in the title. Other numbers (rooms, articles, days) are
ignored: a plain number counts only as the first folder, or after a folder such as ``docs``.

A page is found by ``version:`` under the name of that folder (``release-2.8.1``), its number (``2.8.1``) and each
shorter one (``2.8``, ``2``). Some sites write folders without dots, so ``2.8`` also means ``28``.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xxhash

from vedette.model import origin_of
from vedette.policy import Floats

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
_INDEX = re.compile(r"(?:^|(?<=/))index(?:\.html?|\.php)?$")
_ENDING = re.compile(r"(?:\.html?|\.php)$")
_DIGITS = 1000.0
_PRECISION = 4e-7  # releases are stored as 32-bit numbers
# Numbers in titles that only say which release a page belongs to; others ("Room 12") tell pages apart.
_TITLE_NUMBER = re.compile(
    r"\bv?\d+(?:\.(?:\d+|x))+(?:[.-]?(?:a|alpha|b|beta|dev|post|rc)[.-]?\d*)?\b", re.ASCII | re.IGNORECASE
)
_NAMED = re.compile(r"(?<![\w.])v?(\d+(?:\.(?:\d+|x))*)(?![\w.]*\w)", re.ASCII | re.IGNORECASE)
MAX_NAMED = 4
# A page without a release in its path belongs to the current one; unreleased versions come last.
PRESENT, UNRELEASED = 1e6, -1.0


class VersionKey(NamedTuple):
    """The family of a page, as a number above 0, and its release as a number that grows with it."""

    family: int
    release: float


NO_VERSION = VersionKey(0, 0.0)


class PathVersion(NamedTuple):
    """A URL's path without its release; the release as a number; and its label, empty if the path names none."""

    path: str
    release: float
    label: str


def version_key_of(url: str, title: str) -> VersionKey:
    """Return the family and the release of a page.

    >>> old = version_key_of("http://a.example/2.8/setup.html", "Setup (2.8)")
    >>> new = version_key_of("http://a.example/setup", "Setup (3.0)")
    >>> old.family == new.family, old.release < new.release
    (True, True)
    """
    path, release, _ = split_version(url)
    text = f"{origin_of(url).host.removeprefix('www.')}/{path}\n{_TITLE_NUMBER.sub('', title)}"
    return VersionKey(xxhash.xxh32_intdigest(text.encode("utf-8", "replace")) or 1, release)


def list_version_names(url: str) -> list[str]:
    """List the values of ``version:`` that match a URL.

    >>> list_version_names("http://a.example/docs/release-2.8.1/setup"), list_version_names("http://a.example/setup")
    (['release-2.8.1', '2.8.1', '2.8', '2'], [])
    """
    label = split_version(url).label
    numbers = [number.split(".") for number in find_releases(label.replace("-", " ").replace("_", " "))]
    shorter = [".".join(parts[:count]) for parts in numbers for count in range(len(parts), 0, -1)]
    return list(dict.fromkeys([label, *shorter])) if label else []


def find_releases(query: str) -> tuple[str, ...]:
    """Find the numbers in a query that may name a release.

    >>> find_releases("setup 2.8"), find_releases("python v3 asyncio"), find_releases("b2b 1.2.3.")
    (('2.8',), ('3',), ('1.2.3',))
    """
    return tuple(dict.fromkeys(found.lower() for found in _NAMED.findall(query)))[:MAX_NAMED]


def list_spellings(version: str) -> tuple[str, ...]:
    """List the names of folders that a version may have: as written, and without dots.

    >>> list_spellings("0.10.2"), list_spellings("v2")
    (('0.10.2', '0102'), ('v2',))
    """
    joined = version.replace(".", "")
    return (version, joined) if version != joined and _PLAIN.fullmatch(joined) else (version,)


def match_releases(releases: Floats, named: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Check which releases a query names: with "2.8" it names 2.8 and 2.8.1, but not 2.80.

    >>> match_releases(np.array([2.008, 2.008001, 2.08, 3.0]), ["2.8"]).tolist()
    [True, True, False, False]
    """
    is_named = np.zeros(len(releases), np.bool_)
    for number in named:
        parts = [part for part in number.split(".") if part.isdecimal()][:3]
        first, width = _to_number(parts), _DIGITS ** (1 - len(parts))
        is_named |= (releases > first - _PRECISION) & (releases < first + width - _PRECISION)
        for joined in list_spellings(number)[1:]:
            is_named |= np.abs(releases - _read_plain(joined)) < _PRECISION
    return is_named


def split_version(url: str) -> PathVersion:
    """Split the path of a URL (without its first slash) into the path without its release, and the release.

    >>> split_version("http://a.example/docs/v2.8/setup.html")
    PathVersion(path='docs/setup', release=2.008, label='v2.8')
    >>> split_version("http://a.example/rooms/12/plan")
    PathVersion(path='rooms/12/plan', release=1000000.0, label='')
    """
    path, mark, query = url.partition("://")[2].partition("/")[2].partition("#")[0].partition("?")
    path = _ENDING.sub("", _INDEX.sub("", path))
    *folders, page = path.split("/")
    for at, folder in enumerate(folders):
        is_home = not page and at == len(folders) - 1  # "/12/" may be anything, "/12/setup" less so
        read = _read_release(folder.lower(), folders[at - 1].lower() if at else "?" * is_home)
        if read is not None:
            left, release = read
            kept = [*folders[:at], *([left] if left else []), *folders[at + 1 :], page]
            return PathVersion(f"{'/'.join(kept).rstrip('/')}{mark}{query}", release, folder.lower())
    return PathVersion(f"{path.rstrip('/')}{mark}{query}", PRESENT, "")


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
        return "", _read_plain(folder)
    return None


def _read_plain(folder: str) -> float:
    """Parse a release without dots: 0100 means 0.1.0.0 or the like, which is older than 10."""
    return _to_number(list(folder) if folder.startswith("0") else [folder])


def _to_number(parts: list[str]) -> float:
    return sum(float(part if part.isdecimal() else "999") / _DIGITS**place for place, part in enumerate(parts[:4]))
