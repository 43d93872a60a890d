"""Which URLs are new on the web: those first linked from known pages after the first crawl, and no others."""

from dataclasses import replace
from email.utils import formatdate

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, moved, page, rules_for

from vedette.engine.coordinator.state import FoundUrl
from vedette.engine.ports import LinkOrigin
from vedette.engine.scheduling.schedule import Schedule
from vedette.model import Site
from vedette.refresh.policies.fixed import Fixed

A = "https://a.test"
HOUR_S = 3600.0
SCHEDULE = Schedule(recrawl=True, sources=Fixed(interval_s=1200.0))
LATER_S = 1000.0 + HOUR_S


def since(first: Served, then: Served, then_s: float = LATER_S) -> Server:
    """Return one reply at first, and another one from a time on."""
    return lambda now_s: then if now_s >= then_s else first


def crawled(replies: dict[str, Served | Server], for_s: float = 1.5 * HOUR_S, site: Site | None = None) -> Drive:
    """Run a crawl without a budget that polls each list at most three times an hour."""
    rules = rules_for(site or f"{A}/", recrawl=True, refresh="nutch")
    return Drive(MemoryWeb(replies), rules, schedule=SCHEDULE).begin().run(for_s)


def news(drive: Drive) -> dict[str, tuple[str, str]]:
    """Return the URLs that are new: how and where each was found."""
    sql = (
        "SELECT url.url, find.how, source.url FROM find JOIN url ON url.id = find.url_id "
        "JOIN url AS source ON source.id = find.source ORDER BY url.id"
    )
    return {url: (how, via) for url, how, via in drive.db.execute(sql)}


def test_a_first_crawl_is_silent_and_a_later_link_is_news() -> None:
    """Nothing found by the first crawl is new; what the home page links to an hour later is."""
    home = since(page("/a", "/b"), page("/a", "/b", "/new"))
    drive = crawled({f"{A}/": home, f"{A}/a": page("/deep"), f"{A}/deep": page(), f"{A}/new": page()})
    assert f"{A}/deep" in drive.pages()
    assert news(drive) == {f"{A}/new": ("page", f"{A}/")}


def test_links_of_new_pages_are_new_up_to_a_depth() -> None:
    """The articles of a new issue are new; a trap of pages that link to each other is not new forever."""
    chain: dict[str, Served | Server] = {f"{A}/{n}": page(f"/{n + 1}", title=f"Issue {n}") for n in range(20)}
    drive = crawled({f"{A}/": since(page(), page("/0")), **chain}, 2 * HOUR_S)
    assert list(news(drive)) == [f"{A}/0", f"{A}/1", f"{A}/2"]


def test_the_dates_of_new_feed_entries_are_stored() -> None:
    """It has the date of its new entry, not of old or future ones."""

    def feed(**dates: str) -> Reply:
        items = "".join(f"<item><link>{A}/{name}</link><pubDate>{at}</pubDate></item>" for name, at in dates.items())
        return Reply(200, (("content-type", "application/xml"),), f"<rss><channel>{items}</channel></rss>".encode())

    old, born, ahead = (formatdate(at_s) for at_s in (900.0, LATER_S - 60.0, 9e8))
    served = since(feed(old=old), feed(old=old, new=born, odd=ahead))
    pages: dict[str, Served | Server] = {f"{A}/{name}": page(title=name) for name in ("old", "new", "odd")}
    drive = crawled({f"{A}/": page("/feed"), f"{A}/feed": served, **pages})
    ids = drive.keeper.urls.find_ids([f"{A}/new", f"{A}/old", f"{A}/odd"]).tolist()
    assert set(news(drive)) == {f"{A}/new", f"{A}/odd"}
    assert drive.book.find_births(ids) == {ids[0]: LATER_S - 60.0}


def test_entries_of_feeds_and_new_sitemaps_are_new() -> None:
    """New entries of a feed are new, and so are those of a sitemap that its index did not list before."""
    xml = (("content-type", "application/xml"),)

    def feed(*links: str) -> Reply:
        items = "".join(f"<item><link>{link}</link></item>" for link in links)
        return Reply(200, xml, f"<rss><channel>{items}</channel></rss>".encode())

    def index(*maps: str) -> Reply:
        named = "".join(f"<sitemap><loc>{A}{each}</loc></sitemap>" for each in maps)
        return Reply(200, xml, f"<sitemapindex>{named}</sitemapindex>".encode())

    def urls(*paths: str) -> Reply:
        named = "".join(f"<url><loc>{A}{each}</loc></url>" for each in paths)
        return Reply(200, xml, f"<urlset>{named}</urlset>".encode())

    drive = crawled(
        {
            f"{A}/": page("/feed.xml", "/sitemap.xml"),
            f"{A}/feed.xml": since(feed("/old"), feed("/fresh", "/old")),
            f"{A}/sitemap.xml": since(index("/map-1.xml"), index("/map-1.xml", "/map-2.xml")),
            f"{A}/map-1.xml": urls("/old"),
            f"{A}/map-2.xml": urls("/listed"),
            **{f"{A}/{name}": page(title=name) for name in ("old", "fresh", "listed")},
        },
        8 * HOUR_S,  # four lists
    )
    found = news(drive)
    assert found[f"{A}/fresh"] == ("feed", f"{A}/feed.xml")
    assert found[f"{A}/listed"] == ("sitemap", f"{A}/map-2.xml")
    assert f"{A}/old" not in found


