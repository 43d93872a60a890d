"""How many pages may leave: never more than the pace and one burst, never less than the pace, whatever the time."""

from collections.abc import Sequence
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from vedette.facts import Site
from vedette.ring.allowance import ALL, Allowance, Bucket
from vedette.ring.budget import Budget
from vedette.ring.kept import KeptHost, Rules

PACES = st.floats(0.001, 10_000.0)
BURSTS = st.floats(1.0, 500.0)
# World time is Unix time or a made web's, so both small and large numbers come.
STARTS = st.sampled_from([0.0, 1000.0, 1.7e9])
STEPS = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=60)
SITE, OTHER = "https://a.test/", "https://b.test/"


def greedy(bucket: Bucket, now_s: float, most: int = 2000) -> int:
    """Take whatever there is at a moment; how many that was."""
    room = min(bucket.room(now_s), most)
    for _ in range(room):
        bucket.take(now_s)
    return room


def times_of(start_s: float, steps: Sequence[float], scale: float) -> list[float]:
    """Moments one after the other."""
    times = [start_s]
    for step in steps:
        times.append(times[-1] + step * scale)
    return times


@given(PACES, BURSTS, STARTS, STEPS)
def test_no_span_of_time_has_more_than_its_pace_and_one_burst(
    per_s: float, burst: float, start_s: float, steps: list[float]
) -> None:
    """Between any two moments no more is taken than came in meanwhile and had been there at most."""
    bucket = Bucket(per_s, burst)
    times = times_of(start_s, steps, 1.0 / per_s)
    taken = [greedy(bucket, now_s) for now_s in times]
    for first in range(len(times)):
        for last in range(first, len(times)):
            # Large times are told to a part of a microsecond only.
            span_s = times[last] - times[first] + 1e-6
            assert sum(taken[first : last + 1]) <= burst + per_s * span_s + 1e-6


@given(PACES, BURSTS, STARTS, st.integers(1, 300))
def test_whoever_comes_when_told_gets_one_each_time(per_s: float, burst: float, start_s: float, count: int) -> None:
    """The time that is told is one at which there is something, so nobody comes in vain, and the pace is kept."""
    bucket = Bucket(per_s, burst)
    now_s = start_s
    for _ in range(count):
        assert bucket.room(now_s) >= 1
        bucket.take(now_s)
        now_s = max(now_s, bucket.ready_s)
    late_s = (max(count + 1 - burst, 0.0)) / per_s
    assert abs(now_s - start_s - late_s) <= 1e-6 * count


@given(PACES, BURSTS, STARTS, STEPS)
def test_it_fills_up_and_no_further(per_s: float, burst: float, start_s: float, steps: list[float]) -> None:
    """However it was emptied, and however long it is left alone, a whole burst is there after its time, and no more."""
    bucket = Bucket(per_s, burst)
    times = times_of(start_s, steps, 1.0 / per_s)
    for now_s in times:
        greedy(bucket, now_s)
    assert bucket.room(times[-1] + (burst + 1.0) / per_s + 1.0) == int(burst)
    assert bucket.room(times[-1] + 1e9) == int(burst)


@given(PACES, BURSTS, STARTS, st.floats(0.0, 1e9))
def test_a_clock_that_was_put_back_changes_nothing(per_s: float, burst: float, start_s: float, back_s: float) -> None:
    """Nothing comes for nothing, and nobody waits until the old time has come again."""
    bucket = Bucket(per_s, burst)
    greedy(bucket, start_s)
    wait_s = bucket.ready_s - start_s
    earlier_s = start_s - back_s
    assert bucket.room(earlier_s) == 0
    assert abs(bucket.ready_s - earlier_s - wait_s) <= 1e-5
    assert bucket.room(bucket.ready_s) >= 1


@given(PACES, BURSTS, st.integers(0, 2000))
def test_what_must_not_wait_slows_the_rest_down_and_does_not_stop_it(per_s: float, burst: float, count: int) -> None:
    """It is counted, but however much of it there is, the others have a turn after two bursts at the latest."""
    bucket = Bucket(per_s, burst)
    for _ in range(count):
        bucket.overdraw(0.0)
    assert bucket.room(0.0) == max(int(burst - count + 1e-9), 0)
    assert bucket.ready_s <= (burst + 2.0) / per_s


@given(st.lists(st.tuples(st.sampled_from([SITE, OTHER]), st.floats(0.0, 3.0)), max_size=200), st.floats(0.05, 1.0))
def test_a_share_is_a_limit_and_not_a_right(asked: list[tuple[str, float]], share: float) -> None:
    """A site with a share takes no more than its part of the pace, all together no more than the pace."""
    per_s, burst_s = 2.0, 3.0
    allowance = Allowance()
    allowance.set_pace(per_s, burst_s, {SITE: share})
    now_s, taken = 0.0, {SITE: 0, OTHER: 0}
    for site, step_s in asked:
        now_s += step_s
        taken[site] += allowance.take(site, now_s)
    assert taken[SITE] <= max(1.0, share * per_s * burst_s) + share * per_s * now_s + 1e-6
    assert sum(taken.values()) <= per_s * (burst_s + now_s) + 1e-6


def test_what_a_site_does_not_take_is_left_to_the_others() -> None:
    """A site without a share has the whole pace while the one with a share is silent."""
    allowance = Allowance()
    allowance.set_pace(2.0, 1.0, {SITE: 0.5})
    assert sum(allowance.take(OTHER, now_s / 2) for now_s in range(100)) == 100


def test_another_pace_brings_no_second_burst() -> None:
    """Whoever changes the rules again and again gets no page out of it."""
    allowance = Allowance()
    taken = 0
    for share in (0.5, 0.4, 0.3, 0.2):
        allowance.set_pace(10.0, 1.0, {SITE: share})
        while allowance.take(OTHER, 5.0):
            taken += 1
    assert taken == 10
    assert allowance.lacking(OTHER, 5.0) == ALL


def test_a_site_hears_of_its_own_share_first() -> None:
    """Where both are spent, it is the share that keeps it waiting; where only the share is, others go on."""
    allowance = Allowance()
    allowance.set_pace(1.0, 4.0, {SITE: 0.25})
    assert allowance.take(SITE, 0.0)
    assert allowance.lacking(SITE, 0.0) == SITE
    assert allowance.lacking(OTHER, 0.0) is None
    assert -inf < allowance.ready_s(SITE) <= 4.0


def test_who_has_news_comes_before_those_that_have_waited() -> None:
    """In the line for the budget, hosts with news go before the others, and among themselves in their order."""
    budget = Budget()
    budget.rule(Rules((Site("https://a.test/"),), budget_per_s=1.0, ahead_s=2.0))
    hosts = [KeptHost(name, number) for number, name in enumerate("abcd")]
    for host in hosts:
        host.news = {7: None} if host.name == "c" else {}
        while budget.take("https://a.test/", 0.0, at_once=False):
            pass
        budget.wait(host, ["https://a.test/"], 0.0)
    hosts[3].news[8] = None
    budget.hasten(hosts[3])
    released = []
    for second in range(1, 9):
        free = budget.released(float(second))
        released += [free.name] if free else []
        budget.take("https://a.test/", float(second), at_once=False)
    assert released == ["c", "d", "a", "b"]
