"""The fetch budget in a crawl: how much is fetched, which site gets it, and what a waiting host shows."""

from collections import Counter
from dataclasses import replace

from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, robots, rules_for

from vedette.engine.coordinator.status import explain_host
from vedette.engine.scheduling import budget
from vedette.model import Site

A, B = "https://a.test", "https://b.test"
MINUTE_S = 60.0


def wide_web(*origins: str, pages: int) -> MemoryWeb:
    """Return sites with a home page that links to all other pages."""
    paths = [f"/{number}" for number in range(pages)]
    web = MemoryWeb({f"{origin}{path}": page() for origin in origins for path in paths})
    web.replies |= {f"{origin}/": page(*paths) for origin in origins}
    return web


def start_crawl(web: MemoryWeb, *sites: Site, per_s: float, **settings: object) -> Drive:
    """Start a crawl with a budget, in which politeness hardly matters."""
    sites = tuple(replace(site, overrule=("trap",)) for site in sites)  # empty pages with numbers look like one
    quick: dict[str, object] = {"delay_s": 0.01, "address_delay_s": 0.0, "lease_span_s": 1.0, "ahead_s": 1.0}
    return Drive(web, rules_for(*sites, budget_per_s=per_s, **{**quick, **settings})).begin()


def most_in(times: list[float], span_s: float) -> int:
    """Return the largest number of moments within any span of this length."""
    return max(sum(start_s <= time_s < start_s + span_s for time_s in times) for start_s in times)


def page_times(drive: Drive, host: str | None = None) -> list[float]:
    """Return when pages were requested."""
    return [asked.sent_s for asked in drive.log if asked.purpose == "page" and host in {None, asked.host}]


def test_no_minute_has_more_pages_than_the_budget() -> None:
    """Two fast sites together get at most two pages a second, and nearly that many."""
    drive = start_crawl(wide_web(A, B, pages=100), Site(f"{A}/"), Site(f"{B}/"), per_s=2.0).run()
    times = page_times(drive)
    burst = 2.0 * budget.BURST_TIMES
    ahead = 2 * 2.0  # what was given out and waited in a worker when the minute began
    assert len(times) == 202
    assert most_in(times, MINUTE_S) <= 2.0 * MINUTE_S + burst + ahead
    assert times[-1] - times[0] <= 202 / 2.0 + 5.0


def test_a_site_keeps_to_its_share_while_others_have_work_and_borrows_the_rest() -> None:
    """A site with a tenth of the budget gets that, and the other one the rest; later, it gets everything."""
    web = wide_web(A, B, pages=220)
    web.replies |= {f"{B}/{number}": Reply(404) for number in range(120, 220)}
    drive = start_crawl(web, Site(f"{A}/", share=0.1), Site(f"{B}/"), per_s=2.0)
    drive.run(for_s=MINUTE_S)
    counts = Counter(asked.host for asked in drive.log if asked.purpose == "page")
    assert 9 <= counts["a.test"] <= 0.2 * MINUTE_S + 6
    assert counts["b.test"] >= 1.8 * MINUTE_S - 8
    drive.run(until=lambda: len(drive.asked_of("b.test")) > 220)
    drive.run(for_s=5.0)
    begin_s = drive.now_s
    drive.run(for_s=30.0)
    assert 57 <= sum(at_s >= begin_s for at_s in page_times(drive, "a.test")) <= 64


def test_everybody_has_a_turn() -> None:
    """If thirty hosts share one page per second, each gets its part, in any order and with any pages."""
    origins = [f"https://h{number}.test" for number in range(30)]
    drive = start_crawl(wide_web(*origins, pages=20), *(Site(f"{origin}/") for origin in origins), per_s=1.0)
    drive.run(for_s=3 * MINUTE_S)
    counts = Counter(asked.host for asked in drive.log if asked.purpose == "page")
    assert len(counts) == len(origins)
    assert max(counts.values()) - min(counts.values()) <= 4


def test_a_host_says_that_it_waits_for_the_budget() -> None:
    """The limit that makes it wait is reported, and isn't an error that ends a crawl."""
    web = wide_web(A, B, pages=20)
    drive = start_crawl(web, Site(f"{A}/", share=0.01), Site(f"{B}/"), per_s=0.5).run(for_s=20.0)
    assert (
        explain_host(drive.keeper.host_table, "a.test", drive.now_s)[0]
        == "its site's share of the fetch budget is spent"
    )
    assert explain_host(drive.keeper.host_table, "b.test", drive.now_s)[0] == "waiting for the fetch budget"
    assert explain_host(drive.keeper.host_table, "b.test", drive.now_s)[1] > drive.now_s
    assert drive.keeper.get_ending(drive.now_s, 1.0) is None


def test_what_somebody_asks_for_does_not_wait_for_the_budget() -> None:
    """A requested fetch is sent immediately, and the others wait slightly longer."""
    web = wide_web(A, pages=50)
    drive = start_crawl(web, Site(f"{A}/"), per_s=1 / 600.0).run(for_s=30.0)
    before = len(drive.asked_urls())
    wished = [f"{A}/{number}" for number in (41, 42, 43)]
    drive.keeper.request_urls(wished, drive.now_s)
    drive.run(for_s=30.0)
    assert sorted(drive.asked_urls()[before:]) == wished


def test_robots_txt_does_not_wait_for_the_budget() -> None:
    """All hosts' files are requested immediately, whatever pages are left."""
    origins = [f"https://h{number}.test" for number in range(10)]
    web = wide_web(*origins, pages=3)
    web.replies |= {f"{origin}/robots.txt": robots("Disallow: /2") for origin in origins}
    drive = start_crawl(web, *(Site(f"{origin}/") for origin in origins), per_s=1 / 60.0).run(for_s=10.0)
    assert len(drive.asked_urls("robots")) == len(origins)
    assert len(drive.asked_urls()) <= 1
    drive.run()
    assert len(drive.pages()) == 3 * len(origins)


def test_one_site_without_a_share_left_does_not_keep_another_of_its_host() -> None:
    """Of two sites on one host, one continues at its own rate while the other waits for its share."""
    one, two = Site(f"{A}/one/", scope="prefix", share=0.05), Site(f"{A}/two/", scope="prefix")
    paths = [f"{A}/{site}/{number}" for site in ("one", "two") for number in range(20)]
    web = MemoryWeb({**{url: page() for url in paths}})
    web.replies |= {f"{A}/{site}/": page(*paths) for site in ("one", "two")}
    drive = start_crawl(web, one, two, per_s=1.0).run(for_s=2 * MINUTE_S)
    asked = Counter(url.split("/")[3] for url in drive.asked_urls())
    assert asked["two"] == 21
    assert asked["one"] <= 0.05 * 2 * MINUTE_S + 3 + (2 * MINUTE_S - 21)
    assert drive.run().waiting() == 0


def test_rules_that_change_let_nobody_wait_for_ever() -> None:
    """New rules apply to waiting hosts as well; without a budget, none waits for it."""
    drive = start_crawl(wide_web(A, B, pages=30), Site(f"{A}/"), Site(f"{B}/"), per_s=0.01).run(for_s=30.0)
    drive.rule(replace(drive.rules, budget_per_s=0.02))
    drive.run(for_s=30.0)
    assert len(drive.asked_urls()) <= 4
    drive.rule(replace(drive.rules, budget_per_s=0.0))
    drive.run(for_s=MINUTE_S)
    assert drive.waiting() == 0
