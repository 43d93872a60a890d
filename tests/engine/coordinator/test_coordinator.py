"""The coordinator during changes: fetchers are killed, sites are added and removed, fetches are requested."""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, moved, page, robots, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.messages import FetchReport
from vedette.engine.ports import HostRow
from vedette.model import Failure, Refusal, Site

A, B = "https://a.test", "https://b.test"
MANY = tuple(f"/{number}" for number in range(12))


def start_crawl(replies: dict[str, Served], rules: CrawlRules, workers: int = 2) -> Drive:
    """Start a crawl of a web with these replies."""
    return Drive(MemoryWeb(dict(replies)), rules, workers=workers).begin()


def shared_address() -> MemoryWeb:
    """Return two hosts at one address."""
    web = MemoryWeb({f"{A}/": page(), f"{B}/": page()})
    web.names |= dict.fromkeys(("a.test", "b.test"), ("93.184.216.34",))
    return web


# Workers that die


def test_leases_of_a_dead_fetcher_are_returned_once() -> None:
    """When a fetcher dies, its leases end immediately, nothing is lost, and nothing it reported is requested again."""
    drive = start_crawl({f"{A}/": page(*MANY)}, rules_for(f"{A}/"), workers=1)
    drive.run(until=lambda: len(drive.pages()) == 4)
    kept = drive.pages()
    drive.kill_worker(0)
    assert (drive.urls.get_counts().leased, drive.keeper.pages_out) == (0, 0)
    drive.run()
    assert sorted(drive.pages()) == sorted([f"{A}/", *(A + path for path in MANY)])
    assert all(drive.asked_urls().count(url) == 1 for url in kept)


def test_a_host_waits_after_its_fetcher_died() -> None:
    """Its response is unknown, so the host waits at least its own delay after the fetcher's death."""
    replies = {f"{A}/": page(*MANY), f"{A}/robots.txt": robots("Crawl-delay: 90")}
    drive = start_crawl(dict(replies), rules_for(f"{A}/"), workers=1)
    drive.run(until=lambda: len(drive.asked_urls()) == 2)
    died_s = drive.now_s
    drive.kill_worker(0)
    drive.run()
    assert min(asked.sent_s for asked in drive.log if asked.sent_s > died_s) >= died_s + 90.0


def test_an_address_waits_after_its_fetcher_died() -> None:
    """A host that was never requested isn't requested at an address the dead fetcher may have just used."""
    drive = Drive(shared_address(), rules_for(f"{A}/", address_delay_s=5.0), workers=1).begin()
    drive.run(until=lambda: len(drive.log) == 1)
    died_s = drive.now_s
    drive.kill_worker(0)
    drive.rule(replace(drive.rules, sites=(Site(f"{A}/"), Site(f"{B}/"))))
    drive.run()
    assert drive.asked_of("b.test")[0].sent_s >= died_s + 5.0


def test_an_address_waits_after_requests_of_an_earlier_run() -> None:
    """A host that is new in this run may have an address that the previous run just used."""
    earlier = Drive(shared_address(), rules_for(f"{A}/", address_delay_s=5.0)).begin().run()
    later = earlier.after(clean=True, sites=(Site(f"{A}/"), Site(f"{B}/"))).run()
    assert later.asked_of("b.test")[0].sent_s >= earlier.log[-1].ended_s + 5.0


def test_hosts_with_requests_in_flight_wait_after_a_crash() -> None:
    """If everything dies during a request, the host's delay starts over with the next run."""
    drive = start_crawl({f"{A}/": page(*MANY, took_s=50.0)}, rules_for(f"{A}/", delay_s=10.0))
    drive.run(until=lambda: f"{A}/" in drive.asked_urls())
    later = drive.after(clean=False).run()
    assert later.log[0].sent_s >= drive.now_s + 10.0
    assert later.asked_urls()[0] == f"{A}/"


