"""What is kept of a page's text beside the index: enough to show it as a result, and to index it again.

It is packed where the page is read, and travels as bytes from there to the file in which it stays.
"""

import json
from typing import NamedTuple

import zstandard

LEVEL = 1
BODY = "\0"  # begins the body; there is none in JSON, and a body is long, so it stays as it is
MAX_BYTES = 64 << 20


class StoredPage(NamedTuple):
    """A page as it was read: its author's words, and what is known of them.

    ``kind`` is a file type ("html", "pdf"), ``marks`` what its owner wishes ("nosnippet", "max-snippet:80",
    "noarchive"), ``published_s`` what it says of its own date. ``is_plain`` is what ``snippets.tidied`` said of the
    body, where it was asked.
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
    is_plain: bool | None = None


def pack_page(stored: StoredPage) -> bytes:
    """As bytes.

    >>> unpack_page(pack_page(StoredPage("http://example.org/", title="Home", headings=("One", "Two")))).headings
    ('One', 'Two')
    """
    text = json.dumps(stored._replace(body=""), ensure_ascii=False, separators=(",", ":"))
    return zstandard.compress(f"{text}{BODY}{stored.body}".encode("utf-8", "replace"), LEVEL)


def unpack_page(blob: bytes) -> StoredPage | None:
    """What was packed; None where the bytes are damaged."""
    try:
        head, _, body = zstandard.decompress(blob, max_output_size=MAX_BYTES).decode().partition(BODY)
        url, title, description, headings, _, *rest = json.loads(head)
        return StoredPage(url, title, description, tuple(headings), body, *rest)
    except (zstandard.ZstdError, ValueError, TypeError):
        return None
