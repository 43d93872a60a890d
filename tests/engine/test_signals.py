"""Signals from sitemaps, feeds and links for known pages: dates of changes, numbers of links, costs."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, page, robots, rules_for

from vedette.engine.decision_record import Decision
from vedette.engine.ports import ChangeSignal, KnownPage
from vedette.engine.scheduling.policy_memory import PolicyMemory
from vedette.engine.scheduling.schedule import Schedule
from vedette.refresh.policies.fixed import Fixed

A = "https://a.test"
START = f"{A}/start"
HOUR_S, DAY_S = 3600.0, 86_400.0


def stamped(at_s: float) -> str:
    """Return a time in the format of sitemaps and feeds."""
    return datetime.fromtimestamp(at_s, UTC).isoformat()


def site_map(dates: dict[str, float]) -> Reply:
    """Return a sitemap that lists these pages, each with the date of its last change."""
    urls = "".join(f"<url><loc>{A}{path}</loc><lastmod>{stamped(at_s)}</lastmod></url>" for path, at_s in dates.items())
    return Reply(200, (("content-type", "application/xml"),), f"<urlset>{urls}</urlset>".encode())


def feed(dates: dict[str, float]) -> Reply:
    """Return the same as a feed."""
    entries = "".join(
        f'<entry><link href="{A}{path}"/><updated>{stamped(at_s)}</updated></entry>' for path, at_s in dates.items()
    )
    body = f'<feed xmlns="http://www.w3.org/2005/Atom">{entries}</feed>'
    return Reply(200, (("content-type", "application/atom+xml"),), body.encode())


def news(dates: dict[str, float]) -> Reply:
    """Return a news sitemap, with only publication dates."""
    urls = "".join(
        f"<url><loc>{A}{path}</loc><n:news><n:publication_date>{stamped(at_s)}</n:publication_date></n:news></url>"
        for path, at_s in dates.items()
    )
    body = f'<urlset xmlns:n="http://www.google.com/schemas/sitemap-news/0.9">{urls}</urlset>'
    return Reply(200, (("content-type", "application/xml"),), body.encode())


def start_crawl(replies: dict[str, Served | Server], **settings: object) -> Drive:
    """Start a crawl that polls its sources every hour."""
    web = MemoryWeb({f"{A}/robots.txt": robots(f"Sitemap: {A}/map.xml"), **replies})
    schedule = Schedule(recrawl=True, sources=Fixed(interval_s=HOUR_S))
    return Drive(web, rules_for(START, recrawl=True, **settings), schedule=schedule).begin()


def look_of(drive: Drive, path: str) -> KnownPage:
    """Return a page as the policy sees it."""
    (look,) = drive.book.get_known_pages([drive.pages()[f"{A}{path}"].id])
    return look


@pytest.mark.parametrize(("write", "kind"), [(site_map, "sitemap"), (feed, "feed")])
def test_a_date_after_the_last_fetch_is_a_signal(write: Callable[[dict[str, float]], Reply], kind: str) -> None:
    """A page reported as changed after its fetch by a sitemap or feed is marked; an older date is ignored."""
    changed_s = 5 * HOUR_S

    def told(now_s: float) -> Reply:
        dates = {"/p": changed_s if now_s > changed_s else 10.0, "/q": 10.0}
        return write(dates)

    drive = start_crawl(
        {START: page("/p", "/q"), f"{A}/p": page(title="p"), f"{A}/q": page(title="q"), f"{A}/map.xml": told}
    )
    drive.run(3 * HOUR_S)
    assert look_of(drive, "/p").state.signal_s is None
    drive.run(5 * HOUR_S)
    assert look_of(drive, "/p").state.signal_s == pytest.approx(changed_s)
    assert look_of(drive, "/q").state.signal_s is None
    assert drive.book.find_signal(look_of(drive, "/p").page.id) == (changed_s, kind)


@pytest.mark.parametrize("write", [site_map, feed, news])
def test_a_page_with_a_new_date_is_fetched_sooner(write: Callable[[dict[str, float]], Reply]) -> None:
    """In idle time, lists are polled daily, and a page that one reports as changed is fetched sooner than others."""
    changed_s = 7.2 * DAY_S

    def told(now_s: float) -> Reply:
        return write({"/p": changed_s if now_s > changed_s else 10.0, "/q": 10.0})

    replies: dict[str, Served | Server] = {START: page("/p", "/q"), f"{A}/map.xml": told}
    replies |= {f"{A}/p": page(title="p"), f"{A}/q": page(title="q")}
    drive = start_crawl(replies, idle_share=0.1).run(8.7 * DAY_S)
    sent = {path: [each.sent_s for each in drive.log if each.url == f"{A}{path}"] for path in ("/p", "/q", "/map.xml")}
    assert max(after - before for before, after in pairwise(sent["/map.xml"])) < 1.1 * DAY_S
    assert max(sent["/q"]) < changed_s < max(sent["/p"])


def test_dates_of_the_future_and_of_no_page_say_nothing() -> None:
    """A date weeks ahead is ignored, as is the date of a URL never fetched; slightly ahead means now."""
    drive = start_crawl({START: page("/p"), f"{A}/p": page(title="p")}).run(2 * HOUR_S)
    id_, now_s = look_of(drive, "/p").page.id, drive.now_s
    far, unknown = ChangeSignal(id_, now_s + 30 * DAY_S, "ping"), ChangeSignal(10**6, now_s, "ping")
    assert drive.keeper.refresher.on_signals([far, unknown], now_s) == 0
    assert drive.keeper.refresher.on_signals([ChangeSignal(id_, now_s + 60.0, "ping")], now_s) == 1
    assert look_of(drive, "/p").state.signal_s == now_s
    assert drive.keeper.refresher.on_signals([ChangeSignal(id_, now_s - 60.0, "sitemap")], now_s) == 0


def test_the_policy_is_told_of_links_signals_and_costs() -> None:
    """All three columns are filled: linking pages, the last signal, and the cost of a fetch."""
    replies: dict[str, Served | Server] = {START: page("/p", "/q"), f"{A}/p": page("/q"), f"{A}/q": page("/q")}
    replies[f"{A}/p"] = page("/q", title="word " * 60_000)
    drive = start_crawl(replies).run(2 * HOUR_S)
    looks = [look_of(drive, path) for path in ("/p", "/q")]
    drive.keeper.refresher.on_signals([ChangeSignal(looks[0].page.id, drive.now_s, "ping")], drive.now_s)
    looks = [look_of(drive, path) for path in ("/p", "/q")]
    memory: PolicyMemory = drive.keeper.refresher._memory
    batch = memory.batch_pages(looks).batch
    assert batch.signal_s[0] == drive.now_s
    assert np.isnan(batch.signal_s[1])
    assert batch.cost[0] > 1 > batch.cost[1] > 0
    assert batch.links[1] > batch.links[0] >= 1


def test_the_policy_learns_from_fetches_with_their_signals_and_costs() -> None:
    """Facts of a fetch: an earlier announcement, the date of the copy, the higher cost of a large page, its words."""
    decisions: list[Decision] = []
    headers = (("content-type", "text/html"), ("last-modified", "Thu, 01 Jan 1970 00:00:07 GMT"))
    dated = Reply(200, headers, b"<title>p</title><p>%b</p>" % (b"word " * 60_000))
    web = MemoryWeb({START: page("/p", "/q"), f"{A}/p": dated, f"{A}/q": page(title="q")})
    schedule = Schedule(recrawl=True, witness=decisions.append)
    drive = Drive(web, rules_for(START, recrawl=True), schedule=schedule).begin().run(2 * HOUR_S)
    told_s = drive.now_s
    assert drive.keeper.refresher.on_signals([ChangeSignal(look_of(drive, "/p").page.id, told_s, "ping")], told_s) == 1
    drive.run(9 * DAY_S)
    url_at = {asked.ended_s: asked.url for asked in drive.log if asked.purpose == "page"}
    fetched = [
        (url_at[ended_s], ended_s, *facts)
        for one in decisions
        if one.stage == "refresh/fetched"
        for ended_s, *facts in zip(
            *(one.facts[name] for name in ("last_fetch_s", "signal_s", "modified_s", "cost", "words")), strict=True
        )
    ]
    after = [row for row in fetched if row[1] > told_s]
    assert {tuple(facts[:2]) for url, _, *facts in after if url == f"{A}/p"} == {(told_s, 7.0)}
    assert all(np.isnan(facts[:2]).all() for url, _, *facts in after if url == f"{A}/q")
    (cost, words), (usual, few) = ({url: facts[2:] for url, _, *facts in after}[f"{A}/{name}"] for name in "pq")
    assert cost > 1 > usual > 0
    assert words == 60_000 > few


def test_links_are_not_counted_again_when_a_page_is_fetched_again() -> None:
    """A page that is fetched several times counts once as a linking page."""
    drive = start_crawl({START: page("/p"), f"{A}/p": page()}, refresh="nutch")
    id_ = look_of(drive.run(HOUR_S), "/p").page.id
    counted = drive.urls.count_inlinks(np.array([id_], np.uint32)).tolist()
    drive.run(5 * DAY_S)
    assert len([url for url in drive.asked_urls() if url == START]) > 1
    assert drive.urls.count_inlinks(np.array([id_], np.uint32)).tolist() == counted


def test_a_sitemap_is_heard_as_long_as_it_is_read() -> None:
    """Pages are known to be silent up to the last good read of their site's sitemap, and no longer once it is gone."""
    gone_s = 8 * HOUR_S

    def told(now_s: float) -> Reply:
        return site_map({"/p": 0.0}) if now_s < gone_s else Reply(404)

    drive = start_crawl({START: page("/p"), f"{A}/p": page(title="p"), f"{A}/map.xml": told})
    memory: PolicyMemory = drive.keeper.refresher._memory
    drive.run(4 * HOUR_S)
    (heard_s,) = memory.batch_pages([look_of(drive, "/p")]).batch.heard_s
    reads_s = [asked.ended_s for asked in drive.log if asked.url == f"{A}/map.xml"]
    assert len(reads_s) > 1
    assert heard_s == pytest.approx(reads_s[-1], abs=60.0)
    drive.run(2 * DAY_S)
    (later_s,) = memory.batch_pages([look_of(drive, "/p")]).batch.heard_s
    assert heard_s < later_s <= gone_s + 60.0
