"""The state of an origin's robots.txt, and what it allows."""

import pytest

from vedette.fetch.request import build_conditional_headers
from vedette.fetch.robots.state import (
    UNKNOWN,
    RobotsFailure,
    RobotsNeeded,
    RobotsResponse,
    RobotsState,
    RobotsWait,
    UrlAllowed,
    UrlDisallowed,
    apply_event,
    check_url,
)
from vedette.model import Headers

MINUTE_S = 60.0
HOUR_S = 3600.0
DAY_S = 86_400.0
NOW_S = 1_800_000_000.0
PAGE = "https://example.org/private/a"
FILE = b"User-agent: *\nDisallow: /private/\nCrawl-delay: 7\nSitemap: https://example.org/s.xml\n"


def after(
    state: RobotsState, status: int, now_s: float = NOW_S, *, redirects: int = 0, headers: Headers = ()
) -> RobotsState:
    """Return the state after a response; every response has a body, so only the status decides whether it counts."""
    return apply_event(state, RobotsResponse(now_s, status, FILE, redirects, headers), "vedette")


def after_silence(state: RobotsState, now_s: float = NOW_S) -> RobotsState:
    """Return the state after a request without a response."""
    return apply_event(state, RobotsFailure(now_s, "too slow"), "vedette")


def wait_of(state: RobotsState, now_s: float = NOW_S) -> float:
    """Return how long the origin must wait."""
    found = check_url(state, PAGE, now_s)
    assert isinstance(found, RobotsWait)
    return found.until_s - now_s


def test_nothing_is_known_at_first() -> None:
    """A new origin needs its robots.txt first, at any time."""
    assert [check_url(UNKNOWN, PAGE, now_s) for now_s in (-DAY_S, 0.0, NOW_S)] == [
        RobotsNeeded(),
        RobotsNeeded(),
        RobotsNeeded(),
    ]


def test_a_file_decides() -> None:
    """The rules of a stored file decide, and are quoted."""
    state = after(UNKNOWN, 200)
    assert check_url(state, PAGE, NOW_S) == UrlDisallowed("Disallow: /private/")
    assert check_url(state, "https://example.org/a", NOW_S) == UrlAllowed()
    assert state.crawl_delay_s == 7.0
    assert state.sitemaps == ("https://example.org/s.xml",)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499, 300, 301, 302, 307, 308])
def test_no_file_allows_everything(status: int) -> None:
    """A 4xx, or a redirect that leads nowhere, means no rules; its body is not a robots.txt."""
    state = after(UNKNOWN, status)
    assert check_url(state, PAGE, NOW_S) == UrlAllowed()
    assert state.crawl_delay_s is None
    assert state.sitemaps == ()


def test_five_redirects_are_followed_and_six_are_not() -> None:
    """A file after five redirects is obeyed; after more, it counts as missing."""
    assert isinstance(check_url(after(UNKNOWN, 200, redirects=5), PAGE, NOW_S), UrlDisallowed)
    assert check_url(after(UNKNOWN, 200, redirects=6), PAGE, NOW_S) == UrlAllowed()


@pytest.mark.parametrize("status", [500, 502, 503, 504, 599, 429, 100, 199, 600, 999, 0, -1])
def test_a_failing_host_waits(status: int) -> None:
    """With 5xx, 429 and invalid statuses nothing is allowed, even with a stored copy and a body."""
    for before in (UNKNOWN, after(UNKNOWN, 200), after(UNKNOWN, 404)):
        state = after(before, status)
        assert isinstance(check_url(state, "https://example.org/a", NOW_S), RobotsWait)


def test_the_last_good_copy_survives_a_failure() -> None:
    """While a host fails, its copy is kept for display and for a conditional request."""
    state = after_silence(after(after(UNKNOWN, 200, headers=(("etag", '"1"'),)), 503))
    assert state.last_good is not None
    assert state.last_good.body == FILE
    assert build_conditional_headers(*state.validators) == (("if-none-match", '"1"'),)


def test_the_crawl_delay_of_the_last_good_copy_holds_while_the_file_is_unavailable() -> None:
    """Pages that it allowed may still be requested elsewhere; what never had a file, or no longer has one, has none."""
    known = after(UNKNOWN, 200)
    assert known.crawl_delay_s == after_silence(known).crawl_delay_s == after(known, 503).crawl_delay_s == 7.0
    assert after(known, 404).crawl_delay_s is None
    assert after_silence(after(known, 404)).crawl_delay_s is None


def test_waits_double_from_a_minute_to_an_hour() -> None:
    """Consecutive failures double the wait, up to an hour; a response resets it."""
    state, waits = UNKNOWN, []
    for _ in range(9):
        state = after_silence(state)
        waits.append(wait_of(state) / MINUTE_S)
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert wait_of(after(after(state, 404), 500)) == MINUTE_S


def test_a_host_can_fail_for_years() -> None:
    """Thousands of failures neither overflow nor lengthen the wait further."""
    state = UNKNOWN
    for _ in range(3000):
        state = after_silence(state)
    assert wait_of(state) == HOUR_S


def test_after_a_wait_robots_txt_is_asked_for_again() -> None:
    """The end of a wait allows no pages, only a new request for robots.txt."""
    state = after_silence(UNKNOWN)
    assert check_url(state, PAGE, NOW_S + MINUTE_S) == RobotsNeeded(NOW_S + MINUTE_S)


