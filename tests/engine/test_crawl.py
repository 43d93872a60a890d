"""Coordinator and fetchers over a web in memory with a simulated clock: the requests and their outcomes."""

from collections.abc import Mapping
from itertools import pairwise

import pytest
from tests.engine.memory_web import FAR_S, Drive, MemoryWeb, Reply, Served, moved, page, robots, rules_for

from vedette.fetch.connect_to import ConnectOverride, Endpoint
from vedette.model import Failure, Site

A, B, C = "https://a.test", "https://b.test", "https://c.test"


def crawled(replies: Mapping[str, Served], *starts: str, **settings: object) -> Drive:
    """Crawl these replies to the end."""
    return Drive(MemoryWeb(dict(replies)), rules_for(*starts or (f"{A}/",), **settings)).begin().run()


# Pages


def test_every_page_that_links_lead_to_is_fetched_once() -> None:
    """Links within the site are followed, each URL once, and its content is stored."""
    web = {
        f"{A}/": page("/b", "c", "#top", f"{B}/away", title="Home"),
        f"{A}/b": page("/", "/c"),
        f"{A}/c": page("/missing"),
    }
    drive = crawled(web)
    assert drive.asked_urls() == [f"{A}/", f"{A}/b", f"{A}/c", f"{A}/missing"]
    kept = drive.pages()
    assert {url: kept[url].status for url in kept} == {f"{A}/": 200, f"{A}/b": 200, f"{A}/c": 200, f"{A}/missing": 404}
    assert (kept[f"{A}/"].title, drive.depths()[f"{A}/"], drive.depths()[f"{A}/missing"]) == ("Home", 0, 2)


def test_urls_at_one_depth_are_fetched_in_the_order_found() -> None:
    """No later page's links overtake those of an earlier page at the same depth."""
    early = [f"/early{number}" for number in range(8)]
    web = {f"{A}/": page("/1", "/2"), f"{A}/1": page(*early), f"{A}/2": page("/late")}
    asked = crawled(web).asked_urls()
    assert [url for url in asked if "a" in url.removeprefix(A)] == [A + path for path in [*early, "/late"]]


def test_shallow_pages_mostly_come_before_deep_ones() -> None:
    """The choice among depths is biased, so that nothing starves: shallow pages are done well before deep ones."""
    near, far = [f"/near{number}" for number in range(60)], [f"/far{number}" for number in range(60)]
    asked = crawled({f"{A}/": page(*near), f"{A}/near0": page(*far)}).asked_urls()
    places = {url.removeprefix(A): place for place, url in enumerate(asked)}
    assert sum(places[path] for path in near) < 0.8 * sum(places[path] for path in far)


def test_a_page_may_ask_that_its_links_are_not_followed() -> None:
    """With ``nofollow`` in a robots meta tag or X-Robots-Tag, links are not followed; the page itself is stored."""
    closed = Reply(200, (("content-type", "text/html"), ("x-robots-tag", "nofollow")), b'<a href="/hidden">x</a>')
    drive = crawled({f"{A}/": closed})
    assert (list(drive.pages()), drive.asked_urls()) == ([f"{A}/"], [f"{A}/"])


def test_the_page_limit_is_exact() -> None:
    """With many hosts at once, the number of pages is exact; other responses don't count."""
    starts = [f"https://h{number}.test/" for number in range(20)]
    replies: dict[str, Served] = {start: page("/1", "/2", "/none") for start in starts}
    replies |= {f"{start}{number}": page() for start in starts for number in (1, 2)}
    drive = crawled(replies, *starts, max_pages=33)
    assert sum(kept.status == 200 for kept in drive.pages().values()) == 33
    assert drive.keeper.tally.pages == 33


def test_a_missing_page_makes_room_for_another() -> None:
    """No more is requested than could be needed with pending responses; failed requests are replaced."""
    drive = crawled({f"{A}/": page("/none", "/1", "/2", "/3"), f"{A}/1": page(), f"{A}/2": page()}, max_pages=2)
    assert drive.asked_urls() == [f"{A}/", f"{A}/none", f"{A}/1"]


