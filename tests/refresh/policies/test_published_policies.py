"""The published refresh policies: what they learn, and that a fetch is worth the price at its due time."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.lab.core.registry import load_policies
from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.policies.ebr import Ebr
from vedette.refresh.policies.freshness import Freshness
from vedette.refresh.policies.lambdacrawl import LambdaCrawl
from vedette.refresh.policies.sbr import Sbr
from vedette.refresh.policies.stormcrawler import StormCrawler
from vedette.refresh.policies.uniform import Uniform
from vedette.refresh.policies.user_centric import UserCentric

DAY_S, HOUR_S = 86_400.0, 3_600.0
PRICED = (Freshness(), LambdaCrawl(), Sbr(), Ebr(), UserCentric())
each = pytest.mark.parametrize("policy", PRICED, ids=lambda policy: policy.name)


def looks(days: list[float], changed: list[bool], **columns: Any) -> KnownPages:
    """Return one fetch of each page, this many days after the previous one, which was at time 0."""
    count = len(days)
    return KnownPages(
        np.arange(count),
        np.array(days) * DAY_S,
        np.array(changed, bool),
        np.zeros(count, bool),
        np.full(count, np.nan),
        before_s=np.zeros(count),
        **{name: np.array(values) for name, values in columns.items()},
    )


def learned(policy: Any, *batches: KnownPages) -> Memory:
    """Return a policy's memory after these observations."""
    memory = policy.start(None)
    for batch in batches:
        memory = policy.observe(memory, batch, 0.0)
    assert isinstance(memory, Memory)
    return memory


def waits_d(policy: Any, memory: Memory, batch: KnownPages, price: float) -> Floats:
    """Return the days from the last fetch until each page is due."""
    due_s = policy.due(memory, batch, 0.0, price, rng_for(1, "tests/published"))
    waits: Floats = (due_s - batch.last_fetch_s) / DAY_S
    return waits


def some_fetches(seed: int, count: int = 12) -> KnownPages:
    """Return fetches with every available column."""
    rng = rng_for(seed, "tests/published/fetches")
    changed = rng.random(count) < 0.5
    return looks(
        rng.gamma(1.0, 5.0, count).tolist(),
        changed.tolist(),
        gain=np.where(changed, rng.random(count), 0.0),
        share=np.where(changed, rng.random(count), 0.0),
        views=rng.random(count) + 0.01,
        cost=rng.random(count) + 0.5,
    )


@each
@given(seed=st.integers(0, 2**32), prices=st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=6))
def test_the_dearer_the_later(policy: Any, seed: int, prices: list[float]) -> None:
    """A higher price makes no page due earlier, and none is due before its last fetch."""
    batch = some_fetches(seed)
    memory = learned(policy, batch)
    waits = np.stack([waits_d(policy, memory, batch, price) for price in sorted(prices)])
    assert (waits >= 0).all()
    assert (np.maximum.accumulate(waits, axis=0) <= waits * (1 + 1e-12)).all()


@each
def test_a_price_moves_it_and_it_says_so(policy: Any) -> None:
    """Policies that depend on the price declare it, and are rescheduled when it changes; others do not declare it."""
    batch = some_fetches(3)
    memory = learned(policy, batch)
    assert policy.priced
    assert (waits_d(policy, memory, batch, 1e-3) < waits_d(policy, memory, batch, 2e-3)).all()
    assert not any(hasattr(other, "priced") for other in (Uniform(), StormCrawler()))


@each
def test_twice_the_cost_is_twice_the_price(policy: Any) -> None:
    """A page that costs two waits as long as one that costs one at twice the price."""
    cheap = looks([4.0, 9.0], [True, False], gain=[0.5, 0.0], views=[0.5, 0.5])
    dear = looks([4.0, 9.0], [True, False], gain=[0.5, 0.0], views=[0.5, 0.5], cost=[2.0, 2.0])
    memory = learned(policy, cheap)
    assert waits_d(policy, memory, dear, 0.01) == pytest.approx(waits_d(policy, memory, cheap, 0.02))


@each
def test_first_fetches_and_deaths_teach_nothing(policy: Any) -> None:
    """A first fetch has nothing to compare with; one that finds the page gone gives no information about changes."""
    gone = looks([5.0, 5.0], [True, True], gain=[1.0, 1.0], share=[1.0, 1.0], gone=[True, True])
    nothing = learned(policy)
    assert learned(policy, gone).groups.tolist() == nothing.groups.tolist()
    batch = looks([5.0, 5.0], [True, True], gain=[1.0, 1.0])
    assert waits_d(policy, learned(policy, gone), batch, 0.5) == pytest.approx(waits_d(policy, nothing, batch, 0.5))


def test_they_are_found_by_name() -> None:
    """The lab lists them with the others."""
    assert {"uniform", "stormcrawler", *(policy.name for policy in PRICED)} <= set(load_policies("refresh"))


