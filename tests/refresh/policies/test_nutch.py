"""Nutch's adaptive schedule: the direction of the interval, its bounds, and a bug in Nutch itself."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.errors import ConfigError
from vedette.policy import Due, Floats, rng_for
from vedette.refresh.known_pages import KnownPages
from vedette.refresh.policies.nutch import Nutch

DAY_S = 86_400.0
policies = st.builds(
    lambda rates, intervals_s, sync: Nutch(
        inc_rate=rates[0],
        dec_rate=rates[1],
        sync_delta_rate=rates[2],
        min_interval_s=intervals_s[0],
        first_interval_s=intervals_s[1],
        max_interval_s=intervals_s[2],
        sync_delta=sync,
    ),
    st.tuples(st.floats(0, 3), st.floats(0, 0.99), st.floats(0, 1)),
    st.lists(st.floats(1, 1e8), min_size=3, max_size=3).map(sorted),
    st.booleans(),
)
times_s = st.floats(0, 4e9)
visits = st.lists(
    st.tuples(times_s, st.booleans(), st.booleans(), times_s | st.just(float("nan"))), min_size=1, max_size=8
)


def known(rows: list[tuple[float, bool, bool, float]], places: list[int] | None = None) -> KnownPages:
    """Return a batch of rows of last fetch, changed, first fetch and modification time."""
    fetched_s, changed, first, modified_s = zip(*rows, strict=True)
    return KnownPages(
        np.arange(len(rows)) if places is None else np.array(places),
        np.array(fetched_s),
        np.array(changed),
        np.array(first),
        np.array(modified_s),
    )


def visit(*, at_s: float = 0.0, changed: bool = False, first: bool = False, modified_s: float = np.nan) -> KnownPages:
    """Return one fetch of one page."""
    return known([(at_s, changed, first, modified_s)])


def due_s(policy: Nutch, state: Floats, batch: KnownPages) -> Floats:
    """Return when each page is due."""
    return policy.due(state, batch, 0.0, 0.0, rng_for(1, "test"))


def test_it_is_a_due_policy() -> None:
    """The type checker agrees that the policy has the shape that the coordinator needs."""
    policy: Due[None, Floats, KnownPages, KnownPages] = Nutch()
    assert policy.name == "nutch"


def test_unchanged_grows_changed_shrinks() -> None:
    """The interval grows by 40% or shrinks by 20%, the rates in Nutch's documentation."""
    policy = Nutch()
    state = policy.observe(np.array([DAY_S, DAY_S]), known([(0, False, False, 0), (0, True, False, 0)]), 0.0)
    assert state / DAY_S == pytest.approx([1.4, 0.8])


def test_a_first_fetch_starts_the_interval() -> None:
    """With nothing to compare with, the first interval is used, whatever the row contains."""
    policy = Nutch(first_interval_s=7_200.0)
    for changed in (False, True):
        batch = visit(at_s=50.0, changed=changed, first=True)
        state = policy.observe(np.array([DAY_S]), batch, 50.0)
        assert due_s(policy, state, batch).tolist() == [7_250.0]


@given(policies, visits, st.lists(st.floats(0, 1e9), max_size=8))
def test_no_due_time_leaves_the_bounds(
    policy: Nutch, rows: list[tuple[float, bool, bool, float]], kept: list[float]
) -> None:
    """It is never before the shortest interval after the fetch (NUTCH-1564), and never after the longest."""
    batch = known(rows)
    wait_s = due_s(policy, policy.observe(np.array(kept, dtype=np.float64), batch, 0.0), batch) - batch.last_fetch_s
    # Two doubles near 4e9 s lie less than a microsecond apart.
    assert np.all(wait_s >= policy.min_interval_s - 1e-5)
    assert np.all(wait_s <= policy.max_interval_s + 1e-5)


def test_a_page_unmodified_for_long_is_not_fetched_at_once() -> None:
    """This is NUTCH-1564: at most a week between fetches, a month without changes, and still a day to wait."""
    policy = Nutch(min_interval_s=DAY_S, first_interval_s=2 * DAY_S, max_interval_s=7 * DAY_S, sync_delta=True)
    batch = visit(at_s=30 * DAY_S, modified_s=0.0)
    state = policy.observe(np.array([2 * DAY_S]), batch, 30 * DAY_S)
    assert due_s(policy, state, batch)[0] >= 31 * DAY_S


def test_sync_delta_leans_towards_the_change() -> None:
    """An unchanged page waits at least as long as it has been unchanged, less a share of that time."""
    policy = Nutch(sync_delta=True, sync_delta_rate=0.25)
    batch = visit(at_s=100 * DAY_S, modified_s=96 * DAY_S)
    state = policy.observe(np.array([DAY_S]), batch, 0.0)
    assert state.tolist() == [4 * DAY_S]
    assert due_s(policy, state, batch).tolist() == [103 * DAY_S]


