"""What is kept of a page's text beside the index: enough to show it as a result, and to index it again.

It is packed where the page is read, and travels as bytes from there to the file in which it stays.
"""

import json
from typing import NamedTuple

import zstandard

__all__ = ["Stored", "pack", "unpack"]

LEVEL = 1
MOST_BYTES = 64 << 20


class Stored(NamedTuple):
    """A page as it was read: its author's words, and what is known of them.

    ``kind`` is a file type ("html", "pdf"), ``marks`` what its owner wishes ("nosnippet", "max-snippet:80",
    "noarchive"), ``published_s`` what it says of its own date.
    """

    url: str
    title: str = ""
    description: str = ""
    headings: tuple[str, ...] = ()
    body: str = ""
    kind: str = "html"
    language: str = ""
    published_s: float | None = None
    marks: str = ""


def pack(stored: Stored) -> bytes:
    """As bytes.

    >>> unpack(pack(Stored("http://example.org/", title="Home", headings=("One", "Two")))).headings
    ('One', 'Two')
    """
    text = json.dumps(stored, ensure_ascii=False, separators=(",", ":"))
    return zstandard.compress(text.encode("utf-8", "replace"), LEVEL)


def unpack(blob: bytes) -> Stored | None:
    """What was packed; None where the bytes are damaged."""
    try:
        url, title, description, headings, *rest = json.loads(zstandard.decompress(blob, max_output_size=MOST_BYTES))
        return Stored(url, title, description, tuple(headings), *rest)
    except (zstandard.ZstdError, ValueError, TypeError):
        return None
