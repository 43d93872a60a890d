"""The coordinator under change: fetchers die, sites come and go, someone wants a page at once."""

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


def begun(replies: dict[str, Served], rules: CrawlRules, workers: int = 2) -> Drive:
    """A crawl of these replies that has begun."""
    return Drive(MemoryWeb(dict(replies)), rules, workers=workers).begin()


def shared_address() -> MemoryWeb:
    """Two hosts on one server."""
    web = MemoryWeb({f"{A}/": page(), f"{B}/": page()})
    web.names |= dict.fromkeys(("a.test", "b.test"), ("93.184.216.34",))
    return web


# Workers that die


def test_what_a_dead_worker_held_comes_back_once() -> None:
    """Its leases are free at once, nothing is lost, and nothing that it had reported is requested again."""
    drive = begun({f"{A}/": page(*MANY)}, rules_for(f"{A}/"), workers=1)
    drive.run(until=lambda: len(drive.pages()) == 4)
    kept = drive.pages()
    drive.kill_worker(0)
    assert (drive.urls.get_counts().leased, drive.keeper.pages_out) == (0, 0)
    drive.run()
    assert sorted(drive.pages()) == sorted([f"{A}/", *(A + path for path in MANY)])
    assert all(drive.asked_urls().count(url) == 1 for url in kept)


def test_a_host_whose_worker_died_rests_first() -> None:
    """The response is unknown: the host waits, at least for its own delay, from the death on."""
    replies = {f"{A}/": page(*MANY), f"{A}/robots.txt": robots("Crawl-delay: 90")}
    drive = begun(dict(replies), rules_for(f"{A}/"), workers=1)
    drive.run(until=lambda: len(drive.asked_urls()) == 2)
    died_s = drive.now_s
    drive.kill_worker(0)
    drive.run()
    assert min(asked.sent_s for asked in drive.log if asked.sent_s > died_s) >= died_s + 90.0


def test_an_address_whose_worker_died_rests_first() -> None:
    """A host that was never requested is not requested at an address that the dead fetcher may have just used."""
    drive = Drive(shared_address(), rules_for(f"{A}/", address_delay_s=5.0), workers=1).begin()
    drive.run(until=lambda: len(drive.log) == 1)
    died_s = drive.now_s
    drive.kill_worker(0)
    drive.rule(replace(drive.rules, sites=(Site(f"{A}/"), Site(f"{B}/"))))
    drive.run()
    assert drive.asked_of("b.test")[0].sent_s >= died_s + 5.0


def test_an_address_that_an_earlier_run_asked_rests_first() -> None:
    """A host that is new to this run may lie at an address that the last one used a moment ago."""
    earlier = Drive(shared_address(), rules_for(f"{A}/", address_delay_s=5.0)).begin().run()
    later = earlier.after(clean=True, sites=(Site(f"{A}/"), Site(f"{B}/"))).run()
    assert later.asked_of("b.test")[0].sent_s >= earlier.log[-1].ended_s + 5.0


def test_after_a_crash_a_host_that_may_have_been_asked_rests_first() -> None:
    """The request was on its way when everything died: its pause counts from the new start."""
    drive = begun({f"{A}/": page(*MANY, took_s=50.0)}, rules_for(f"{A}/", delay_s=10.0))
    drive.run(until=lambda: f"{A}/" in drive.asked_urls())
    later = drive.after(clean=False).run()
    assert later.log[0].sent_s >= drive.now_s + 10.0
    assert later.asked_urls()[0] == f"{A}/"


def test_late_words_of_a_dead_worker_do_not_count() -> None:
    """What it reports after it was given up changes nothing but the rest that it asks for."""
    drive = begun({f"{A}/": page("/1", took_s=50.0)}, rules_for(f"{A}/"), workers=1)
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


def test_a_robots_txt_on_its_way_is_asked_for_again() -> None:
    """A worker dies while it waits for the file, at its own host or at another: no one waits forever."""
    for stations in ({}, {f"{A}/robots.txt": moved(f"{B}/x"), f"{B}/x": Reply(404, took_s=40.0)}):
        slow = {f"{A}/robots.txt": Reply(404, took_s=40.0), f"{A}/": page()} | stations
        drive = begun(dict(slow), rules_for(f"{A}/"), workers=1)
        drive.run(20.0)
        drive.kill_worker(0)
        assert drive.run().asked_urls() == [f"{A}/"]


def test_a_worker_cannot_end_what_another_holds() -> None:
    """Only the worker that has a host's errands can end them."""
    drive = begun({f"{A}/": page(took_s=50.0)}, rules_for(f"{A}/"), workers=2)
    drive.run(until=lambda: drive.asked_urls() == [f"{A}/"])
    asker = drive.log[-1].worker
    held = tuple(drive.keeper.hosts["a.test"].in_flight.values())
    drive.keeper.apply_report(1 - asker, FetchReport(1, returned=held))
    assert drive.keeper.pages_out == 1
    assert drive.run().asked_urls() == [f"{A}/"]


