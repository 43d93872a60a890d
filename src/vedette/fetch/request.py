"""What a request says about itself: who asks, where to complain, and which copy is at hand."""

from vedette.fetch.body import CODINGS
from vedette.model import Headers, Purpose

PRODUCT = "vedette"

_ACCEPT: dict[Purpose, str] = {
    "page": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5",
    "robots": "text/plain,*/*;q=0.5",
}


def build_user_agent(version: str, contact: str) -> str:
    """The User-Agent: product, version, and where the operator can be reached.

    >>> build_user_agent("0.1.0", "ops@example.org")
    'vedette/0.1.0 (+mailto:ops@example.org)'
    """
    if not contact:
        return f"{PRODUCT}/{version}"
    return f"{PRODUCT}/{version} (+{contact if '://' in contact else 'mailto:' + contact})"


def build_conditional_headers(etag: str, last_modified: str) -> Headers:
    """Ask for an answer only if it differs from the copy with these validators; nothing where there are none.

    >>> build_conditional_headers('"1"', "")
    (('if-none-match', '"1"'),)
    """
    pairs = (("if-none-match", etag), ("if-modified-since", last_modified))
    return tuple((name, value) for name, value in pairs if value)


def build_headers(purpose: Purpose, agent: str) -> Headers:
    """The headers of a request for a page or a robots.txt."""
    return (
        ("user-agent", agent),
        ("accept", _ACCEPT[purpose]),
        # A robots.txt may be cut off at its limit, which unpacks badly.
        ("accept-encoding", "identity" if purpose == "robots" else ", ".join(CODINGS)),
    )
