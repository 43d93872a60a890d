"""Refreshed pages: when, how they are requested, and what is stored if nothing changed."""

from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, moved, page, robots, rules_for

from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Site, origin_of
from vedette.refresh.policies.fixed import Fixed
from vedette.refresh.policies.nutch import Nutch

A = "https://a.test"
HOUR_S, DAY_S = 3600.0, 86_400.0
SCHEDULE = Schedule(
    recrawl=True, sources=Fixed(interval_s=1200.0), pages=Nutch(first_interval_s=DAY_S, min_interval_s=HOUR_S)
)
# No home page: it would be looked at all the time.
START = f"{A}/start"


def crawled(replies: dict[str, Served | Server], for_s: float, start: str = START, **settings: object) -> Drive:
    """Run an endless crawl for some time; its start page links to the page in question."""
    web = MemoryWeb({start: page("/p"), **replies})
    return Drive(web, rules_for(start, recrawl=True, **settings), schedule=SCHEDULE).begin().run(for_s)


def times_of(drive: Drive, url: str) -> list[float]:
    """Return when a URL was requested."""
    return [asked.sent_s for asked in drive.log if asked.url == url]


def conditional(reply: Reply, etag: str) -> Reply:
    """Return the same reply with a validator."""
    return Reply(reply.status, (*reply.headers, ("etag", etag)), reply.body)


def since(first: Served, then_s: float, then: Served) -> Callable[[float], Served]:
    """Return one reply, and from a time on another one."""
    return lambda now_s: then if now_s >= then_s else first


def test_without_a_price_sources_are_polled_at_their_shortest_pace_at_most() -> None:
    """Home page, feed and sitemap are fetched again, none sooner than the interval allows; ordinary pages aren't."""
    feed = Reply(200, (("content-type", "application/rss+xml"),), b"<rss><channel><title>t</title></channel></rss>")
    site_map = Reply(200, (("content-type", "application/xml"),), b"<urlset><url><loc>/p</loc></url></urlset>")
    replies: dict[str, Served | Server] = {f"{A}/feed": feed, f"{A}/map.xml": site_map, f"{A}/p": page("/feed")}
    replies[f"{A}/robots.txt"] = robots(f"Sitemap: {A}/map.xml")
    drive = crawled(replies, 4 * HOUR_S, start=f"{A}/", refresh="nutch")
    polled = [times_of(drive, url) for url in (f"{A}/", f"{A}/feed", f"{A}/map.xml")]
    gaps = [after - before for times in polled for before, after in pairwise(times)]
    assert len(gaps) >= 2
    assert all(gap >= 1200.0 for gap in gaps)
    assert len(times_of(drive, f"{A}/p")) == 1