@given(
    days=st.lists(st.floats(0.05, 400), min_size=1, max_size=12),
    lots=st.integers(0, 2**32),
)
def test_lambdacrawl_learns_the_most_likely_rate(days: list[float], lots: int) -> None:
    """With eight sums instead of all intervals, the rate is within 10% of what all intervals would give."""
    changed = rng_for(lots, "tests/lambda").random(len(days)) < 0.5
    memory = learned(LambdaCrawl(), *(looks([day], [bool(one)]) for day, one in zip(days, changed, strict=True)))
    gaps = np.array(days)
    wanted = most_likely(np.append(gaps[changed], 0.5), float(gaps[~changed].sum()) + 0.5)
    assert memory.pages[0, 0] == pytest.approx(wanted, rel=0.1)


def most_likely(changed: Floats, unchanged: float) -> float:
    """Return the root of sum a / (exp(D a) - 1) = unchanged on a fine grid, within its bounds."""
    rates = np.geomspace(0.0005, 7.0, 20_000)
    left = (changed / np.expm1(np.minimum(rates[:, None] * changed, 500.0))).sum(axis=1)
    return float(rates[int(np.argmin(np.abs(np.log(left / unchanged))))])


@given(seed=st.integers(0, 2**32), price=st.floats(1e-3, 1e3))
def test_lambdacrawl_fetches_at_the_published_rate(seed: int, price: float) -> None:
    """One over the wait is the positive root of x (x + D) = mu D / price, and never 0."""
    batch, policy = some_fetches(seed), LambdaCrawl()
    memory = learned(policy, batch)
    often = 1 / waits_d(policy, memory, batch, price)
    rate = memory.pages[:, 0]
    assert often * (often + rate) == pytest.approx(batch.views * rate / (price * batch.cost), rel=1e-6)


def test_small_changes_do_not_make_a_copy_stale_for_sbr() -> None:
    """Of two pages that changed equally often, the one with large changes is fetched sooner; unknown sizes count."""
    batch = looks([5.0] * 3, [True] * 3, share=[0.05, 0.5, np.nan])
    small, large, unknown = waits_d(Sbr(), learned(Sbr(), batch), batch, 0.5)
    assert small > large == unknown


def test_ebr_asks_how_often_a_page_is_shown_and_counts_from_the_threshold_on() -> None:
    """A page shown twice as often waits less, one never shown waits forever; a change of exactly tau is large."""
    batch = looks([5.0] * 4, [True] * 4, share=[0.3, 0.3, 0.3, 0.29], views=[0.2, 0.1, 0.0, 0.1])
    often, rarely, never, small = waits_d(Ebr(tau=0.3), learned(Ebr(tau=0.3), batch), batch, 0.1)
    assert often < rarely < small
    assert never == np.inf


def test_user_centric_means_gains_by_day_and_never_gives_a_page_up() -> None:
    """Gains of 1 in 2 days and 1 in 4 have the mean 3/8; the mean of all, (1/2 + 1/4 + 0) / 3, counts once more."""
    first, second = looks([2.0, 5.0], [True, False], gain=[1.0, 0.0]), looks([4.0], [True], gain=[1.0])
    memory = learned(UserCentric(), first, second)
    waits = waits_d(UserCentric(), memory, first, 1.0)
    assert waits == pytest.approx([1 / ((0.5 + 0.25 + 0.25) / 3), 1 / ((0.0 + 0.25) / 2)])


def test_user_centric_looks_at_everything_until_a_gain_is_known() -> None:
    """Without any known gain, every page is due immediately, whatever the price."""
    batch = looks([5.0, 6.0], [True, False])
    assert waits_d(UserCentric(), learned(UserCentric(), batch), batch, 1e9).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("kind", [Sbr, Ebr])
def test_a_threshold_is_a_part(kind: type[Sbr] | type[Ebr]) -> None:
    """A threshold outside 0 to 1 is refused."""
    with pytest.raises(ConfigError, match="tau"):
        kind(tau=1.5)


def test_stormcrawler_comes_down_half_the_way_and_goes_up_to_two_weeks() -> None:
    """From one day: a change halves the difference to an hour.

    No change makes the interval 1.5 times as long, up to the longest.
    """
    policy, batch = StormCrawler(), looks([1.0, 1.0], [True, False])
    intervals_s = np.full(2, DAY_S)
    assert policy.observe(intervals_s, batch, 0.0).tolist() == [(DAY_S + HOUR_S) / 2, 1.5 * DAY_S]
    for _ in range(20):
        intervals_s = policy.observe(intervals_s, batch, 0.0)
    assert intervals_s == pytest.approx([HOUR_S, 14 * DAY_S], rel=1e-3)
    with pytest.raises(ConfigError, match="intervals"):
        StormCrawler(min_interval_s=2 * DAY_S)
