"""Detect what a body is (HTML, text, a document), by its declared type, or by its bytes if none is declared."""

from urllib.parse import urlsplit

_PDF_WITHIN = 1024  # readers accept the marker anywhere in the first kilobyte, and writers rely on it
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
# MIME Sniffing, 7.2: plain text begins with one of these marks, or has no "binary data byte" near its beginning.
_TEXT_MARKS = (b"\xfe\xff", b"\xff\xfe", b"\xef\xbb\xbf")
_TEXT_BYTES = bytes({9, 10, 12, 13, 27, *range(32, 256)})
_SNIFF_BYTES = 1445
# Types that servers give to files whose type they do not know; text/plain is the default of nginx and of old httpd.
_GENERIC_TYPES = frozenset(
    {"", "application/octet-stream", "binary/octet-stream", "application/x-download", "text/plain"}
)
# Office documents and books are ZIP archives, and many servers declare no more than that.
_PACKAGE_TYPES = (
    "application/vnd.openxmlformats-officedocument.",
    "application/vnd.oasis.opendocument.",
    "application/vnd.ms-",
    "application/msword",
    "application/epub+zip",
)
_ZIP_TYPES = frozenset({"application/zip", "application/x-zip-compressed", "application/x-zip"})
_ZIP_START = b"PK\x03\x04"
_MARKDOWN_TYPES = frozenset({"text/markdown", "text/x-markdown"})
_MARKDOWN_ENDINGS = (".md", ".markdown")


def is_html(content_type: str, body: bytes) -> bool:
    """Check whether the media type of a body is HTML.

    >>> is_html("text/html; charset=utf-8", b""), is_html("", b" <!DOCTYPE html><p>"), is_html("text/plain", b"<html>")
    (True, True, False)
    """
    kind = _parse_media_type(content_type)
    if kind:
        return kind in {"text/html", "application/xhtml+xml"}
    return body[:512].removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(_HTML_STARTS)


def is_pdf(content_type: str, body: bytes) -> bool:
    """Check whether the media type of a body is PDF, by its bytes, whatever it is declared as.

    >>> is_pdf("application/pdf", b"%PDF-1.7"), is_pdf("", b"%PDF-1.7"), is_pdf("application/pdf", b"<html>")
    (True, True, False)
    """
    kind = _parse_media_type(content_type)
    within = 5 if kind == "text/plain" else _PDF_WITHIN  # a text may mention the mark
    return (kind == "application/pdf" or kind in _GENERIC_TYPES) and b"%PDF-" in body[:within]


def is_document(content_type: str, body: bytes, url: str) -> bool:
    r"""Check whether the document reader can read a body: PDF, office document, book, Markdown.

    >>> is_document("application/epub+zip", b"PK\x03\x04", ""), is_document("text/plain", b"# A", "http://a.org/a.md")
    (True, True)
    >>> is_document("text/plain", b"%PDF-1.7", ""), is_document("text/plain", b"A file starts with %PDF-1.7.", "")
    (True, False)
    """
    return is_pdf(content_type, body) or _is_package(content_type, body) or _is_markdown(content_type, body, url)


def _is_package(content_type: str, body: bytes) -> bool:
    """Check whether a body is an office document or a book; a ZIP archive with a generic type must resemble one."""
    kind = _parse_media_type(content_type)
    if not body.startswith(_ZIP_START):
        return False
    if kind.startswith(_PACKAGE_TYPES):
        return True
    has_mark = body[30:38] == b"mimetype" or b"[Content_Types].xml" in body
    return (kind in _GENERIC_TYPES or kind in _ZIP_TYPES) and has_mark


def _is_markdown(content_type: str, body: bytes, url: str) -> bool:
    """Check whether a body is Markdown, which many servers declare as plain text, or not at all."""
    kind = _parse_media_type(content_type)
    if kind in _MARKDOWN_TYPES:
        return True
    return (
        kind in _GENERIC_TYPES and b"\0" not in body[:1024] and urlsplit(url).path.lower().endswith(_MARKDOWN_ENDINGS)
    )


def is_plain_text(content_type: str, body: bytes) -> bool:
    r"""Check whether the media type of a body is plain text; servers also declare unknown files that way.

    >>> is_plain_text("text/plain", b"Hello"), is_plain_text("", b"Hello"), is_plain_text("text/plain", b"PK\x03\x04")
    (True, True, False)
    """
    if _parse_media_type(content_type) not in {"", "text/plain"} or not body:
        return False
    return body.startswith(_TEXT_MARKS) or not body[:_SNIFF_BYTES].translate(None, _TEXT_BYTES)


def _parse_media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