def test_modification_times_count_only_with_sync_delta() -> None:
    """By default, the server's modification time has no effect."""
    policy = Nutch()
    silent, talking = visit(at_s=9 * DAY_S), visit(at_s=9 * DAY_S, modified_s=DAY_S)
    state = np.array([DAY_S])
    after = policy.observe(state, silent, 0.0)
    assert after.tolist() == policy.observe(state, talking, 0.0).tolist()
    assert due_s(policy, after, silent).tolist() == due_s(policy, after, talking).tolist()


@given(visits, st.permutations(range(8)))
def test_pages_do_not_touch_each_other(rows: list[tuple[float, bool, bool, float]], places: list[int]) -> None:
    """A batch only affects its own pages, in any order, and equals the pages fetched one by one."""
    policy = Nutch()
    kept = np.linspace(DAY_S, 8 * DAY_S, 12)
    places = places[: len(rows)]
    together = policy.observe(kept, known(rows, places), 0.0)
    one_by_one = kept
    for row, place in zip(rows, places, strict=True):
        one_by_one = policy.observe(one_by_one, known([row], [place]), 0.0)
    assert together.tolist() == one_by_one.tolist()
    others = sorted(set(range(12)) - set(places))
    assert together[others].tolist() == kept[others].tolist()


@given(visits, st.permutations(range(8)))
def test_a_slice_of_the_state_is_as_good_as_all_of_it(
    rows: list[tuple[float, bool, bool, float]], places: list[int]
) -> None:
    """The coordinator may pass only the elements of the batch, so the cost only depends on the batch."""
    policy = Nutch()
    kept = np.linspace(DAY_S, 8 * DAY_S, 8)
    at = places[: len(rows)]
    whole = policy.observe(kept, known(rows, at), 0.0)
    sliced = policy.observe(kept[at], known(rows), 0.0)
    assert sliced.tolist() == whole[at].tolist()
    assert due_s(policy, sliced, known(rows)).tolist() == due_s(policy, whole, known(rows, at)).tolist()


def test_a_page_that_the_state_does_not_know_gets_the_first_interval() -> None:
    """The state grows to the highest index; pages in between stay without an interval."""
    policy = Nutch()
    batch = known([(0.0, False, False, 0.0)], [3])
    assert due_s(policy, policy.start(None), batch).tolist() == [policy.first_interval_s]
    state = policy.observe(policy.start(None), batch, 0.0)
    assert state[:3].tolist() == [0.0] * 3
    assert state[3] > policy.first_interval_s


def test_the_interval_settles_near_the_rhythm_of_a_page() -> None:
    """A page that changes every ten days is fetched neither daily nor monthly, whatever the initial interval."""
    policy = Nutch()
    for start_s in (policy.min_interval_s, policy.max_interval_s):
        state, now_s, intervals_s = np.array([start_s]), 0.0, []
        for _ in range(300):
            before_s, now_s = now_s, now_s + float(state[0])
            changed = now_s // (10 * DAY_S) != before_s // (10 * DAY_S)
            state = policy.observe(state, visit(at_s=now_s, changed=changed), now_s)
            intervals_s.append(state[0])
        assert 3 * DAY_S < np.median(intervals_s[100:]) < 20 * DAY_S


def test_a_page_twice_in_a_batch_is_a_bug() -> None:
    """One of two fetches of a page in a batch would be lost, so it raises an error."""
    with pytest.raises(AssertionError, match="twice"):
        Nutch().observe(np.zeros(0), known([(0, False, False, 0), (1, True, False, 0)], [2, 2]), 0.0)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Nutch(inc_rate=-0.1),
        lambda: Nutch(dec_rate=1.0),
        lambda: Nutch(sync_delta_rate=1.5),
        lambda: Nutch(min_interval_s=0.0),
        lambda: Nutch(min_interval_s=2 * DAY_S),
        lambda: Nutch(max_interval_s=60.0),
        lambda: Nutch(first_interval_s=float("nan")),
    ],
)
def test_settings_that_cannot_work_are_refused(wrong: Callable[[], Nutch]) -> None:
    """Rates and intervals that would never settle, or never change, are configuration errors."""
    with pytest.raises(ConfigError, match="nutch"):
        wrong()


def test_the_reason_says_what_was_found_and_how_long() -> None:
    """It gives the outcome and the wait in hours."""
    policy = Nutch()
    batch = known([(0, False, False, 0), (0, True, False, 0), (0, False, True, 0)])
    state = np.array([7_200.0, 7_200.0, 0.0])
    reasons = [policy.reason(state, batch, row, 0.0) for row in range(3)]
    assert ["unchanged" in reasons[0], "found changed" in reasons[1], "once" in reasons[2]] == [True] * 3
    assert ["2.0 h" in reasons[0], "24.0 h" in reasons[2]] == [True, True]
