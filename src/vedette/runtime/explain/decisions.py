"""What is known of refreshing a page, as plain values: how often it changes, what a fetch is worth and last brought.

It is worked out from what is on disk, so it can be asked whether or not anything runs.
"""

from typing import Any

from vedette.adapters.crawl_store.reader import StateView
from vedette.engine.coordinator.state import Rules
from vedette.engine.ports import Look
from vedette.engine.scheduling.asked_pages import Asked
from vedette.engine.scheduling.price_controller import policy_kept
from vedette.engine.scheduling.refresh import Refreshing
from vedette.model import Site

__all__ = ["refresh_facts"]

Told = dict[str, Any]

_COUNTS = {
    "bytes": "any change of its bytes",
    "text": "another visible text",
    "main": "another main text",
    "links": "other links",
    "queries": "another main text, where a word that people search by gains or loses by it",
}


def refresh_facts(id_: int, site: Site | None, view: StateView, now_s: float) -> Told | None:
    """What the refresh policy says of a page at hand; None where a fixed rule has it, or nothing was learned yet."""
    looks = view.book.looks([id_])
    policy = policy_kept(view.book)
    if not looks or policy is None:
        return None
    asked = Refreshing(Rules(refresh=policy), view.book).asked_of(looks[0], now_s)
    return _told(looks[0], asked, site) | _signalled(looks[0], view) if asked is not None else None


def _signalled(look: Look, view: StateView) -> Told:
    """What said since the last fetch that the page has changed, and of when; None where nothing did."""
    signal = view.book.signal_of(look.page.id)
    at_s, kind = signal if signal is not None and signal[0] > look.page.fetched_s else (None, None)
    return {"signal": kind, "signal_s": at_s}


def _told(look: Look, asked: Asked, site: Site | None) -> Told:
    page, kept = look.page, look.kept
    return {
        **asked._asdict(),
        "refetched": kept.before_s is not None,
        "changed": page.changed_s == page.fetched_s if kept.before_s is not None else None,
        "gain": kept.gain,
        "views": kept.views,
        "counts": _COUNTS[site.change] if site else None,
    }
