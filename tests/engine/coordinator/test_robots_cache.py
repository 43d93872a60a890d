"""robots.txt comes first: when it is requested, what waits for it, and that no redirect can stop a crawl."""

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, moved, page, robots, rules_for

from vedette.model import Failure

A, B, C = "https://a.test", "https://b.test", "https://c.test"
DAY_S = 86_400.0
TROUBLES = [Reply(503), Reply(500), Reply(429), Failure.TIMEOUT, Failure.CONNECT, Failure.TLS]


def driven(replies: dict[str, Served], *starts: str, for_s: float = 1e7, **settings: object) -> Drive:
    """Run a crawl of a web with these replies."""
    return Drive(MemoryWeb(dict(replies)), rules_for(*starts or (f"{A}/",), **settings)).begin().run(for_s)


def test_robots_txt_is_fetched_first_and_once() -> None:
    """The robots.txt of each host is fetched before any page, and not again until it expires."""
    replies: dict[str, Served] = {f"{host}/": page("/1", "/2", "/3") for host in (A, B)}
    drive = driven(replies, f"{A}/", f"{B}/")
    for host in ("a.test", "b.test"):
        assert [asked.purpose for asked in drive.asked_of(host)] == ["robots", "page", "page", "page", "page"]


def test_http_and_https_have_their_own_robots_txt() -> None:
    """The file applies to scheme, host and port; each is requested before the pages that it applies to."""
    drive = driven({f"{A}/": page("http://a.test/plain"), "http://a.test/robots.txt": robots("Disallow: /")})
    assert drive.asked_urls("robots") == [f"{A}/robots.txt", "http://a.test/robots.txt"]
    assert list(drive.refused()) == ["http://a.test/plain"]


def test_disallowed_urls_are_never_requested() -> None:
    """Refusals are recorded, and cost the server nothing."""
    web = {f"{A}/robots.txt": robots("Disallow: /x", "Allow: /x/y"), f"{A}/": page("/x", "/x/z", "/x/y", "/ok")}
    drive = driven(dict(web))
    assert drive.asked_urls() == [f"{A}/", f"{A}/x/y", f"{A}/ok"]
    assert list(drive.refused()) == [f"{A}/x", f"{A}/x/z"]


@pytest.mark.parametrize("status", [404, 403, 410])
def test_without_a_file_everything_is_allowed(status: int) -> None:
    """A server without a robots.txt disallows nothing."""
    assert driven({f"{A}/robots.txt": Reply(status), f"{A}/": page()}).asked_urls() == [f"{A}/"]


@pytest.mark.parametrize("trouble", TROUBLES, ids=str)
def test_nothing_else_is_requested_while_robots_txt_fails(trouble: Served) -> None:
    """The host waits, longer each time, and only its robots.txt is requested; other hosts continue."""
    replies: dict[str, Served] = {f"{A}/robots.txt": trouble, f"{A}/": page(), f"{B}/": page("/1", "/2")}
    drive = driven(replies, f"{A}/", f"{B}/", for_s=4 * 3600.0)
    tries = drive.asked_of("a.test")
    assert {asked.purpose for asked in tries} == {"robots"}
    assert 3 <= len(tries) <= 20
    assert drive.asked_of("b.test")[-1].url == f"{B}/2"


def test_a_host_that_recovers_is_crawled() -> None:
    """The first valid response ends the wait."""
    web = MemoryWeb({f"{A}/": page("/1")})
    web.replies[f"{A}/robots.txt"] = lambda now_s: Reply(503) if now_s < 5000.0 else robots("Disallow: /1")
    drive = Drive(web, rules_for(f"{A}/"), start_s=1000.0).begin().run()
    assert (drive.asked_urls(), list(drive.refused())) == ([f"{A}/"], [f"{A}/1"])
    assert min(asked.sent_s for asked in drive.log if asked.purpose == "page") >= 5000.0


def test_one_silent_port_does_not_stop_the_rest_of_its_host() -> None:
    """A link to the closed http port of an https site must not end the crawl of the site."""
    replies: dict[str, Served] = {f"{A}/": page("http://a.test/", "/1"), f"{A}/1": page("/2")}
    replies |= {"http://a.test/robots.txt": Failure.CONNECT}
    drive = driven(replies, for_s=3 * 3600.0)
    assert drive.asked_urls() == [f"{A}/", f"{A}/1", f"{A}/2"]
    assert drive.keeper.get_ending(drive.now_s, patience_s=1.0) == "stuck"
    assert [(host.name, bool(host.trouble)) for host in drive.keeper.hosts.values()] == [("a.test", True)]


