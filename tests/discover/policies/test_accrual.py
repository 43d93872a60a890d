"""The default discovery policy: it polls where waiting would lose most, and learns from the results."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.overlap import AccrualState, compute_accrued
from vedette.discover.polling.poll_value import (
    estimate_rates,
    estimate_yield,
    get_weekly_pace,
)
from vedette.discover.polling.sources import PollHistory, PollResults
from vedette.lab.core.registry import DEFAULT, find_policy
from vedette.policy import Ints, rng_for

HOUR_S = 3_600.0
DAY_S = 24 * HOUR_S
POLICY = Accrual()


class Site:
    """Sources that are polled every hour or on request; each poll gets the links to show."""

    def __init__(self, hosts: list[int]) -> None:
        self.book, self.state = PollHistory(np.array(hosts)), POLICY.start(None)
        self.known: dict[int, None] = {}

    def look(self, shows: dict[int, list[int]], now: float, *, ok: bool = True) -> None:
        """Poll the sources of ``shows`` now."""
        start = np.cumsum([0, *(len(links) for links in shows.values())])
        target = np.array([link for links in shows.values() for link in links], np.int64)
        new = np.array([link not in self.known for link in target.tolist()], bool)
        self.known.update(dict.fromkeys(target.tolist()))
        received = PollResults(np.array(list(shows), np.int64), np.full(len(shows), ok), start, target, new)
        self.state = POLICY.observe(self.state, self.book.record(received, now), now)

    def picks(self, k: int, now: float, seed: int = 1) -> list[int]:
        """Return which source the policy polls next."""
        rows: list[int] = POLICY.choose(
            self.state, self.book.list_options(), k, now, rng_for(seed, "discover")
        ).rows.tolist()
        return rows


def stream(first: int, hour: int, rate: int, stays: int) -> list[int]:
    """Return the links of a source by hour, if ``rate`` links appear per hour and stay for some hours."""
    return [first + rate * born + nth for born in range(max(hour - stays + 1, 0), hour + 1) for nth in range(rate)]


def steady(rate: list[int], stays: list[int], hours: int, hosts: list[int] | None = None) -> Site:
    """Poll every source every hour."""
    site = Site(hosts or [0] * len(rate))
    for hour in range(hours):
        site.look({at: stream(at * 10**6, hour, rate[at], stays[at]) for at in range(len(rate))}, hour * HOUR_S)
    return site


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=6), st.floats(0.1, 500.0))
def test_more_time_since_the_last_look_never_lowers_the_worth(looks: list[tuple[int, int]], earlier_h: float) -> None:
    """For any history: the longer ago the last poll of a source was, the more a poll now is expected to bring."""
    site = Site([0, 0, 1, 1])
    for hour, (place, many) in enumerate(looks):
        site.look({place: list(range(hour, hour + many))}, hour * HOUR_S)
    now = (len(looks) + 1) * HOUR_S
    state = site.state.ensure_places(site.book.list_options())
    looked_s = state.arrivals.looked_s
    for place in range(len(looked_s)):
        before = compute_accrued(_looked_at(state, place, looked_s[place]), np.array([place]), now)
        longer = _looked_at(state, place, looked_s[place] - earlier_h * HOUR_S)
        assert (compute_accrued(longer, np.array([place]), now) >= before - 1e-9).all()


def _looked_at(state: AccrualState, place: int, at_s: float) -> AccrualState:
    """Return the same belief, as if the last poll of a source had been at another time."""
    if not np.isfinite(at_s):
        return state
    looked_s, filled = state.arrivals.looked_s.copy(), state.arrivals.filled.copy()
    looked_s[place] = at_s
    filled[place] = state.arrivals.compute_fill(state.arrivals.host[[place]], np.array([at_s]))[0]
    copied = {name: getattr(state.arrivals, name) for name in state.arrivals.__slots__}
    return AccrualState(type(state.arrivals)(**(copied | {"looked_s": looked_s, "filled": filled})), state.overlap)


def test_the_busy_are_looked_at_before_the_quiet() -> None:
    """Of two sources whose links last equally long, the one with more new links comes first."""
    site = steady([1, 6], [8, 8], 30)
    assert site.picks(1, 31 * HOUR_S) == [1]


def test_what_stays_can_wait() -> None:
    """Of two equally productive sources, the one whose links vanish sooner comes first."""
    site = steady([4, 4], [60, 1], 80)
    assert site.picks(1, 80 * HOUR_S) == [1]


def test_a_source_that_shows_what_another_just_showed_is_worth_less() -> None:
    """Of two sources that show the same links, one is worth little just after the other was polled."""
    site = Site([0, 0, 1])
    for hour in range(60):
        same = stream(0, hour, 5, 8)
        site.look({0: same, 1: same, 2: stream(10**6, hour, 5, 8)}, hour * HOUR_S)
    late = 70 * HOUR_S
    alone = estimate_yield(site.state, site.book.list_options(), late)
    site.look({0: stream(0, 69, 5, 8)}, late - 60.0)
    after = estimate_yield(site.state, site.book.list_options(), late)
    assert after[1] < 0.5 * alone[1]
    assert after[2] == pytest.approx(alone[2], rel=0.2)


def test_relatives_are_not_chosen_together() -> None:
    """If two of three sources show the same links, two polls go to different links."""
    site = Site([0, 0, 1])
    for hour in range(60):
        same = stream(0, hour, 5, 8)
        site.look({0: same, 1: same, 2: stream(10**6, hour, 3, 8)}, hour * HOUR_S)
    assert 2 in site.picks(2, 60 * HOUR_S)


def test_overlap_is_learned_though_only_one_is_looked_at_at_a_time() -> None:
    """Alternating polls also reveal that two sources show the same links."""
    site = Site([0, 0])
    for hour in range(80):
        site.look({hour % 2: stream(0, hour, 5, 12)}, hour * HOUR_S)
    share = site.state.overlap.estimate_share(np.array([0]))[0]
    assert share[site.state.overlap.other[0] == 1].max() > 0.5


def test_a_new_source_starts_where_its_host_is() -> None:
    """A source that was never polled is expected to yield as much as others on its host."""
    site = steady([9, 0], [8, 8], 40, [0, 1])
    book = PollHistory(np.array([0, 1, 0, 1]))
    mean = estimate_rates(site.state, book.list_options()).mean
    assert mean[2] > 2 * mean[3]


def test_a_source_that_is_down_is_left_for_longer_and_longer() -> None:
    """A source that keeps failing is not polled, and is polled again once it responds."""
    site = steady([2, 9], [8, 8], 30)
    for hour in range(30, 36):
        site.look({1: []}, hour * HOUR_S, ok=False)
    assert site.picks(1, 36 * HOUR_S) == [0]
    site.look({0: stream(0, 36, 2, 8), 1: stream(10**6, 36, 9, 8)}, 36 * HOUR_S)
    assert site.picks(1, 38 * HOUR_S) == [1]


def test_the_rhythm_of_the_day_is_learned() -> None:
    """If links appear only at noon, noon is expected to bring more than midnight."""
    site = Site([0])
    links: list[int] = []
    for hour in range(24 * 8):
        links = [*links, *range(100 * hour, 100 * hour + 8)][-40:] if 10 <= hour % 24 < 14 else links
        site.look({0: links}, hour * HOUR_S + 1.0)
    week = get_weekly_pace(site.state, 0).reshape(7, 24).mean(axis=0)
    assert week[11] > 2 * week[2]


def test_what_is_rare_is_not_forgotten() -> None:
    """A page that yielded links in a few weeks is still distinguished a year later from one that never did."""
    site = Site([0, 0])
    for week in range(80):
        site.look({0: [week] if week in (3, 6, 9) else [], 1: []}, week * 7 * DAY_S)
    mean = estimate_rates(site.state, site.book.list_options()).mean
    assert mean[0] > 1.5 * mean[1]


def test_a_rebuilt_site_does_not_outweigh_what_came_for_years() -> None:
    """A page with a single burst of sixty links is polled after a steady one."""
    site = Site([0] * 12)
    for week in range(80):
        shows: dict[int, list[int]] = {at: [] for at in range(12)}
        shows[0] = [week] if week % 5 == 0 else []
        shows[1] = list(range(900, 960)) if week == 60 else []
        site.look(shows, week * 7 * DAY_S)
    assert site.picks(1, 80 * 7 * DAY_S) == [0]


def test_a_source_that_turns_busy_for_good_is_believed() -> None:
    """Several polls in a row with similar yields don't count as a single burst."""
    site = Site([0, 0])
    for week in range(60):
        busy = range(10_000 + 60 * week, 10_000 + 60 * week + 60 if week >= 50 else 0)
        site.look({0: [2 * week, 2 * week + 1], 1: list(busy)}, week * 7 * DAY_S)
    assert site.picks(1, 60 * 7 * DAY_S) == [1]


