"""Expected gain: sooner if it pays off, later if it costs more, and no page starves."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.policy import Floats, rng_for
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.policies.expected_gain import ExpectedGain

DAY_S = 86_400.0
POLICY = ExpectedGain()


def batch(
    last_d: float, before_d: float | None, changed: list[bool], gain: list[float] | None = None, cost: float = 1.0
) -> KnownPages:
    """Return the same pages, all fetched on one day."""
    count = len(changed)
    return KnownPages(
        np.arange(count),
        np.full(count, last_d * DAY_S),
        np.array(changed),
        np.full(count, before_d is None),
        np.full(count, np.nan),
        before_s=np.full(count, np.nan if before_d is None else before_d * DAY_S),
        gain=np.array(gain) if gain else np.full(count, np.nan),
        cost=np.full(count, cost),
    )


def learned(pattern: list[list[bool]], gain: list[float] | None = None) -> tuple[Memory, KnownPages]:
    """Return pages that were fetched every ten days, with outcomes by the rows of a pattern."""
    state = POLICY.observe(POLICY.start(None), batch(10.0, None, [False] * len(pattern[0])), 10 * DAY_S)
    seen = batch(10.0, None, pattern[0])
    for turn, row in enumerate(pattern, start=2):
        seen = batch(10.0 * turn, 10.0 * (turn - 1), row, gain)
        state = POLICY.observe(state, seen, 10.0 * turn * DAY_S)
    return state, seen


def due_d(state: Memory, seen: KnownPages, price: float) -> Floats:
    """Return when pages are due, in days."""
    now = float(seen.last_fetch_s[0])
    return POLICY.due(state, seen, now, price, rng_for(1, "tests/expected-gain")) / DAY_S


def test_what_a_change_brings_makes_it_due_sooner() -> None:
    """Of two pages that change equally often, the one whose changes gain more is fetched sooner."""
    state, seen = learned([[True, True], [False, False]] * 3, gain=[5.0, 0.1])
    rich, poor = due_d(state, seen, 2.0)
    assert rich < poor


def test_what_costs_more_waits_longer() -> None:
    """Twice the cost is twice the price."""
    state, seen = learned([[True, False]] * 3)
    dear = replace(seen, cost=seen.cost * 2)
    assert due_d(state, dear, 0.5).tolist() == due_d(state, seen, 1.0).tolist()


@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=6), st.floats(1e-6, 1e6))
def test_no_page_is_starved_and_none_is_due_before_its_fetch(pattern: list[list[bool]], price: float) -> None:
    """Whatever was found and whatever the price, a page is due after its last fetch, within the longest wait."""
    state, seen = learned(pattern)
    waits = due_d(state, seen, price) - seen.last_fetch_s / DAY_S
    assert (waits >= 0).all()
    assert (waits <= POLICY.longest_s / DAY_S + 1e-6).all()


@given(st.floats(1e-3, 1e3), st.floats(1.0, 10.0))
def test_a_higher_price_never_makes_a_page_due_sooner(price: float, factor: float) -> None:
    """Due times follow the price."""
    state, seen = learned([[True, False, False], [False, True, False]])
    assert (due_d(state, seen, price * factor) >= due_d(state, seen, price)).all()


@given(st.floats(1e-2, 10.0))
def test_a_page_is_worth_its_price_when_it_is_due(price: float) -> None:
    """At its due time, it is due."""
    state, seen = learned([[True, False, False], [False, True, False]])
    now = float(due_d(state, seen, price).max()) * DAY_S
    again = POLICY.due(state, seen, now, price, rng_for(1, "tests/expected-gain"))
    assert (again <= now + DAY_S).any()


def test_where_pages_die_others_are_looked_after_and_rates_stay() -> None:
    """If pages of a section are gone, the others are worth more, but do not change more; the cause is given."""
    policy, day_s = POLICY, DAY_S
    pages, no = 20, np.zeros(20, bool)
    groups = {"section": np.repeat([2, 3], 10), "site": np.ones(20, np.int64)}
    known = KnownPages(np.arange(pages), np.full(pages, day_s), no, ~no, np.full(pages, np.nan), **groups)
    state = policy.observe(policy.start(None), known, day_s)
    some = known.select(np.isin(np.arange(pages), [0, 1, 2, 10, 11, 12]))
    later = replace(
        some, first_fetch=np.zeros(6, bool), last_fetch_s=np.full(6, 40 * day_s), before_s=np.full(6, day_s)
    )
    gone = np.array([True] * 3 + [False] * 3)
    without = policy.observe(state, later.select(~gone), 40 * day_s)
    after = policy.observe(state, replace(later, gone=gone, changed=gone), 40 * day_s)
    left = known.select(np.array([5, 15]))
    worth = policy.value(after, left, 41 * day_s)
    assert worth[0] > 1.1 * worth[1]
    calm, dying = (policy.rates(each, left).mean for each in (without, after))
    np.testing.assert_allclose(dying, calm)
    assert policy.causes(after, left, 0, 41 * day_s) == ["pages near it have disappeared"]
    for other in (state, without):
        assert policy.causes(other, left, 0, 41 * day_s) == []


def announced(told: list[bool], changed: list[bool], rounds: int = 8) -> tuple[Memory, KnownPages]:
    """Return pages that are fetched every ten days, some of them announced as changed on the day before."""
    state = POLICY.observe(POLICY.start(None), batch(10.0, None, [False] * len(told)), 10 * DAY_S)
    seen = batch(10.0, None, changed)
    for turn in range(2, rounds + 2):
        day = 10.0 * turn
        signal_s = np.where(told, (day - 1) * DAY_S, np.nan)
        seen = replace(batch(day, day - 10.0, changed), signal_s=signal_s, heard_s=np.full(len(told), day * DAY_S))
        state = POLICY.observe(state, seen, day * DAY_S)
    return state, seen


def waits_d(state: Memory, seen: KnownPages, *, heard: bool, read_d: float = 2.0) -> float:
    """Return how long the last page waits from two days after its fetch, with or without an announcement.

    The sitemap was last fetched this many days after the page.
    """
    now = float(seen.last_fetch_s[-1]) + 2 * DAY_S
    heard_s = seen.last_fetch_s + read_d * DAY_S
    text = replace(seen, signal_s=np.full(len(seen), now - 60.0 if heard else np.nan), heard_s=heard_s)
    due_s = POLICY.due(state, text, now, 0.3, rng_for(1, "tests/expected-gain"))
    return float(due_s[-1] - now) / DAY_S


def test_a_site_that_announces_its_changes_is_believed() -> None:
    """If announcements came before changes and only then, an announcement makes the page due sooner."""
    state, seen = announced(told=[True, True, False, False], changed=[True, True, False, False])
    assert waits_d(state, seen, heard=True) < waits_d(state, seen, heard=False) / 2


def test_a_site_that_cries_wolf_is_not() -> None:
    """After false announcements, another one shortens the wait less."""
    wolf, _ = announced(told=[True] * 4, changed=[False] * 4)
    honest, seen = announced(told=[True, True, False, False], changed=[True, True, False, False])
    parts = [waits_d(state, seen, heard=True) / waits_d(state, seen, heard=False) for state in (wolf, honest)]
    assert parts[0] > 2 * parts[1]


def test_where_nobody_announces_anything_silence_says_nothing() -> None:
    """A page of a silent site waits as long as without announcements.

    If changes are announced, silence is reassuring.
    """
    changed = [True, True, False, False]
    silent, seen = announced(told=[False] * 4, changed=changed)
    telling, _ = announced(told=changed, changed=changed)
    assert waits_d(silent, seen, heard=False) < waits_d(telling, seen, heard=False)


def test_silence_counts_up_to_the_last_read_of_the_sitemap() -> None:
    """If changes are announced, a page waits less the longer ago its sitemap was fetched."""
    state, seen = announced(told=[True, True, False, False], changed=[True, True, False, False])
    waits = [waits_d(state, seen, heard=False, read_d=read_d) for read_d in (0.0, 1.0, 2.0)]
    assert waits[0] < waits[1] < waits[2]


def test_a_site_that_fell_silent_is_trusted_less_and_less() -> None:
    """After many times the usual gap between its announcements, silence has almost no weight."""
    state, seen = announced(told=[True, True, False, False], changed=[True, True, False, False])

    def staleness(wait_d: float, *, is_read: bool) -> float:
        later = replace(seen, last_fetch_s=seen.last_fetch_s + wait_d * DAY_S, signal_s=np.full(4, np.nan))
        at_s = later.last_fetch_s + 5 * DAY_S
        read_s = at_s if is_read else np.full(4, np.nan)
        chance = POLICY.chance(state, replace(later, heard_s=read_s), at_s)
        return float(-np.log1p(-chance[0]))

    trusted, doubted = (staleness(wait_d, is_read=True) / staleness(wait_d, is_read=False) for wait_d in (1.0, 200.0))
    assert trusted < 0.5
    assert doubted > 0.9


def test_certain_changes_are_worth_no_more_than_their_hazard_allows() -> None:
    """A page that was found changed each day is worth no more than its hazard allows, however long it waits."""
    state = POLICY.observe(POLICY.start(None), batch(1.0, None, [False]), DAY_S)
    for day in range(2, 40):
        seen = batch(float(day), day - 1.0, [True])
        state = POLICY.observe(state, seen, day * DAY_S)
    days = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    worth = np.array([POLICY.value(state, seen, (39.0 + day) * DAY_S)[0] for day in days])
    assert (worth < 2.0).all()  # it changes at least every other day, so a copy is of use for two at most


STORIES = st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.05, 30.0)), min_size=1, max_size=8)


@settings(max_examples=20)  # each teaches all models
@given(story=STORIES, wait_d=st.floats(0.0, 400.0), heard=st.booleans(), read=st.floats(0.0, 1.0))
def test_no_fetch_is_worth_more_than_mu_over_h(
    *, story: list[tuple[bool, bool, float]], wait_d: float, heard: bool, read: float
) -> None:
    """Whatever was found and announced or not, worth times cost is at most weight over hazard."""
    state, day = POLICY.observe(POLICY.start(None), batch(1.0, None, [False]), DAY_S), 1.0
    for changed, told, gap_d in story:
        seen = replace(
            batch(day + gap_d, day, [changed], gain=[1.0]),
            signal_s=np.array([(day + gap_d / 2) * DAY_S if told else np.nan]),
        )
        day += gap_d
        state = POLICY.observe(state, seen, day * DAY_S)
    now = (day + wait_d) * DAY_S
    signal_s = np.array([(day + wait_d / 2) * DAY_S if heard else np.nan])
    seen = replace(seen, signal_s=signal_s, heard_s=np.array([(day + read * wait_d) * DAY_S]))
    hazard = POLICY.belief(state, seen, np.array([now])).belief.hazard
    worth = POLICY.value(state, seen, now)
    assert (worth >= 0).all()
    assert (worth * hazard * seen.cost <= POLICY.weights(state, seen) * (1 + 1e-9)).all()


def test_causes_are_named() -> None:
    """An explanation gives the cause of an estimate.

    An announcement, or the lack of one from a site that announces changes.
    """
    state, seen = announced(told=[True, True, False, False], changed=[True, True, False, False])
    now = float(seen.last_fetch_s[0]) + 5 * DAY_S
    quiet = replace(seen, signal_s=np.full(4, np.nan), heard_s=np.full(4, now))
    loud = replace(quiet, signal_s=np.full(4, now - 60.0))
    assert any("did not announce" in cause for cause in POLICY.causes(state, quiet, 0, now))
    assert any("announced" in cause for cause in POLICY.causes(state, loud, 0, now))
    assert "50% chance of a change within" in POLICY.reason(state, quiet, 0, now)


def test_a_wave_is_named_as_a_cause() -> None:
    """Most pages of a quiet section have changed, and the last one was not fetched since."""
    grouped = {"section": np.full(9, 2), "site": np.ones(9, np.int64)}
    state, quiet = POLICY.start(None), replace(batch(9.0, 1.0, [False] * 9), **grouped)
    fetches = [(replace(batch(1.0, None, [False] * 9), **grouped), 1.0), (quiet, 9.0)]
    changed = replace(batch(19.0, 9.0, [True] * 9), **grouped)
    fetches += [(changed.select(np.arange(4)), 19.0), (changed.select(np.arange(4, 8)), 19.5)]
    for seen, day in fetches:
        state = POLICY.observe(state, seen, day * DAY_S)
    assert POLICY.causes(state, quiet, 8, 20 * DAY_S) == ["pages near it changed together"]