def test_an_expired_robots_txt_is_fetched_again() -> None:
    """No page is requested by rules older than a day, or than the operator's limit."""
    links = tuple(f"/{number}" for number in range(30))
    for most_s, least in ((DAY_S, 3), (3 * 3600.0, 20)):
        replies: dict[str, Served] = {f"{A}/": page(*links), f"{A}/robots.txt": robots("Crawl-delay: 7200")}
        drive = driven(replies, robots_max_age_s=most_s)
        assert len(drive.pages()) == 31
        asked_s = -1e9
        for asked in drive.log:
            asked_s = asked.ended_s if asked.purpose == "robots" else asked_s
            assert asked.sent_s - asked_s < most_s
        assert len(drive.asked_urls("robots")) >= least


def test_a_file_that_did_not_change_is_not_sent_again() -> None:
    """The second request carries the validator of the first response, and a 304 renews the copy."""
    tagged = Reply(200, (("etag", '"v1"'), ("cache-control", "max-age=600")), b"User-agent: *\nDisallow: /no")
    web = MemoryWeb({f"{A}/": page("/1", "/no")})
    web.replies[f"{A}/robots.txt"] = lambda now_s: tagged if now_s < 1500.0 else Reply(304)
    drive = Drive(web, rules_for(f"{A}/", delay_s=700.0), start_s=1000.0).begin().run()
    first, second, *_ = (asked.headers for asked in drive.log if asked.purpose == "robots")
    assert ("if-none-match", '"v1"') not in first
    assert ("if-none-match", '"v1"') in second
    assert list(drive.refused()) == [f"{A}/no"]


@pytest.mark.parametrize("lines", [(), ("Crawl-delay: 5000",)])
def test_a_rest_longer_than_the_lifetime_of_robots_txt_still_lets_pages_through(lines: tuple[str, ...]) -> None:
    """If the file expired during every delay, it would be requested again and again, but never a page."""
    brief = Reply(200, (("cache-control", "max-age=60"),), robots(*lines).body)
    drive = driven({f"{A}/robots.txt": brief, f"{A}/": page("/1", "/2")}, delay_s=2000.0)
    assert drive.asked_urls() == [f"{A}/", f"{A}/1", f"{A}/2"]


def test_a_crawl_delay_is_kept() -> None:
    """The longer of the operator's delay and the file's applies, from the first page on."""
    drive = driven({f"{A}/robots.txt": robots("Crawl-delay: 25"), f"{A}/": page("/1")}, delay_s=4.0)
    gaps = [after.sent_s - before.ended_s for before, after in zip(drive.log, drive.log[1:], strict=False)]
    assert gaps == pytest.approx([25.0, 25.0])


# Redirects of robots.txt: none may let two hosts wait for each other

FORBIDS = robots("Disallow: /secret")


@pytest.mark.parametrize(
    ("chain", "hops"),
    [
        ((f"{A}/other.txt",), 1),
        ((f"{B}/robots.txt",), 1),
        ((f"{B}/1", f"{A}/2", f"{B}/3"), 3),
        ((f"{B}/1", f"{C}/2", f"{A}/3", f"{B}/4", f"{C}/5"), 5),
    ],
)
def test_the_rules_at_the_end_of_a_redirect_hold(chain: tuple[str, ...], hops: int) -> None:
    """Up to five redirects are followed, within and across hosts, and the file at the end applies."""
    stations = (f"{A}/robots.txt", *chain)
    replies: dict[str, Served] = {here: moved(there) for here, there in zip(stations, chain, strict=False)}
    replies |= {chain[-1]: FORBIDS, f"{A}/": page("/secret", "/open")}
    drive = driven(replies)
    assert drive.asked_urls("robots")[: hops + 1] == list(stations)
    assert (drive.asked_urls(), list(drive.refused())) == ([f"{A}/", f"{A}/open"], [f"{A}/secret"])


@pytest.mark.parametrize("target", [f"{A}/robots.txt", f"{B}/loop"])
def test_a_loop_counts_as_no_file(target: str) -> None:
    """After more than five redirects everything is allowed, and no host was requested more than six times."""
    replies: dict[str, Served] = {f"{A}/robots.txt": moved(target), f"{B}/loop": moved(f"{A}/robots.txt")}
    drive = driven({**replies, f"{A}/": page()})
    assert (drive.asked_urls(), len(drive.asked_urls("robots"))) == ([f"{A}/"], 6)


