"""How much lower slots are seen on this server's pages, learned from what the ledger has of them."""

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from vedette.adapters.ads.ledger_reader import LedgerView, SlotTally
from vedette.policy import Floats
from vedette.serve.ads.by_score import Told
from vedette.serve.ads.catalog import Stall
from vedette.serve.ads.pacing import DAY_S, NO_TRAFFIC, Traffic, noticed
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts

__all__ = ["HOUR_S", "SlotLearner", "past_traffic", "share_by_now"]

HOUR_S = 3600.0
_EPOCH = date(1970, 1, 1)

Hours = Sequence[tuple[date, int, str, int]]


def past_traffic(hours: Hours, numbers: Mapping[str, int], now_s: float) -> Traffic:
    """What policies learn from traffic, as if they had been told hour after hour; ``now_s`` has whole days at midnight.

    Phrases without a number are left out. What is asked in the present hour is for the next look.
    """
    if not numbers:
        return NO_TRAFFIC
    asked, traffic = np.zeros(max(numbers.values()) + 1), NO_TRAFFIC
    for day, hour, phrase, times in hours:
        if phrase not in numbers:
            continue
        # What was asked before this hour began belongs to the hours before it.
        traffic = noticed(traffic, asked, (day - _EPOCH).days * DAY_S + hour * HOUR_S)
        asked[numbers[phrase]] += times
    return noticed(traffic, asked, now_s)


def share_by_now(hours: Hours, now_s: float) -> float | None:
    """Which share of a usual day's queries has come by this time of day; None before a whole day was seen."""
    today = int(now_s // DAY_S)
    past = [(hour, times) for day, hour, _, times in hours if (day - _EPOCH).days < today]
    whole = sum(times for _, times in past)
    if not whole:
        return None
    hour, rest_s = divmod(now_s % DAY_S, HOUR_S)
    return sum(times * (1.0 if at < hour else rest_s / HOUR_S if at == hour else 0.0) for at, times in past) / whole


# A start looks back so far; later looks only read what is new.
BACK_S = 14 * 86_400.0


class SlotLearner:
    """``seen`` is how much each slot is believed to be seen beside the first: a guess, until clicks say otherwise."""

    def __init__(self, slots: int) -> None:
        self.seen: Floats = FIRST_FACTORS[:slots]
        self._counts = SlotCounts(0, slots)
        self._until_s = float("-inf")

    def look(self, view: LedgerView, stall: Stall, told: Told, until_s: float) -> None:
        """Learn from what was shown until a moment after which no click on it counts any more."""
        if len(self.seen) == 1 or until_s <= self._until_s:
            return
        after_s = max(self._until_s, until_s - BACK_S)
        self._enter(view.by_slot(after_s, until_s), stall)
        self._until_s = until_s
        found = self._counts.factors(told, stall.all_ads())
        self.seen = self.seen if found is None else found

    def _enter(self, tallies: list[SlotTally], stall: Stall) -> None:
        """Slots that are no longer shown, and ads that do not run, say nothing."""
        slots = len(self.seen)
        rows = [(stall.row_of(one.ad, one.phrase), one) for one in tallies if one.slot < slots]
        known = [(row, one.slot, one.shown, one.clicked) for row, one in rows if row is not None]
        if known:
            row, slot, shown, clicked = (np.array(column) for column in zip(*known, strict=True))
            self._counts.enter(row, slot, shown.astype(np.float64), clicked.astype(np.float64))
