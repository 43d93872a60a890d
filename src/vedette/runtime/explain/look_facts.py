"""What is believed of a page that is looked at for what it links to, as plain values."""

from math import inf
from typing import Any

from vedette.adapters.crawl_store.reader import StateView
from vedette.engine.ports import Look
from vedette.engine.scheduling.poll_results import why_then
from vedette.engine.scheduling.polling import Looking, SourceTold
from vedette.engine.scheduling.price_controller import price_kept
from vedette.engine.scheduling.schedule import Schedule, is_source

__all__ = ["look_facts", "look_reason"]

Told = dict[str, Any]


def look_facts(id_: int, view: StateView, schedule: Schedule, now_s: float, live: Told | None = None) -> Told | None:
    """What the discovery policy says of a page; None where it is no source.

    ``live`` is what a running keeper believes (``commands``); without it, what was last written down is told.
    """
    told, look_s = (SourceTold(**live["told"]), live["look_s"]) if live else _kept(id_, view, now_s)
    looks = view.book.looks([id_])
    if told is None or not looks:
        return None
    share = dict(zip(told.alike, told.alike_share, strict=True))
    alike = {look.url: share[look.page.id] for look in view.book.looks(told.alike)}
    alike = dict(sorted(alike.items(), key=lambda one: -one[1]))
    reason = look_reason(looks[0], look_s, schedule)
    return {**told._asdict(), "alike": list(alike), "alike_share": list(alike.values()), "reason": reason}


def _kept(id_: int, view: StateView, now_s: float) -> tuple[SourceTold | None, float]:
    looking = Looking(view.book)
    return looking.told(id_, now_s), looking.due_s([id_], price_kept(view.book), now_s).get(id_, inf)


def look_reason(look: Look, look_s: float, schedule: Schedule) -> str:
    """Why a source is looked at when it is due; empty where another rule than the policy says so."""
    is_list = is_source(look.url, look.page.kind)
    return why_then(look.page, look_s, is_list=is_list, fixed_s=schedule.sources.interval_s)
