"""One-day and n-day rules as policies: exact due times, ordered by price, bounded, and learning."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.policy import Due, Floats, rng_for
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.hazards import EDGES_D, FLOOR, LifeCurves, empty_memory, get_life_curves, learn
from vedette.refresh.policies.greedy_c1 import GreedyC1
from vedette.refresh.policies.greedy_c2 import GreedyC2
from vedette.refresh.policies.n_day import NDay

DAY_S = 86_400.0
Rule = GreedyC1 | GreedyC2 | NDay
every_rule = pytest.mark.parametrize(
    "rule", [GreedyC1(), GreedyC2(), NDay(days=1), NDay()], ids=lambda rule: f"{rule.name}"
)
numbers = st.integers(0, 19)


def looks(
    count: int, *, at_d: float, changed: Bools | Floats | None = None, first: bool = False, cost: float = 1.0
) -> KnownPages:
    """Return fetches of pages 0, 1 … at one time."""
    return KnownPages(
        np.arange(count),
        np.full(count, at_d * DAY_S),
        np.zeros(count, bool) if changed is None else changed.astype(bool),
        np.full(count, first),
        np.full(count, np.nan),
        cost=np.full(count, cost),
    )


@cache
def watched(number: int, days: int = 30) -> tuple[Memory, KnownPages]:
    """Return pages fetched daily, each with its own probability of change, and the latest fetches."""
    rng = rng_for(number, "test/watched")
    chance = rng.random(12) ** 3
    batch = looks(12, at_d=0, first=True)
    memory = learn(empty_memory(), batch)
    for day in range(1, days + 1):
        batch = looks(12, at_d=day, changed=rng.random(12) < chance)
        memory = learn(memory, batch)
    return memory, batch


def wait_d(rule: Rule, memory: Memory, batch: KnownPages, price: float) -> Floats:
    """Return how long each page waits, with a fixed seed."""
    due: Floats = (rule.due(memory, batch, 0.0, price, rng_for(1, "test")) - batch.last_fetch_s) / DAY_S
    return due


def test_they_are_due_policies() -> None:
    """The type checker agrees that all have the shape that the coordinator needs."""
    rules: list[Due[None, Memory, KnownPages, KnownPages]] = [GreedyC1(), GreedyC2(), NDay()]
    assert [rule.name for rule in rules] == ["greedy-c1", "greedy-c2", "n-day"]


@given(numbers, st.floats(0.01, 0.9))
def test_c1_is_due_when_the_chance_reaches_the_price(number: int, price: float) -> None:
    """The time is exact, except for a random thousandth of the wait, and never after the bound."""
    memory, batch = watched(number)
    exact = GreedyC1()._wait_d(memory, batch, price)
    chance = 1 - get_life_curves(memory, batch).survival(exact)
    on_time = exact < 180
    assert chance[on_time] == pytest.approx(np.full(on_time.sum(), price))
    assert (chance[~on_time] <= price + 1e-9).all()
    assert wait_d(GreedyC1(), memory, batch, price) == pytest.approx(exact, rel=1e-3)


@given(numbers, st.floats(0.1, 50.0))
def test_c2_is_due_when_the_days_out_of_date_reach_the_price(number: int, price: float) -> None:
    """Z is unbounded, so there is a due day at any price, if not before the bound."""
    memory, batch = watched(number)
    exact = GreedyC2()._wait_d(memory, batch, price)
    late_d = get_life_curves(memory, batch).expected_staleness(exact)
    on_time = exact < 180
    assert late_d[on_time] == pytest.approx(np.full(on_time.sum(), price))
    assert (late_d[~on_time] <= price + 1e-9).all()
    assert wait_d(GreedyC2(), memory, batch, price) == pytest.approx(exact, rel=1e-3)


@every_rule
@settings(max_examples=25)
@given(number=numbers, prices=st.tuples(st.floats(0, 3), st.floats(0, 3)).map(sorted))
def test_a_higher_price_is_never_sooner(rule: Rule, number: int, prices: list[float]) -> None:
    """Spending depends on the price in the expected direction."""
    memory, batch = watched(number, days=8)
    low, high = (wait_d(rule, memory, batch, price) for price in prices)
    assert (low <= high + 1e-3).all()


@every_rule
@settings(max_examples=25)
@given(number=numbers, price=st.floats(0, 1e6), cost=st.floats(0.01, 1e6))
def test_nobody_waits_longer_than_the_bound(rule: Rule, number: int, price: float, cost: float) -> None:
    """This is true however expensive a page is, and however rarely it changes."""
    memory, _ = watched(number, days=3)
    wait = wait_d(rule, memory, looks(12, at_d=3, cost=cost), price)
    assert (wait >= 0).all()
    assert (wait <= 180.0).all()


@given(numbers, st.floats(0.02, 0.9))
def test_one_day_ahead_is_the_one_day_rule(number: int, price: float) -> None:
    """A plan of one day polls if the probability is above the price."""
    memory, batch = watched(number)
    assert wait_d(NDay(days=1), memory, batch, price) == pytest.approx(
        wait_d(GreedyC1(), memory, batch, price), abs=0.01
    )


def test_planning_ahead_turns_from_fast_pages_to_slow_ones() -> None:
    """As in table 1, the one-day rule favors the faster page, and planning ahead shifts polls to the slower one."""
    lives = LifeCurves(np.zeros(2), np.array([[2.0], [0.1]]) * np.ones(len(EDGES_D)))
    toll = np.full(2, 0.8)
    one, three = (NDay(days=days)._wait_d(lives, toll) for days in (1, 3))
    assert one[0] < one[1]
    assert three[1] / three[0] < one[1] / one[0]


def test_changes_that_come_soon_after_changes_are_learned() -> None:
    """Pages that only change at age 0 to 1 have a high rate there, and a low one later."""
    rng = rng_for(1, "test/bursts")
    batch = looks(400, at_d=0, first=True)
    memory = learn(empty_memory(), batch)
    age = np.zeros(400)
    for half_day in range(1, 80):
        changed = rng.random(400) < np.where(age < 1, 0.3, 0.005)
        age = np.where(changed, 0.25, age + 0.5)
        memory = learn(memory, looks(400, at_d=half_day / 2, changed=changed))
    changes, watched_d = np.split(memory.groups[0], 2)
    rates = changes[:4] / watched_d[:4]
    assert rates[0] > 10 * rates[2]


def test_a_section_and_a_page_have_rates_of_their_own() -> None:
    """There are two sections, a busy and a quiet one, and a page that is busier than its section."""
    batch = looks(20, at_d=0, first=True)
    section = np.repeat([1, 2], 10)
    memory = empty_memory()
    for day in range(60):
        changed = (section == 1) & (np.arange(20) % 3 == day % 3) | (np.arange(20) == 19)
        batch = looks(20, at_d=day, changed=changed, first=day == 0)
        batch = KnownPages(
            batch.place, batch.last_fetch_s, batch.changed, batch.first_fetch, batch.modified_s, section=section
        )
        memory = learn(memory, batch)
    rate = get_life_curves(memory, batch).rate[:, 0]
    assert rate[:10].min() > 2 * rate[10:19].max()
    assert rate[19] > 3 * rate[10:19].max()


def test_what_tells_nothing_is_not_counted() -> None:
    """First fetches, and pages that are found gone, give no information about changes."""
    memory = learn(empty_memory(), looks(3, at_d=0, changed=np.ones(3), first=True))
    assert memory.groups.sum() == 0
    gone = KnownPages(
        np.arange(3), np.full(3, DAY_S), np.ones(3, bool), np.zeros(3, bool), np.full(3, np.nan), gone=np.ones(3, bool)
    )
    assert learn(memory, gone).groups.sum() == 0


def test_no_rate_is_below_the_floor() -> None:
    """Even after years without a change, there is a small probability, or a page would be forgotten."""
    memory = learn(empty_memory(), looks(5, at_d=0, first=True))
    for year in range(1, 30):
        memory = learn(memory, looks(5, at_d=365.0 * year))
    assert get_life_curves(memory, looks(5, at_d=0)).rate.min() >= FLOOR


def test_the_servers_word_on_the_last_change_counts() -> None:
    """If the server states a time, it is used as the age, unless it is in the future."""
    batch = KnownPages(
        np.arange(2), np.full(2, 10 * DAY_S), np.zeros(2, bool), np.ones(2, bool), np.array([4 * DAY_S, 99 * DAY_S])
    )
    assert get_life_curves(learn(empty_memory(), batch), batch).age_d.tolist() == [6.0, 0.0]


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf, np.nan])
def test_a_bound_that_is_none_is_refused(wrong: float) -> None:
    """An invalid configuration is reported."""
    for rule in (GreedyC1, GreedyC2, NDay):
        with pytest.raises(ConfigError):
            rule(bound_d=wrong)
