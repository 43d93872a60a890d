"""The traffic plan is built from the ledger's counts, hour by hour, as if it had been updated live."""

from datetime import date, timedelta

import numpy as np
import pytest

from vedette.serve.ads.learning import build_traffic, estimate_day_share
from vedette.serve.ads.pacing import NO_TRAFFIC, expected_queries

FIRST = date(2027, 1, 10)
DAY_S, HOUR_S = 86_400.0, 3600.0
START_S = (FIRST - date(1970, 1, 1)).days * DAY_S
HOURS = [(FIRST + timedelta(days=day), hour, "shoes", 10) for day in range(2) for hour in (8, 20)]
HOURS.append((FIRST + timedelta(days=1), 20, "unknown", 99))


def test_past_days_say_what_is_still_to_come() -> None:
    """Half of a day's queries come in the evening; phrases without bids are left out."""
    traffic = build_traffic(HOURS, {"hats": 0, "shoes": 1}, START_S + 2 * DAY_S + 12 * HOUR_S)
    assert traffic.days == 2
    assert expected_queries(traffic, START_S + 2 * DAY_S + 12 * HOUR_S).tolist() == [0.0, 10.0]
    assert expected_queries(traffic, START_S + 2 * DAY_S).tolist() == [0.0, 20.0]


def test_without_a_past_there_is_no_plan() -> None:
    """In this case, nothing is discounted."""
    assert build_traffic([], {}, START_S) is NO_TRAFFIC
    assert build_traffic([], {"shoes": 0}, START_S).days == 0
    assert estimate_day_share([], START_S) is None
    today = [(FIRST, 8, "shoes", 10)]
    assert estimate_day_share(today, START_S + 12 * HOUR_S) is None


@pytest.mark.parametrize(("hour", "share"), [(0.0, 0.0), (8.5, 0.25), (12.0, 0.5), (20.5, 0.75), (23.0, 1.0)])
def test_a_share_of_the_usual_day(hour: float, share: float) -> None:
    """It is the share that usually comes by this time of day, with a part of the current hour."""
    assert np.isclose(estimate_day_share(HOURS[:4], START_S + 2 * DAY_S + hour * HOUR_S) or 0.0, share)
