"""The fetch budget: never more than the rate and one burst, never less than the rate, at any time."""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from vedette.engine.coordinator.state import CrawlRules, HostState
from vedette.engine.scheduling.budget import ALL_SITES, BudgetBuckets, FetchBudget, TokenBucket
from vedette.model import Site

PACES = st.floats(0.001, 10_000.0)
BURSTS = st.floats(1.0, 500.0)
# World time is Unix time or a synthetic web's, so both small and large numbers come.
STARTS = st.sampled_from([0.0, 1000.0, 1.7e9])
STEPS = st.lists(st.floats(0.0, 50.0), min_size=1, max_size=60)
SITE, OTHER = "https://a.test/", "https://b.test/"


def greedy(bucket: TokenBucket, now_s: float, most: int = 2000) -> int:
    """Take all tokens that are available at a time; return their number."""
    room = min(bucket.count_available(now_s), most)
    for _ in range(room):
        bucket.take(now_s)
    return room


def times_of(start_s: float, steps: Sequence[float], scale: float) -> list[float]:
    """Return increasing times."""
    times = [start_s]
    for step in steps:
        times.append(times[-1] + step * scale)
    return times


@given(PACES, BURSTS, STARTS, STEPS)
def test_no_span_of_time_has_more_than_its_pace_and_one_burst(
    per_s: float, burst: float, start_s: float, steps: list[float]
) -> None:
    """Between any two moments, no more is taken than was added, plus one full bucket."""
    bucket = TokenBucket(per_s, burst)
    times = times_of(start_s, steps, 1.0 / per_s)
    taken = [greedy(bucket, now_s) for now_s in times]
    for first in range(len(times)):
        for last in range(first, len(times)):
            # Large times are exact only to a part of a microsecond.
            span_s = times[last] - times[first] + 1e-6
            assert sum(taken[first : last + 1]) <= burst + per_s * span_s + 1e-6


@given(PACES, BURSTS, STARTS, st.integers(1, 300))
def test_a_token_is_available_at_the_returned_time(per_s: float, burst: float, start_s: float, count: int) -> None:
    """At the returned time there is a token, so no call is wasted, and the pace is kept."""
    bucket = TokenBucket(per_s, burst)
    now_s = start_s
    for _ in range(count):
        assert bucket.count_available(now_s) >= 1
        bucket.take(now_s)
        now_s = max(now_s, bucket.ready_s)
    late_s = (max(count + 1 - burst, 0.0)) / per_s
    assert abs(now_s - start_s - late_s) <= 1e-6 * count


@given(PACES, BURSTS, STARTS, STEPS)
def test_it_fills_up_and_no_further(per_s: float, burst: float, start_s: float, steps: list[float]) -> None:
    """After any use and any pause, exactly one full burst is available after its time."""
    bucket = TokenBucket(per_s, burst)
    times = times_of(start_s, steps, 1.0 / per_s)
    for now_s in times:
        greedy(bucket, now_s)
    assert bucket.count_available(times[-1] + (burst + 1.0) / per_s + 1.0) == int(burst)
    assert bucket.count_available(times[-1] + 1e9) == int(burst)


@given(PACES, BURSTS, STARTS, st.floats(0.0, 1e9))
def test_setting_the_clock_back_changes_nothing(per_s: float, burst: float, start_s: float, back_s: float) -> None:
    """Setting the clock back grants nothing for free and blocks no one until the old time."""
    bucket = TokenBucket(per_s, burst)
    greedy(bucket, start_s)
    wait_s = bucket.ready_s - start_s
    earlier_s = start_s - back_s
    assert bucket.count_available(earlier_s) == 0
    assert abs(bucket.ready_s - earlier_s - wait_s) <= 1e-5
    assert bucket.count_available(bucket.ready_s) >= 1


@given(PACES, BURSTS, st.integers(0, 2000))
def test_urgent_fetches_slow_the_others_without_stopping_them(per_s: float, burst: float, count: int) -> None:
    """Urgent work is counted, but however much there is, others get a turn after at most two bursts."""
    bucket = TokenBucket(per_s, burst)
    for _ in range(count):
        bucket.overdraw(0.0)
    assert bucket.count_available(0.0) == max(int(burst - count + 1e-9), 0)
    assert bucket.ready_s <= (burst + 2.0) / per_s


class Wanting(NamedTuple):
    """A consumer of pages: its site, its pages per second, and the period in which it wants them."""

    site: str
    per_s: float
    begin_s: float
    end_s: float


