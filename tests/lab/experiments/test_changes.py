"""The experiment "changes": its counts, and the significance level of the test for memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lab.histories import P, V, web

from vedette.errors import UsageError
from vedette.lab.core.experiment import Measurements, Span, resolve_span
from vedette.lab.experiments.changes import (
    VersionSpans,
    build_rows,
    build_version_spans,
    compute_hazard_ratios,
    estimate_survival,
    normalize_gaps,
    run_greenwood_test,
    select_discoveries,
)
from vedette.lab.worlds.history import History
from vedette.policy import Floats

DAY_S = 86400.0
MONDAY_S = 4 * DAY_S  # 5 January 1970


def page(*days: float, died: float = np.inf, waves: tuple[float, ...] = ()) -> P:
    """Return a page with versions on these days; the first is its birth."""
    return P([V(day * DAY_S, wave=day in waves) for day in days], died_s=died * DAY_S)


def summary(history: History, begin: float, end: float, *, waves: bool = True) -> Measurements:
    """Return the summary row."""
    return build_rows(history, begin * DAY_S, end * DAY_S, waves=waves, seed=1)[0]


def test_rates_count_time_without_change_at_the_ends() -> None:
    """A page that is watched for 20 days changes twice, another one dies after 5 days: 2 changes in 25 page-days."""
    history = web([page(0, 4, 10), page(0, died=5)])
    row = summary(history, 0, 20)
    assert row["rate_d"] == pytest.approx(2 / 25)
    assert (row["pages"], row["changes"], row["unchanged"]) == (2, 2, 1 / 2)


def test_a_span_counts_only_what_lies_in_it() -> None:
    """From day 2 to day 8, there is one change in 6 days; the first version was 2 days old at the start."""
    spells = build_version_spans(web([page(0, 4, 10)]), 2 * DAY_S, 8 * DAY_S, waves=True)
    assert (spells.entry_s / DAY_S).tolist() == [2, 0]
    assert (spells.exit_s / DAY_S).tolist() == [4, 4]
    assert spells.changed.tolist() == [True, False]


def test_waves_can_be_left_out() -> None:
    """Versions from waves are not changes: two versions become one."""
    history = web([page(0, 4, 10, waves=(4,))])
    assert summary(history, 0, 20)["wave_share"] == 1 / 2
    spells = build_version_spans(history, 0.0, 20 * DAY_S, waves=False)
    assert (spells.exit_s / DAY_S).tolist() == [10, 10]


def test_a_birth_in_a_wave_is_still_a_birth() -> None:
    """A page that first appears in a wave counts as new, with or without waves."""
    spells = build_version_spans(web([page(3, 4, waves=(3,))]), 0.0, 20 * DAY_S, waves=False)
    assert (spells.begin_s / DAY_S).tolist() == [3, 4]


def test_lifetimes_by_product_limit() -> None:
    """Versions end at 1 and 4 days, and are censored at 2 and 5.

    Of 4 versions, 3/4 live longer than 1 day; of the 2 left, half live longer than 4.
    """
    history = web([page(0, 1, died=3), page(0, 4, died=9)])
    lives = estimate_survival(build_version_spans(history, 0.0, 20 * DAY_S, waves=True))
    assert [lives.share_at(days * DAY_S) for days in (0.5, 1.0, 4.0)] == pytest.approx([1, 3 / 4, 3 / 8])
    assert lives.quantile(0.5) == 4 * DAY_S
    assert np.isnan(lives.quantile(0.9))


def test_versions_that_were_old_count_from_their_age_on() -> None:
    """A version that is first watched at age 3 gives no information about ends at age 2."""
    ones = VersionSpans(
        np.array([0, 1]),
        np.array([0.0, 0.0]),
        np.array([2.0, 2.0]),
        np.array([0.0, 3.0]),
        np.array([2.0, 5.0]),
        np.array([True, True]),
        np.array([False, False]),
    )
    assert estimate_survival(ones).share.tolist() == [0.0, 0.0]


def test_ages_are_weighed_by_time() -> None:
    """A page that changes after 4 of 10 days spends 3 + 5 of its 10 days at an age above one day."""
    rows = build_rows(web([page(0, 4)]), 0.0, 10 * DAY_S, waves=True, seed=1)
    aged = {row["age_d"]: row["aged"] for row in rows if "age_d" in row}
    assert aged[0.0] == 1.0
    assert aged[1.0] == pytest.approx(8 / 10)


def test_hours_of_the_week_begin_on_monday() -> None:
    """A change on a Monday at 9:30 UTC is in hour 9, and within working hours."""
    at_s = MONDAY_S + 9.5 * 3600
    rows = build_rows(web([P([V(0.0), V(at_s)])]), 0.0, 20 * DAY_S, waves=True, seed=1)
    assert [row["hour"] for row in rows if row.get("hour_share")] == [9]
    assert rows[0]["working_share"] == 1.0


def test_a_memoryless_page_is_rejected_no_more_often_than_stated() -> None:
    """Of 2,000 Poisson pages, about 5% have a p-value of at most 5%, within three standard deviations."""
    rng = np.random.default_rng(8)
    pages = [normalize_gaps(0.0, 1.0, np.sort(rng.random(size))) for size in rng.integers(5, 60, 2000)]
    p = run_greenwood_test([gaps for gaps in pages if gaps is not None], seed=1).p
    for level in (0.01, 0.05, 0.2):
        assert abs((p <= level).mean() - level) < 3 * np.sqrt(level * (1 - level) / 2000)


def test_over_many_seeds_memoryless_webs_are_seldom_accused() -> None:
    """In at most 5% of webs of 40 memoryless pages (plus a margin for chance), some page appears to have a memory."""
    accused = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        pages = [normalize_gaps(0.0, 1.0, np.sort(rng.random(12))) for _ in range(40)]
        accused += bool(
            select_discoveries(run_greenwood_test([gaps for gaps in pages if gaps is not None], seed=1).p).any()
        )
    assert accused <= 100 * 0.05 + 3 * np.sqrt(100 * 0.05 * 0.95)


def _judged(days: Floats, end: float) -> Measurements:
    return summary(web([page(0, *days)]), 0, end)


def test_a_periodic_page_is_found_to_be_regular() -> None:
    """A page that changes every third day for two months is regular, not memoryless."""
    row = _judged(np.arange(3.0, 60.0, 3.0), 60)
    assert (row["tested"], row["not_memoryless"], row["regular"]) == (1, 1.0, 1.0)


def test_a_page_that_changes_in_bursts_is_found_to_do_so() -> None:
    """Ten changes within a day, a month of silence, and ten more changes are bursts."""
    row = _judged(np.concatenate([np.linspace(1, 2, 10), np.linspace(30, 31, 10)]), 60)
    assert (row["not_memoryless"], row["bursts"]) == (1.0, 1.0)


def test_pages_with_few_changes_are_not_tested() -> None:
    """Four changes are not enough for a test; five are."""
    assert normalize_gaps(0.0, 9.0, np.arange(1.0, 5.0)) is None
    assert normalize_gaps(0.0, 9.0, np.arange(1.0, 6.0)) is not None


def test_of_many_changes_the_first_count() -> None:
    """The window ends at the first change that is not counted, so all gaps are complete."""
    gaps = normalize_gaps(0.0, 1e9, np.arange(1.0, 1001.0))
    assert gaps is not None
    assert gaps.max() == pytest.approx(gaps.min())


@given(st.lists(st.floats(0.001, 1.0), min_size=6, max_size=50))
def test_gaps_divide_the_window(lengths: list[float]) -> None:
    """The shares of the gaps add up to 1."""
    ends = np.cumsum(lengths)
    gaps = normalize_gaps(0.0, float(ends[-1]), ends[:-1])
    assert gaps is not None
    np.testing.assert_allclose(gaps, np.array(lengths) / ends[-1], rtol=1e-6, atol=1e-9)


def test_the_hazard_of_memoryless_pages_is_level() -> None:
    """At every age, in units of their mean interval, Poisson pages change at the expected rate."""
    rng = np.random.default_rng(3)
    pages = [normalize_gaps(0.0, 1.0, np.sort(rng.random(size))) for size in rng.integers(5, 40, 3000)]
    ratios = compute_hazard_ratios([gaps for gaps in pages if gaps is not None], (0.0, 0.5, 1.0, 2.0, 3.0))
    assert ratios == pytest.approx([1.0] * 5, abs=0.05)


def test_the_hazard_of_periodic_pages_is_at_the_period() -> None:
    """A regular page never changes before half its interval, and far more often after it."""
    gaps = normalize_gaps(0.0, 20.0, np.arange(1.0, 20.0))
    assert gaps is not None
    early, late = compute_hazard_ratios([gaps], (0.0, 0.5))
    assert early == 0.0
    assert late > 1.5


def test_spans_are_read_within_the_world() -> None:
    """Dates and numbers of days both work, anything outside is cut off, and an empty span is refused in words."""
    assert resolve_span(Span(), 5.0, 9.0) == (5.0, 9.0)
    assert resolve_span(Span("1969-01-01", "2"), 0.0, 9 * DAY_S) == (0.0, 2 * DAY_S)
    with pytest.raises(UsageError, match="1970-01-01 to 1970-01-10"):
        resolve_span(Span("1999-01-01", ""), 0.0, 9 * DAY_S)
    with pytest.raises(UsageError, match="tomorrow"):
        resolve_span(Span("tomorrow", ""), 0.0, 9 * DAY_S)
