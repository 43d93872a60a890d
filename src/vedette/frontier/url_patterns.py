"""Which URLs of a host are of one kind, by their spelling; and which spellings nobody writes on purpose.

A *pattern* stands for all URLs of a host that a machine seems to write in the same way: ``/product/*#`` for
``/product/blue-kettle-731``. What holds for some of them probably holds for the rest, so budgets are kept per pattern.
The rules look at the shape of a segment only; no name is known to be good or bad.

- a segment of digits, of digits with separators (dates, versions) or of long hexadecimal is ``#``;
- the last segment is ``*``, or ``*#`` if it has digits, and keeps a short file ending;
- the first two folders keep their names, deeper ones are ``*`` or ``*#``, and beyond six segments all are one;
- of the query only the names of its parameters count, in alphabetical order.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise

__all__ = ["coarse", "is_doubtful", "parameters_of", "pattern_of", "shape_refusal"]

LONGEST_URL = 2_000
DOUBTFUL_URL = 300
MOST_SEGMENTS = 25
DOUBTFUL_SEGMENTS = 10
MOST_PARAMETERS = 40
DOUBTFUL_PARAMETERS = 6
SAME_SEGMENT_MOST = 4

NAMED_FOLDERS = 2
DEEPEST = 6
LONGEST_NAME = 24
MOST_NAMES = 8

_NUMBER = re.compile(r"[0-9](?:[0-9]|[-._:,](?=[0-9]))*+\Z|(?=[a-f-]*[0-9])[0-9a-f-]{8,}+\Z", re.ASCII | re.IGNORECASE)
_DIGIT = re.compile(r"[0-9]")
_DIGITS = re.compile(r"[0-9]+")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_ENDING = re.compile(r"\.[A-Za-z]{1,5}\Z")
_CYCLE = re.compile(r"((?:/[^/]++){1,4})\1{2}(?=/|\Z)")


def pattern_of(url: str) -> str:
    """The pattern of an absolute URL on its host; at most a few hundred characters.

    >>> pattern_of("https://example.org/news/2026/11/15/a-long-night"), pattern_of("https://example.org/about.html")
    ('/news/#/#/#/*', '/*.html')
    >>> pattern_of("https://example.org/shop/list?sort=price&page=7"), pattern_of("https://example.org/")
    ('/shop/*?page&sort', '/')
    """
    return _pattern(url[:LONGEST_URL])


@lru_cache(maxsize=4096)  # the page on which a batch of links was found is asked for with each of them
def _pattern(url: str) -> str:
    address, mark, query = url.partition("?")
    pattern = _path_pattern(_path(address).split("/", DEEPEST))
    return f"{pattern}?{_names(query)}" if mark else pattern


def _path(address: str) -> str:
    """What follows the first slash after the host."""
    return address.partition("://")[2].partition("/")[2]


def _path_pattern(segments: list[str]) -> str:
    end = ""
    if len(segments) > DEEPEST:
        segments, end = segments[:DEEPEST], "/…"
    elif not segments[-1]:
        segments, end = segments[:-1], "/"
        if not segments:
            return "/"
    *folders, last = segments
    parts = [
        name if place < NAMED_FOLDERS and len(name) <= LONGEST_NAME and name.isalpha() else _shape(name, place)
        for place, name in enumerate(folders)
    ]
    return "/" + "/".join([*parts, _last(last)]) + end


def _shape(name: str, place: int) -> str:
    """What stands for a folder."""
    if name.isdigit() or _NUMBER.match(name):
        return "#"
    if "%" in name:
        name = _ESCAPE.sub("", name)
    if _DIGIT.search(name):
        return "*#"
    return name if place < NAMED_FOLDERS and len(name) <= LONGEST_NAME else "*"


def _last(name: str) -> str:
    """What stands for the last segment."""
    ending = _ENDING.search(name)
    tail = ""
    if ending:
        name, tail = name[: ending.start()], ending[0]
    return _shape(name, NAMED_FOLDERS) + tail


def _names(query: str) -> str:
    """The names of parameters, each once; numbers in them are folded, and what goes beyond a few is left out."""
    pieces = query.split("&", MOST_PARAMETERS)
    names = {_DIGITS.sub("#", piece.partition("=")[0][:LONGEST_NAME]) for piece in pieces}
    return "&".join(sorted(names)[:MOST_NAMES])


def parameters_of(pattern: str) -> str:
    """The pattern of all URLs with the same parameters, whatever their path; empty where there are none.

    >>> parameters_of("/shop/*?page&sort"), parameters_of("/shop/*")
    ('?page&sort', '')
    """
    return "?" + pattern.partition("?")[2] if "?" in pattern else ""


def coarse(pattern: str) -> str:
    """A pattern without names: the one to which others are folded where a host has too many.

    >>> coarse("/news/sport/#/*?page&sort"), coarse("/")
    ('/*/*/#/*?', '/')
    """
    path, mark, _ = pattern.partition("?")
    return "/".join(part if part in {"", "#", "…"} else "*" for part in path.split("/")) + mark


def shape_refusal(url: str) -> str | None:
    """Why nobody should ask for a URL that is spelled like this; None for nearly all.

    >>> shape_refusal("https://example.org/a/b/a/b/a/b/")
    'the same folders again and again: /a/b'
    >>> shape_refusal("https://example.org/a/b/a/c")
    """
    if len(url) > LONGEST_URL:
        return f"{len(url)} characters are more than {LONGEST_URL}"
    address, _, query = url.partition("?")
    if query.count("&") >= MOST_PARAMETERS:
        return f"{query.count('&') + 1} parameters are more than {MOST_PARAMETERS}"
    if address.count("/") < 5:  # two of them are the scheme's, so no folder can come three times
        return None
    return _folders_refusal("/" + _path(address))


def _folders_refusal(path: str) -> str | None:
    segments = [segment for segment in path.split("/") if segment]
    if len(segments) > MOST_SEGMENTS:
        return f"{len(segments)} folders deep, more than {MOST_SEGMENTS}"
    for cycle in _CYCLE.finditer(path):
        if not _is_dated(cycle[1]):
            return f"the same folders again and again: {cycle[1][:100]}"
    name, times = Counter(segments).most_common(1)[0] if segments else ("", 0)
    return f"the folder {name[:100]} {times} times" if times > SAME_SEGMENT_MOST and not _is_dated(name) else None


def _is_dated(folders: str) -> bool:
    """Whether folders are numbers only, of which a date or a map tile may have the same one several times."""
    return folders.replace("/", "").isdigit()


def is_doubtful(url: str) -> bool:
    """Whether a URL looks more like a trap than most: very long, very deep, a folder twice in a row, many parameters.

    >>> is_doubtful("https://example.org/north/north/"), is_doubtful("https://example.org/2026/11/11/")
    (True, False)
    """
    if len(url) > DOUBTFUL_URL or url.count("&") >= DOUBTFUL_PARAMETERS:
        return True
    segments = url.partition("?")[0].split("/")[3:]
    if len(segments) > DOUBTFUL_SEGMENTS:
        return True
    return any(one == two and one.isalpha() for one, two in pairwise(segments))
