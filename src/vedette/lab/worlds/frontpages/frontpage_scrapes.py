"""Reads the scrapes of a recording of front pages out of its repository, on several processors where there are many.

All time of an import goes here: a year has more than a million scrapes, and a thousandth of a second goes into each.
What is wanted of a scrape is which addresses it shows. Nobody needs to read them, so each is kept as a number of 64
bits: that two among a million share one has a chance of three in a hundred million.
"""

import json
from collections.abc import Generator, Sequence
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
import xxhash

from vedette.lab.worlds.pools import pool_of, processors

if TYPE_CHECKING:
    import pygit2

__all__ = ["MARK", "read_scrapes", "shown"]

MARK = np.dtype("<u8")  # what stands for an address
MANY = 4000  # scrapes; for fewer, other processes are not worth their start
MOST_BYTES = 16 << 20  # of one scrape; the largest are a hundredth of that

Part = Sequence[bytes]
Read = list[bytes | None]


def read_scrapes(repository: "pygit2.Repository", parts: Sequence[Part], many: int = MANY) -> Generator[Read]:
    """What the blobs of each part show, part by part; None where the repository does not have one.

    Whoever does not read to the end closes it, so that no process goes on.
    """
    processes = processors()
    if processes == 1 or sum(map(len, parts)) < many:
        yield from (_read(repository, part) for part in parts)
        return
    with pool_of(processes) as pool:
        yield from pool.map(_read_there, repeat(repository.path), parts)


def shown(body: bytes) -> bytes:
    """The addresses of a page's articles as numbers, each once; none of anything that is not as it should be.

    What is behind ``#`` is a place on a page (the comments, mostly) and not another page.

    >>> page = b'{"articles": [{"url": "https://a.example/1"}, {"url": "https://a.example/1#comments"}, {"url": null}]}'
    >>> len(shown(page)) // MARK.itemsize, shown(b"{broken")
    (1, b'')
    """
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return b""
    articles = found.get("articles") if isinstance(found, dict) else None
    urls = [each.get("url") for each in articles if isinstance(each, dict)] if isinstance(articles, list) else []
    pages = (url.partition("#")[0] for url in urls if isinstance(url, str))
    marks = (xxhash.xxh3_64_intdigest(_encoded(page)) for page in pages if page)
    return np.array(list(dict.fromkeys(marks)), MARK).tobytes()


def _encoded(url: str) -> bytes:
    # JSON can spell half of a pair of surrogates, which UTF-8 cannot.
    return url.encode("utf-8", "surrogatepass")


def _read(repository: "pygit2.Repository", part: Part) -> Read:
    return [_scrape(repository, blob) for blob in part]


def _scrape(repository: "pygit2.Repository", blob: bytes) -> bytes | None:
    import pygit2

    try:
        found = repository[pygit2.Oid(raw=blob)]
    except (KeyError, OSError, ValueError, pygit2.GitError):
        return None
    if not isinstance(found, pygit2.Blob) or found.size > MOST_BYTES:
        return b""
    return shown(found.data)


def _read_there(path: str, part: Part) -> Read:
    return _read(_repository(path), part)


@cache
def _repository(path: str) -> "pygit2.Repository":
    import pygit2

    return pygit2.Repository(path)
