"""The metrics of discovery, each computed by hand."""

import math

import numpy as np
import pytest

from vedette.lab.metrics.discovery import (
    coverage,
    hours_to_discovery,
    htd_p90,
    htd_p90_found,
    overhead,
    overhead_mean,
    regret,
)

HOUR_S = 3600.0
NEVER = np.nan


def hours(*values: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Times in seconds."""
    return np.array(values) * HOUR_S


def test_coverage_is_the_share_found() -> None:
    """Three of four were found: 3/4. Without any, there is no share."""
    assert coverage(hours(1, NEVER, 3, 9)) == 3 / 4
    assert math.isnan(coverage(hours()))


def test_overhead_has_two_forms() -> None:
    """Pandey08's own example: 5 fetches for 100 new pages are 5%.

    Two sites at two times: 1 look for 10 finds, 5 for 10, 4 for none, 2 for 1. The sums are 12 looks and 21 finds. The
    ratios where there are finds are 1/10, 1/2 and 2; their mean is 2.6/3.
    """
    assert overhead(5, 100) == 0.05
    looks, finds = np.array([[1, 5], [4, 2]]), np.array([[10, 10], [0, 1]])
    assert overhead(looks, finds) == pytest.approx(12 / 21)
    assert overhead_mean(looks, finds) == pytest.approx(2.6 / 3)


def test_overhead_without_finds_is_infinite() -> None:
    """Three polls without finds have infinite overhead; no polls and no finds have none."""
    assert overhead([3], [0]) == math.inf
    assert overhead_mean(np.array([3]), np.array([0])) == math.inf
    assert math.isnan(overhead([0], [0]))


def test_hours_run_from_appearing_to_being_found() -> None:
    """Appeared at 1, 2 and 4 o'clock; found at 1 and 7; the third never, no one saw it from 10 on: 0, 5, 6 h."""
    waited = hours_to_discovery(hours(1, 2, 4), hours(5, 9, 10), hours(1, 7, NEVER))
    assert waited.tolist() == [0.0, 5.0, 6.0]


def test_the_90th_percentile_counts_what_was_never_found() -> None:
    """Eleven targets appear at 0. Nine are found after 0, 1 … 8 h; two never, and are gone after 20 and 30 h.

    Sorted, the hours are 0 … 8, 20, 30. The 90th percentile of eleven is the tenth: 20 h. Of the nine that were found
    it is at position 0.9 * 8 = 7.2, between 7 and 8 h: 7.2 h.
    """
    appeared_s, found_s = hours(*[0] * 11), hours(*range(9), NEVER, NEVER)
    gone_s = hours(*[40] * 9, 20, 30)
    assert htd_p90(appeared_s, gone_s, found_s) == pytest.approx(20.0)
    assert htd_p90_found(appeared_s, found_s) == pytest.approx(7.2)


def test_missing_more_never_helps_where_the_missed_live_long() -> None:
    """Ten targets are visible for 50 h. Finding one of them at once gives 0 h by the published form, 50 h by ours."""
    appeared_s, gone_s, found_s = hours(*[0] * 10), hours(*[50] * 10), hours(0, *[NEVER] * 9)
    assert htd_p90_found(appeared_s, found_s) == 0.0
    assert htd_p90(appeared_s, gone_s, found_s) == 50.0


def test_regret_is_what_the_bound_found_more() -> None:
    """94 of the bound's 100: 6%. A myopic bound may be beaten: 105 against 100 is -5%.

    Without finds, there is no number.
    """
    assert regret(94, 100) == pytest.approx(0.06)
    assert regret(105, 100) == pytest.approx(-0.05)
    assert math.isnan(regret(0, 0))