# Sites that come and go


def test_a_paused_site_is_left_alone_until_it_is_resumed() -> None:
    """What waits, waits; nothing is refused, no one is looked up; and then it goes on at once."""
    sites = Site(f"{A}/"), Site(f"{B}/")
    drive = begun({f"{A}/": page(*MANY), f"{B}/": page()}, rules_for(*sites))
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
    """Two sites on one host: while one is paused the other continues, however many URLs of the first are before it."""
    docs, blog = Site(f"{A}/docs/", scope="prefix"), Site(f"{A}/blog/", scope="prefix")
    replies = {f"{A}/docs/": page(*(f"/docs/{n}" for n in range(400))), f"{A}/blog/": page("/blog/1", "/blog/2")}
    drive = begun(dict(replies), rules_for(docs, delay_s=0.0))
    drive.run(until=lambda: drive.waiting() > 300)
    drive.rule(replace(drive.rules, sites=(blog,), paused=(docs,)))
    drive.run(3600.0)
    assert [url for url in drive.asked_urls() if "blog" in url] == [f"{A}/blog/", f"{A}/blog/1", f"{A}/blog/2"]
    assert drive.waiting() > 300


def test_what_a_site_left_behind_is_refused() -> None:
    """Nothing of a removed site is requested any more, and every URL says why."""
    drive = begun({f"{A}/": page(*MANY)}, rules_for(f"{A}/"))
    drive.run(until=lambda: len(drive.pages()) == 3)
    drive.rule(replace(drive.rules, sites=()))
    asked = len(drive.log)
    drive.run()
    assert len(drive.log) - asked <= 1, "only what had left already"
    assert drive.waiting() == 0
    assert set(drive.refused().values()) == {str(Refusal.OUT_OF_SCOPE)}


def test_urls_of_other_sites_do_not_keep_a_crawl_from_ending() -> None:
    """A crawl of one site over a state in which another has URLs waiting ends when its own site is done."""
    web = MemoryWeb({f"{A}/": page(*MANY), f"{A}/0": page(), f"{B}/": page("/1")})
    earlier = Drive(web, rules_for(f"{A}/", max_pages=2)).begin().run()
    later = earlier.after(clean=True, sites=(Site(f"{B}/"),), paused=(Site(f"{A}/"),), max_pages=None)
    later.run()
    assert later.asked_urls() == [f"{B}/", f"{B}/1"]
    assert later.waiting() > 5


def test_the_delay_of_a_site_holds_for_all_its_hosts() -> None:
    """A site that spans a domain brings its own delay to every host below it."""
    site = Site("https://example.org/", scope="domain", delay_s=33.0)
    replies = {"https://example.org/": page("https://www.example.org/"), "https://www.example.org/": page("/1")}
    drive = begun(dict(replies), rules_for(site, delay_s=1.0)).run()
    first, second, third = drive.asked_of("www.example.org")
    assert second.sent_s - first.ended_s >= 33.0
    assert third.sent_s - second.ended_s >= 33.0


# What someone waits for


def test_a_page_that_somebody_waits_for_comes_next() -> None:
    """However much waits before it, known or unknown, fetched or not: its host's next request is for it, politely."""
    links = [f"/{number}" for number in range(500)]
    drive = begun({f"{A}/": page(*links)}, rules_for(f"{A}/"))
    drive.run(until=lambda: len(drive.pages()) == 8)
    for url in (f"{A}/499", f"{A}/unheard-of", f"{A}/"):
        assert drive.keeper.request_urls([url], drive.now_s)
        before = len(drive.log)
        drive.run(until=lambda before=before: len(drive.log) > before + 1)  # type: ignore[misc]  # bound at once
        assert url in [asked.url for asked in drive.log[before:]], "next, or after what had left already"
        assert drive.log[-1].sent_s - drive.log[-2].ended_s >= 1.0 - 1e-6


def test_only_what_somebody_waits_for_is_fetched() -> None:
    """A small tree for a few URLs leaves the rest of the queue alone, and ends."""
    web = MemoryWeb({f"{A}/": page(*MANY)})
    earlier = Drive(web, rules_for(f"{A}/", max_pages=1)).begin().run()
    later = earlier.after(clean=True, max_pages=None, only_requested=True)
    later.keeper.request_urls([f"{A}/7"], later.now_s)
    later.run()
    assert later.asked_urls() == [f"{A}/7"]


