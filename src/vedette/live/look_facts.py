"""What is believed of a page that is looked at for what it links to, as plain values, out of what is on disk."""

from typing import Any

from vedette.edges.state_view import StateView
from vedette.ring.looking import Looking

__all__ = ["look_facts"]

Told = dict[str, Any]


def look_facts(id_: int, view: StateView, now_s: float) -> Told | None:
    """What the discovery policy says of a page; None where it is no source, as far as was written down."""
    told = Looking(view.book).told(id_, now_s)
    if told is None:
        return None
    return {**told._asdict(), "alike": [look.url for look in view.book.looks(told.alike)]}
