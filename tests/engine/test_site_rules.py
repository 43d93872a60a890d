"""The operator's settings of a single site: hours, bandwidth, robots.txt and addresses."""

from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, robots, rules_for

from vedette.model import Site

A, B = "https://a.test", "https://b.test"
HOUR_S = 3600.0


def ran(web: MemoryWeb, *sites: Site | str, **settings: object) -> Drive:
    """Crawl these sites to the end."""
    drive = Drive(web, rules_for(*sites, **settings)).begin()
    drive.run()
    return drive


def test_a_site_is_asked_within_its_hours_only() -> None:
    """No request is sent outside a site's hours, whenever the site is added; other sites continue."""
    web = MemoryWeb({f"{A}/": page("/1"), f"{A}/1": page(), f"{B}/": page()})
    started = Drive(web, rules_for()).now_s
    hour = int(started % 86_400 // HOUR_S)
    hours = f"{(hour + 2) % 24:02}:00-{(hour + 3) % 24:02}:00"
    drive = ran(web, Site(f"{A}/", hours=hours), f"{B}/")
    times = [asked.sent_s for asked in drive.log if asked.host == "a.test"]
    assert len(times) == 3
    assert {int(sent_s % 86_400 // HOUR_S) for sent_s in times} == {(hour + 2) % 24}
    assert all(asked.sent_s < started + HOUR_S for asked in drive.log if asked.host == "b.test")


def test_the_bandwidth_of_a_site_is_taken_thinly() -> None:
    """After 10,000 bytes at a limit of 1,000 bytes per second, nothing is requested for ten seconds."""
    large = Reply(200, (("content-type", "text/html"),), b'<a href="/1">' + b" " * 10_000)
    web = MemoryWeb({f"{A}/": large, f"{A}/1": page()})
    drive = ran(web, Site(f"{A}/", bytes_per_s=1000.0), delay_s=1.0)
    first, second = (next(asked for asked in drive.log if asked.url == f"{A}{path}") for path in ("/", "/1"))
    assert second.sent_s >= first.ended_s + 10.0


def test_robots_txt_of_ones_own_site_may_be_ignored() -> None:
    """The confirmed site is fetched despite its robots.txt, and no other site is."""
    closed = robots("Disallow: /")
    web = MemoryWeb({f"{A}/robots.txt": closed, f"{B}/robots.txt": closed, f"{A}/": page(), f"{B}/": page()})
    drive = ran(web, Site(f"{A}/", ignore_robots=True), f"{B}/")
    assert sorted(drive.pages()) == [f"{A}/"]


def test_a_site_may_lie_at_a_private_address_where_it_says_so() -> None:
    """Permission for one site doesn't extend to others."""
    web = MemoryWeb({f"{A}/": page(), f"{B}/": page()})
    web.names |= {"a.test": ("10.0.0.1",), "b.test": ("10.0.0.2",)}
    drive = ran(web, Site(f"{A}/", allow_private=True), f"{B}/")
    assert {asked.host for asked in drive.log} == {"a.test"}
