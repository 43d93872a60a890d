"""Detection of media types."""

import pytest

from vedette.parse.text.charsets import decode_page, find_codec
from vedette.parse.text.media_types import is_document, is_html


@pytest.mark.parametrize("label", ["unicode_escape", "punycode", "idna", "utf-7", "undefined", "hex", "rot13", "mbcs"])
def test_names_that_only_python_knows(label: str) -> None:
    """A page cannot choose a codec that is no charset of the web: some of them are slow, unsafe or not text."""
    assert find_codec(label) is None
    body = f"<meta charset={label}>\\ud800 +2AA- \\q".encode()
    assert decode_page(body, f"text/html; charset={label}").text == body.decode()


@pytest.mark.parametrize(
    ("content_type", "body", "html"),
    [
        ("text/html", b"", True),
        ("Text/HTML ; charset=x", b"", True),
        ("application/xhtml+xml", b"", True),
        ("text/plain", b"<!doctype html>", False),
        ("application/pdf", b"<html>", False),
        ("", b"\n <!DOCTYPE html>", True),
        ("", b"\xef\xbb\xbf<html>", True),
        ("", b"%PDF-1.7", False),
    ],
)
def test_what_is_html(content_type: str, body: bytes, html: bool) -> None:  # noqa: FBT001 - a column of the table
    """The declared type decides; the body is only examined if there is none."""
    assert is_html(content_type, body) is html


@pytest.mark.parametrize(
    ("content_type", "body", "pdf"),
    [
        ("application/pdf", b"%PDF-1.4\n", True),
        ("Application/PDF; version=1.7", b"\n\n%PDF-1.7", True),
        ("application/octet-stream", b"%PDF-1.4", True),
        ("", b"%PDF-1.4", True),
        ("application/pdf", b"<html>Log in to read this", False),
        ("text/html", b"%PDF-1.4", False),
        ("text/plain", b"%PDF-1.4", True),
        ("text/plain", b"See %PDF-1.4.", False),
        ("application/pdf", b" " * 5000 + b"%PDF-1.4", False),
    ],
)
def test_what_is_a_pdf(content_type: str, body: bytes, pdf: bool) -> None:  # noqa: FBT001 - a column of the table
    """A file declared as PDF must resemble one, and one without a specific type may be one."""
    assert is_document(content_type, body, "https://example.org/a") is pdf


ARCHIVE = b"PK\x03\x04" + bytes(26)
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("content_type", "body", "path", "document"),
    [
        (DOCX, ARCHIVE, "a", True),
        (DOCX, b"<html>Log in to read this", "a.docx", False),
        ("application/msword", ARCHIVE, "a.docx", True),
        ("application/vnd.oasis.opendocument.text", ARCHIVE, "a", True),
        ("application/epub+zip", ARCHIVE, "a", True),
        ("application/zip", ARCHIVE + b"mimetype", "a.epub", True),
        ("application/octet-stream", ARCHIVE + b"word/[Content_Types].xml", "a", True),
        ("application/zip", ARCHIVE + b"readme.txt", "a.zip", False),
        ("text/plain", ARCHIVE + b"mimetype", "a.epub", True),
        ("text/plain", ARCHIVE + b"readme.txt", "a.zip", False),
        ("text/markdown; charset=utf-8", b"# A", "a", True),
        ("text/plain", b"# A", "a.md", True),
        ("text/plain", b"# A", "A.MD?raw=1", True),
        ("", b"# A", "a.markdown", True),
        ("text/plain", b"# A", "a.txt", False),
        ("text/html", b"# A", "a.md", False),
        ("application/octet-stream", b"\0\1", "a.md", False),
    ],
)
def test_what_is_a_document(content_type: str, body: bytes, path: str, document: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """An archive by its type or its first parts, Markdown by its type or, where that says little, its name."""
    assert is_document(content_type, body, f"https://example.org/{path}") is document