def test_two_hosts_that_send_each_other_are_both_crawled() -> None:
    """Each host's robots.txt redirects to the other: neither waits forever."""
    replies: dict[str, Served] = {f"{A}/robots.txt": moved(f"{B}/a.txt"), f"{B}/robots.txt": moved(f"{A}/b.txt")}
    replies |= {f"{B}/a.txt": FORBIDS, f"{A}/b.txt": FORBIDS}
    replies |= {f"{host}/": page("/secret", "/open") for host in (A, B)}
    drive = driven(replies, f"{A}/", f"{B}/")
    assert sorted(drive.asked_urls()) == [f"{A}/", f"{A}/open", f"{B}/", f"{B}/open"]
    assert sorted(drive.refused()) == [f"{A}/secret", f"{B}/secret"]


def test_a_ring_of_hosts_at_one_address_is_crawled() -> None:
    """Every robots.txt redirects to the next host, all at one address, all started at once."""
    names = [f"https://h{number}.test" for number in range(8)]
    replies: dict[str, Served] = {}
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        replies |= {f"{name}/robots.txt": moved(f"{following}/theirs.txt"), f"{name}/theirs.txt": FORBIDS}
        replies[f"{name}/"] = page("/secret")
    web = MemoryWeb(dict(replies), {f"h{number}.test": ("93.184.216.34",) for number in range(8)})
    drive = Drive(web, rules_for(*(f"{name}/" for name in names))).begin().run()
    assert sorted(drive.asked_urls()) == sorted(f"{name}/" for name in names)
    assert len(drive.refused()) == 8


def test_a_host_that_many_others_send_to_serves_them_all() -> None:
    """Many hosts share one file, on a host whose own robots.txt is elsewhere, too."""
    names = [f"https://h{number}.test" for number in range(9)]
    replies: dict[str, Served] = {f"{name}/robots.txt": moved(f"{A}/shared.txt") for name in names}
    replies |= {f"{name}/": page("/secret") for name in (A, *names)}
    replies |= {f"{A}/shared.txt": FORBIDS, f"{A}/robots.txt": moved(f"{B}/slow.txt"), f"{B}/slow.txt": FORBIDS}
    drive = driven(replies, f"{A}/", *(f"{name}/" for name in names))
    assert len(drive.pages()) == len(drive.refused()) == 10


@pytest.mark.parametrize("failure", [Failure.NAME, Failure.ADDRESS])
def test_a_redirect_to_a_host_that_is_not_there_counts_as_no_answer(failure: Failure) -> None:
    """The host waits and robots.txt is requested again; its pages are neither fetched nor lost."""
    web = MemoryWeb({f"{A}/robots.txt": moved(f"{B}/"), f"{A}/": page()})
    web.names["b.test"] = failure if failure is Failure.NAME else ("127.0.0.1",)
    drive = Drive(web, rules_for(f"{A}/")).begin().run(3600.0)
    assert (drive.asked_urls(), drive.given_up(), drive.waiting()) == ([], {}, 1)
    assert len(drive.asked_of("a.test")) >= 2
    assert drive.keeper.next_s() is not None


def test_a_redirect_to_a_host_whose_name_is_not_known_yet_waits_for_it() -> None:
    """If DNS is slow, the rules arrive late, but they do arrive."""
    web = MemoryWeb({f"{A}/robots.txt": moved(f"{B}/x"), f"{B}/x": FORBIDS, f"{A}/": page("/secret")})
    web.names["b.test"] = lambda now_s: Failure.RESOLVER if now_s < 2000.0 else ("93.184.216.9",)
    drive = Drive(web, rules_for(f"{A}/"), start_s=1000.0).begin().run()
    assert (drive.asked_urls(), list(drive.refused())) == ([f"{A}/"], [f"{A}/secret"])
    assert min(asked.sent_s for asked in drive.log if asked.url == f"{A}/") >= 2000.0


def test_a_crawl_delay_from_a_redirect_applies_to_the_next_request() -> None:
    """If the file redirects to another host, its crawl-delay counts from the last response of the original host."""
    web = MemoryWeb({f"{A}/robots.txt": moved(f"{B}/x"), f"{B}/x": robots("Crawl-delay: 30"), f"{A}/": page()})
    drive = Drive(web, rules_for(f"{A}/", delay_s=1.0)).begin().run()
    first, second = drive.asked_of("a.test")
    assert second.sent_s - first.ended_s >= 30.0


def test_pages_wait_while_another_host_serves_their_robots_txt() -> None:
    """However slow the other host is, no page of this one is requested in the meantime."""
    slow = Reply(200, (), b"User-agent: *\nDisallow: /", took_s=500.0)
    drive = driven({f"{A}/robots.txt": moved(f"{B}/x"), f"{B}/x": slow, f"{A}/": page()})
    assert (drive.asked_urls(), list(drive.refused())) == ([], [f"{A}/"])