def test_late_reports_of_a_dead_fetcher_are_ignored() -> None:
    """A report from a fetcher that was given up has no effect, except that the host still waits."""
    drive = start_crawl({f"{A}/": page("/1", took_s=50.0)}, rules_for(f"{A}/"), workers=1)
    drive.run(until=lambda: drive.asked_urls() == [f"{A}/"])
    dead = drive.kill_worker(0)
    drive.run(55.0)
    late = dead.report()
    assert late is not None
    assert [result.task.url for result in late.results] == [f"{A}/"]
    drive.keeper.apply_report(0, late)
    assert drive.pages() == {}
    drive.run()
    assert sorted(drive.pages()) == [f"{A}/", f"{A}/1"]
    assert drive.keeper.tally.statuses == {200: 1, 404: 1}


def test_a_lost_request_for_robots_txt_is_repeated() -> None:
    """If a worker dies while it waits for a robots.txt, on its own or another host, no one waits forever."""
    for stations in ({}, {f"{A}/robots.txt": moved(f"{B}/x"), f"{B}/x": Reply(404, took_s=40.0)}):
        slow = {f"{A}/robots.txt": Reply(404, took_s=40.0), f"{A}/": page()} | stations
        drive = start_crawl(dict(slow), rules_for(f"{A}/"), workers=1)
        drive.run(20.0)
        drive.kill_worker(0)
        assert drive.run().asked_urls() == [f"{A}/"]


def test_a_fetcher_cannot_complete_requests_of_another() -> None:
    """Only the worker that is assigned a host's requests can complete them."""
    drive = start_crawl({f"{A}/": page(took_s=50.0)}, rules_for(f"{A}/"), workers=2)
    drive.run(until=lambda: drive.asked_urls() == [f"{A}/"])
    asker = drive.log[-1].worker
    held = tuple(drive.keeper.hosts["a.test"].in_flight.values())
    drive.keeper.apply_report(1 - asker, FetchReport(1, returned=held))
    assert drive.keeper.pages_out == 1
    assert drive.run().asked_urls() == [f"{A}/"]


# Sites that come and go


def test_a_paused_site_is_left_alone_until_it_is_resumed() -> None:
    """While paused, URLs wait, nothing is refused, no host is looked up; resuming continues the crawl at once."""
    sites = Site(f"{A}/"), Site(f"{B}/")
    drive = start_crawl({f"{A}/": page(*MANY), f"{B}/": page()}, rules_for(*sites))
    drive.run(until=lambda: len(drive.pages()) == 5)
    drive.rule(replace(drive.rules, sites=sites[1:], paused=sites[:1]))
    paused_s, asked = drive.now_s, len(drive.asked_of("a.test"))
    drive.run(3 * 86_400.0)
    assert len(drive.asked_of("a.test")) - asked <= 1, "only what had left already"
    assert drive.keeper.get_ending(drive.now_s, 0.0) == "done"
    assert drive.waiting() > 0
    drive.rule(replace(drive.rules, sites=sites, paused=()))
    drive.run(60.0)
    assert drive.refused() == {}
    assert drive.waiting() == 0
    assert drive.now_s > paused_s


def test_a_paused_part_of_a_host_does_not_stop_the_rest() -> None:
    """Of two sites on one host, one continues while the other is paused, even if many of its URLs are queued first."""
    docs, blog = Site(f"{A}/docs/", scope="prefix"), Site(f"{A}/blog/", scope="prefix")
    replies = {f"{A}/docs/": page(*(f"/docs/{n}" for n in range(400))), f"{A}/blog/": page("/blog/1", "/blog/2")}
    drive = start_crawl(dict(replies), rules_for(docs, delay_s=0.0))
    drive.run(until=lambda: drive.waiting() > 300)
    drive.rule(replace(drive.rules, sites=(blog,), paused=(docs,)))
    drive.run(3600.0)
    assert [url for url in drive.asked_urls() if "blog" in url] == [f"{A}/blog/", f"{A}/blog/1", f"{A}/blog/2"]
    assert drive.waiting() > 300


