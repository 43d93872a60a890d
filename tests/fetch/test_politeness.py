"""Delays between requests: never shorter than any rule requires, and longer if a server is in trouble."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.fetch.politeness import NO_FAILURES, FailureStreak, HostDelay, compute_delay
from vedette.model import Failure, FetchOutcome, FetchResponse, Headers, NoResponse

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0
ANSWERED = [Failure.TOO_LARGE, Failure.HEADER, Failure.CODING]
TROUBLE = [failure for failure in Failure if failure not in ANSWERED]

seconds = st.floats(0, 1e6)
statuses = st.integers(100, 599)
strains = st.builds(FailureStreak, st.integers(0, 10_000))
retry_afters = st.one_of(st.just(()), st.text(max_size=20).map(lambda text: (("retry-after", text),)))


def answer(status: int, headers: Headers = (), ended_s: float = NOW_S) -> FetchResponse:
    """Return a response that arrived at a time."""
    return FetchResponse("http://a.test/", "page", status, headers, b"", ended_s - 5, ended_s, "127.0.0.1")


def silence(failure: Failure = Failure.TIMEOUT) -> NoResponse:
    """Return a request without a response."""
    return NoResponse("http://a.test/", "page", failure, "", NOW_S - 5, NOW_S)


def rest(
    outcome: FetchOutcome, strain: FailureStreak = NO_FAILURES, delay_s: float = 1.0, crawl_delay_s: float | None = None
) -> HostDelay:
    """Return the delay after an outcome, with common settings."""
    return compute_delay(outcome, strain, delay_s=delay_s, crawl_delay_s=crawl_delay_s, address_delay_s=0.25)


def waits(outcome: FetchOutcome, times: int) -> list[float]:
    """Return the delays of a host that has the same trouble again and again."""
    found: list[float] = []
    strain = NO_FAILURES
    for _ in range(times):
        after = rest(outcome, strain)
        strain = after.failure_streak
        found.append(after.host_ready_s - NOW_S)
    return found


def test_the_gap_runs_from_the_end_of_the_answer() -> None:
    """A slow response doesn't shorten the delay after it."""
    after = rest(answer(200), delay_s=3.0)
    assert (after.host_ready_s, after.address_ready_s) == (NOW_S + 3.0, NOW_S + 0.25)
    assert (after.failure_streak, after.why) == (NO_FAILURES, "delay")


@pytest.mark.parametrize(("delay_s", "crawl_delay_s", "gap_s"), [(1.0, 7.0, 7.0), (9.0, 7.0, 9.0), (2.0, None, 2.0)])
def test_the_longer_delay_holds(delay_s: float, crawl_delay_s: float | None, gap_s: float) -> None:
    """The longer of the operator's delay and the one in robots.txt applies."""
    assert rest(answer(200), delay_s=delay_s, crawl_delay_s=crawl_delay_s).host_ready_s == NOW_S + gap_s


@pytest.mark.parametrize("outcome", [answer(429), answer(503), *map(silence, TROUBLE)])
def test_repeated_trouble_doubles_the_rest_up_to_a_bound(outcome: FetchOutcome) -> None:
    """After each consecutive failure, the delay is longer, up to a maximum; no number of failures overflows."""
    found = waits(outcome, 2_000)
    growing = found[: found.index(found[-1]) + 1]
    assert all(later == 2 * earlier for earlier, later in pairwise(growing[:-1]))
    assert growing == sorted(set(growing))
    assert len(growing) > 3
    assert found[-1] <= DAY_S


@pytest.mark.parametrize("outcome", [answer(200), answer(301), answer(404), answer(500), silence(Failure.TOO_LARGE)])
def test_an_answer_ends_the_trouble(outcome: FetchOutcome) -> None:
    """Once a host responds, it is requested at its usual pace; a body that was too large is a response."""
    after = rest(outcome, FailureStreak(5), delay_s=1.0)
    assert (after.failure_streak, after.host_ready_s) == (NO_FAILURES, NOW_S + 1.0)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("value", ["7200", "Sun, 17 Jan 2027 08:00:00 GMT"])
def test_retry_after_is_obeyed(status: int, value: str) -> None:
    """A host waits at least as long as Retry-After says, in seconds or as a date (RFC 9110)."""
    ended_s = 1_800_165_600.0  # two hours before that date
    after = rest(answer(status, (("retry-after", value),), ended_s))
    assert (after.host_ready_s, after.why) == (ended_s + 7200, "Retry-After")


@pytest.mark.parametrize("value", ["99999999", "9" * 500, "Fri, 31 Dec 9999 23:59:59 GMT"])
def test_nobody_is_waited_for_longer_than_a_day(value: str) -> None:
    """An absurd Retry-After doesn't block a host forever."""
    assert rest(answer(429, (("retry-after", value),))).host_ready_s == NOW_S + DAY_S


def test_the_reason_names_what_decided() -> None:
    """The reason says which delay applies."""
    assert rest(answer(200), crawl_delay_s=60.0).why == "crawl-delay of its robots.txt"
    assert rest(answer(429)).why == "status 429"
    assert rest(silence(Failure.RESET)).why == str(Failure.RESET)


@given(st.builds(answer, statuses, retry_afters) | st.builds(silence), strains, seconds, st.none() | seconds, seconds)
def test_no_rest_is_shorter_than_asked(
    outcome: FetchOutcome, strain: FailureStreak, delay_s: float, crawl_delay_s: float | None, address_delay_s: float
) -> None:
    """In any case, host and address wait at least as long as operator and robots.txt require, and not forever."""
    after = compute_delay(
        outcome, strain, delay_s=delay_s, crawl_delay_s=crawl_delay_s, address_delay_s=address_delay_s
    )
    least_s = max(delay_s, crawl_delay_s or 0.0)
    assert outcome.ended_s + least_s <= after.host_ready_s <= outcome.ended_s + max(least_s, DAY_S)
    assert after.address_ready_s >= outcome.ended_s + address_delay_s


def slow_rest(outcome: FetchOutcome, factor: float, speed: float = 1.0) -> float:
    """Return the delay of a host after an outcome that took five seconds of world time."""
    after = compute_delay(
        outcome, NO_FAILURES, delay_s=1.0, crawl_delay_s=None, address_delay_s=0.25, latency_factor=factor, speed=speed
    )
    return after.host_ready_s - NOW_S


def test_a_slow_server_rests_longer_where_the_operator_wants_it() -> None:
    """If configured, a host waits for a multiple of its response time, but never less than its delay."""
    assert slow_rest(answer(200), 2.0) == 10.0
    assert slow_rest(answer(200), 0.1) == slow_rest(answer(200), 0.0) == 1.0


def test_in_fast_time_latency_is_that_of_our_clock() -> None:
    """Five seconds in a world that runs ten times as fast count as half a second of response time."""
    assert slow_rest(answer(200), 3.0, speed=10.0) == 1.5


def test_trouble_has_its_own_rest_however_slow_it_was() -> None:
    """The back-off is long enough: the duration of a timeout isn't multiplied."""
    assert slow_rest(silence(), 100.0) == slow_rest(silence(), 0.0)