def test_a_dull_source_that_becomes_the_best_is_found() -> None:
    """A source that suddenly yields more than all others after an empty month soon gets most polls."""
    site = Site([0] * 4)
    later: list[int] = []
    for step in range(360):
        picks = site.picks(1, step * DAY_S / 4)
        rates = [4, 3, 2, 40 if step >= 120 else 0]
        site.look({at: stream(at * 10**6, step, rates[at], 2) for at in picks}, step * DAY_S / 4)
        later += picks if step >= 300 else []
    assert later.count(3) > len(later) / 2


def test_a_source_that_never_brought_anything_has_its_turn_again() -> None:
    """Even if no poll ever found a link, some source is worth a small price after weeks."""
    site = Site([0])
    for day in range(60):
        site.look({0: []}, day * DAY_S)
    policy, options = Accrual(price=0.05), site.book.list_options()
    soon, late = (
        policy.choose(site.state, options, 1, (59 + days) * DAY_S, rng_for(1, "discover")).rows for days in (2, 20)
    )
    assert (len(soon), len(late)) == (0, 1)


def test_looks_to_learn_are_few() -> None:
    """At least nine in ten polls go to productive sources rather than to ones that never change."""
    site = Site([0] * 40)
    dull = 0
    for step in range(400):
        picks = site.picks(2, step * HOUR_S)
        site.look({at: stream(at * 10**6, step, 5 if at < 4 else 0, 3) for at in picks}, step * HOUR_S)
        dull += sum(at >= 4 for at in picks) if step >= 200 else 0
    assert dull < 2 * 200 / 10


