"""Which pages may be found, and if one may not, why not: in words, for whoever asks."""

from collections.abc import Collection
from typing import NamedTuple

from vedette.parse.quality.indexability import Unworthy

__all__ = ["Standing", "left_out"]

READ = frozenset({"page", "document"})
AFTER = "unavailable_after:"


class Standing(NamedTuple):
    """What decides whether a page may be found.

    ``objections`` are the names of what speaks against it (``parse.worth``); ``marks`` are its owner's wishes.
    ``named`` says that its author names another page in its place, which can be found. ``concealed`` is why the
    operator does not want it to be shown.
    """

    status: int
    kind: str
    is_read: bool
    objections: tuple[str, ...] = ()
    marks: str = ""
    named: bool = False
    concealed: str = ""


def left_out(page: Standing, overruled: Collection[str], now_s: float) -> str:
    """Why a page is not to be found; empty where it is.

    >>> left_out(Standing(404, "page", is_read=False), (), 0.0)
    'it answered with status 404'
    >>> left_out(Standing(200, "page", is_read=True, objections=("spam",)), (), 0.0)
    'it looks like spam'
    >>> left_out(Standing(200, "page", is_read=True, objections=("spam",)), ("spam",), 0.0)
    ''
    """
    if page.concealed:
        return page.concealed
    if not 200 <= page.status < 300:
        return "it moved" if 300 <= page.status < 400 else f"it answered with status {page.status}"
    if page.kind not in READ or not page.is_read:
        return "it is no page to read"
    standing = [
        kind for kind in Unworthy if kind.name.lower() in page.objections and kind.name.lower() not in overruled
    ]
    if standing:
        return str(standing[0])
    if page.named:
        return "its author names another page in its place"
    until_s = _until_s(page.marks)
    return "its author's time for it is over" if until_s is not None and until_s <= now_s else ""


def _until_s(marks: str) -> float | None:
    """When a page is to be shown no longer."""
    for mark in marks.split(", "):
        if mark.startswith(AFTER):
            try:
                return float(mark.removeprefix(AFTER))
            except ValueError:
                return None
    return None