def test_copies_that_differ_by_tracking_parameters_are_fetched_once() -> None:
    """Session and tracking parameters are removed before a URL becomes known."""
    links = ("/p?utm_source=x", "/p?fbclid=1", "/p", "/p?gclid=2&utm_medium=y", "/p?sid=9#part")
    assert crawled({f"{A}/": page(*links)}).asked_urls() == [f"{A}/", f"{A}/p"]


# Retries and failures


def test_a_failing_page_is_retried_and_then_given_up() -> None:
    """A failing page is retried at growing intervals up to a limit, and all others are still fetched."""
    replies: dict[str, Served] = {f"{A}/": page("/bad", "/good"), f"{A}/bad": Reply(500), f"{A}/good": page()}
    drive = crawled(replies, max_attempts=4)
    assert drive.asked_urls().count(f"{A}/bad") == 4
    assert drive.given_up() == {f"{A}/bad": "status 500"}
    assert drive.pages()[f"{A}/good"].status == 200


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.RESET, Failure.CONNECT, Failure.TLS])
def test_no_answer_is_tried_again(failure: Failure) -> None:
    """Temporary errors are retried."""
    drive = crawled({f"{A}/": failure}, max_attempts=2)
    assert (drive.asked_urls(), drive.given_up()) == ([f"{A}/"] * 2, {f"{A}/": str(failure)})


@pytest.mark.parametrize("failure", [Failure.TOO_LARGE, Failure.PROTOCOL])
def test_permanent_failures_are_not_retried_soon(failure: Failure) -> None:
    """A page that is too large now will still be too large in a minute."""
    assert crawled({f"{A}/": failure}).asked_urls() == [f"{A}/"]


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_delays_the_whole_host(status: int) -> None:
    """Retry-After delays the whole host, and no other."""
    busy = Reply(status, (("retry-after", "900"),))
    drive = Drive(MemoryWeb({f"{A}/": busy, f"{B}/": page("/2")}), rules_for(f"{A}/", f"{B}/")).begin().run(1000.0)
    first, second = (asked for asked in drive.asked_of("a.test") if asked.purpose == "page")
    assert second.sent_s - first.ended_s >= 900.0
    assert drive.asked_of("b.test")[-1].sent_s < first.ended_s + 100.0


# Redirects of pages


def test_a_redirect_within_the_site_is_followed() -> None:
    """The target is fetched as a separate page, and the redirect is recorded."""
    drive = crawled({f"{A}/": moved("/new", 302), f"{A}/new": page("/next")})
    assert drive.asked_urls() == [f"{A}/", f"{A}/new", f"{A}/next"]
    assert drive.pages()[f"{A}/"].location == f"{A}/new"


def test_a_redirect_out_of_the_site_is_kept_and_not_followed() -> None:
    """The scope applies to targets of redirects: the other host isn't even looked up."""
    drive = crawled({f"{A}/": moved(f"{B}/"), f"{B}/": page()})
    assert drive.pages()[f"{A}/"].location == f"{B}/"
    assert drive.looked_up == ["a.test"]


def test_a_redirect_to_a_disallowed_url_is_not_followed() -> None:
    """The target's own rules are checked when its turn comes."""
    drive = crawled({f"{A}/robots.txt": robots("Disallow: /no"), f"{A}/": moved("/no")})
    assert (drive.asked_urls(), list(drive.refused())) == ([f"{A}/"], [f"{A}/no"])


def test_a_redirect_loop_ends() -> None:
    """Each URL of a loop is requested once."""
    drive = crawled({f"{A}/": moved("/1"), f"{A}/1": moved("/2"), f"{A}/2": moved("/1")})
    assert drive.asked_urls() == [f"{A}/", f"{A}/1", f"{A}/2"]


def test_a_chain_of_redirects_without_end_is_cut() -> None:
    """After the maximum number of redirects in a row, the last one is given up."""
    replies: dict[str, Served] = {f"{A}/{number}": moved(f"/{number + 1}") for number in range(50)}
    drive = crawled(replies, f"{A}/0", max_redirects=4)
    assert drive.asked_urls() == [f"{A}/{number}" for number in range(5)]
    assert list(drive.given_up()) == [f"{A}/4"]


