"""Outages during a crawl: if a site, its name or its certificate fails, every page is still fetched."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Named, Reply, Served, Server, page, robots, rules_for

from vedette.fetch.connect_to import parse_override
from vedette.fetch.politeness import GIVE_UP_AFTER_S, MAX_RETRY_S
from vedette.model import Failure, Origin, Site

A, MINUTE_S, HOUR_S, DAY_S = "http://a.test", 60.0, 3600.0, 86_400.0
START_S = 1000.0
PAGES = 60


def failing(fine: Served, broken: Served, from_s: float, for_s: float) -> Server:
    """Return a reply that fails for a time."""
    return lambda now_s: broken if START_S + from_s <= now_s < START_S + from_s + for_s else fine


def named_after(at_s: float, failure: Failure) -> Named | Callable[[float], Named]:
    """Return a name that cannot be looked up before a time."""
    return lambda now_s: failure if now_s < at_s else ("93.184.216.34",)


def outage(broken: Served, for_s: float) -> MemoryWeb:
    """Return a chain of pages, including robots.txt, that breaks down half a minute after the crawl began."""
    paths = ["/", *(f"/{number}" for number in range(1, PAGES))]
    links = [(path, (f"{A}{after}",)) for path, after in zip(paths, [*paths[1:], "/"], strict=True)]
    replies = {f"{A}{path}": failing(page(*named, title=path), broken, 30.0, for_s) for path, named in links}
    return MemoryWeb({**replies, f"{A}/robots.txt": failing(Reply(404), broken, 30.0, for_s)})


@pytest.mark.parametrize(
    ("broken", "for_s", "at_most_s"),
    [
        (Failure.TLS, MINUTE_S, 10 * MINUTE_S),
        (Failure.RESET, 10 * MINUTE_S, 2 * HOUR_S),
        (Failure.TIMEOUT, HOUR_S, 4 * HOUR_S),
        (Failure.CONNECT, DAY_S, 2 * DAY_S),
        (Reply(503), HOUR_S, 4 * HOUR_S),
        (Reply(500), HOUR_S, 4 * HOUR_S),
        (Reply(503, (("retry-after", "3600"),)), HOUR_S, 4 * HOUR_S),
    ],
)
def test_a_site_with_an_outage_is_fetched_completely(broken: Served, for_s: float, at_most_s: float) -> None:
    """Without any action, all pages are fetched soon after the end of the outage."""
    site = Site(f"{A}/", overrule=("trap",))  # pages without text look like one
    drive = Drive(outage(broken, for_s), rules_for(site), patient=True).begin().run()
    assert len(drive.pages()) == PAGES
    assert drive.given_up() == {}
    assert drive.now_s < START_S + at_most_s


@pytest.mark.parametrize("failure", [Failure.NAME, Failure.RESOLVER])
def test_a_day_without_dns_loses_nothing(failure: Failure) -> None:
    """The whole host waits, is looked up again, and its pages are fetched once the name resolves."""
    links = [f"http://b.test/{number}" for number in range(20)]
    names = {"b.test": named_after(START_S + DAY_S, failure)}
    web = MemoryWeb({f"{A}/": page(*links), **{url: page() for url in links}}, names)
    drive = Drive(web, rules_for(f"{A}/", "http://b.test/"), patient=True).begin()
    drive.run(until=lambda: drive.now_s > START_S + DAY_S / 2)
    assert drive.given_up() == {}
    assert drive.waiting() == 21
    drive.run()
    assert {url for url in drive.pages() if "b.test" in url} >= set(links)
    assert drive.now_s < START_S + 3 * DAY_S
    assert len([name for name in drive.looked_up if name == "b.test"]) < (20 if failure is Failure.NAME else 400)


def test_permanent_failures_are_retried_at_growing_intervals_for_weeks() -> None:
    """A response that is always too large costs its site a few requests, and is finally given up."""
    web = MemoryWeb({f"{A}/": page(f"{A}/large"), f"{A}/large": Failure.TOO_LARGE})
    drive = Drive(web, rules_for(f"{A}/"), patient=True).begin().run()
    times = [asked.sent_s for asked in drive.log if asked.url == f"{A}/large"]
    pauses = [round(after - before) for before, after in pairwise(times)]
    assert pauses == sorted(pauses)
    assert pauses[0] >= HOUR_S
    assert pauses[-1] <= MAX_RETRY_S + HOUR_S
    assert len(times) < 12
    assert times[-1] - times[0] > GIVE_UP_AFTER_S
    assert drive.given_up() == {f"{A}/large": str(Failure.TOO_LARGE)}
    assert drive.book.count_retries() == (0, inf)


def test_a_crawl_rests_when_all_that_is_left_waits_for_hours() -> None:
    """The crawl ends and says how many URLs will be retried, and when; a later run retries them."""
    web = MemoryWeb({f"{A}/": page(f"{A}/1"), f"{A}/1": failing(page(), Failure.TOO_LARGE, 0.0, HOUR_S)})
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    assert drive.keeper.get_ending(drive.now_s, 300.0) == "done"
    assert drive.keeper.get_ending(drive.now_s, DAY_S) is None
    left, next_s = drive.book.count_retries()
    assert left == 1
    drive.now_s = next_s + 1.0
    assert f"{A}/1" in drive.after(clean=True).run().pages()


def test_an_override_of_one_port_leaves_the_other_port_alone() -> None:
    """Links to an https host without a DNS entry don't hold back the mapped http pages, and are fetched later."""
    links = [url for number in range(5) for url in (f"{A}/{number}", f"https://a.test/{number}")]
    names = {"a.test": named_after(START_S + HOUR_S, Failure.NAME)}
    web = MemoryWeb({f"{A}/": page(*links), **{url: page() for url in links}}, names)
    override = parse_override("a.test:80=127.0.0.1:8080")
    rules = rules_for(Site(f"{A}/", scope="domain"), detours=(override,), allow_private=True)
    errors = [Reply(500), Reply(500)]  # what comes back while only the other port waits is tried again, too
    web.replies |= {f"{A}/{number}": lambda _: errors.pop() if errors else page() for number in range(5)}
    drive = Drive(web, rules, patient=True).begin()
    drive.run(until=lambda: drive.now_s > START_S + 5 * MINUTE_S)
    assert {asked.url.partition(":")[0] for asked in drive.log} == {"http"}
    assert len([url for url in drive.pages() if url.startswith("http:")]) == 6
    assert drive.given_up() == {}
    drive.run()
    assert len([url for url in drive.pages() if url.startswith("https:")]) == 5
    assert {asked.address for asked in drive.log if asked.url.startswith("http:")} == {"127.0.0.1"}
    assert {asked.address for asked in drive.log if asked.url.startswith("https:")} == {"93.184.216.34"}


