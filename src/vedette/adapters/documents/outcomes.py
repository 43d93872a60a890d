"""Protocol between the document reader and its child process: the request, the reply, and its verdicts.

A request is a fixed head and the descriptor of a file in memory; a reply is a fixed head, a title and a text. The text
of a PDF is plain; that of every other kind is simple HTML, so that headings and links are parsed like those of a page.
"""

import re
from dataclasses import dataclass
from enum import IntEnum
from struct import Struct

# Size of the document, maximum pages, maximum characters, CPU seconds after which no further part is started, CPU
# seconds after which the kernel kills it, bytes of address space.
REQUEST = Struct("!QIIIIQ")
# Verdict, kind as its index in KINDS, number of pages, bytes of the title, bytes of the text.
REPLY = Struct("!5I")
MAX_TITLE_LENGTH = 1_024
KINDS = ("pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "epub", "md")

# The PDF library's mark for a word divided at the end of a line, and characters that no text should have.
CONTROL_CHARACTERS = str.maketrans({"\x02": None, "\0": None, "\ufffe": None, "\r": "\n"})
_FILLER_NAMES = r"untitled|no title|title|document|presentation|powerpoint presentation|microsoft word|unknown"
_NO_TITLE = re.compile(rf"(?:{_FILLER_NAMES})?[\W\d]*", re.IGNORECASE)
_APP_PREFIX = re.compile(r"Microsoft (?:Word|PowerPoint|Excel) - ")


class Verdict(IntEnum):
    """Outcome of reading a document in the child process."""

    TEXT = 0
    CUT = 1
    PASSWORD = 2
    BROKEN = 3
    EMPTY = 4
    NO_TEXT = 5
    MEMORY = 6


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a document the child process reads."""

    pages: int
    characters: int
    cpu_s: int


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """What the child process read from a document."""

    verdict: Verdict
    pages: int = 0
    title: str = ""
    text: str = ""
    kind: str = "pdf"


def normalize_space(text: str) -> str:
    """Return a line of a document with single spaces and without control characters, cut to the length of a title."""
    return " ".join(text.translate(CONTROL_CHARACTERS).split())[:MAX_TITLE_LENGTH]


def choose_title(*titles: str) -> str:
    """Return the first meaningful title in a document's metadata, without a program name before it.

    >>> choose_title("untitled 1", "Microsoft Word - Almonds")
    'Almonds'
    """
    tidied = (normalize_space(_APP_PREFIX.sub("", title)) for title in titles)
    return next((title for title in tidied if not _NO_TITLE.fullmatch(title)), "")
