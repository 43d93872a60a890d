"""What is believed of a page that is looked at for what it links to, as plain values, out of what is on disk."""

from math import inf
from typing import Any

from vedette.edges.state_view import StateView
from vedette.ring.looking import Looking
from vedette.ring.looks import why_then
from vedette.ring.ports import Look
from vedette.ring.purse import price_kept
from vedette.ring.schedule import Schedule, is_source

__all__ = ["look_facts", "look_reason"]

Told = dict[str, Any]


def look_facts(id_: int, view: StateView, schedule: Schedule, now_s: float) -> Told | None:
    """What the discovery policy says of a page; None where it is no source, as far as was written down."""
    looking, looks = Looking(view.book), view.book.looks([id_])
    told = looking.told(id_, now_s)
    if told is None or not looks:
        return None
    times = looking.due_s([id_], price_kept(view.book), now_s)
    reason = look_reason(looks[0], times.get(id_, inf), schedule)
    return {**told._asdict(), "alike": [look.url for look in view.book.looks(told.alike)], "reason": reason}


def look_reason(look: Look, look_s: float, schedule: Schedule) -> str:
    """Why a source is looked at when it is due; empty where another rule than the policy says so."""
    is_list = is_source(look.url, look.page.kind)
    return why_then(look.page, look_s, is_list=is_list, fixed_s=schedule.sources.interval_s)