def test_a_restarted_crawl_uses_its_overrides_at_once() -> None:
    """If it is stopped before the first response, the next run uses the override and no resolver."""
    web = MemoryWeb({f"{A}/": page()}, {"a.test": Failure.NAME})
    rules = rules_for(f"{A}/", detours=(parse_override("a.test:80=127.0.0.1:8080"),), allow_private=True)
    drive = Drive(web, rules).begin().after(clean=True).run()
    assert drive.pages()[f"{A}/"].status == 200
    assert drive.looked_up == []


def test_pages_disallowed_later_are_dropped_until_they_are_allowed() -> None:
    """A stored page is dropped at its next fetch; when the file allows it again, it is fetched."""
    disallowed = robots("Disallow: /b")
    web = MemoryWeb({f"{A}/": page(f"{A}/a", f"{A}/b"), f"{A}/a": page(), f"{A}/b": page()})
    web.replies[f"{A}/robots.txt"] = failing(robots(), disallowed, DAY_S, 9 * DAY_S)
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    (id_,) = drive.urls.find_ids([f"{A}/b"]).tolist()
    drive.now_s = START_S + 2 * DAY_S
    drive.urls.requeue([id_], 1)
    drive = drive.after(clean=True).run()
    assert sorted(drive.pages()) == [f"{A}/", f"{A}/a"]
    assert f"{A}/b" in drive.refused()
    assert drive.db.execute("SELECT max(page) FROM news WHERE page = ?", (id_,)).fetchone() == (id_,)
    drive.now_s = START_S + 11 * DAY_S
    drive.keeper.request_robots(Origin("http", "a.test", 80))
    assert f"{A}/b" in drive.run(until=lambda: len(drive.pages()) == 3).pages()
    assert drive.refused() == {}


def test_a_failing_port_does_not_starve_the_other_port() -> None:
    """After a failure, a host gets one URL at a time: URLs waiting for a name don't take all of its turns."""
    astray = [f"https://a.test/{number}" for number in range(40)]
    links = [f"{A}/{number}" for number in range(40)]
    chain = ["/", *(f"/deeper/{depth}" for depth in range(10))]
    replies: dict[str, Served | Server] = {f"{A}{path}": page(f"{A}{after}") for path, after in pairwise(chain)}
    replies |= {f"{A}/": page(*astray, f"{A}{chain[1]}"), f"{A}{chain[-1]}": page(*links)}
    replies |= {url: failing(page(title=url), Failure.CONNECT, 0.0, MINUTE_S) for url in links}
    override = parse_override("a.test:80=127.0.0.1:8080")
    site = Site(f"{A}/", scope="domain", overrule=("trap",))
    rules = rules_for(site, detours=(override,), allow_private=True)
    drive = Drive(MemoryWeb(replies, {"a.test": Failure.NAME}), rules, patient=True).begin()
    drive.run(until=lambda: set(links) <= set(drive.pages()))
    assert drive.now_s < START_S + 5 * MINUTE_S


def test_a_command_does_not_lengthen_the_pause_of_a_name() -> None:
    """Changed rules cause a lookup of every name; if one still does not exist, its first pause starts again."""
    rules = rules_for(f"{A}/", "http://b.test/")
    drive = Drive(MemoryWeb({f"{A}/": page()}, {"b.test": Failure.NAME}), rules, patient=True).begin()
    for number in range(4):
        drive.rule(replace(rules, sites=(*rules.sites, Site(f"{A}/{number}/"))))
        drive.run(for_s=MINUTE_S)
    assert drive.looked_up.count("b.test") == 4
    assert drive.keeper.hosts["b.test"].lookup_retry_s - drive.now_s <= 10 * MINUTE_S
