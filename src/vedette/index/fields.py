"""What is indexed and stored of a page: its words by field, its title, and the text for snippets.

A page is turned into words, and words into a document of the index. The stored text is packed where the page is parsed,
and stays packed on its way to its file.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import zstandard

from vedette.index.versions import list_version_names
from vedette.model import origin_of
from vedette.text import hash_words, normalize_words

LEVEL = 1
BODY = "\0"  # starts the body; JSON cannot contain it, and a body is long, so it is stored as it is
MAX_BYTES = 64 << 20
HEAD_CHARACTERS = 16_384  # that surely have the URL
_DECODER = json.JSONDecoder()


class StoredPage(NamedTuple):
    """A parsed page: its author's words and metadata.

    ``kind`` is a file type ("html", "pdf", "docx"), ``marks`` are its owner's directives ("nosnippet",
    "max-snippet:80", "noarchive"), ``published_s`` is its stated date. ``is_plain`` is the result of
    ``snippets.tidy_text`` for the body, if it was called. ``anchors`` has the id of each heading, empty if it has none,
    None if the heading is not in the body.
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
    anchors: tuple[str | None, ...] = ()


def pack_page(stored: StoredPage) -> bytes:
    """Pack the page as bytes.

    >>> unpack_page(pack_page(StoredPage("http://example.org/", title="Home", headings=("One", "Two")))).headings
    ('One', 'Two')
    """
    text = json.dumps(stored._replace(body=""), ensure_ascii=False, separators=(",", ":"))
    return zstandard.compress(f"{text}{BODY}{stored.body}".encode("utf-8", "replace"), LEVEL)


def unpack_page(blob: bytes, by: zstandard.ZstdDecompressor | None = None) -> StoredPage | None:
    """Unpack a page; None if the bytes are damaged.

    Making a decompressor takes longer than most pages; a caller that has only one thread can pass its own.
    """
    try:
        head, _, body = _decompress(blob, by).decode().partition(BODY)
        url, title, description, headings, _, *rest = json.loads(head)
        page = StoredPage(url, title, description, tuple(headings), body, *rest)
        return page._replace(anchors=tuple(page.anchors))
    except (zstandard.ZstdError, ValueError, TypeError):
        return None


def unpack_url(blob: bytes, by: zstandard.ZstdDecompressor | None = None) -> str:
    """Unpack only the URL of a page, which comes first; empty if the bytes are damaged.

    >>> unpack_url(pack_page(StoredPage("http://example.org/", title="Home"))), unpack_url(b"no page")
    ('http://example.org/', '')
    """
    try:
        head = _decompress(blob, by)[:HEAD_CHARACTERS].decode("utf-8", "replace")
        url, _ = _DECODER.raw_decode(head, 1)
    except (zstandard.ZstdError, ValueError):
        return ""
    return url if isinstance(url, str) else ""


def _decompress(blob: bytes, by: zstandard.ZstdDecompressor | None) -> bytes:
    """Decompress a page; a frame that states its size would ignore ``max_output_size``."""
    if zstandard.frame_content_size(blob) > MAX_BYTES:
        raise zstandard.ZstdError(f"a page is larger than {MAX_BYTES} bytes")
    return (by or zstandard.ZstdDecompressor()).decompress(blob, max_output_size=MAX_BYTES)


PUBLIC = "public"
# How many words of a body are available for ranking; all of them are indexed.
MAX_WORDS = 4096
MAX_FIELD_WORDS = 1024
MAX_INDEXED_HEADINGS = 200
MAX_BODY_CHARACTERS = 1 << 20
MAX_FOLDERS = 6
# Common names of file types.
KIND_NAMES = {"html": ("html", "htm"), "text": ("text", "txt")}


class IndexEntry(NamedTuple):
    """A page to be indexed. ``private`` names the site whose credentials it was fetched with, empty for all others.

    ``date_s`` is its stated date, else when it was first fetched.
    """

    id: int
    url: str
    title: str
    headings: tuple[str, ...] = ()
    body: str = ""
    anchors: tuple[str, ...] = ()
    kind: str = "html"
    language: str = ""
    date_s: float = 0.0
    private: str = ""