def test_a_moved_page_is_not_new() -> None:
    """A known page that now redirects has moved; a new one that redirects is still new, at its target."""
    drive = crawled(
        {
            f"{A}/": since(page("/a"), page("/a", "/short")),
            f"{A}/a": since(page(title="A page"), moved(f"{A}/a2")),
            f"{A}/a2": page(title="A page"),
            f"{A}/short": moved(f"{A}/long"),
            f"{A}/long": page(title="Another"),
        },
        2 * HOUR_S,
    )
    drive.keeper.request_urls([f"{A}/a"], drive.now_s)
    drive.run(HOUR_S / 2)
    assert f"{A}/a2" in drive.pages()
    assert news(drive) == {f"{A}/short": ("page", f"{A}/"), f"{A}/long": ("page", f"{A}/")}


@pytest.mark.parametrize("wider", [True, False])
def test_old_links_within_wider_rules_are_not_new(wider: bool) -> None:  # noqa: FBT001 - one of two cases
    """After a change of scope, links count as new from the second fetch of a page on."""
    site = Site(f"{A}/", exclude=("/x/*",))
    home = since(page("/a", "/x/old"), page("/a", "/x/old", "/x/new"), 1000.0 + 3 * HOUR_S)
    drive = crawled({f"{A}/": home, f"{A}/a": page(), f"{A}/x/old": page(), f"{A}/x/new": page()}, site=site)
    if wider:
        drive.rule(replace(drive.rules, sites=(replace(site, exclude=()),)))
    drive.run(2.5 * HOUR_S)
    assert (f"{A}/x/old" in drive.pages()) is wider
    assert list(news(drive)) == ([f"{A}/x/new"] if wider else [])


def test_the_end_of_a_first_crawl_survives_a_restart() -> None:
    """The end of a first crawl is stored, with its time."""
    home = since(page("/a"), page("/a", "/new"))
    drive = crawled({f"{A}/": home, f"{A}/a": page(), f"{A}/new": page()}, HOUR_S / 2)
    assert news(drive) == {}
    later = Drive(drive.web, drive.rules, start_s=drive.now_s, db=drive.db, schedule=SCHEDULE).begin().run(2 * HOUR_S)
    assert list(news(later)) == [f"{A}/new"]


def test_an_endless_first_crawl_counts_as_over_after_a_week() -> None:
    """A host whose queue never empties reports nothing at first, and after a week the new links on its pages."""
    endless: dict[str, Served | Server] = {f"{A}/{n}": page(f"/{n + 1}", title=f"Leaf {n}") for n in range(60)}

    def home(now_s: float) -> Served:
        return page("/0", f"/hour-{int(now_s // HOUR_S)}")

    drive = crawled({f"{A}/": home, **endless}, site=Site(f"{A}/", delay_s=600.0))
    assert news(drive) == {}
    drive.db.execute("UPDATE first_crawl SET since_s = since_s - 7 * 86400")
    later = Drive(drive.web, drive.rules, start_s=drive.now_s, db=drive.db, schedule=SCHEDULE).begin().run(2 * HOUR_S)
    assert any("/hour-" in url for url in news(later))
    assert all("/hour-" in url for url in news(later))


def test_new_pages_are_fetched_before_others_that_wait_for_the_budget() -> None:
    """A new page is fetched at the next opportunity, even if better ones have been waiting."""
    old = [f"/p/{letter}" for letter in "abcdefghijklmnopqrst"]
    busy: dict[str, Served | Server] = {f"{A}{path}": lambda now_s: page(title=f"{now_s:.0f}") for path in old}
    rules = rules_for(f"{A}/", recrawl=True, refresh="nutch")
    web = MemoryWeb({f"{A}/": page(*old), f"{A}/born": page(), **busy})
    drive = Drive(web, rules, schedule=SCHEDULE).begin().run(1800.0)
    drive.rule(replace(drive.rules, budget_per_s=1 / 300.0))
    drive.urls.requeue([drive.pages()[f"{A}{path}"].id for path in old], priority=0)
    drive.run(900.0)
    way = LinkOrigin(drive.pages()[f"{A}/"].id, "push", drive.now_s - 600.0)
    drive.keeper.admit_links([([f"{A}/born"], FoundUrl("", 9, via=way))], drive.now_s)
    before = len(drive.asked_urls())
    assert f"{A}/born" in drive.run(900.0).asked_urls()[before : before + 2]