@pytest.mark.parametrize(
    ("retry_after", "wait_s"),
    [
        ("600", 600.0),
        ("5", MINUTE_S),
        ("Fri, 15 Jan 2027 08:30:00 GMT", 30 * MINUTE_S),
        ("Fri, 15 Jan 2027 07:00:00 GMT", MINUTE_S),
        ("99999999999999999999", DAY_S),
        ("9" * 5000, DAY_S),
        ("Fri, 15 Jan 2099 08:30:00 GMT", DAY_S),
        ("soon", MINUTE_S),
        ("-5", MINUTE_S),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured_where_it_is_longer(retry_after: str, wait_s: float, status: int) -> None:
    """Retry-After in seconds or as a date (now is 08:00) lengthens the wait, up to a day, and never shortens it."""
    assert wait_of(after(UNKNOWN, status, headers=(("retry-after", retry_after),))) == wait_s


@pytest.mark.parametrize(
    ("cache_control", "lifetime_s"),
    [
        ("", DAY_S),
        ("max-age=3600", HOUR_S),
        ("public, MAX-AGE = 3600", HOUR_S),
        ('max-age="3600"', HOUR_S),
        ("max-age=0", 10 * MINUTE_S),
        ("no-cache, max-age=1", 10 * MINUTE_S),
        ("max-age=31536000", DAY_S),
        ("max-age=" + "9" * 5000, DAY_S),
        ("s-maxage=3600", DAY_S),
        ("x-max-age=3600", DAY_S),
        ("max-age=-5", DAY_S),
        ("max-age=soon", DAY_S),
    ],
)
@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_holds_for_its_max_age_within_bounds(cache_control: str, lifetime_s: float, status: int) -> None:
    """A response is valid for its max-age, at least ten minutes and at most a day, which is also the default."""
    state = after(UNKNOWN, status, headers=(("cache-control", cache_control),))
    assert isinstance(check_url(state, PAGE, NOW_S + lifetime_s - 1), UrlAllowed | UrlDisallowed)
    assert check_url(state, PAGE, NOW_S + lifetime_s) == RobotsNeeded(NOW_S + lifetime_s)


def test_a_304_makes_the_copy_valid_again() -> None:
    """A 304 renews the copy for another lifetime, even after failures."""
    state = after(UNKNOWN, 200, headers=(("cache-control", "max-age=3600"),))
    later_s = NOW_S + DAY_S
    for before in (state, after_silence(state, NOW_S + HOUR_S)):
        again = after(before, 304, later_s)
        assert isinstance(check_url(again, PAGE, later_s + HOUR_S - 1), UrlDisallowed)
        assert isinstance(check_url(again, PAGE, later_s + HOUR_S), RobotsNeeded)
        assert wait_of(after(again, 500, later_s), later_s) == MINUTE_S


def test_a_304_without_a_copy_is_asked_again_once() -> None:
    """After a 304 without a stored copy, the request is repeated unconditionally; after another one, the host waits."""
    state = after(UNKNOWN, 304)
    assert check_url(state, PAGE, NOW_S) == RobotsNeeded()
    assert build_conditional_headers(*state.validators) == ()
    assert isinstance(check_url(after(state, 304), PAGE, NOW_S), RobotsWait)


def test_a_file_that_is_gone_is_forgotten() -> None:
    """After a 404, a 304 cannot restore the old rules."""
    state = after(after(UNKNOWN, 200, headers=(("etag", '"1"'),)), 404)
    assert build_conditional_headers(*state.validators) == ()
    assert check_url(after(state, 304), PAGE, NOW_S) == RobotsNeeded()


def test_conditional_headers_repeat_both_validators() -> None:
    """ETag and Last-Modified are sent back as received."""
    date = "Fri, 15 Jan 2027 08:00:00 GMT"
    state = after(UNKNOWN, 200, headers=(("etag", 'W/"a"'), ("last-modified", date)))
    assert build_conditional_headers(*state.validators) == (("if-none-match", 'W/"a"'), ("if-modified-since", date))


@pytest.mark.parametrize("etag", ['"a\r\nx-evil: 1"', '"a\0"', '"\u00e9"', '"\ud800"', '"' + "a" * 100_000 + '"'])
def test_a_validator_that_cannot_be_sent_back_is_dropped(etag: str) -> None:
    """Validators that would break or bloat the next request are never sent."""
    assert build_conditional_headers(*after(UNKNOWN, 200, headers=(("etag", etag),)).validators) == ()


def test_a_clock_that_was_put_back_makes_it_ask() -> None:
    """A state from the far future decides nothing and blocks nothing."""
    for state in (after(UNKNOWN, 200), after(UNKNOWN, 404), after_silence(UNKNOWN)):
        assert isinstance(check_url(state, PAGE, NOW_S - 365 * DAY_S), RobotsNeeded)


def test_a_long_reason_is_cut() -> None:
    """A long error message is truncated, so the size of the state is bounded."""
    state = apply_event(UNKNOWN, RobotsFailure(NOW_S, "x" * 1_000_000), "vedette")
    assert 0 < len(state.why) < 1000


def test_only_the_first_500_kib_are_kept() -> None:
    """However large a response is, only the part that is read is stored."""
    big = RobotsResponse(NOW_S, 200, FILE + b"Disallow: /x\n" * 100_000, 0, ())
    state = apply_event(UNKNOWN, big, "vedette")
    assert state.last_good is not None
    assert 0 < len(state.last_good.body) <= 500 * 1024
    assert isinstance(check_url(state, PAGE, NOW_S), UrlDisallowed)


@pytest.mark.parametrize("status", [200, 404])
def test_the_operator_may_trust_a_copy_for_less_than_a_day(status: int) -> None:
    """Whatever the server says, robots.txt is requested again after the operator's own limit."""
    state = apply_event(UNKNOWN, RobotsResponse(NOW_S, status, FILE, 0, ()), "vedette", most_s=HOUR_S)
    assert not isinstance(check_url(state, PAGE, NOW_S + HOUR_S - 1), RobotsNeeded)
    assert isinstance(check_url(state, PAGE, NOW_S + HOUR_S), RobotsNeeded)