class FieldTokens(NamedTuple):
    """The words of each text field (``query.retrieval.TEXT_FIELDS``), one space between them."""

    title: bytes
    headings: bytes
    anchors: bytes
    url: bytes
    body: bytes


def tokenize_entry(entry: IndexEntry) -> FieldTokens:
    """Return the words of an entry.

    >>> tokenize_entry(IndexEntry(1, "http://docs.example.org/api/Client%20Lag.html", "Lag", ("How", "Why"))).url
    b'docs example org api client lag html'
    """
    return FieldTokens(
        normalize_words(entry.title),
        normalize_words("\n".join(entry.headings[:MAX_INDEXED_HEADINGS])),
        normalize_words("\n".join(entry.anchors)),
        normalize_words(unquote(entry.url).partition("://")[2]),
        normalize_words(entry.body[:MAX_BODY_CHARACTERS]),
    )


def build_document(entry: IndexEntry, forms: FieldTokens) -> dict[str, object]:
    """Build the document of an entry, by the names of the index's fields."""
    return {
        "id": entry.id,
        "date": int(entry.date_s),
        "title": forms.title.decode(),
        "headings": forms.headings.decode(),
        "anchors": forms.anchors.decode(),
        "url": forms.url.decode(),
        "body": forms.body.decode(),
        "site": [*list_site_values(entry.url), *map(version_value, list_version_names(entry.url))],
        "kind": list(KIND_NAMES.get(entry.kind, (entry.kind,))),
        "language": [entry.language] if entry.language else [],
        "access": [access_label(entry.private)],
    }


def version_value(name: str) -> str:
    """Return the value of the field ``site`` by which the pages of a release are found; no site is called that."""
    return f"@{name}"


def access_label(private: str) -> str:
    """Return the access label that a reader needs to see a page."""
    return private or PUBLIC


def number_tokens(forms: FieldTokens) -> tuple[npt.NDArray[np.uint32], tuple[int, ...]]:
    """Return the words of all text fields as numbers, and how many of each; see ``query.retrieval.ForwardTokens``."""
    limits = [MAX_FIELD_WORDS] * (len(forms) - 1) + [MAX_WORDS]
    each = [hash_words(form)[:most] for form, most in zip(forms, limits, strict=True)]
    return np.concatenate(each), tuple(map(len, each))


def list_site_values(url: str) -> list[str]:
    """List the values of ``site:`` that match a URL: its host, the parent domains, and host with folders.

    A non-default port may be included.

    >>> list_site_values("https://docs.example.org/a/b?x=1")
    ['docs.example.org', 'example.org', 'org', 'docs.example.org/a', 'docs.example.org/a/b']
    >>> list_site_values("http://127.0.0.2:8080/a")
    ['127.0.0.2:8080', '127.0.0.2:8080/a', '127.0.0.2', '127.0.0.2/a']
    """
    host, authority = origin_of(url).host, str(origin_of(url)).partition("://")[2]
    labels = host.split(".")
    domains = [host] if host.replace(".", "").isdigit() or ":" in host else _parent_domains(labels)
    path = unquote(url.partition("?")[0].partition("#")[0]).partition("://")[2].partition("/")[2].lower()
    folders = [folder for folder in path.split("/") if folder][:MAX_FOLDERS]
    below = ["/".join(folders[:depth]) for depth in range(1, len(folders) + 1)]
    ported = [authority, *(f"{authority}/{folder}" for folder in below)] if authority != host else []
    return [*ported, *domains, *(f"{host}/{folder}" for folder in below)]


def _parent_domains(labels: Sequence[str]) -> list[str]:
    return [".".join(labels[start:]) for start in range(len(labels))]


# A title shared by this many pages of a host names the host and not a page.
MANY_PAGES = 30


def choose_title(title: str, headings: Sequence[str], bearers: int) -> str:
    """Return the title, or the first heading if it is missing or has this many ``bearers`` on the host.

    >>> choose_title("Apache Kafka", ["Quick start"], 900), choose_title("Quick start | Kafka", ["Contents"], 1)
    ('Quick start', 'Quick start | Kafka')
    """
    first = next((heading for heading in headings if heading.strip()), "")
    return first if first and (not title.strip() or bearers >= MANY_PAGES) else title