def test_urls_of_a_removed_site_are_excluded() -> None:
    """Nothing of a removed site is requested any more, and the reason is recorded for every URL."""
    drive = start_crawl({f"{A}/": page(*MANY)}, rules_for(f"{A}/"))
    drive.run(until=lambda: len(drive.pages()) == 3)
    drive.rule(replace(drive.rules, sites=()))
    asked = len(drive.log)
    drive.run()
    assert len(drive.log) - asked <= 1, "only what had left already"
    assert drive.waiting() == 0
    assert set(drive.refused().values()) == {str(Refusal.OUT_OF_SCOPE)}


def test_urls_of_other_sites_do_not_keep_a_crawl_from_ending() -> None:
    """A crawl of one site ends when that site is done, even if another site has URLs waiting."""
    web = MemoryWeb({f"{A}/": page(*MANY), f"{A}/0": page(), f"{B}/": page("/1")})
    earlier = Drive(web, rules_for(f"{A}/", max_pages=2)).begin().run()
    later = earlier.after(clean=True, sites=(Site(f"{B}/"),), paused=(Site(f"{A}/"),), max_pages=None)
    later.run()
    assert later.asked_urls() == [f"{B}/", f"{B}/1"]
    assert later.waiting() > 5


def test_the_delay_of_a_site_holds_for_all_its_hosts() -> None:
    """The delay of a site with the scope domain applies to every host of the domain."""
    site = Site("https://example.org/", scope="domain", delay_s=33.0)
    replies = {"https://example.org/": page("https://www.example.org/"), "https://www.example.org/": page("/1")}
    drive = start_crawl(dict(replies), rules_for(site, delay_s=1.0)).run()
    first, second, third = drive.asked_of("www.example.org")
    assert second.sent_s - first.ended_s >= 33.0
    assert third.sent_s - second.ended_s >= 33.0


# What someone waits for


def test_a_requested_page_is_fetched_next() -> None:
    """A requested fetch is its host's next request, whatever is waiting, and still waits for the host's delay."""
    links = [f"/{number}" for number in range(500)]
    drive = start_crawl({f"{A}/": page(*links)}, rules_for(f"{A}/"))
    drive.run(until=lambda: len(drive.pages()) == 8)
    for url in (f"{A}/499", f"{A}/unheard-of", f"{A}/"):
        assert drive.keeper.request_urls([url], drive.now_s)
        before = len(drive.log)
        drive.run(until=lambda before=before: len(drive.log) > before + 1)  # type: ignore[misc]  # bound at once
        assert url in [asked.url for asked in drive.log[before:]], "next, or after what had left already"
        assert drive.log[-1].sent_s - drive.log[-2].ended_s >= 1.0 - 1e-6


def test_a_crawl_of_requested_pages_fetches_no_others() -> None:
    """A short crawl for a few URLs leaves the rest of the queue alone, and ends."""
    web = MemoryWeb({f"{A}/": page(*MANY)})
    earlier = Drive(web, rules_for(f"{A}/", max_pages=1)).begin().run()
    later = earlier.after(clean=True, max_pages=None, only_requested=True)
    later.keeper.request_urls([f"{A}/7"], later.now_s)
    later.run()
    assert later.asked_urls() == [f"{A}/7"]


def test_a_requested_fetch_obeys_robots_txt() -> None:
    """A requested fetch does not override the site's robots.txt."""
    replies = {f"{A}/": page(), f"{A}/robots.txt": robots("Disallow: /no")}
    drive = start_crawl(dict(replies), rules_for(f"{A}/")).run()
    (id_,) = drive.keeper.request_urls([f"{A}/no"], drive.now_s)
    drive.run()
    assert list(drive.refused()) == [f"{A}/no"]
    assert drive.keeper.get_request_host(id_) is None


# Orders


