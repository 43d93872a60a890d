"""Confidence intervals and p-values: examples calculated by hand, and actual coverage."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.core.statistics import adjust_holm, bootstrap_interval, compare_paired

values = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)
shares = st.lists(st.floats(0, 1), max_size=12)


@pytest.mark.parametrize("draw", ["normal", "exponential"])
def test_an_interval_holds_the_true_mean_about_as_often_as_it_says(draw: str) -> None:
    """Of 400 samples of ten, the 95% interval contains the true mean in at least 91%, for symmetric and skewed values.

    With a true coverage of 93%, the count would be below 91% with a probability of one in twenty; the seeds are fixed.
    """
    held = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        sample = rng.normal(size=10) if draw == "normal" else rng.exponential(size=10) - 1
        found = bootstrap_interval(sample, seed)
        held += found.low <= 0 <= found.high
    assert 0.91 <= held / 400 <= 0.99


@given(values)
def test_an_interval_lies_within_its_values(sample: list[float]) -> None:
    """No resampled mean is outside the range of the values, so neither end is."""
    found = bootstrap_interval(sample)
    slack = 1e-9 * max(1.0, *map(abs, sample))
    assert min(sample) - slack <= found.low <= found.high <= max(sample) + slack
    assert found.n == len(sample)


@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=12), st.integers(-1000, 1000))
def test_an_interval_moves_with_its_values(sample: list[int], by: int) -> None:
    """Adding the same amount to every value moves the mean and both ends by it."""
    before, after = bootstrap_interval(sample), bootstrap_interval([value + by for value in sample])
    assert np.allclose(np.array(after[:3]), np.array(before[:3]) + by, atol=1e-6)


def test_more_values_make_a_narrower_interval() -> None:
    """With four times as many samples, the interval is about half as wide."""
    rng = np.random.default_rng(5)
    few, many = bootstrap_interval(rng.normal(size=50)), bootstrap_interval(rng.normal(size=200))
    assert 1.5 < (few.high - few.low) / (many.high - many.low) < 2.7


def test_too_few_values_have_no_interval() -> None:
    """One value has a mean but no interval, no values have neither, and NaN does not count."""
    assert bootstrap_interval([4.0])[0] == 4.0
    assert math.isnan(bootstrap_interval([4.0, math.nan]).low)
    assert math.isnan(bootstrap_interval([]).mean)
    assert bootstrap_interval([]).n == 0


def test_the_same_seed_gives_the_same_interval() -> None:
    """The seed determines the draws; another one gives another interval."""
    sample = [1.0, 5.0, 2.0, 8.0, 3.0]
    assert bootstrap_interval(sample, 1) == bootstrap_interval(sample, 1)
    assert bootstrap_interval(sample, 1) != bootstrap_interval(sample, 2)


def test_p_of_a_difference_worked_out_by_hand() -> None:
    """Differences 1, 2 and 3 sum to 6; of the eight sign patterns, only +++ and --- reach 6: p = 2/8.

    With 1, 2 and -3 the sum is 0, which every pattern reaches: p = 1.
    """
    assert compare_paired([2, 4, 6], [1, 2, 3]).p == 2 / 8
    assert compare_paired([2, 4, 0], [1, 2, 3]).p == 1.0


def test_pairs_share_what_is_common() -> None:
    """A small constant gain is detected even if runs differ a lot, because each is compared with its own pair."""
    rng = np.random.default_rng(3)
    worlds = rng.normal(0, 10, 30)
    better = worlds + 0.5 + rng.normal(0, 0.1, 30)
    found = compare_paired(better, worlds)
    assert 0.4 < found.low <= found.mean <= found.high < 0.6
    assert found.p < 0.001
    assert bootstrap_interval(better).low < bootstrap_interval(worlds).high


def test_chance_alone_is_seldom_called_a_difference() -> None:
    """If there is no difference, p is below 0.05 in at most about one of twenty comparisons."""
    rng = np.random.default_rng(11)
    alarms = [compare_paired(rng.normal(size=10), rng.normal(size=10)).p < 0.05 for _ in range(300)]
    assert np.mean(alarms) < 0.08


def test_holm_worked_out_by_hand() -> None:
    """Of three, 0.01 becomes 0.03; of the remaining two, 0.03 becomes 0.06; 0.04 alone would be less, so it is 0.06."""
    assert adjust_holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert adjust_holm([0.6, 0.7]) == [1.0, 1.0]
    assert adjust_holm([0.02, math.nan])[0] == 0.02


@given(shares)
def test_holm_only_makes_it_harder(ps: list[float]) -> None:
    """No p decreases, none exceeds 1, and their order stays the same."""
    corrected = adjust_holm(ps)
    assert all(before <= after <= 1 for before, after in zip(ps, corrected, strict=True))
    order = sorted(range(len(ps)), key=lambda place: ps[place])
    assert [corrected[place] for place in order] == sorted(corrected)