def test_a_wish_that_robots_txt_forbids_is_refused() -> None:
    """No one's wish is stronger than the site's word."""
    replies = {f"{A}/": page(), f"{A}/robots.txt": robots("Disallow: /no")}
    drive = begun(dict(replies), rules_for(f"{A}/")).run()
    (id_,) = drive.keeper.request_urls([f"{A}/no"], drive.now_s)
    drive.run()
    assert list(drive.refused()) == [f"{A}/no"]
    assert drive.keeper.get_request_host(id_) is None


# Orders


def test_with_the_order_by_inlinks_what_many_link_to_comes_early() -> None:
    """A page that every page names overtakes hundreds that one page names, though it was seen last."""
    crowd = [f"/{number}" for number in range(300)]
    replies: dict[str, Served] = {f"{A}/": page(*crowd, "/popular")}
    replies |= {A + path: page("/popular") for path in crowd}
    places = {}
    for order in ("breadth", "inlinks"):
        alike = Site(f"{A}/", overrule=("trap",))
        drive = begun(dict(replies), rules_for(alike, order=order, delay_s=0.0)).run()
        assert len(drive.pages()) == 302
        places[order] = drive.asked_urls().index(f"{A}/popular")
    assert places["inlinks"] < places["breadth"] / 2


# Names


def test_a_name_that_came_to_life_is_asked_for_what_waited() -> None:
    """Nothing fails with a name: what waits for it is fetched when it can be looked up again."""
    web = MemoryWeb({f"{B}/new": page()})
    web.names["b.test"] = lambda now_s: Failure.NAME if now_s < 2000.0 else ("93.184.216.9",)
    drive = Drive(web, rules_for(f"{B}/")).begin().run()
    drive.keeper.add_urls([f"{B}/new"], 0, drive.now_s)
    assert sorted(drive.run().asked_urls()) == [f"{B}/", f"{B}/new"]
    assert drive.given_up() == {}


@pytest.mark.parametrize("failure", [Failure.NAME, Failure.ADDRESS])
def test_a_requested_url_of_a_name_that_does_not_exist_fails_at_once(failure: Failure) -> None:
    """Someone waits for it; the other URLs of its host go on waiting."""
    web = MemoryWeb({}, {"b.test": failure})
    drive = Drive(web, rules_for(f"{B}/")).begin().run(for_s=100.0)
    drive.keeper.request_urls([f"{B}/now"], drive.now_s)
    assert drive.run(for_s=10.0).given_up() == {f"{B}/now": str(failure)}
    assert drive.waiting() == 1


def test_a_host_that_moves_is_asked_at_its_new_address_with_its_rest_kept() -> None:
    """An address holds for a while; the next one goes to whichever worker has it, and the pause runs on."""
    web = MemoryWeb({f"{A}/": page(*MANY)})
    web.names["a.test"] = lambda now_s: (f"93.184.216.{int(now_s // 2000) % 200 + 1}",)
    drive = Drive(web, rules_for(f"{A}/", delay_s=700.0), workers=3).begin().run()
    assert len(drive.pages()) == 13
    assert len({asked.address for asked in drive.log}) > 2
    assert len({asked.worker for asked in drive.log}) > 1
    gaps = [after.sent_s - before.ended_s for before, after in pairwise(drive.log)]
    assert min(gaps) >= 700.0 - 1e-6


def test_a_host_that_is_being_asked_for_a_file_does_not_move() -> None:
    """Its address is looked up again only when nothing is out: a worker could not follow in the middle of a request."""
    web = MemoryWeb({f"{A}/robots.txt": Reply(404, took_s=4000.0), f"{A}/": page(), f"{B}/": page()})
    web.replies[f"{B}/robots.txt"] = Reply(301, (("location", f"{A}/b.txt"),), took_s=2500.0)
    web.names["a.test"] = lambda now_s: (f"93.184.216.{int(now_s // 2000) + 1}",)
    drive = Drive(web, rules_for(f"{A}/", f"{B}/")).begin().run()
    assert sorted(drive.asked_urls()) == [f"{A}/", f"{B}/"]
    asked = drive.asked_of("a.test")
    assert all(after.sent_s >= before.ended_s for before, after in pairwise(asked))


@pytest.mark.parametrize("clean", [True, False])
def test_a_time_that_lies_too_far_ahead_is_not_believed(clean: bool) -> None:  # noqa: FBT001 - both kinds
    """The clock was set back since it was saved: the host is requested within two days all the same."""
    drive = Drive(MemoryWeb({f"{A}/": page()}), rules_for(f"{A}/"))
    drive.book.save_hosts([HostRow("a.test", drive.now_s + 1e7, 3, "status 503")])
    drive.begin(clean=clean).run(2 * 86_400.0)
    assert drive.asked_urls() == [f"{A}/"]
