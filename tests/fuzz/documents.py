"""Documents, read in this process; the fetcher reads them in a child."""

import markdown_it  # noqa: F401 - imported here, so that it is instrumented
from tests.adapters.documents import test_reader as pdf_samples
from tests.fuzz import packages
from tests.fuzz.target import Target

from vedette.adapters.documents.office import read_package
from vedette.adapters.documents.outcomes import MAX_TITLE_LENGTH, Bounds, DocumentContent
from vedette.adapters.documents.pdf import read_pdf
from vedette.adapters.documents.process import read_document

__all__ = ["MARKDOWN", "OFFICE", "PDF"]

BOUNDS = Bounds(pages=50, characters=100_000, cpu_s=2)

MARKDOWN_FILES = (
    b'---\ntitle: "A title"\n---\n# Head\n\nText *with* [a link](https://host.example/) and `code`.\n\n- a\n- b\n',
    b"| a | b |\n|---|---|\n| 1 | <b>2</b> |\n\n> quoted\n\n```py\nx\n```\n\n1. one\n\n[r]: /x 'y'\n![i](z)\n***\n",
)
MARKDOWN_TOKENS = (b"---\n", b"title: ", b"](", b"[", b"```", b"> ", b"* ", b"|", b"|---|", b"<!--", b"&#", b"\xff\xfe")


def check_pdf(data: bytes) -> None:
    """There is one outcome, within the bounds."""
    _check_content(read_pdf(data, BOUNDS))


def check_office(data: bytes) -> None:
    """There is one outcome, within the bounds."""
    _check_content(read_package(data, BOUNDS))


def check_markdown(data: bytes) -> None:
    """There is one outcome, within the bounds."""
    _check_content(read_document(b"\n" + data if data.startswith(b"PK") else data.replace(b"%PDF-", b""), BOUNDS))


def _check_content(found: DocumentContent) -> None:
    assert len(found.title) <= MAX_TITLE_LENGTH
    assert len(found.text) <= BOUNDS.characters
    assert found.pages >= 0


PDF = Target(check_pdf, pdf_samples.SEEDS, pdf_samples.TOKENS)
OFFICE = Target(check_office, packages.SEEDS, packages.TOKENS, packages.mutate)
MARKDOWN = Target(check_markdown, MARKDOWN_FILES, MARKDOWN_TOKENS)