def test_a_redirect_to_nowhere_is_just_a_page() -> None:
    """A Location that isn't a web URL isn't followed, and causes no error."""
    replies: dict[str, Served] = {f"{A}/": page("/1", "/2"), f"{A}/1": moved("mailto:x@y"), f"{A}/2": Reply(301)}
    assert crawled(replies).pages()[f"{A}/1"].status == 301


# Names and addresses


def test_a_name_that_does_not_exist_keeps_its_urls_waiting() -> None:
    """Nothing is requested and nothing fails; the name is looked up a few times a day, and the crawl may end."""
    web = MemoryWeb({f"{A}/": page(f"{B}/1", f"{B}/2")}, {"b.test": Failure.NAME})
    drive = Drive(web, rules_for(f"{A}/", f"{B}/")).begin().run()
    assert (drive.asked_of("b.test"), drive.given_up(), drive.waiting()) == ([], {}, 3)
    assert drive.keeper.hosts["b.test"].trouble == str(Failure.NAME)
    assert drive.keeper.get_ending(drive.now_s, 300.0) == "stuck"
    assert len(drive.looked_up) < 1.2 * FAR_S / 21_600.0


def test_dns_failures_are_retried_later() -> None:
    """DNS failures aren't the host's fault: URLs wait at growing intervals and are then fetched."""
    web = MemoryWeb({f"{A}/": page()})
    web.names["a.test"] = lambda now_s: Failure.RESOLVER if now_s < 1100.0 else ("93.184.216.34",)
    drive = Drive(web, rules_for(f"{A}/"), start_s=1000.0).begin().run()
    assert list(drive.pages()) == [f"{A}/"]
    assert len(drive.looked_up) < 10
    assert drive.given_up() == {}


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.8", "169.254.169.254", "::1", "::ffff:192.168.0.1"])
def test_private_addresses_are_requested_only_if_allowed(address: str) -> None:
    """A page must not lead into the operator's own network, unless the operator allows it."""
    web = MemoryWeb({f"{A}/": page()}, {"a.test": (address,)})
    refused = Drive(web, rules_for(f"{A}/")).begin().run()
    assert (refused.log, refused.waiting()) == ([], 1)
    assert refused.keeper.hosts["a.test"].trouble == str(Failure.ADDRESS)
    assert Drive(web, rules_for(f"{A}/", allow_private=True)).begin().run().asked_urls() == [f"{A}/"]


def test_the_first_allowed_address_is_used() -> None:
    """A private address next to a public one is skipped."""
    web = MemoryWeb({f"{A}/": page()}, {"a.test": ("10.0.0.1", "93.184.216.34")})
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    assert [asked.address for asked in drive.log] == ["93.184.216.34"] * 2


@pytest.mark.parametrize("starts", [("http://a.test/", f"{A}/"), (f"{A}/", "http://a.test/"), (f"{A}/",)])
def test_a_port_sent_elsewhere_and_the_rest_of_its_host_are_two_servers(starts: tuple[str, ...]) -> None:
    """Each host is requested at its own address, whichever is known first, and both are crawled completely."""
    web = MemoryWeb({f"{A}/": page("http://a.test/plain"), "http://a.test/": page(f"{A}/secure")})
    detour = ConnectOverride("a.test", 443, Endpoint("93.184.0.9", 8443))
    drive = Drive(web, rules_for(*starts, detours=(detour,))).begin().run()
    assert {"http://a.test/plain", f"{A}/"} <= set(drive.asked_urls())
    assert len(drive.asked_urls()) == 2 * len(starts)
    assert {asked.address == "93.184.0.9" for asked in drive.log if asked.url.startswith("https")} == {True}
    assert {asked.address == "93.184.0.9" for asked in drive.log if asked.url.startswith("http:")} == {False}


# Going on


