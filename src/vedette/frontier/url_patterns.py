"""URL patterns: which URLs of a host are of one kind, by their spelling, and which spellings look like traps.

A *pattern* is a name for all URLs of a host that seem to be generated in the same way: ``/product/*#`` for
``/product/blue-kettle-731``. What is true for some of them is probably true for the rest, so budgets are kept per
pattern. The rules use only the shape of a segment; no name is known to be good or bad.

- a segment of digits, of digits with separators (dates, versions) or of long hexadecimal is ``#``;
- the last segment is ``*``, or ``*#`` if it has digits, and keeps a short file ending;
- the first two folders keep their names, deeper ones are ``*`` or ``*#``, and beyond six segments all are one;
- only the names of query parameters count, in alphabetical order.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

MAX_URL_LENGTH = 2_000
SUSPICIOUS_LENGTH = 300
MAX_SEGMENTS = 25
SUSPICIOUS_SEGMENTS = 10
MAX_PARAMETERS = 40
SUSPICIOUS_PARAMETERS = 6
MAX_SAME_SEGMENT = 4

NAMED_FOLDERS = 2
MAX_DEPTH = 6
MAX_NAME_LENGTH = 24
MAX_NAMES = 8

_NUMBER = re.compile(r"[0-9](?:[0-9]|[-._:,](?=[0-9]))*+\Z|(?=[a-f-]*[0-9])[0-9a-f-]{8,}+\Z", re.ASCII | re.IGNORECASE)
_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9]+")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ENDING = re.compile(r"\.[A-Za-z]{1,5}\Z")
_MONTH = re.compile(r"(?<![0-9])([12][0-9]{3}|[1-9][0-9]{0,2})[^0-9]{1,8}([0-9]{1,2})(?![0-9])")
_UNNAMED = frozenset({"", "#", "*", "*#"})
_CYCLE = re.compile(r"((?:/[^/]++){1,4})\1{2}(?=/|\Z)")


@lru_cache(maxsize=4096)  # the page on which a batch of links was found is passed with each of them
def url_to_pattern(url: str) -> str:
    """Return the URL pattern of an absolute URL on its host; at most a few hundred characters.

    >>> url_to_pattern("https://example.org/news/2026/11/15/a-long-night"), url_to_pattern("https://example.org/about.html")
    ('/news/#/#/#/*', '/*.html')
    >>> url_to_pattern("https://example.org/shop/list?sort=price&page=7"), url_to_pattern("https://example.org/")
    ('/shop/*?page&sort', '/')
    """
    address, mark, query = url[:MAX_URL_LENGTH].partition("?")
    pattern = _generalize_path(_extract_path(address).split("/", MAX_DEPTH))
    return f"{pattern}?{_join_parameters(query)}" if mark else pattern


def _extract_path(address: str) -> str:
    """Return the path of a URL: everything after the first slash after the host."""
    return address.partition("://")[2].partition("/")[2]


def _generalize_path(segments: list[str]) -> str:
    end = ""
    if len(segments) > MAX_DEPTH:
        segments, end = segments[:MAX_DEPTH], "/…"
    elif not segments[-1]:
        segments, end = segments[:-1], "/"
        if not segments:
            return "/"
    *folders, last = segments
    parts = [
        name
        if place < NAMED_FOLDERS and len(name) <= MAX_NAME_LENGTH and name.isalpha()
        else _generalize_segment(name, place)
        for place, name in enumerate(folders)
    ]
    return "/" + "/".join([*parts, _generalize_last(last)]) + end


def _generalize_segment(name: str, place: int) -> str:
    """Generalize a folder of a URL path to its segment in a URL pattern."""
    if name.isdigit() or _NUMBER.match(name):
        return "#"
    if "%" in name:
        name = _ESCAPE.sub("", name)
    if _DIGIT.search(name):
        return "*#"
    return name if place < NAMED_FOLDERS and len(name) <= MAX_NAME_LENGTH else "*"


def _generalize_last(name: str) -> str:
    """Generalize the last segment of a URL path to its segment in a URL pattern."""
    ending = _ENDING.search(name)
    tail = ""
    if ending:
        name, tail = name[: ending.start()], ending[0]
    return _generalize_segment(name, NAMED_FOLDERS) + tail


def _join_parameters(query: str) -> str:
    """Join the names of URL parameters for a URL pattern, each once, digits folded, at most a few."""
    pieces = query.split("&", MAX_PARAMETERS)
    names = {_DIGITS.sub("#", _name_parameter(piece)) for piece in pieces}
    return "&".join(sorted(names)[:MAX_NAMES])


def _name_parameter(piece: str) -> str:
    """Return the name of a URL parameter; a path or file name is a value."""
    name, mark, _ = piece.partition("=")
    return name[:MAX_NAME_LENGTH] if mark or not ("/" in name or "." in name) else "*"


def to_parameter_pattern(pattern: str) -> str:
    """Return the pattern of all URLs with the same parameters, whatever their path; empty for none.

    >>> to_parameter_pattern("/shop/*?page&sort"), to_parameter_pattern("/shop/*")
    ('?page&sort', '')
    """
    return "?" + pattern.partition("?")[2] if "?" in pattern else ""


def pattern_to_family(pattern: str) -> str:
    """Return the family of a URL pattern: all pages below the same first folder; empty for those below none.

    >>> pattern_to_family("/browse/north/*/"), pattern_to_family("/*.html")
    ('below /browse/', '')
    """
    folder, slash, rest = pattern[1:].partition("/")
    return f"below /{folder}/" if slash and folder not in _UNNAMED and "?" not in rest else ""


def url_to_family(url: str) -> str:
    """Return the family of a URL; the page of its first folder also belongs to it.

    >>> url_to_family("https://example.org/browse/"), url_to_family("https://example.org/about")
    ('below /browse/', '')
    """
    folder, slash, rest = _extract_path(url[:MAX_URL_LENGTH]).partition("/")
    return pattern_to_family(f"/{_generalize_segment(folder, 0)}/") if slash and "?" not in rest else ""


def extract_child(url: str, parent: str) -> str:
    """Return the name that a URL adds to the folder of the linking page; empty if it adds no single one.

    >>> extract_child("https://example.org/browse/north/south/", "https://example.org/browse/north/")
    'south'
    """
    if not parent.endswith("/") or not url.startswith(parent) or "?" in url:
        return ""
    name = url[len(parent) :].removesuffix("/")
    return "" if "/" in name else name


def is_calendar_step(url: str, other: str) -> bool:
    """Check whether two URLs have the same form and name neighboring months.

    >>> is_calendar_step("https://example.org/cal/2027/1", "https://example.org/cal/2026/12")
    True
    >>> is_calendar_step("https://example.org/page/3", "https://example.org/page/2")
    False
    """
    if _DIGITS.sub("#", url) != _DIGITS.sub("#", other):
        return False
    months = [
        {int(year) * 12 + int(month) for year, month in _MONTH.findall(one[:MAX_URL_LENGTH]) if 1 <= int(month) <= 12}
        for one in (url, other)
    ]
    return any(abs(one - two) == 1 for one in sorted(months[0]) for two in sorted(months[1]))


def coarsen(pattern: str) -> str:
    """Coarsen a URL pattern to one without names, for hosts that have too many patterns.

    >>> coarsen("/news/sport/#/*?page&sort"), coarsen("/")
    ('/*/*/#/*?', '/')
    """
    path, mark, _ = pattern.partition("?")
    return "/".join(part if part in {"", "#", "…"} else "*" for part in path.split("/")) + mark


def check_shape(url: str) -> str | None:
    """Check the spelling of a URL: why it must be a trap, such as repeated folders; None for nearly all.

    >>> check_shape("https://example.org/a/b/a/b/a/b/")
    'the same folders again and again: /a/b'
    >>> check_shape("https://example.org/a/b/a/c")
    """
    if len(url) > MAX_URL_LENGTH:
        return f"{len(url)} characters are more than {MAX_URL_LENGTH}"
    address, _, query = url.partition("?")
    if query.count("&") >= MAX_PARAMETERS:
        return f"{query.count('&') + 1} parameters are more than {MAX_PARAMETERS}"
    if address.count("/") < 5:  # two of them are the scheme's, so no folder can occur three times
        return None
    return _check_folders("/" + _extract_path(address))


def _check_folders(path: str) -> str | None:
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MAX_SEGMENTS:
        return f"{len(segments)} folders deep, more than {MAX_SEGMENTS}"
    for cycle in _CYCLE.finditer(path):
        if not _is_numeric(cycle[1]):
            return f"the same folders again and again: {cycle[1][:100]}"
    name, times = Counter(segments).most_common(1)[0] if segments else ("", 0)
    return f"the folder {name[:100]} {times} times" if times > MAX_SAME_SEGMENT and not _is_numeric(name) else None


def _is_numeric(folders: str) -> bool:
    """Check whether folders of a URL are all numeric, which may repeat in a date or a map tile."""
    return folders.replace("/", "").isdigit()


def is_suspicious(url: str) -> bool:
    """Check whether a URL seems to be a trap: very long, very deep, a folder twice in a row, or many parameters.

    >>> is_suspicious("https://example.org/north/north/"), is_suspicious("https://example.org/2026/11/11/")
    (True, False)
    """
    if len(url) > SUSPICIOUS_LENGTH or url.count("&") >= SUSPICIOUS_PARAMETERS:
        return True
    segments = url.partition("?")[0].split("/")[3:]
    if len(segments) > SUSPICIOUS_SEGMENTS:
        return True
    return any(one == two and one.isalpha() for one, two in pairwise(segments))
