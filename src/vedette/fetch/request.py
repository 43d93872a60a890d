"""Build request headers: User-Agent with a contact, Accept headers, and conditional headers for a stored copy."""

import re

from vedette.fetch.body import CODINGS
from vedette.model import Headers, Purpose

PRODUCT = "vedette"
_MARKED_ETAG = re.compile(r'((?:W/)?"[^",]*?)(?:-|--|;)(?:gzip|br|deflate|zstd)"', re.IGNORECASE)

_ACCEPT: dict[Purpose, str] = {
    "page": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
    "robots": "text/plain,*/*;q=0.5",
    "part": "*/*",
}


def build_user_agent(version: str, contact: str) -> str:
    """Build the User-Agent header: product, version, and where the operator can be reached.

    >>> build_user_agent("0.1.0", "ops@example.org")
    'vedette/0.1.0 (+mailto:ops@example.org)'
    """
    if not contact:
        return f"{PRODUCT}/{version}"
    return f"{PRODUCT}/{version} (+{contact if '://' in contact else 'mailto:' + contact})"


def build_conditional_headers(etag: str, last_modified: str) -> Headers:
    """Build conditional request headers from these validators; none without validators.

    Apache appends the coding to the ETag of a compressed response, then compares the client's ETag with the one without
    it, so no page is ever unmodified. Both are sent.

    >>> build_conditional_headers('"1"', "")
    (('if-none-match', '"1"'),)
    >>> build_conditional_headers('W/"1-gzip"', "")
    (('if-none-match', 'W/"1-gzip", W/"1"'),)
    """
    marked = _MARKED_ETAG.fullmatch(etag)
    offered = f'{etag}, {marked[1]}"' if marked else etag
    pairs = (("if-none-match", offered), ("if-modified-since", last_modified))
    return tuple((name, value) for name, value in pairs if value)


def build_headers(purpose: Purpose, agent: str, accept: str = "") -> Headers:
    """Build the headers of a request for a page, a robots.txt, or a resource that a page's script requests."""
    return (
        ("user-agent", agent),
        ("accept", accept or _ACCEPT[purpose]),
        # A robots.txt may be cut off at its limit, which breaks decompression.
        ("accept-encoding", "identity" if purpose == "robots" else ", ".join(CODINGS)),
    )
