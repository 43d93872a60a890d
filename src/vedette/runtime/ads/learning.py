"""How much lower slots are seen on this server's pages, learned from what the ledger has of them."""

import numpy as np

from vedette.adapters.ads.ledger_reader import LedgerView, SlotTally
from vedette.policy import Floats
from vedette.serve.ads.by_score import Told
from vedette.serve.ads.catalog import Stall
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts

__all__ = ["SlotLearner"]

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
