"""Poll schedule: the stored due times of lists are forecasts that follow the price."""

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, robots, rules_for

A = "https://a.test"
HOUR_S, DAY_S = 3_600.0, 86_400.0
CHEAP, DEAR = 1.0, 100.0


def growing_map(now_s: float) -> Reply:
    """Return a sitemap that lists one more page every two hours."""
    urls = "".join(f"<url><loc>{A}/p/{n}</loc></url>" for n in range(int(now_s // (2 * HOUR_S)) + 1))
    return Reply(200, (("content-type", "application/xml"),), f"<urlset>{urls}</urlset>".encode())


def crawled() -> Drive:
    """Crawl a site with a sitemap for two days."""
    web = MemoryWeb({f"{A}/robots.txt": robots(f"Sitemap: {A}/map.xml"), f"{A}/start": page("/p/0")})
    web.replies |= {f"{A}/p/{n}": page(title=f"p{n}") for n in range(100)} | {f"{A}/map.xml": growing_map}
    return Drive(web, rules_for(f"{A}/start", recrawl=True, idle_share=0.0), workers=1).begin().run(2 * DAY_S)


def test_stored_due_times_of_lists_follow_the_price() -> None:
    """When polls become cheaper, a list is due sooner; when they become more expensive, later."""
    drive = crawled()
    polls, now_s = drive.keeper.refresher.polls, drive.now_s
    waits_s = []
    for minute, price in enumerate((DEAR, CHEAP, DEAR), 2):
        at_s = now_s + minute * 61.0
        assert not polls.ask([], price, at_s)
        waits_s.append(drive.pages()[f"{A}/map.xml"].due_s - at_s)
    first, cheap, again = waits_s
    assert 0 < cheap < 0.5 * first
    assert again == pytest.approx(first, rel=0.2)
