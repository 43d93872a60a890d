"""What of a page is indexed and stored: its words by field, its title, and the text that results are shown from.

A page is turned into words, words into a document of the index. What is stored of its text is packed where the page is
read, and travels as bytes from there to the file in which it stays.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import zstandard

from vedette.model import origin_of
from vedette.text import hash_words, normalize_words

LEVEL = 1
BODY = "\0"  # begins the body; there is none in JSON, and a body is long, so it stays as it is
MAX_BYTES = 64 << 20


class StoredPage(NamedTuple):
    """A page as it was read: its author's words, and what is known of them.

    ``kind`` is a file type ("html", "pdf", "docx"), ``marks`` what its owner wishes ("nosnippet", "max-snippet:80",
    "noarchive"), ``published_s`` what it says of its own date. ``is_plain`` is what ``snippets.tidy_text`` said of the
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


PUBLIC = "public"
# So many words of a body are at hand when results are ordered; all of them are indexed.
MAX_WORDS = 4096
MAX_FIELD_WORDS = 1024
MAX_BODY_CHARACTERS = 1 << 20
MAX_FOLDERS = 6
# What people call the kinds of files.
KIND_NAMES = {"html": ("html", "htm"), "text": ("text", "txt")}


class IndexEntry(NamedTuple):
    """A page to be indexed. ``private`` names the site with whose secrets it was fetched, and is empty for all others.

    ``date_s`` is what it says of its date, else when it was first fetched.
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
    """The words of each text field (``retrieval.TEXT_FIELDS``), one space between them."""

    title: bytes
    headings: bytes
    anchors: bytes
    url: bytes
    body: bytes


def tokenize_entry(entry: IndexEntry) -> FieldTokens:
    """The words of an entry.

    >>> tokenize_entry(IndexEntry(1, "http://docs.example.org/api/Client%20Lag.html", "Lag", ("How", "Why"))).url
    b'docs example org api client lag html'
    """
    return FieldTokens(
        normalize_words(entry.title),
        normalize_words("\n".join(entry.headings)),
        normalize_words("\n".join(entry.anchors)),
        normalize_words(_decode_url(entry.url).partition("://")[2]),
        normalize_words(entry.body[:MAX_BODY_CHARACTERS]),
    )


def build_document(entry: IndexEntry, forms: FieldTokens) -> dict[str, object]:
    """The document of an entry, by the names of the index's fields."""
    return {
        "id": entry.id,
        "date": int(entry.date_s),
        "title": forms.title.decode(),
        "headings": forms.headings.decode(),
        "anchors": forms.anchors.decode(),
        "url": forms.url.decode(),
        "body": forms.body.decode(),
        "site": list_site_values(entry.url),
        "kind": list(KIND_NAMES.get(entry.kind, (entry.kind,))),
        "language": [entry.language] if entry.language else [],
        "access": [access_label(entry.private)],
    }


def access_label(private: str) -> str:
    """What a reader must be allowed to see a page with."""
    return private or PUBLIC


def number_tokens(forms: FieldTokens) -> tuple[npt.NDArray[np.uint32], tuple[int, ...]]:
    """The words of all text fields as numbers, and how many of each; see ``retrieval.ForwardTokens``."""
    each = [hash_words(form)[:most] for form, most in zip(forms, _field_limits(forms), strict=True)]
    return np.concatenate(each), tuple(map(len, each))


def _field_limits(forms: Sequence[bytes]) -> list[int]:
    return [MAX_FIELD_WORDS] * (len(forms) - 1) + [MAX_WORDS]


def list_site_values(url: str) -> list[str]:
    """What ``site:`` may call the place of a URL: its host, the domains above it, and host and folders.

    A port that is not the usual one may be said, too.

    >>> list_site_values("https://docs.example.org/a/b?x=1")
    ['docs.example.org', 'example.org', 'org', 'docs.example.org/a', 'docs.example.org/a/b']
    >>> list_site_values("http://127.0.0.2:8080/a")
    ['127.0.0.2:8080', '127.0.0.2:8080/a', '127.0.0.2', '127.0.0.2/a']
    """
    host, authority = origin_of(url).host, str(origin_of(url)).partition("://")[2]
    labels = host.split(".")
    domains = [host] if host.replace(".", "").isdigit() or ":" in host else _parent_domains(labels)
    path = _decode_url(url.partition("?")[0].partition("#")[0]).partition("://")[2].partition("/")[2].lower()
    folders = [folder for folder in path.split("/") if folder][:MAX_FOLDERS]
    below = ["/".join(folders[:depth]) for depth in range(1, len(folders) + 1)]
    ported = [authority, *(f"{authority}/{folder}" for folder in below)] if authority != host else []
    return [*ported, *domains, *(f"{host}/{folder}" for folder in below)]


def _parent_domains(labels: Sequence[str]) -> list[str]:
    return [".".join(labels[start:]) for start in range(len(labels))]


def _decode_url(url: str) -> str:
    return unquote(url, errors="replace")


# A title that so many pages of a host bear names the host and not a page.
MANY_PAGES = 30


def choose_title(title: str, headings: Sequence[str], bearers: int) -> str:
    """The title, or the first heading where there is none or so many pages of the host are its ``bearers``.

    >>> choose_title("Apache Kafka", ["Quick start"], 900), choose_title("Quick start | Kafka", ["Contents"], 1)
    ('Quick start', 'Quick start | Kafka')
    """
    first = next((heading for heading in headings if heading.strip()), "")
    return first if first and (not title.strip() or bearers >= MANY_PAGES) else title
