"""Detect the media type of a body (HTML, PDF), by its declared type, or by its bytes where none is declared."""

_PDF_WITHIN = 1024  # readers find the mark anywhere in the first kilobyte, and writers rely on it
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
_GENERIC_TYPES = frozenset({"", "application/octet-stream", "binary/octet-stream", "application/x-download"})


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
    return (kind == "application/pdf" or kind in _GENERIC_TYPES) and b"%PDF-" in body[:_PDF_WITHIN]


def _parse_media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()
