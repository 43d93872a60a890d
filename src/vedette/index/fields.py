"""What a page is called, where its title is only the name of its site."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from vedette.model import origin_of
from vedette.text import numbers_of, spaced

__all__ = [
    "MOST_WORDS",
    "PUBLIC",
    "Entry",
    "Forms",
    "access_of",
    "called",
    "document_of",
    "forms_of",
    "numbers",
    "places_of",
]

PUBLIC = "public"
# So many words of a body are at hand when results are ordered; all of them are indexed.
MOST_WORDS = 4096
MOST_FIELD_WORDS = 1024
MOST_BODY_CHARACTERS = 1 << 20
MOST_FOLDERS = 6
# What people call the kinds of files.
KINDS = {"html": ("html", "htm"), "text": ("text", "txt")}


class Entry(NamedTuple):
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


class Forms(NamedTuple):
    """The words of each text field (``retrieval.TEXT_FIELDS``), one space between them."""

    title: bytes
    headings: bytes
    anchors: bytes
    url: bytes
    body: bytes


def forms_of(entry: Entry) -> Forms:
    """The words of an entry.

    >>> forms_of(Entry(1, "http://docs.example.org/api/Client%20Lag.html", "Lag", ("How", "Why"))).url
    b'docs example org api client lag html'
    """
    return Forms(
        spaced(entry.title),
        spaced("\n".join(entry.headings)),
        spaced("\n".join(entry.anchors)),
        spaced(_readable(entry.url).partition("://")[2]),
        spaced(entry.body[:MOST_BODY_CHARACTERS]),
    )


def document_of(entry: Entry, forms: Forms) -> dict[str, object]:
    """The document of an entry, by the names of the index's fields."""
    return {
        "id": entry.id,
        "date": int(entry.date_s),
        "title": forms.title.decode(),
        "headings": forms.headings.decode(),
        "anchors": forms.anchors.decode(),
        "url": forms.url.decode(),
        "body": forms.body.decode(),
        "site": places_of(entry.url),
        "kind": list(KINDS.get(entry.kind, (entry.kind,))),
        "language": [entry.language] if entry.language else [],
        "access": [access_of(entry.private)],
    }


def access_of(private: str) -> str:
    """What a reader must be allowed to see a page with."""
    return private or PUBLIC


def numbers(forms: Forms) -> tuple[npt.NDArray[np.uint32], tuple[int, ...]]:
    """The words of all text fields as numbers, and how many of each; see ``retrieval.Forward``."""
    each = [numbers_of(form)[:most] for form, most in zip(forms, _most(forms), strict=True)]
    return np.concatenate(each), tuple(map(len, each))


def _most(forms: Sequence[bytes]) -> list[int]:
    return [MOST_FIELD_WORDS] * (len(forms) - 1) + [MOST_WORDS]


def places_of(url: str) -> list[str]:
    """What ``site:`` may call the place of a URL: its host, the domains above it, and host and folders.

    A port that is not the usual one may be said, too.

    >>> places_of("https://docs.example.org/a/b?x=1")
    ['docs.example.org', 'example.org', 'org', 'docs.example.org/a', 'docs.example.org/a/b']
    >>> places_of("http://127.0.0.2:8080/a")
    ['127.0.0.2:8080', '127.0.0.2:8080/a', '127.0.0.2', '127.0.0.2/a']
    """
    host, authority = origin_of(url).host, str(origin_of(url)).partition("://")[2]
    labels = host.split(".")
    domains = [host] if host.replace(".", "").isdigit() or ":" in host else _above(labels)
    path = _readable(url.partition("?")[0].partition("#")[0]).partition("://")[2].partition("/")[2].lower()
    folders = [folder for folder in path.split("/") if folder][:MOST_FOLDERS]
    below = ["/".join(folders[:depth]) for depth in range(1, len(folders) + 1)]
    ported = [authority, *(f"{authority}/{folder}" for folder in below)] if authority != host else []
    return [*ported, *domains, *(f"{host}/{folder}" for folder in below)]


def _above(labels: Sequence[str]) -> list[str]:
    return [".".join(labels[start:]) for start in range(len(labels))]


def _readable(url: str) -> str:
    return unquote(url, errors="replace")


# A title that so many pages of a host bear names the host and not a page.
MANY = 30


def called(title: str, headings: Sequence[str], bearers: int) -> str:
    """The title, or the first heading where there is none or so many pages of the host are its ``bearers``.

    >>> called("Apache Kafka", ["Quick start"], 900), called("Quick start | Kafka", ["Contents"], 1)
    ('Quick start', 'Quick start | Kafka')
    """
    first = next((heading for heading in headings if heading.strip()), "")
    return first if first and (not title.strip() or bearers >= MANY) else title
