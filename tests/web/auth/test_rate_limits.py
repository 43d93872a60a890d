"""Each user has a rate limit, and any number of users only needs bounded memory."""

from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_search import served

from vedette.config import Rate, Serve
from vedette.web.auth.rate_limits import RateLimiter, hash_address


class Clock:
    """A clock that moves only on request."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


RATES = st.builds(Rate, st.integers(1, 50), st.sampled_from([1.0, 60.0, 3600.0]))


@given(RATES, st.lists(st.floats(0, 100), max_size=200))
def test_the_rate_limit_is_the_burst_plus_rate_times_time(rate: Rate, pauses_s: list[float]) -> None:
    """From the start on, at most the burst plus rate times elapsed time is allowed, whatever the rhythm."""
    clock = Clock()
    limits = RateLimiter(clock)
    let_in = 0
    for pause_s in pauses_s:
        clock.now_s += pause_s
        let_in += limits.take_token("reader", rate) == 0
        assert let_in <= rate.requests + clock.now_s * rate.requests / rate.per_s + 1e-6


@given(RATES)
def test_waiting_for_the_stated_time_is_enough(rate: Rate) -> None:
    """Waiting for the stated time is enough, and half of it is not."""
    clock = Clock()
    limits = RateLimiter(clock)
    assert {limits.take_token("reader", rate) for _ in range(rate.requests)} == {0.0}
    wait_s = limits.take_token("reader", rate)
    clock.now_s += wait_s / 2
    assert limits.take_token("reader", rate) > 0
    clock.now_s += wait_s * 0.51
    assert limits.take_token("reader", rate) == 0


def test_no_rate_is_no_limit() -> None:
    """Nothing is stored about such users."""
    limits = RateLimiter(Clock())
    assert {limits.take_token("reader", Rate(0, 1.0)) for _ in range(1000)} == {0.0}
    assert len(limits) == 0


def test_readers_do_not_share_a_bucket_and_the_oldest_is_forgotten() -> None:
    """With capacity for three, a fourth user evicts the least recent one."""
    limits = RateLimiter(Clock(), most=3)
    one = Rate(1, 60.0)
    assert [limits.take_token(name, one) for name in "abc"] == [0.0, 0.0, 0.0]
    assert limits.take_token("a", one) > 0
    assert limits.take_token("d", one) == 0
    assert len(limits) == 3
    assert limits.take_token("a", one) > 0
    assert limits.take_token("b", one) == 0


@given(st.text())
def test_a_visitor_hash_reveals_no_address(address: str) -> None:
    """It is the same within a process, different in the next, and short for any address."""
    assert hash_address(address, b"salt") == hash_address(address, b"salt")
    assert hash_address(address, b"salt") != hash_address(address, b"other")
    assert len(hash_address(address, b"salt")) == 24


def test_a_mark_counts_a_network_of_ipv6_as_one() -> None:
    """An IPv4 address written as IPv6 is still one address."""
    same = {hash_address(f"2001:db8::{n}", b"salt") for n in range(1, 9)}
    assert len(same) == 1
    assert hash_address("::ffff:10.0.0.1", b"salt") != hash_address("::ffff:10.0.0.2", b"salt")


def test_too_many_requests_get_retry_after() -> None:
    """Programs get JSON and people a page, both with Retry-After; static files and health are not counted."""
    with served(Serve(rate=Rate(2, 3600.0))) as (ask, _):
        assert [ask("/api/v1/sites").status for _ in range(2)] == [200, 200]
        refused = ask("/api/v1/sites")
        assert refused.complaint == (429, "too_many_requests", None)
        assert 0 < int(refused.headers["retry-after"]) <= 1800
        assert refused.headers["cache-control"] == "no-store"
        page = ask("/")
        assert (page.status, page.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert ask("/healthz").status == 200


def test_users_behind_a_trusted_proxy_are_distinguished() -> None:
    """Users are identified by the last address the proxy adds; what they wrote before it is ignored."""
    with served(Serve(rate=Rate(1, 3600.0))) as (ask, _):
        assert ask("/api/v1/sites", {"X-Forwarded-For": "203.0.113.1"}).status == 200
        assert ask("/api/v1/sites", {"X-Forwarded-For": "203.0.113.2"}).status == 200
        assert ask("/api/v1/sites", {"X-Forwarded-For": "198.51.100.7, 203.0.113.1"}).status == 429
    with served(Serve(rate=Rate(1, 3600.0), trusted_proxies=())) as (ask, _):
        assert ask("/api/v1/sites", {"X-Forwarded-For": "203.0.113.1"}).status == 200
        assert ask("/api/v1/sites", {"X-Forwarded-For": "203.0.113.2"}).status == 429
