"""How learning from clicks stands, as a file beside the index: what the console and ``vedette status`` say of it.

index/ranking.json outlives a generation, so a guard that holds goes on when the index is built anew.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from vedette.learn.clicks.off_policy import Estimate
from vedette.learn.clicks.other_orders import OtherOrder
from vedette.learn.clicks.rollback_guard import Arm, Guarded
from vedette.web.console.ports.rank_ports import Promoted, RankingTold

__all__ = ["FILE", "MOST_PROMOTED", "keep_told", "read_told", "status_words"]

FILE = "ranking.json"
MOST_PROMOTED = 50


def keep_told(index: Path, told: RankingTold) -> None:
    """In one step."""
    draft = index / f"{FILE}.new"
    draft.write_text(json.dumps(told._asdict(), allow_nan=True), "utf-8")
    draft.replace(index / FILE)


def read_told(index: Path) -> RankingTold | None:
    """What was last told; None where nothing was, or it cannot be read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        kept: dict[str, Any] = json.loads((index / FILE).read_text("utf-8"))
        kept |= {"learned": Arm(*kept["learned"]), "plain": Arm(*kept["plain"]), "guard": Guarded(*kept["guard"])}
        kept |= {"promoted": tuple(Promoted(*each) for each in kept["promoted"])}
        kept |= {"orders": tuple(map(_order, kept.get("orders", ())))}
        kept |= {"examined": tuple(kept["examined"]), "taken_off": tuple(map(tuple, kept["taken_off"]))}
        return RankingTold(**kept)
    return None


def _order(kept: Sequence[Any]) -> OtherOrder:
    name, readers, of_readers, *estimates = kept
    return OtherOrder(name, readers, of_readers, *(Estimate(*each) for each in estimates))


def status_words(told: RankingTold | None, now_s: float) -> str:
    """One line on how results are ordered.

    >>> status_words(RankingTold(clicks=12), 0.0)
    'by relevance: 12 clicks are too few to learn from'
    >>> status_words(RankingTold(is_learned=True, guard=Guarded(9.0, 0.0, "quality per click fell")), 5.0)
    'by relevance alone, as a guard holds: quality per click fell'
    """
    if told is None:
        return ""
    if not told.is_on:
        return "by relevance: learning from clicks is switched off"
    if told.guard.holds(now_s):
        return f"by relevance alone, as a guard holds: {told.guard.why}"
    if not told.is_learned:
        clicks = "1 click is" if told.clicks == 1 else f"{told.clicks} clicks are"
        return f"by relevance: {clicks} too few to learn from"
    share = told.tried / max(told.results, 1)
    return f"by relevance and {told.clicks} clicks; {share:.1%} of what was shown was there to be tried"
