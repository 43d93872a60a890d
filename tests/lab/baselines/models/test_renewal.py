"""Continuous time: the two-stage model of the print, and renewal against what is known in closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.lab.baselines.models.renewal import Renewal, TwoStageLife, memoryless_survival

rates = st.floats(0.05, 20.0)


@given(rates, rates)
def test_two_stages_are_likeliest_where_their_densities_meet(motive: float, response: float) -> None:
    """The maximum of eq. 3 lies at ln(l1 / l2) / (l1 - l2); eq. 4 is misprinted."""
    model = TwoStageLife(motive, response)
    around = model.density(model.mode * np.array([0.9, 0.99, 1.0, 1.01, 1.1]))
    assert around.argmax() == 2
    own = [rate * np.exp(-rate * model.mode) for rate in (motive, response)]
    assert own[0] == pytest.approx(own[1])


@given(rates, rates)
def test_two_stages_survive_what_their_density_leaves(motive: float, response: float) -> None:
    """Survival and density belong together, and few changes come just after a change."""
    model = TwoStageLife(motive, response)
    times = np.linspace(0.0, 5 / min(motive, response), 20_001)
    lost = np.trapezoid(model.density(times), times)
    assert 1 - model.survival(times[-1:])[0] == pytest.approx(lost, abs=1e-4)
    hazard = model.hazard(times)
    assert hazard[0] == pytest.approx(0.0, abs=1e-9)
    assert hazard[-1] <= min(motive, response) * (1 + 1e-6)


def test_equal_rates_are_the_limit_of_nearly_equal_ones() -> None:
    """Where the print has 0/0, the density goes on smoothly."""
    times = np.linspace(0.0, 5.0, 50)
    near, same = TwoStageLife(2.0, 2.0 * (1 + 1e-5)), TwoStageLife(2.0, 2.0)
    assert same.density(times) == pytest.approx(near.density(times), rel=1e-3)
    assert same.mode == pytest.approx(0.5)


def test_two_stages_far_apart_are_nearly_memoryless() -> None:
    """The slower of both rules, as the print says."""
    times = np.linspace(0.5, 3.0, 20)
    assert TwoStageLife(1.0, 500.0).survival(times) == pytest.approx(np.exp(-times), rel=0.01)


def test_a_memoryless_page_is_renewed_at_its_rate() -> None:
    """Changes of a Poisson process: rate times time, and the age says nothing."""
    page = Renewal(memoryless_survival(0.7))
    assert page.expected_changes(10.0) == pytest.approx(7.0, rel=1e-4)
    assert page.conditional_survival(np.array([0.0, 30.0]), np.array([2.0, 2.0])) == pytest.approx(
        np.full(2, np.exp(-1.4))
    )
    assert page.mean_life(60.0) == pytest.approx(1 / 0.7, rel=1e-4)


def test_two_stages_are_renewed_as_theory_says() -> None:
    """The elementary renewal theorem with its constant: t / mean + (variance - mean^2) / (2 mean^2)."""
    model = TwoStageLife(2.0, 1.0)
    mean, variance = 1 / 2 + 1, 1 / 4 + 1
    assert Renewal(model.survival).mean_life(60.0) == pytest.approx(mean, rel=1e-4)
    expected = 30 / mean + (variance - mean**2) / (2 * mean**2)
    assert Renewal(model.survival).expected_changes(30.0) == pytest.approx(expected, rel=1e-4)


def test_the_age_of_a_page_of_which_nothing_is_known_has_a_density() -> None:
    """Survival over mean life adds up to 1."""
    times = np.linspace(0.0, 40.0, 8_001)
    page = Renewal(TwoStageLife(2.0, 1.0).survival)
    assert np.trapezoid(page.age_density(times, 40.0), times) == pytest.approx(1.0, rel=1e-4)


def test_the_chain_of_two_stages_is_the_same_in_steps() -> None:
    """Unchanged over steps is unchanged over time."""
    model = TwoStageLife(0.4, 0.2)
    in_steps = model.chain(1.0, 40).survival(3, np.arange(10))
    in_time = Renewal(model.survival).conditional_survival(np.full(10, 3.0), np.arange(10.0))
    assert in_steps == pytest.approx(in_time)
