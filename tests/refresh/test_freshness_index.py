"""The freshness index: after its wait, a fetch is worth exactly its price, for any rate, weight and price."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.policy import rng_for
from vedette.refresh.freshness_index import announced_worth, index_wait_days, solve_announced, staleness_worth

positive = st.floats(1e-6, 1e6)


def ones(value: float) -> np.ndarray:
    """Return a column with one row."""
    return np.array([value])


@given(rate=positive, weight=positive, part=st.floats(1e-12, 1 - 1e-9))
def test_after_the_wait_a_fetch_is_worth_its_price(rate: float, weight: float, part: float) -> None:
    """For every price below the page's maximum worth, the wait is finite, and the worth is that price."""
    price = part * weight / rate
    wait = index_wait_days(ones(rate), ones(weight), ones(price))
    assert np.isfinite(wait).all()
    assert weight / rate * staleness_worth(rate * wait) == pytest.approx(price, rel=1e-6)


@given(rate=positive, weight=positive, above=st.floats(1.0, 1e6))
def test_what_never_pays_is_never_due(rate: float, weight: float, above: float) -> None:
    """A fetch is always worth less than weight / rate; at that price or above, it is never made."""
    price = np.nextafter(above * weight / rate, np.inf)
    assert index_wait_days(ones(rate), ones(weight), ones(price * (1 + 1e-9))).tolist() == [np.inf]


@given(rate=positive, prices=st.lists(st.floats(0, 10), min_size=2, max_size=10))
def test_the_dearer_the_later(rate: float, prices: list[float]) -> None:
    """A higher price never makes a page due earlier."""
    ascending = np.sort(np.array(prices))
    waits = index_wait_days(np.full(len(prices), rate), np.ones(len(prices)), ascending)
    assert (waits[1:] >= waits[:-1]).all()


def test_edges_have_no_surprises() -> None:
    """Without a price: immediately. Without changes or weight: never."""
    rate, weight = np.array([0.5, 0.0, 0.5]), np.array([1.0, 1.0, 0.0])
    assert index_wait_days(rate, weight, np.zeros(3)).tolist() == [0.0, np.inf, np.inf]
    assert index_wait_days(rate, weight, np.full(3, 0.1))[1:].tolist() == [np.inf, np.inf]


recalls, falses = st.floats(0.0, 0.99), st.floats(1e-4, 10.0)


@given(recall=recalls, false=falses, staleness=st.lists(st.floats(0, 40), min_size=2, max_size=9).map(sorted))
def test_with_announcements_worth_grows_to_weight_over_rate(
    recall: float, false: float, staleness: list[float]
) -> None:
    """The more outdated a copy, the more a fetch is worth, from nothing up to what its rate allows."""
    count = len(staleness)
    worth = announced_worth(np.array(staleness), np.full(count, recall), np.full(count, false))
    assert (np.diff(worth) >= -1e-9).all()
    assert ((worth >= 0) & (worth <= 1)).all()


@given(recall=recalls, false=falses, part=st.floats(1e-6, 0.999))
def test_the_staleness_that_is_worth_a_price(recall: float, false: float, part: float) -> None:
    """Solving for a worth finds a staleness that has it."""
    found = solve_announced(ones(part), ones(recall), ones(false))
    assert announced_worth(found, ones(recall), ones(false)) == pytest.approx(part, rel=1e-5)


def drawn_cycle(staleness: float, recall: float, false: float, rng: np.random.Generator) -> tuple[float, float]:
    """Draw how long a page waits for a fetch at a staleness, and how long its copy is current.

    Changes occur once per unit of time.
    """
    changes = np.cumsum(rng.exponential(1.0, 60))
    is_told = rng.random(60) < recall
    signals = np.sort(np.concatenate([changes[is_told], np.cumsum(rng.exponential(1 / false, 60))]))
    end, jump = staleness / (1 - recall), np.log1p(recall / false)
    for signal in signals:
        if signal >= end:
            break
        # Before the last announcement anything may have happened, after it only unannounced changes.
        end = max(signal, (staleness - jump - recall * signal) / (1 - recall))
    return end, min(float(changes[0]), end)


@pytest.mark.parametrize(("staleness", "recall", "false"), [(0.4, 0.7, 0.2), (1.0, 0.3, 0.5), (2.0, 0.5, 1.0)])
def test_worth_is_that_of_drawn_cycles(staleness: float, recall: float, false: float) -> None:
    """The closed form is a cycle's fresh time minus its length times its final freshness, as in GREEDY-NCIS."""
    rng = rng_for(1, "tests/announced-worth")
    ends, fresh = np.array([drawn_cycle(staleness, recall, false, rng) for _ in range(20_000)]).mean(axis=0)
    worth = announced_worth(ones(staleness), ones(recall), ones(false))
    assert worth == pytest.approx(fresh - np.exp(-staleness) * ends, abs=0.02)
