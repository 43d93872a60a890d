"""Indexable pages: decide which pages may be in the search index, and explain in words why one may not."""

from collections.abc import Collection
from typing import NamedTuple

from vedette.parse.quality.indexability import RejectReason, is_excluding

INDEXED_KINDS = frozenset({"page", "document"})
UNAVAILABLE_PREFIX = "unavailable_after:"


class IndexCandidate(NamedTuple):
    """Facts that decide whether a page is indexable.

    ``objections`` are the names of reasons against it (``parse.quality``); ``directives`` are its owner's.
    ``has_other_canonical`` means that its author names another page as canonical, which is indexed. ``hidden_reason``
    is why the operator hides it.
    """

    status: int
    kind: str
    is_read: bool
    objections: tuple[str, ...] = ()
    directives: str = ""
    has_other_canonical: bool = False
    hidden_reason: str = ""
    words: int = 0


def explain_exclusion(page: IndexCandidate, overruled: Collection[str], now_s: float) -> str:
    """Explain why a page is excluded from the search index; empty if it is indexable.

    >>> explain_exclusion(IndexCandidate(404, "page", is_read=False), (), 0.0)
    'it returned status 404'
    >>> explain_exclusion(IndexCandidate(200, "page", is_read=True, objections=("spam",)), (), 0.0)
    'it looks like spam'
    >>> explain_exclusion(IndexCandidate(200, "page", is_read=True, objections=("spam",)), ("spam",), 0.0)
    ''
    """
    if page.hidden_reason:
        return page.hidden_reason
    if not 200 <= page.status < 300:
        return "it moved" if 300 <= page.status < 400 else f"it returned status {page.status}"
    if page.kind not in INDEXED_KINDS or not page.is_read:
        return "it is not a readable page"
    found = [kind for kind in RejectReason if kind.name.lower() in page.objections and is_excluding(kind, page.words)]
    standing = [kind for kind in found if kind.name.lower() not in overruled]
    if standing:
        return str(standing[0])
    if page.has_other_canonical:
        return "its author declares another page as canonical"
    until_s = _parse_unavailable_after(page.directives)
    return "its author's expiry date has passed" if until_s is not None and until_s <= now_s else ""


def _parse_unavailable_after(marks: str) -> float | None:
    """Parse the ``unavailable_after`` directive: when to exclude a page from the index."""
    for mark in marks.split(", "):
        if mark.startswith(UNAVAILABLE_PREFIX):
            try:
                return float(mark.removeprefix(UNAVAILABLE_PREFIX))
            except ValueError:
                return None
    return None
