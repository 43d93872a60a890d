"""Idle refresh: without a budget, known pages are fetched daily, or less often if nothing changes, within a share."""

from itertools import pairwise

import numpy as np
import pytest
from tests.engine.memory_web import Asked, Drive, MemoryWeb, Served, Server, rules_for
from tests.engine.texts import text_of, text_page

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import KnownPage, RefreshState
from vedette.engine.scheduling.idle_refresh import IdleRefresh, explain_idle_wait
from vedette.model import Site

START, STILL, LIVELY = (f"https://a.test/{name}" for name in ("start", "still", "lively"))
DAY_S = 86_400.0


def crawl(days: float, **settings: object) -> Drive:
    """Crawl a site of three pages; one changes every half day."""
    replies: dict[str, Served | Server] = {
        START: text_page(text_of("start", 100), "/still", "/lively"),
        STILL: text_page(text_of("still", 100)),
        LIVELY: lambda now_s: text_page(text_of(f"lively {now_s // (DAY_S / 2)}", 100)),
    }
    return Drive(MemoryWeb(replies), rules_for(START, recrawl=True, **settings)).begin().run(days * DAY_S)


def requests(drive: Drive, url: str) -> list[float]:
    """List the times of a page's requests, in days."""
    return [asked.sent_s / DAY_S for asked in drive.log if asked.url == url]


def test_pages_are_fetched_daily_and_less_often_if_nothing_changes() -> None:
    """No gap is longer than the rule allows; a page that always changes is fetched at least daily."""
    drive = crawl(6.0, idle_share=0.1)
    assert max(after - before for before, after in pairwise(requests(drive, LIVELY))) <= 1.3
    first, *others = requests(drive, STILL)
    gaps = [after - before for before, after in pairwise([first, *others])]
    assert 2 <= len(others) <= len(requests(drive, LIVELY)) - 1
    assert all(gap <= 1 + (before - first) / 2 + 0.05 for before, gap in zip([first, *others], gaps, strict=False))
    page = drive.pages()[STILL]
    assert explain_idle_wait(drive.book, STILL, page._replace(due_s=page.fetched_s + 9 * DAY_S)).startswith("idle time")


def test_a_budget_is_spent_as_if_there_were_no_idle_time() -> None:
    """All requests are the same as without it."""

    def key(asked: Asked) -> tuple[str, float]:
        return asked.url, asked.sent_s

    plain, idle = (crawl(0.2, budget_per_s=0.0005, idle_interval_s=3600.0, idle_share=share) for share in (0.0, 0.1))
    assert list(map(key, plain.log)) == list(map(key, idle.log))
    assert explain_idle_wait(idle.book, STILL, idle.pages()[STILL]) == ""


def known_pages(count: int, drive: Drive) -> list[KnownPage]:
    """Return pages of one host, all fetched at time 0."""
    row = drive.pages()[STILL]._replace(fetched_s=0.0, changed_s=0.0)
    return [KnownPage(f"https://a.test/{id_}", row._replace(id=id_), RefreshState(id_, 0.0)) for id_ in range(count)]


@pytest.fixture(scope="module")
def one_crawl() -> Drive:
    """Run a short crawl and return its pages."""
    return crawl(0.1)


def test_large_hosts_keep_to_their_share(one_crawl: Drive) -> None:
    """If a host has more pages than its share allows daily, each waits for a full round."""
    idle, looks = IdleRefresh(CrawlRules(idle_share=0.1), lambda _: 2.0), known_pages(10_000, one_crawl)
    assert idle.compute_due_times(looks[:1]).tolist() == [DAY_S]
    idle.count(looks)
    idle.end_round()
    assert idle.compute_due_times(looks[:1]).tolist() == [10_000 * 2.0 / 0.1]


def test_busy_hours_are_no_idle_time(one_crawl: Drive) -> None:
    """A page due in its site's busy hours waits for another hour."""
    rules = rules_for(Site(START, busy_hours="06:00-18:00 x2"), idle_share=0.1)
    idle, due = IdleRefresh(rules, lambda _: 1.0), known_pages(1, one_crawl)
    rng, noon_s = np.random.default_rng(1), 30.5 * DAY_S
    assert idle.wake(due, np.full(1, np.inf), noon_s, rng)[1].keys() == {due[0].page.id}
    assert not idle.wake(due, np.full(1, np.inf), noon_s + DAY_S / 2, rng)[1]


def test_overdue_pages_are_spread_over_hours(one_crawl: Drive) -> None:
    """After a long stop, an hour's share is fetched at once, the rest in the following hours; none is lost."""
    idle, waiting = IdleRefresh(CrawlRules(idle_share=0.1), lambda _: 1.0), known_pages(1_000, one_crawl)
    rng, now_s, fetched = np.random.default_rng(1), 30 * DAY_S, list[int]()
    due_s = dict.fromkeys((look.page.id for look in waiting), now_s)
    while due_s:
        now_s = min(due_s.values())
        due = [look for look in waiting if due_s.get(look.page.id, np.inf) <= now_s]
        paid, later = idle.wake(due, np.full(len(due), np.inf), now_s, rng)
        assert not paid
        fetched.append(len(due) - len(later))
        due_s = {id_: at_s for id_, at_s in due_s.items() if at_s > now_s} | later
    assert fetched[0] == 360
    assert sum(fetched) == 1_000
    assert (now_s - 30 * DAY_S) / 3_600 < 12
