"""Gone URLs: rechecked at growing intervals, given up after a limit, and rechecked after a new link."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, page, robots, rules_for
from tests.engine.test_signals import site_map

from vedette.engine.scheduling.schedule import Schedule
from vedette.refresh.gone_pages import GIVEN_UP_S, ReturnModel
from vedette.refresh.policies.fixed import Fixed

A = "https://a.test"
START, GONE = f"{A}/start", f"{A}/gone"
DAY_S = 86_400.0


def drive_of(replies: dict[str, Served | Server], **settings: object) -> Drive:
    """Run an endless crawl with a quick policy; its start page links to a missing page."""
    web = MemoryWeb({START: page("/gone"), **replies})
    schedule = Schedule(recrawl=True, sources=Fixed(interval_s=DAY_S))
    return Drive(web, rules_for(START, recrawl=True, **{"refresh": "nutch", **settings}), schedule=schedule).begin()


def long_gone(drive: Drive) -> Drive:
    """Let the page stay gone for two hundred days, until it is no longer rechecked."""
    drive.run(DAY_S)
    drive.db.execute("UPDATE page SET changed_s = changed_s - ?, due_s = 0 WHERE id = ?", (GIVEN_UP_S, id_of(drive)))
    drive.run(DAY_S)
    assert drive.pages()[GONE].due_s == inf
    return drive


def id_of(drive: Drive) -> int:
    """Return the id of the missing page."""
    return drive.pages()[GONE].id


def asks(drive: Drive) -> list[float]:
    """List the times at which the missing URL was requested."""
    return [asked.sent_s for asked in drive.log if asked.url == GONE]


def test_gone_pages_are_rechecked_ever_more_rarely_and_given_up() -> None:
    """Each wait is longer than the last; finally it isn't requested any more, even if a refetched page links to it."""
    drive = drive_of({}).run(60 * DAY_S)
    gaps = [after - before for before, after in pairwise(asks(drive))]
    assert len(gaps) >= 2
    assert all(after > before for before, after in pairwise(gaps))
    given_up = long_gone(drive_of({START: lambda now_s: page("/gone", title=f"day {now_s // DAY_S}")}))
    count = len(asks(given_up))
    assert len(asks(given_up.run(20 * DAY_S))) == count
    assert given_up.asked_urls().count(START) > 3
    assert "given up" in given_up.keeper.schedule.reason(GONE, given_up.pages()[GONE])


def test_a_new_link_revives_a_page_that_was_given_up() -> None:
    """A new link to it causes a recheck, though not at once, however many others do the same."""

    def news(now_s: float) -> Reply:
        return page("/gone", title="new link") if now_s > 4 * DAY_S else page(title="none")

    drive = long_gone(drive_of({START: page("/gone", "/news"), f"{A}/news": news}))
    drive.web.replies[GONE] = page(title="back")
    drive.run(10 * DAY_S)
    assert drive.now_s + DAY_S < drive.pages()[GONE].due_s < inf
    assert drive.run(60 * DAY_S).pages()[GONE].status == 200


def test_a_date_in_a_sitemap_revives_a_page_that_was_given_up() -> None:
    """A sitemap that says that it has changed since then also causes a recheck."""
    report: dict[str, Served | Server] = {f"{A}/robots.txt": robots(f"Sitemap: {A}/map.xml")}
    drive = long_gone(drive_of({**report, f"{A}/map.xml": site_map({"/gone": 1.0})}))
    drive.web.replies |= {f"{A}/map.xml": site_map({"/gone": drive.now_s}), GONE: page(title="back")}
    assert drive.run(60 * DAY_S).pages()[GONE].status == 200


def test_gone_pages_take_little_of_a_small_budget() -> None:
    """With as many dead links as pages, and a budget of few pages a day, most fetches are for pages."""
    pages, dead = [f"/p/{n}" for n in range(10)], [f"/dead/{n}" for n in range(10)]
    replies: dict[str, Served | Server] = {START: page(*pages, *dead)}
    replies |= {f"{A}{path}": page(title=path[3:]) for path in pages}
    drive = drive_of(replies).run(DAY_S)
    drive = drive.after(clean=True, budget_per_s=2.0 / DAY_S).run(60 * DAY_S)
    assert len(drive.asked_urls()) > 30
    assert sum("/dead/" in url for url in drive.asked_urls()) < 0.4 * len(drive.asked_urls())


@pytest.mark.parametrize("back", [True, False])
def test_the_wait_for_gone_pages_depends_on_learned_returns(back: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """If pages tend to reappear, the next retry comes sooner; if they never do, later. This survives a restart."""
    answer: Server = lambda now_s: page(title="b") if back and now_s > 5 * DAY_S else Reply(404)  # noqa: E731 - as short as a table
    names = [f"/g/{n}" for n in range(8)]
    drive = drive_of({START: page(*names), **{f"{A}{name}": answer for name in names}}).run(20 * DAY_S)
    learned = ReturnModel.from_json(drive.book.get_value("refresh returning"))
    assert (learned.rate > ReturnModel().rate) is back


@given(st.floats(0, 1e9), st.floats(0, 1e9), st.floats(0, 1e3), st.floats(0, 1e3))
def test_waits_grow_with_the_time_gone_and_with_the_price(one: float, other: float, price: float, more: float) -> None:
    """The longer a page is gone and the more it costs, the longer it waits; each waits at least a day."""
    rule, (short, long) = ReturnModel(), sorted((one, other))
    assert rule.wait_s(short, price) <= rule.wait_s(long, price)
    assert rule.wait_s(long, price) <= rule.wait_s(long, price + more)
    assert rule.wait_s(short, price) >= DAY_S
    assert rule.wait_after_link_s(long) >= rule.wait_after_link_s(short) >= DAY_S