@pytest.mark.parametrize("clean", [True, False])
def test_a_resumed_crawl_fetches_only_waiting_urls(clean: bool) -> None:  # noqa: FBT001 - both kinds
    """URLs that an earlier run fetched, refused or gave up are left alone, and its robots.txt is still known."""
    replies: dict[str, Served] = {f"{A}/": page("/1", "/no", "/bad"), f"{A}/1": page("/2"), f"{A}/2": page()}
    replies |= {f"{A}/robots.txt": robots("Disallow: /no"), f"{A}/bad": Failure.PROTOCOL}
    earlier = Drive(MemoryWeb(dict(replies)), rules_for(f"{A}/", max_pages=2)).begin().run()
    later = earlier.after(clean=clean, max_pages=None).run()
    assert sorted(earlier.asked_urls() + later.asked_urls()) == [f"{A}/", f"{A}/1", f"{A}/2", f"{A}/bad"]
    assert later.asked_urls("robots") == []
    assert later.waiting() == 0


@pytest.mark.parametrize(
    ("lines", "own_s", "least_s"), [((), None, 2.0), (("Crawl-delay: 400",), None, 400.0), ((), 150.0, 150.0)]
)
@pytest.mark.parametrize("clean", [True, False])
def test_a_resumed_crawl_rests_first(
    lines: tuple[str, ...],
    own_s: float | None,
    least_s: float,
    clean: bool,  # noqa: FBT001 - both kinds
) -> None:
    """The earlier run may have just sent a request, so the host's full delay passes before the next one."""
    site = Site(f"{A}/", delay_s=own_s)
    web = MemoryWeb({f"{A}/": page("/1"), f"{A}/robots.txt": robots(*lines)})
    earlier = Drive(web, rules_for(site, delay_s=2.0, max_pages=1)).begin().run()
    later = earlier.after(clean=clean, max_pages=None).run()
    assert later.log[0].sent_s >= earlier.log[-1].ended_s + least_s
    if not clean:
        assert later.log[0].sent_s >= earlier.now_s + least_s


def test_a_crawl_delay_that_was_just_read_is_kept_over_a_restart() -> None:
    """If a run stops between robots.txt and the first page, the next one knows the delay and when it started."""
    web = MemoryWeb({f"{A}/": page(), f"{A}/robots.txt": robots("Crawl-delay: 500")})
    earlier = Drive(web, rules_for(f"{A}/")).begin()
    earlier.run(until=lambda: len(earlier.keeper.robots) == 1)
    later = earlier.after(clean=True).run()
    assert [asked.purpose for asked in earlier.log] == ["robots"]
    assert later.log[0].sent_s >= earlier.log[0].ended_s + 500.0


def test_a_new_crawl_does_not_rest_first() -> None:
    """No host was requested before, so none needs a delay: the first request is sent once the name is resolved."""
    drive = crawled({f"{A}/": page()}, delay_s=60.0)
    assert drive.log[0].sent_s < 1010.0


def test_urls_are_stored_before_they_are_requested() -> None:
    """A URL and its lease are stored before its request is sent, so that no crash loses it."""
    drive = Drive(MemoryWeb({f"{A}/": page(took_s=50.0)}), rules_for(f"{A}/")).begin()
    drive.run(until=lambda: f"{A}/" in drive.asked_urls())
    assert drive.db.execute("SELECT url FROM lease JOIN url ON id = url_id").fetchall() == [(f"{A}/",)]


def test_a_refusal_names_the_line() -> None:
    """The explanation of a missing page names the robots.txt rule."""
    drive = crawled({f"{A}/robots.txt": robots("Disallow: /p"), f"{A}/": page("/private")})
    assert drive.refused()[f"{A}/private"].endswith("Disallow: /p")


def test_a_host_gets_one_request_at_a_time_after_its_delay() -> None:
    """The delay starts at the end of a response, however slow it was; the site's own delay applies if it has one."""
    web = MemoryWeb({f"{A}/": page("/1", "/2", took_s=9.0)})
    drive = Drive(web, rules_for(Site(f"{A}/", delay_s=3.0), delay_s=50.0)).begin().run()
    gaps = [after.sent_s - before.ended_s for before, after in pairwise(drive.log)]
    assert len(gaps) == 3
    assert gaps == pytest.approx([3.0] * 3)
