"""Ad learning from the ledger: traffic by the hour, and how visible lower slots are."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.by_score import AdPriors
from vedette.serve.ads.catalog import AdCatalog
from vedette.serve.ads.ledger import LedgerView, SlotTally
from vedette.serve.ads.pacing import BINS, NEWEST_WEIGHT, NO_TRAFFIC, Traffic
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts
from vedette.timeutil import DAY_S, HOUR_S

_EPOCH = date(1970, 1, 1)
# A start reads this far back; later updates read only new entries.
LOOKBACK_S = 14 * 86_400.0

Hours = Sequence[tuple[date, int, str, int]]


def build_traffic(hours: Hours, numbers: Mapping[str, int], now_s: float) -> Traffic:
    """Build the ad policies' traffic plan from hourly query counts; ``now_s`` has whole days at local midnight.

    It is the plan that ``update_traffic`` would build hour by hour. Phrases without a number are left out.
    """
    if not numbers:
        return NO_TRAFFIC
    size, today = max(numbers.values()) + 1, int(now_s // DAY_S)
    known = [(day, hour, numbers[phrase], times) for day, hour, phrase, times in hours if phrase in numbers]
    by_day: dict[int, Floats] = {}
    for day, hour, phrase, times in known:
        table = by_day.setdefault((day - _EPOCH).days, np.zeros((BINS, size)))
        table[hour, phrase] += times
    asked = np.zeros(size) if not by_day else np.sum([table.sum(axis=0) for table in by_day.values()], axis=0)
    usual, days = np.zeros((BINS, size)), 0
    for number in sorted(day for day in by_day if day < today):
        weight = NEWEST_WEIGHT if days else 1.0
        usual, days = (1 - weight) * usual + weight * by_day[number], days + 1
    bin_ = int(now_s % DAY_S / DAY_S * BINS)
    return Traffic(usual, by_day.get(today, np.zeros((BINS, size))), asked, today, bin_, days)


def estimate_day_share(hours: Hours, now_s: float) -> float | None:
    """Estimate the share of a usual day's ad queries that come by this time of day; None before a whole day."""
    today = int(now_s // DAY_S)
    past = [(hour, times) for day, hour, _, times in hours if (day - _EPOCH).days < today]
    whole = sum(times for _, times in past)
    if not whole:
        return None
    hour, rest_s = divmod(now_s % DAY_S, HOUR_S)
    return sum(times * (1.0 if at < hour else rest_s / HOUR_S if at == hour else 0.0) for at, times in past) / whole


def to_local_s(local: datetime) -> float:
    """Convert local time to seconds whose whole days begin at the operator's midnight, for ad traffic."""
    offset = local.utcoffset() or timedelta()
    return local.timestamp() + offset.total_seconds()


class SlotLearner:
    """Learn the visibility of each ad slot relative to the first; ``factors`` is a guess until there are clicks."""

    def __init__(self, slots: int) -> None:
        self.factors: Floats = FIRST_FACTORS[:slots]
        self._counts = SlotCounts(0, slots)
        self._until_s = float("-inf")

    def learn(self, ledger: LedgerView, catalog: AdCatalog, told: AdPriors, until_s: float) -> None:
        """Learn ad slot visibility from impressions up to a time after which clicks on them no longer count."""
        if len(self.factors) == 1 or until_s <= self._until_s:
            return
        after_s = max(self._until_s, until_s - LOOKBACK_S)
        self._add_counts(ledger.tally_by_slot(after_s, until_s), catalog)
        self._until_s = until_s
        found = self._counts.estimate_factors(told, catalog.all_ads())
        self.factors = self.factors if found is None else found

    def _add_counts(self, tallies: list[SlotTally], catalog: AdCatalog) -> None:
        """Add the ad ledger's slot counts, except of slots no longer shown and ads that do not run."""
        slots = len(self.factors)
        rows = [(catalog.get_row(one.ad, one.phrase), one) for one in tallies if one.slot < slots]
        known = [(row, one.slot, one.shown, one.clicked) for row, one in rows if row is not None]
        if known:
            row, slot, shown, clicked = (np.array(column) for column in zip(*known, strict=True))
            self._counts.add(row, slot, shown.astype(np.float64), clicked.astype(np.float64))
