"""The plan of traffic is made of what the ledger counted, hour by hour, as if it had been watched."""

from datetime import date, timedelta

import numpy as np
import pytest

from vedette.runtime.ads.learning import past_traffic, share_by_now
from vedette.serve.ads.pacing import NO_TRAFFIC, still_to_come

FIRST = date(2027, 1, 10)
DAY_S, HOUR_S = 86_400.0, 3600.0
START_S = (FIRST - date(1970, 1, 1)).days * DAY_S
HOURS = [(FIRST + timedelta(days=day), hour, "shoes", 10) for day in range(2) for hour in (8, 20)]
HOURS.append((FIRST + timedelta(days=1), 20, "unknown", 99))


def test_past_days_say_what_is_still_to_come() -> None:
    """Half of a day's queries come in the evening; phrases that nobody bids for any more are left out."""
    traffic = past_traffic(HOURS, {"hats": 0, "shoes": 1}, START_S + 2 * DAY_S + 12 * HOUR_S)
    assert traffic.days == 2
    assert still_to_come(traffic, START_S + 2 * DAY_S + 12 * HOUR_S).tolist() == [0.0, 10.0]
    assert still_to_come(traffic, START_S + 2 * DAY_S).tolist() == [0.0, 20.0]


def test_without_a_past_there_is_no_plan() -> None:
    """Nothing is discounted then."""
    assert past_traffic([], {}, START_S) is NO_TRAFFIC
    assert past_traffic([], {"shoes": 0}, START_S).days == 0
    assert share_by_now([], START_S) is None
    today = [(FIRST, 8, "shoes", 10)]
    assert share_by_now(today, START_S + 12 * HOUR_S) is None


@pytest.mark.parametrize(("hour", "share"), [(0.0, 0.0), (8.5, 0.25), (12.0, 0.5), (20.5, 0.75), (23.0, 1.0)])
def test_a_share_of_the_usual_day(hour: float, share: float) -> None:
    """What has come by a time of day, of the present hour a part."""
    assert np.isclose(share_by_now(HOURS[:4], START_S + 2 * DAY_S + hour * HOUR_S) or 0.0, share)