def test_productive_sources_are_fetched_more_often() -> None:
    """With a budget, a list with new links every hour is fetched far more often than one that never changes."""

    def list_of(*names: str) -> Reply:
        entries = "".join(f"<url><loc>{A}/{name}</loc></url>" for name in names)
        return Reply(200, (("content-type", "application/xml"),), f"<urlset>{entries}</urlset>".encode())

    def busy(now_s: float) -> Served:
        return list_of(*(f"n/{n}" for n in range(int(now_s // HOUR_S))))

    born: dict[str, Served | Server] = {f"{A}/n/{n}": page(title=in_letters(n)) for n in range(30)}
    maps: dict[str, Served | Server] = {f"{A}/busy.xml": busy, f"{A}/still.xml": list_of("p")}
    named = robots(f"Sitemap: {A}/busy.xml", f"Sitemap: {A}/still.xml")
    replies = {f"{A}/p": page(), **born, **maps, f"{A}/robots.txt": named}
    drive = crawled(replies, 24 * HOUR_S, budget_per_s=300 / DAY_S)
    looks = {url: [at_s for at_s in times_of(drive, url) if at_s > 15 * HOUR_S] for url in maps}
    assert len(looks[f"{A}/busy.xml"]) > 2 * len(looks[f"{A}/still.xml"])
    found_s = [times_of(drive, f"{A}/n/{n}")[0] - (n + 1) * HOUR_S for n in range(10, 22)]
    assert sum(found_s) / len(found_s) < HOUR_S


def in_letters(now_s: float) -> str:
    """Return a time as a word, because numbers alone would not count as a change."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(int(now_s)))


def test_unchanged_pages_are_fetched_less_and_less() -> None:
    """Without a budget, pages are fetched once in three days on average, and more often if they change."""
    still, busy = [f"{A}/still/{n}" for n in range(3)], [f"{A}/busy/{n}" for n in range(3)]
    replies: dict[str, Served | Server] = {START: page(*still, *busy), **{url: page(title="still") for url in still}}
    replies |= {url: lambda now_s: page(title=in_letters(now_s)) for url in busy}
    drive = Drive(MemoryWeb(replies), rules_for(START, recrawl=True), schedule=SCHEDULE).begin().run(60 * DAY_S)
    seldom, often = (sum(len(times_of(drive, url)) for url in urls) for urls in (still, busy))
    assert often > 1.5 * seldom
    assert 7 * 60 / 3 / 2 < len(drive.asked_urls()) < 7 * 60 / 3 * 2
    gaps = [after - before for before, after in pairwise(times_of(drive, still[0]))]
    assert gaps[-1] > 2 * gaps[0]


def test_refetches_are_conditional_and_a_304_keeps_the_stored_page() -> None:
    """The last response's validators are sent; after a 304, title, links, digest and location stay."""
    first = conditional(page("/q", title="Known"), '"1"')
    drive = crawled({f"{A}/p": since(first, 2000.0, Reply(304))}, 7 * DAY_S)
    asked = [each for each in drive.log if each.url == f"{A}/p"]
    assert [("if-none-match", '"1"') in each.headers for each in asked] == [False] + [True] * (len(asked) - 1)
    assert len(asked) > 1
    row = drive.pages()[f"{A}/p"]
    assert (row.status, row.title, row.etag, row.kind) == (200, "Known", '"1"', "page")
    assert drive.book.get_links(row.id) == (f"{A}/q",)
    assert row.digest
    assert row.changed_s < row.fetched_s
    assert row.place is not None


def test_the_same_body_keeps_the_place_of_its_first_copy() -> None:
    """Without validators, the body is sent again; if it is the same, the archive's first copy remains the copy."""
    replies: dict[str, Served | Server] = {f"{A}/p": page(title="same")}
    first = crawled(replies, HOUR_S).pages()[f"{A}/p"]
    later = crawled(replies, 7 * DAY_S).pages()[f"{A}/p"]
    assert (later.place, later.changed_s) == (first.place, first.changed_s)
    assert later.fetched_s > first.fetched_s


def test_a_changed_body_replaces_the_stored_page() -> None:
    """A changed page has its new title, links and location."""
    replies: dict[str, Served | Server] = {f"{A}/p": since(page("/old", title="old"), 2000.0, page("/q", title="new"))}
    first = crawled(replies, 600.0).pages()[f"{A}/p"]
    drive = crawled(replies, 4 * DAY_S)
    row = drive.pages()[f"{A}/p"]
    assert (row.title, drive.book.get_links(row.id)) == ("new", (f"{A}/q",))
    assert row.place != first.place
    assert f"{A}/q" in drive.asked_urls()


@pytest.mark.parametrize("reply", [Reply(404), Reply(410), moved("/elsewhere")])
def test_repeated_errors_and_redirects_count_as_unchanged(reply: Reply) -> None:
    """A repeated status and target lengthen the interval: a dead link isn't requested daily."""
    times = times_of(crawled({f"{A}/p": reply}, 50 * DAY_S), f"{A}/p")
    gaps = [after - before for before, after in pairwise(times)]
    assert 2 <= len(gaps) <= 7
    assert all(after > before for before, after in pairwise(gaps))


def test_a_page_that_fails_for_a_while_is_not_forgotten() -> None:
    """The copy stays, the error is recorded, and the page is retried until it responds."""
    replies: dict[str, Served | Server] = {}
    replies[f"{A}/p"] = lambda now_s: Reply(500) if 50_000.0 < now_s < 600_000.0 else page(title=f"at {now_s > 6e5}")
    during = crawled(replies, 350_000.0)
    assert during.pages()[f"{A}/p"].title == "at False"
    assert during.given_up() == {f"{A}/p": "status 500"}
    after = crawled(replies, 20 * DAY_S)
    assert after.pages()[f"{A}/p"].title == "at True"
    assert after.given_up() == {}


def test_a_page_disallowed_for_a_while_is_fetched_again() -> None:
    """While a page is disallowed it isn't requested; when the file changes, it is."""
    file = since(robots(), 50_000.0, robots("Disallow: /p"))
    forbidden = crawled({f"{A}/p": page(), f"{A}/robots.txt": file}, 20 * DAY_S)
    assert len(times_of(forbidden, f"{A}/p")) == 1
    assert list(forbidden.refused()) == [f"{A}/p"]
    again: dict[str, Served | Server] = {f"{A}/p": page()}
    again[f"{A}/robots.txt"] = lambda now_s: robots("Disallow: /p") if 50_000.0 < now_s < 4e5 else robots()
    assert len(times_of(crawled(again, 20 * DAY_S), f"{A}/p")) > 2


@pytest.mark.parametrize("before", [robots("Disallow: /other"), Reply(404)])
def test_a_page_leaves_when_robots_txt_is_read_again(before: Reply) -> None:
    """It is removed long before it is due, and returns as soon as the file allows it; other pages and ports stay."""
    web = MemoryWeb({START: page("/p", "/q", "http://a.test/p"), f"{A}/p": page(), f"{A}/q": page()})
    web.replies |= {"http://a.test/p": page(), "http://a.test/robots.txt": robots(), f"{A}/robots.txt": before}
    drive = Drive(web, rules_for(START, recrawl=True), schedule=SCHEDULE).begin().run(3600.0)
    everything = {START, f"{A}/p", f"{A}/q", "http://a.test/p"}
    origin = origin_of(START)
    for file, lost in ((robots("Disallow: /p"), {f"{A}/p"}), (before, set())):
        web.replies[f"{A}/robots.txt"] = file
        drive.keeper.request_robots(origin)
        drive.run(600.0)
        assert drive.pages().keys() == everything - lost
        assert drive.refused().keys() == lost


def test_a_site_that_ignores_robots_txt_keeps_its_pages() -> None:
    """A page is only removed if its owner's directive says so."""
    web = MemoryWeb({START: page("/p"), f"{A}/p": page(), f"{A}/robots.txt": robots()})
    site = Site(START, ignore_robots=True)
    drive = Drive(web, rules_for(site, recrawl=True), schedule=SCHEDULE).begin().run(3600.0)
    web.replies[f"{A}/robots.txt"] = robots("Disallow: /")
    drive.keeper.request_robots(origin_of(START))
    drive.run(600.0)
    assert drive.pages().keys() == {START, f"{A}/p"}


def test_without_recrawl_nothing_is_due_again() -> None:
    """A single crawl fetches each page once, however long it takes."""
    drive = Drive(MemoryWeb({START: page("/p"), f"{A}/p": page()}), rules_for(START)).begin().run()
    drive.now_s += 100 * DAY_S
    assert drive.keeper.wake_due_pages(drive.now_s) == 0
    assert drive.run().asked_urls() == [START, f"{A}/p"]


def test_a_page_without_a_stored_body_is_fetched_unconditionally() -> None:
    """If the archive no longer has the body, a 304 would be useless, so the request is unconditional."""
    web = MemoryWeb({START: page("/p"), f"{A}/p": conditional(page(), '"1"')})
    drive = Drive(web, rules_for(START, recrawl=True), schedule=SCHEDULE).begin().run(HOUR_S)
    drive.db.execute("UPDATE page SET file = NULL, offset = NULL, length = NULL")
    drive.run(4 * DAY_S)
    second = [asked for asked in drive.log if asked.url == f"{A}/p"][1]
    assert not [name for name, _ in second.headers if name.startswith("if-")]


def test_what_was_due_when_a_run_ended_is_due_in_the_next() -> None:
    """A page that became due while nothing was running is fetched in order in the next run."""
    web = MemoryWeb({START: page("/p"), f"{A}/p": since(page(title="old"), 5000.0, page(title="new"))})
    earlier = Drive(web, rules_for(START, recrawl=True), schedule=SCHEDULE).begin().run(HOUR_S)
    later = Drive(web, earlier.rules, schedule=SCHEDULE, db=earlier.db, start_s=earlier.now_s + 4 * DAY_S)
    assert later.begin().run(DAY_S).pages()[f"{A}/p"].title == "new"


def test_a_feed_that_has_not_changed_is_a_list_all_the_same() -> None:
    """After an idle crawl, one poll without news is enough; the feed isn't polled again and again."""
    feed = Reply(200, (("content-type", "application/rss+xml"),), b"<rss><channel><title>t</title></channel></rss>")
    web = MemoryWeb({START: page("/feed", "/p"), f"{A}/p": page(), f"{A}/feed": conditional(feed, '"one"')})
    once = Drive(web, rules_for(START, recrawl=False), schedule=SCHEDULE).begin().run()
    assert len(times_of(once, f"{A}/feed")) == 1
    later = once.after(clean=True, recrawl=True, budget_per_s=20 / DAY_S).run(DAY_S)
    assert 1 <= len(times_of(later, f"{A}/feed")) <= 5