def test_same_seed_same_picks() -> None:
    """Choices depend on the arguments only."""
    one, other = (steady([1, 2, 3], [4, 8, 2], 6) for _ in range(2))
    assert one.picks(2, 7 * HOUR_S, 5) == other.picks(2, 7 * HOUR_S, 5)


def test_a_higher_price_is_reached_later_and_within_bounds() -> None:
    """Due times rise with the price, from five minutes to thirty days."""
    site = steady([1, 6], [8, 2], 30)
    now, options = 30 * HOUR_S, site.book.list_options()
    prices = [0.0, 0.1, 1.0, 3.0, 1e9]
    times = np.array([Accrual(price=price).forecast(site.state, options, np.inf, now) for price in prices]) - now
    assert (np.diff(times, axis=0) >= 0).all()
    assert times.min() == 0.0
    assert times.max() == pytest.approx(30 * DAY_S)


def test_at_its_due_time_a_source_is_worth_the_price() -> None:
    """At the time a price is reached, the index nearly equals the price."""
    site = steady([6], [8], 30)
    now, options = 30 * HOUR_S, site.book.list_options()
    price = float(POLICY.compute_values(site.state, options, np.inf, now + 5 * HOUR_S).total[0])
    when = float(Accrual(price=price).forecast(site.state, options, np.inf, now)[0])
    assert POLICY.compute_values(site.state, options, np.inf, when).total[0] == pytest.approx(price, rel=0.1)


def test_the_interval_of_a_rate_holds_its_mean_and_narrows() -> None:
    """More observations leave less uncertainty."""
    short, long = (
        estimate_rates(site.state, site.book.list_options()) for site in (steady([3], [8], 5), steady([3], [8], 90))
    )
    assert (short.low < short.mean).all()
    assert (short.mean < short.high).all()
    assert (long.high - long.low < short.high - short.low).all()


def test_memory_grows_with_sources_and_not_with_links() -> None:
    """A year of links at one source takes as much space as a day of them."""
    day, weeks = steady([50], [2], 24), steady([50], [2], 24 * 7)
    assert _size(day.state) == _size(weeks.state)


def _size(state: AccrualState) -> int:
    arrays: list[Ints] = [getattr(part, name) for part in state for name in part.__slots__]
    return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))


def test_default_leads_to_it() -> None:
    """It is the lab's default discovery policy."""
    assert find_policy("discover", DEFAULT).name == POLICY.name


def test_nobody_to_look_at() -> None:
    """Without sources or without a budget, nothing is chosen."""
    empty = PollHistory(np.zeros(0, np.int64)).list_options()
    assert len(POLICY.choose(POLICY.start(None), empty, 3, 0.0, rng_for(1, "discover")).rows) == 0
    assert steady([1], [2], 3).picks(0, 9 * HOUR_S) == []