def test_the_order_by_inlinks_prefers_pages_with_many_links() -> None:
    """A page with links from every page overtakes hundreds with one link each, although it was found last."""
    crowd = [f"/{number}" for number in range(300)]
    replies: dict[str, Served] = {f"{A}/": page(*crowd, "/popular")}
    replies |= {A + path: page("/popular") for path in crowd}
    places = {}
    for order in ("breadth", "inlinks"):
        alike = Site(f"{A}/", overrule=("trap",))
        drive = start_crawl(dict(replies), rules_for(alike, order=order, delay_s=0.0)).run()
        assert len(drive.pages()) == 302
        places[order] = drive.asked_urls().index(f"{A}/popular")
    assert places["inlinks"] < places["breadth"] / 2


# Names


def test_waiting_urls_are_fetched_once_their_host_resolves() -> None:
    """Without DNS nothing fails; waiting URLs are fetched once names resolve again."""
    web = MemoryWeb({f"{B}/new": page()})
    web.names["b.test"] = lambda now_s: Failure.NAME if now_s < 2000.0 else ("93.184.216.9",)
    drive = Drive(web, rules_for(f"{B}/")).begin().run()
    drive.keeper.add_urls([f"{B}/new"], 0, drive.now_s)
    assert sorted(drive.run().asked_urls()) == [f"{B}/", f"{B}/new"]
    assert drive.given_up() == {}


@pytest.mark.parametrize("failure", [Failure.NAME, Failure.ADDRESS])
def test_a_requested_url_of_a_name_that_does_not_exist_fails_at_once(failure: Failure) -> None:
    """Its name is looked up again, because the fetch was requested; the host's other URLs keep waiting."""
    web = MemoryWeb({}, {"b.test": failure})
    drive = Drive(web, rules_for(f"{B}/")).begin().run(for_s=100.0)
    drive.keeper.request_urls([f"{B}/now"], drive.now_s)
    assert drive.run(for_s=10.0).given_up() == {f"{B}/now": str(failure)}
    assert drive.waiting() == 1


def test_a_host_keeps_its_delay_at_a_new_address() -> None:
    """If the address of a host changes, the next one applies, whichever worker has the host; its delay continues."""
    web = MemoryWeb({f"{A}/": page(*MANY)})
    web.names["a.test"] = lambda now_s: (f"93.184.216.{int(now_s // 2000) % 200 + 1}",)
    drive = Drive(web, rules_for(f"{A}/", delay_s=700.0), workers=3).begin().run()
    assert len(drive.pages()) == 13
    assert len({asked.address for asked in drive.log}) > 2
    assert len({asked.worker for asked in drive.log}) > 1
    gaps = [after.sent_s - before.ended_s for before, after in pairwise(drive.log)]
    assert min(gaps) >= 700.0 - 1e-6


def test_a_host_keeps_its_address_during_a_request() -> None:
    """The address is looked up again only when no request is in flight, because a worker couldn't switch midway."""
    web = MemoryWeb({f"{A}/robots.txt": Reply(404, took_s=4000.0), f"{A}/": page(), f"{B}/": page()})
    web.replies[f"{B}/robots.txt"] = Reply(301, (("location", f"{A}/b.txt"),), took_s=2500.0)
    web.names["a.test"] = lambda now_s: (f"93.184.216.{int(now_s // 2000) + 1}",)
    drive = Drive(web, rules_for(f"{A}/", f"{B}/")).begin().run()
    assert sorted(drive.asked_urls()) == [f"{A}/", f"{B}/"]
    asked = drive.asked_of("a.test")
    assert all(after.sent_s >= before.ended_s for before, after in pairwise(asked))


@pytest.mark.parametrize("clean", [True, False])
def test_a_delay_too_far_in_the_future_is_shortened(clean: bool) -> None:  # noqa: FBT001 - both kinds
    """If the clock was set back since the delay was saved, the host is still requested within two days."""
    drive = Drive(MemoryWeb({f"{A}/": page()}), rules_for(f"{A}/"))
    drive.book.save_hosts([HostRow("a.test", drive.now_s + 1e7, 3, "status 503")])
    drive.begin(clean=clean).run(2 * 86_400.0)
    assert drive.asked_urls() == [f"{A}/"]
