"""Fetch costs: the request, bytes and seconds of connection; and that policies consider them."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, memory_book, page, rules_for

from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.messages import FetchTask, HostSettings, WorkBatch
from vedette.engine.scheduling.fetch_cost import MAX_HOSTS, FetchCost, HostMeans
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.polling import PollResult, SourcePoller
from vedette.fetch.request import PRODUCT
from vedette.model import FetchResponse, Site

QUICK, SLOW = "https://quick.test", "https://slow.test"
HOUR_S, DAY_S = 3_600.0, 86_400.0
SIZES = st.integers(0, 10**9)
SECONDS = st.floats(0, 10**6) | st.just(float("inf"))


@given(st.lists(st.tuples(SIZES, SECONDS), min_size=1, max_size=20), st.lists(st.tuples(SIZES, SECONDS), min_size=2))
def test_costs_are_positive_bounded_and_grow_with_bytes_and_seconds(
    seen: list[tuple[int, float]], asked: list[tuple[int, float]]
) -> None:
    """For any history, more bytes or seconds never cost less, and each cost is within its bounds."""
    cost = FetchCost().observe([size for size, _ in seen], [held_s for _, held_s in seen])
    sizes, seconds = sorted(size for size, _ in asked), sorted(held_s for _, held_s in asked)
    for costs in (cost.estimate(sizes, seconds[:1] * len(asked)), cost.estimate(sizes[:1] * len(asked), seconds)):
        assert ((costs > 0) & (costs <= 3)).all()
        assert (np.diff(costs) >= 0).all()


def test_before_anything_was_fetched_every_page_costs_the_same() -> None:
    """An unknown cost equals that of an ordinary fetch; an unknown host counts as ordinary."""
    assert FetchCost().estimate([1, 10**9], [0.0, 99.0]).tolist() == [1.0, 1.0]
    assert FetchCost().observe([1_000], [2.0]).estimate([1_000], [None]).tolist() == [1.0]


def test_seconds_of_hosts_are_bounded_in_number() -> None:
    """The least recently requested host is dropped; one that was requested again is not."""
    seconds = HostMeans()
    for number in range(MAX_HOSTS):
        seconds.observe([f"h{number}.test"], [1.0])
    seconds.observe(["h0.test", "new.test"], [1.0, 1.0])
    assert seconds.estimate(["h0.test", "h1.test", "new.test"]) == [1.0, None, 1.0]


@pytest.mark.parametrize("speed", [1.0, 1_000.0])
def test_seconds_of_connection_are_wall_seconds(speed: float) -> None:
    """A response that took a second cost a second, even if a thousand simulated seconds passed meanwhile."""
    asker = Fetcher(PRODUCT, 0.0, 20.0, speed=speed)
    errand = FetchTask(1, "quick.test", f"{QUICK}/", "page")
    asker.accept_batch(WorkBatch((HostSettings("quick.test", "93.184.1.1", 1.0, None, 0.0, 0),), (errand,)))
    assert asker.take_request(0.0) is not None
    result = asker.on_outcome("quick.test", FetchResponse(errand.url, "page", 200, (), b"", 0.0, speed, "93.184.1.1"))
    assert result.connection_s == 1.0


def crawled() -> Drive:
    """Crawl two hosts with the same pages; one takes six seconds for each."""
    web = MemoryWeb()
    for origin, took_s in ((QUICK, 0.1), (SLOW, 6.0)):
        paths = [f"/p/{n}" for n in range(12)]
        web.replies |= {f"{origin}{path}": page(title=path, took_s=took_s) for path in paths}
        web.replies[f"{origin}/start"] = page(*paths, took_s=took_s)
    sites = [Site(f"{origin}/start", scope="host") for origin in (QUICK, SLOW)]
    return Drive(web, rules_for(*sites, recrawl=True, budget_per_s=5.0), workers=1).begin().run(20 * 60.0)


def test_pages_of_a_slow_host_are_worth_less() -> None:
    """With the same probability of change, a page that holds a connection for longer is worth less."""
    drive = crawled()
    rows, worths = drive.pages(), {}
    for origin in (QUICK, SLOW):
        (look,) = drive.book.get_known_pages([rows[f"{origin}/p/3"].id])
        asked = drive.keeper.refresher.explain_page(look, look.page.fetched_s + HOUR_S)
        assert asked is not None
        assert asked.worth is not None
        worths[origin] = asked.worth
    assert worths[QUICK] > 1.2 * worths[SLOW] > 0
    firsts = drive.keeper.first_fetches
    assert firsts.estimate_worth(f"{QUICK}/p/new", 1) > 1.2 * firsts.estimate_worth(f"{SLOW}/p/new", 1) > 0


def test_a_more_expensive_source_is_polled_later() -> None:
    """Two equally productive lists are polled according to what a poll of each costs."""
    looking = SourcePoller(memory_book())
    for hour in range(48):
        cheap = PollResult(1, 1, ok=True, is_list=True, is_refetch=hour > 0, links=[1_000 + hour], new=1, cost=0.5)
        dear = PollResult(2, 2, ok=True, is_list=True, is_refetch=hour > 0, links=[2_000 + hour], new=1, cost=3.0)
        looking.on_polls([cheap, dear], hour * HOUR_S)
    looking.choose(0.3, 1, 47 * HOUR_S)
    times = looking.forecast([1, 2], 47 * HOUR_S)
    assert times[1] < times[2]


def changing(every_d: float, now_s: float) -> Reply:
    """Return a page whose text changes at this interval."""
    return page(title="".join(chr(97 + int(digit)) for digit in str(int(now_s // (every_d * DAY_S)))))


def test_in_busy_hours_a_page_is_refreshed_only_if_it_is_worth_their_cost() -> None:
    """A site whose fetches cost five times as much by day is refreshed at night, about as often as another."""
    web, busy, free = MemoryWeb(), "https://busy.test", "https://free.test"
    for origin in (busy, free):
        web.replies |= {f"{origin}/p/{n}": partial(changing, 0.5 + n / 4) for n in range(6)}
        web.replies[f"{origin}/start"] = page(*(f"/p/{n}" for n in range(6)))
    sites = [Site(f"{busy}/start", busy_hours="06:00-18:00 x5"), Site(f"{free}/start")]
    drive = Drive(web, rules_for(*sites, recrawl=True), workers=1).begin().run(8 * DAY_S)
    later = [asked for asked in drive.log if "/p/" in asked.url and asked.sent_s > DAY_S]
    by_day = {
        origin: [6 * HOUR_S <= asked.sent_s % DAY_S < 18 * HOUR_S for asked in later if asked.url.startswith(origin)]
        for origin in (busy, free)
    }
    assert np.mean(by_day[busy]) < 0.1 < np.mean(by_day[free])
    assert len(by_day[busy]) > 0.6 * len(by_day[free])


def test_in_busy_hours_an_unseen_url_must_be_worth_more() -> None:
    """At a price that a first fetch is just worth, it waits during busy hours and is made at other times."""
    rules = rules_for(Site(f"{QUICK}/start", busy_hours="06:00-18:00 x2"), budget_per_s=1e-6)
    firsts = FirstFetches(rules, memory_book(), SimpleNamespace(price=0.0))
    price = firsts.estimate_worth(f"{QUICK}/p/new", 1) / 1.5
    firsts = FirstFetches(rules, memory_book(), SimpleNamespace(price=price))
    assert firsts.check_price(f"{QUICK}/p/new", 1, 5 * HOUR_S) is None
    assert firsts.check_price(f"{QUICK}/p/old", 1, 6 * HOUR_S) is None  # by the part of the budget that asks no price
    assert firsts.check_price(f"{QUICK}/p/new", 1, 7 * HOUR_S) is not None
    assert firsts.check_price(f"{QUICK}/p/new", 1, 18 * HOUR_S) is None
