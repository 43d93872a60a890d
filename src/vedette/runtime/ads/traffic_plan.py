"""The plan of a day's traffic for sponsored results, made of what the ledger has counted hour by hour."""

from collections.abc import Mapping, Sequence
from datetime import date

import numpy as np

from vedette.serve.ads.pacing import DAY_S, NO_TRAFFIC, Traffic, noticed

__all__ = ["HOUR_S", "past_traffic", "share_by_now"]

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
