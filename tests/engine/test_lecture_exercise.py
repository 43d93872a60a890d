"""The naive crawler of a lecture, and each of its flaws as a test.

The exercise shows a loop of a few lines (take the last URL of a list, fetch it, append its links) and asks for its
flaws. Each answer is a test here.
"""

from collections import Counter
from itertools import pairwise

from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, page, robots, rules_for

from vedette.model import PARTITIONS, Failure, partition_of

A, B = "https://a.test", "https://b.test"


def test_it_takes_the_first_url_first() -> None:
    """Flaw: the last URL found is taken first, so it goes deep. Here URLs near the start come first."""
    web = MemoryWeb({f"{A}/": page("/1", "/2"), f"{A}/1": page("/1/deep"), f"{A}/2": page("/2/deep")})
    urls = Drive(web, rules_for(f"{A}/")).begin().run().asked_urls()
    assert urls == [f"{A}/", f"{A}/1", f"{A}/2", f"{A}/1/deep", f"{A}/2/deep"]


def test_it_leaves_servers_in_peace() -> None:
    """Flaw: requests follow each other as fast as responses arrive. Here, a server gets a pause after each response."""
    web = MemoryWeb({f"{A}/": page(*(f"/{number}" for number in range(20)))})
    log = Drive(web, rules_for(f"{A}/", delay_s=1.5)).begin().run().log
    assert len(log) == 22
    assert all(after.sent_s - before.ended_s >= 1.5 - 1e-6 for before, after in pairwise(log))


def test_it_fetches_and_obeys_robots_txt() -> None:
    """Flaw: robots.txt is ignored. Here it is fetched first and obeyed."""
    web = MemoryWeb({f"{A}/robots.txt": robots("Disallow: /private"), f"{A}/": page("/private/1", "/public")})
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    assert drive.log[0].url == f"{A}/robots.txt"
    assert drive.asked_urls() == [f"{A}/", f"{A}/public"]


def test_it_knows_one_page_under_its_many_spellings() -> None:
    """Flaw: every spelling of a URL is another page. Here, they are one."""
    spellings = (
        "/p",
        "HTTPS://A.TEST/p",
        "https://a.test:443/p",
        "./p",
        "x/../p",
        "/p#part",
        "/%70?utm_source=n",
        "/p?",
    )
    fetched = Drive(MemoryWeb({f"{A}/": page(*spellings)}), rules_for(f"{A}/")).begin().run().asked_urls()
    assert fetched[:2] == [f"{A}/", f"{A}/p"]
    # Only the server knows whether %70 and p are the same to it; every other spelling is the same to everyone.
    assert fetched[2:] == [f"{A}/%70"]


def test_it_survives_any_response() -> None:
    """Flaw: one exception ends the crawl. Here failures are values, and the rest is fetched."""
    web = MemoryWeb(
        {f"{A}/": page("/reset", "/slow", "/huge", "/odd", "/bytes", "/moved", "/good"), f"{A}/good": page()}
    )
    web.replies |= {f"{A}/reset": Failure.RESET, f"{A}/slow": Failure.TIMEOUT, f"{A}/huge": Failure.TOO_LARGE}
    html = (("content-type", "text/html; charset=no-such"), ("location", "http://[::bad"))
    web.replies |= {f"{A}/odd": Reply(799), f"{A}/bytes": Reply(200, html, b"\xff\x00<a href='\xfe'>" * 9)}
    web.replies[f"{A}/moved"] = Reply(302, html)
    drive = Drive(web, rules_for(f"{A}/")).begin().run()
    assert drive.pages()[f"{A}/good"].status == 200
    assert set(drive.given_up()) == {f"{A}/reset", f"{A}/slow", f"{A}/huge", f"{A}/odd"}


class Calendar(MemoryWeb):
    """Every page links to the next, forever."""

    def reply(self, url: str, now_s: float) -> Served:
        """The page of a day; there is no robots.txt."""
        day = url.rpartition("/")[2] or "0"
        return page(f"/{int(day) + 1}") if day.isdigit() else super().reply(url, now_s)


def test_a_trap_without_end_ends() -> None:
    """Flaw: a site that invents links keeps it busy forever. Here, they are recognized well before the limit."""
    drive = Drive(Calendar(), rules_for(f"{A}/", f"{B}/", max_pages=1000)).begin().run()
    assert 10 < len(drive.pages()) < 100
    assert min(Counter(asked.host for asked in drive.log).values()) > 10


def test_a_slow_host_blocks_nobody() -> None:
    """Flaw: it waits for each response before it continues. Here other hosts are requested in the meantime."""
    web = MemoryWeb({f"{A}/": page("/1", took_s=10_000.0), f"{B}/": page(*(f"/{number}" for number in range(50)))})
    drive = Drive(web, rules_for(f"{A}/", f"{B}/")).begin().run()
    slow = next(asked for asked in drive.log if asked.url == f"{A}/")
    assert len([asked for asked in drive.asked_of("b.test") if asked.ended_s < slow.ended_s]) == 52


def test_hosts_can_be_divided_among_many_machines() -> None:
    """Flaw: one list on one machine. Here hosts are spread evenly, those of a registered domain together."""
    spread = Counter(partition_of(f"site-{number}.example") for number in range(20 * PARTITIONS))
    assert len(spread) == PARTITIONS
    assert max(spread.values()) < 3 * 20
    together = {partition_of(f"{name}bbc.co.uk") for name in ("", "www.", "news.", "a.b.")}
    assert len(together) == 1
    assert partition_of("bbc.co.uk") != partition_of("gov.co.uk")