class Crowd:
    """Consumers with one host each, which waits for the budget as in the coordinator."""

    def __init__(self, shares: dict[str, float], wanting: Sequence[Wanting], per_s: float) -> None:
        self._budget, self._wanting = FetchBudget(), wanting
        sites = tuple(Site(one.site, share=shares.get(one.site)) for one in wanting)
        self._budget.apply_rules(CrawlRules(sites, budget_per_s=per_s, ahead_s=2.0))
        self._hosts = {one: HostState(one.site, number) for number, one in enumerate(wanting)}
        self._owed = dict.fromkeys(wanting, 0.0)
        self._given: list[tuple[float, str]] = []

    def given(self, for_s: float, step_s: float = 0.05) -> list[tuple[float, str]]:
        """Return which consumer got a page, and when."""
        for step in range(int(for_s / step_s)):
            now_s = step * step_s
            for one in self._wanting:
                more = one.per_s * step_s if one.begin_s <= now_s < one.end_s else 0.0
                self._owed[one] = min(self._owed[one] + more, 3.0)
            while (host := self._budget.pop_ready(now_s)) is not None:
                self._turn(next(one for one in self._wanting if self._hosts[one] is host), now_s)
            for one in self._wanting:
                if self._owed[one] >= 1 and not self._hosts[one].budget_wait:
                    self._turn(one, now_s)
        return self._given

    def _turn(self, one: Wanting, now_s: float) -> None:
        for _ in range(min(int(self._owed[one]), self._budget.get_quota([one.site], now_s))):
            if self._budget.take(one.site, now_s, at_once=False):
                self._given.append((now_s, one.site))
                self._owed[one] -= 1
        if self._owed[one] >= 1:
            self._budget.enqueue(self._hosts[one], [one.site], now_s)


def crowd(shares: dict[str, float], wanting: Sequence[Wanting], per_s: float, for_s: float) -> list[tuple[float, str]]:
    """Return which consumer got a page, and when."""
    return Crowd(shares, wanting, per_s).given(for_s)


def count(given: list[tuple[float, str]], site: str, begin_s: float, end_s: float) -> int:
    """Count the pages that a site got in a period."""
    return sum(begin_s <= at_s < end_s for at_s, name in given if name == site)


PARTS = st.floats(0.1, 0.5)
RATES = st.sampled_from([0.5, 2.0, 10.0])


@settings(max_examples=30)
@given(PARTS, RATES)
def test_a_site_borrows_unused_budget(share: float, per_s: float) -> None:
    """While others are idle, a site with a share gets nearly the whole budget, and never more."""
    given_out = crowd({SITE: share}, [Wanting(SITE, 2 * per_s, 0.0, 1e9)], per_s, 120.0)
    assert 0.95 <= count(given_out, SITE, 20.0, 120.0) / (per_s * 100.0) <= 1.02


@settings(max_examples=30)
@given(PARTS, RATES)
def test_a_borrower_is_held_to_its_share_as_soon_as_others_have_work(share: float, per_s: float) -> None:
    """From the second in which others have work, it gets its share and they get the rest; then it borrows."""
    borrower, busy = Wanting(SITE, 2 * per_s, 0.0, 1e9), Wanting(OTHER, 2 * per_s, 100.0, 200.0)
    given_out = crowd({SITE: share}, [borrower, busy], per_s, 400.0)
    few = 3 + 0.02 * per_s * 100.0
    assert abs(count(given_out, SITE, 100.0, 200.0) - share * per_s * 100.0) <= few
    assert count(given_out, OTHER, 100.0, 200.0) >= (1 - share) * per_s * 100.0 - few
    assert count(given_out, SITE, 300.0, 400.0) >= 0.95 * per_s * 100.0


@settings(max_examples=30)
@given(PARTS, PARTS, RATES)
def test_no_site_is_starved_of_its_share_by_borrowers_or_by_many(own: float, other: float, per_s: float) -> None:
    """A site that wants its share gets it, whichever site borrowed before and however many others want more."""
    late = [Wanting(OTHER, 2 * per_s, 100.0, 1e9), Wanting("https://c.test/", 2 * per_s, 100.0, 1e9)]
    many = [Wanting(f"https://m{number}.test/", 2 * per_s, 0.0, 1e9) for number in range(5)]
    given_out = crowd({SITE: own, OTHER: other}, [Wanting(SITE, 2 * per_s, 0.0, 1e9), *late, *many], per_s, 200.0)
    few = 3 + 0.03 * per_s * 100.0
    total = max(own + other, 1.0)
    assert count(given_out, SITE, 100.0, 200.0) >= own / total * per_s * 100.0 - few
    assert count(given_out, OTHER, 100.0, 200.0) >= other / total * per_s * 100.0 - few


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0.05, 1.0), st.floats(0.1, 4.0)), min_size=1, max_size=4), RATES)
def test_sharing_and_borrowing_stay_within_two_percent_of_the_budget(
    sites: list[tuple[float, float]], per_s: float
) -> None:
    """Every take counts against the shared bucket, give or take a page."""
    names = [f"https://s{number}.test/" for number in range(len(sites))]
    shares = {name: share for name, (share, _) in zip(names, sites, strict=True)}
    wanting = [Wanting(name, wish * per_s, 0.0, 1e9) for name, (_, wish) in zip(names, sites, strict=True)]
    times = [at_s for at_s, _ in crowd(shares, wanting, per_s, 180.0)]
    for begin_s in range(0, 120, 5):
        assert sum(begin_s <= at_s < begin_s + 60 for at_s in times) <= 1.02 * 60 * per_s + 1


