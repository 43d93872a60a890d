"""What fetches cost: the request, bytes and seconds of connection; and that whoever asks for fetches is told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, memory_book, page, rules_for

from vedette.engine.fetcher.fetcher import Fetcher
from vedette.engine.messages import FetchTask, HostSettings, WorkBatch
from vedette.engine.scheduling.fetch_cost import MAX_HOSTS, FetchCost, HostLatency
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
    """Whatever was fetched before, more bytes or seconds cost no less, and nothing costs nothing or far too much."""
    cost = FetchCost().observe([size for size, _ in seen], [held_s for _, held_s in seen])
    sizes, seconds = sorted(size for size, _ in asked), sorted(held_s for _, held_s in asked)
    for costs in (cost.estimate(sizes, seconds[:1] * len(asked)), cost.estimate(sizes[:1] * len(asked), seconds)):
        assert ((costs > 0) & (costs <= 3)).all()
        assert (np.diff(costs) >= 0).all()


def test_before_anything_was_fetched_every_page_costs_the_same() -> None:
    """A cost that nobody knows is that of an ordinary fetch; a host that nobody knows is an ordinary one."""
    assert FetchCost().estimate([1, 10**9], [0.0, 99.0]).tolist() == [1.0, 1.0]
    assert FetchCost().observe([1_000], [2.0]).estimate([1_000], [None]).tolist() == [1.0]


def test_seconds_of_hosts_are_bounded_in_number() -> None:
    """Who was not asked for longest is forgotten; who was asked again is not."""
    seconds = HostLatency()
    for number in range(MAX_HOSTS):
        seconds.observe([f"h{number}.test"], [1.0])
    seconds.observe(["h0.test", "new.test"], [1.0, 1.0])
    assert seconds.estimate(["h0.test", "h1.test", "new.test"]) == [1.0, None, 1.0]


@pytest.mark.parametrize("speed", [1.0, 1_000.0])
def test_seconds_are_of_our_own_clock_however_fast_time_goes(speed: float) -> None:
    """An answer that took a second took one, also where a thousand seconds of the world passed meanwhile."""
    asker = Fetcher(PRODUCT, 0.0, 20.0, speed=speed)
    errand = FetchTask(1, "quick.test", f"{QUICK}/", "page")
    asker.accept_batch(WorkBatch((HostSettings("quick.test", "93.184.1.1", 1.0, None, 0.0, 0),), (errand,)))
    assert asker.take_request(0.0) is not None
    result = asker.on_outcome("quick.test", FetchResponse(errand.url, "page", 200, (), b"", 0.0, speed, "93.184.1.1"))
    assert result.connection_s == 1.0


def crawled() -> Drive:
    """Two hosts with the same pages, of which one takes six seconds for each."""
    web = MemoryWeb()
    for origin, took_s in ((QUICK, 0.1), (SLOW, 6.0)):
        paths = [f"/p/{n}" for n in range(12)]
        web.replies |= {f"{origin}{path}": page(title=path, took_s=took_s) for path in paths}
        web.replies[f"{origin}/start"] = page(*paths, took_s=took_s)
    sites = [Site(f"{origin}/start", scope="host") for origin in (QUICK, SLOW)]
    return Drive(web, rules_for(*sites, recrawl=True, budget_per_s=5.0), workers=1).begin().run(20 * 60.0)


def test_pages_of_a_slow_host_are_worth_less_to_those_who_refresh_and_to_those_who_find() -> None:
    """What is as probable to have changed, and as unknown, is worth less where it holds a connection for longer."""
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


def test_a_source_that_costs_more_is_looked_at_later() -> None:
    """Two lists that bring the same are looked at by what a look at each costs."""
    looking = SourcePoller(memory_book())
    for hour in range(48):
        cheap = PollResult(1, 1, ok=True, is_list=True, is_refetch=hour > 0, links=[1_000 + hour], new=1, cost=0.5)
        dear = PollResult(2, 2, ok=True, is_list=True, is_refetch=hour > 0, links=[2_000 + hour], new=1, cost=3.0)
        looking.on_polls([cheap, dear], hour * HOUR_S)
    looking.choose(0.3, 1, 47 * HOUR_S)
    times = looking.forecast([1, 2], 47 * HOUR_S)
    assert times[1] < times[2]
