"""What kind of thing a body is."""

import pytest

from vedette.parse.text.charsets import decode_page, find_codec
from vedette.parse.text.media_types import is_html, is_pdf


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
    """The declared type decides; only where there is none, the body is looked at."""
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
        ("application/pdf", b" " * 5000 + b"%PDF-1.4", False),
    ],
)
def test_what_is_a_pdf(content_type: str, body: bytes, pdf: bool) -> None:  # noqa: FBT001 - a column of the table
    """What is called a PDF must look like one, and what has no telling name may be one."""
    assert is_pdf(content_type, body) is pdf