def test_unused_shares_go_to_other_sites() -> None:
    """A site without a share gets the whole rate while the one with a share is idle."""
    allowance = BudgetBuckets()
    allowance.set_rates(2.0, 1.0, {SITE: 0.5})
    assert sum(allowance.take(OTHER, now_s / 2, borrows=False) for now_s in range(100)) == 100


def test_changing_the_rate_grants_no_second_burst() -> None:
    """Changing the rules repeatedly gives no extra page."""
    allowance = BudgetBuckets()
    taken = 0
    for share in (0.5, 0.4, 0.3, 0.2):
        allowance.set_rates(10.0, 1.0, {SITE: share})
        while allowance.take(OTHER, 5.0, borrows=False):
            taken += 1
    assert taken == 10
    assert allowance.find_empty(OTHER, 5.0, borrows=False) == ALL_SITES


def test_the_share_of_a_site_is_the_first_reason_for_waiting() -> None:
    """If both are spent, the share is the reason for waiting; if only the share is, others continue."""
    allowance = BudgetBuckets()
    allowance.set_rates(1.0, 4.0, {SITE: 0.25})
    assert all(allowance.take(SITE, 0.0, borrows=False) for _ in range(2))
    assert allowance.find_empty(SITE, 0.0, borrows=False) == SITE
    assert allowance.find_empty(OTHER, 0.0, borrows=False) is None
    assert -inf < allowance.ready_s(SITE) <= 4.0


@given(PACES, BURSTS, STARTS, st.integers(1, 50))
def test_returned_tokens_are_granted_again_once(per_s: float, burst: float, start_s: float, times: int) -> None:
    """Each returned token makes room for one, and never for more than a burst."""
    bucket = TokenBucket(per_s, burst)
    taken = greedy(bucket, start_s)
    for _ in range(times):
        bucket.refund()
    assert bucket.count_available(start_s) == min(taken, times)


def test_hosts_with_new_pages_come_first() -> None:
    """Hosts with new pages are first in line for the budget, in their order."""
    budget = FetchBudget()
    budget.apply_rules(CrawlRules((Site("https://a.test/"),), budget_per_s=1.0, ahead_s=2.0))
    hosts = [HostState(name, number) for number, name in enumerate("abcd")]
    for host in hosts:
        host.new_urls = {7: None} if host.name == "c" else {}
        while budget.take("https://a.test/", 0.0, at_once=False):
            pass
        budget.enqueue(host, ["https://a.test/"], 0.0)
    hosts[3].new_urls[8] = None
    budget.prioritize(hosts[3])
    released = []
    for second in range(1, 9):
        free = budget.pop_ready(float(second))
        released += [free.name] if free else []
        budget.take("https://a.test/", float(second), at_once=False)
    assert released == ["c", "d", "a", "b"]


@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.integers(0, 6)), max_size=30))
def test_a_shard_spends_what_is_granted_and_gives_the_rest_back(steps: list[tuple[float, int]]) -> None:
    """Pages taken and given back never exceed those granted, and an idle shard keeps none."""
    budget, site = FetchBudget(), "https://a.test/"
    budget.apply_rules(CrawlRules((Site(site),), budget_per_s=100.0, ahead_s=2.0))
    granted = spent = returned = 0.0
    for pages, wanted in [*steps, *[(0.0, 0)] * 12]:
        budget.grant(pages, has_spare=False)
        granted += pages
        spent += sum(budget.take(site, 1000.0, at_once=False) for _ in range(wanted))
        returned += max(-budget.settle(), 0.0)
        assert spent + returned <= granted + 1e-5
    assert spent + returned >= granted - 1e-5


def test_a_shard_asks_for_as_many_pages_as_hosts_wait_and_repays_its_debt() -> None:
    """Urgent fetches leave without a grant; the next pages pay for them."""
    budget, site = FetchBudget(), "https://a.test/"
    budget.apply_rules(CrawlRules((Site(site),), budget_per_s=1.0, ahead_s=2.0))
    budget.grant(0.0, has_spare=False)
    for number, name in enumerate("abc"):
        budget.enqueue(HostState(name, number), [site], 0.0)
    assert (budget.settle(), budget.next_s(), budget.pop_ready(99.0)) == (3.0, None, None)
    assert budget.take(site, 0.0, at_once=True)
    assert budget.settle() == 4.0
    budget.grant(2.0, has_spare=False)
    assert budget.settle() == 2.0
    assert budget.pop_ready(0.0) is not None


def test_a_site_of_a_shard_borrows_only_what_no_shard_lacks() -> None:
    """A site beyond its share waits until the pool has pages to spare."""
    budget, site = FetchBudget(), "https://a.test/"
    budget.apply_rules(CrawlRules((Site(site, share=0.01), Site("https://b.test/")), budget_per_s=1.0, ahead_s=2.0))
    budget.grant(9.0, has_spare=False)
    assert [budget.take(site, 0.0, at_once=False) for _ in range(4)] == [True, True, False, False]
    budget.enqueue(HostState("a.test", 1), [site], 0.0)
    assert budget.pop_ready(0.0) is None
    budget.settle()
    budget.grant(1.0, has_spare=True)
    assert budget.pop_ready(0.0) is not None
    assert budget.take(site, 0.0, at_once=False)
