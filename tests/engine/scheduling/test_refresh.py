"""Refreshes at a price: what is learned, what it costs, and what survives a restart or new settings."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, moved, page, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.policy_memory import PolicyMemory
from vedette.engine.scheduling.policy_runner import PolicyRunner
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.refresh_policies import POLICIES
from vedette.lab.core.registry import load_policies
from vedette.refresh.policies.expected_gain import ExpectedGain

A = "https://a.test"
START = f"{A}/start"
HOUR_S, DAY_S = 3600.0, 86_400.0


def letters(now_s: float, every_s: float = 1.0) -> str:
    """Return a word that changes after each such time."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(int(now_s // every_s)))


def web_of(pages: int, **more: Served | Server) -> MemoryWeb:
    """Return a start page that links to this many unchanging pages, and to the named ones."""
    names = [f"/d/{n}" for n in range(pages)] + [f"/{name}" for name in more]
    replies: dict[str, Served | Server] = {f"{A}{name}": page(title=letters(ord(name[-1]))) for name in names}
    replies |= {f"{A}/{name}": served for name, served in more.items()}
    return MemoryWeb({START: page(*names), **replies})


def start_crawl(web: MemoryWeb, **settings: object) -> Drive:
    """Start an endless crawl."""
    return Drive(web, rules_for(START, recrawl=True, **settings)).begin()


def read_memory(drive: Drive, url: str) -> tuple[float | None, bytes]:
    """Return the time of the previous fetch, and the policy's memory."""
    (look,) = drive.book.get_known_pages([drive.pages()[url].id])
    return look.state.before_s, look.state.memory


def fetches(drive: Drive, since_s: float) -> int:
    """Count the requests for pages since a time."""
    return sum(asked.purpose == "page" and asked.sent_s >= since_s for asked in drive.log)


def test_any_policy_of_the_folder_can_run_but_that_of_sources() -> None:
    """All policies that the lab compares can be configured."""
    assert {*POLICIES} == {*load_policies("refresh")} - {"fixed"}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_runs_and_keeps_to_the_pace(name: str) -> None:
    """Each policy refetches pages, at about the default's rate, even one that uses no price."""
    drive = start_crawl(web_of(2, busy=lambda now_s: page(title=letters(now_s))), refresh=name)
    for _ in range(12):  # day by day: a price moves also where nothing else happens
        drive.run(DAY_S)
    assert 0 < fetches(drive, drive.now_s - 6 * DAY_S) < 3.5 * 6 / 3 * len(drive.pages())


def test_a_budget_is_spent_and_may_change_while_it_runs() -> None:
    """With a budget of one fetch per page and day, about that many are made; with a tenth of it, far fewer."""
    drive = start_crawl(web_of(5), budget_per_s=6 / DAY_S).run(24 * DAY_S)
    assert 0.5 < fetches(drive, drive.now_s - 12 * DAY_S) / 72 < 1.2
    drive.rule(replace(drive.rules, budget_per_s=0.6 / DAY_S))
    drive.run(12 * DAY_S)
    assert fetches(drive, drive.now_s - 8 * DAY_S) < 0.5 * 48


def test_price_and_memory_survive_a_restart() -> None:
    """The next run continues with the price, and with the memory of the page and its groups."""
    earlier = start_crawl(web_of(6)).run(10 * DAY_S)
    memory = read_memory(earlier, f"{A}/d/1")
    later = Drive(earlier.web, earlier.rules, db=earlier.db, start_s=earlier.now_s)
    assert later.keeper.refresher.price == earlier.keeper.refresher.price
    assert later.keeper.refresher.forecast == earlier.keeper.refresher.forecast
    assert read_memory(later, f"{A}/d/1") == memory
    assert ("", *[f"{A}/", f"{A}/d/"]) == tuple(name for name, _ in later.book.get_groups())


def test_memory_of_the_earlier_default_is_kept() -> None:
    """Rows from before group rows had the gaps between announcements are upgraded: no page starts from scratch."""
    drive = start_crawl(web_of(6)).run(10 * DAY_S)
    pages, groups = read_memory(drive, f"{A}/d/1")[1], dict(drive.book.get_groups())
    runner = PolicyRunner(ExpectedGain())
    earlier = runner.earlier_signature
    assert earlier is not None
    at = 4 + 8 * (runner.widths[1] - 3 - 2)  # before the gains of a group
    drive.book.save_groups([(name, earlier + row[4:at] + row[at + 16 :]) for name, row in groups.items()])
    drive.db.execute("UPDATE refresh SET memory = CAST(? || substr(memory, 5) AS BLOB)", (earlier,))
    later = Drive(drive.web, drive.rules, db=drive.db, start_s=drive.now_s)
    memory: PolicyMemory = later.keeper.refresher._memory
    looks = later.book.get_known_pages([later.pages()[f"{A}/d/1"].id])
    made = memory.batch_pages(looks)
    assert memory.is_eligible(looks[0])
    assert made.memory.pages[0].tobytes() == pages[4:]
    assert made.memory.groups[0].tobytes() == groups[""][4:]


def test_another_policy_takes_over_without_a_restart() -> None:
    """After a change of policy it starts over, adopts every page within hours, and keeps fetching."""
    drive = start_crawl(web_of(6)).run(10 * DAY_S)
    before = read_memory(drive, f"{A}/d/1")[1]
    drive.rule(replace(drive.rules, refresh="freshness"))
    assert drive.keeper.refresher.policy == "freshness"
    drive.run(10 * DAY_S)
    memories = {read_memory(drive, f"{A}/d/{n}")[1][:4] for n in range(6)}
    assert memories != {before[:4]}
    assert len(memories) == 1
    assert fetches(drive, drive.now_s - 5 * DAY_S)


def test_pages_without_memory_are_adopted() -> None:
    """Pages from an older format or an import have no memory: they get one, and a due time, as time passes."""
    drive = start_crawl(web_of(6)).run(HOUR_S)
    drive.db.execute("DELETE FROM refresh")
    drive.db.execute("UPDATE page SET due_s = ?", (inf,))
    for _ in range(3):
        drive.now_s += 60.0
        drive.keeper.wake_due_pages(drive.now_s)
    assert drive.book.count_refresh_states() == len(drive.pages())
    assert all(row.due_s < inf for row in drive.pages().values())


@pytest.mark.parametrize("away", [Reply(410), moved("/d/0")])
def test_a_page_that_reappears_starts_over(away: Reply) -> None:
    """While a page is gone, nothing is remembered and its groups learn no change; afterwards it is a new page."""

    def served(now_s: float) -> Reply:
        return away if 5 * DAY_S < now_s < 15 * DAY_S else page(title="here")

    drive = start_crawl(web_of(2, here=served)).run(12 * DAY_S)
    (look,) = drive.book.get_known_pages([drive.pages()[f"{A}/here"].id])
    assert look.page.status == away.status
    assert not look.state.memory
    assert drive.keeper.refresher.forecast.found_share == 0.0
    drive.run(12 * DAY_S)
    assert drive.pages()[f"{A}/here"].status == 200
    assert read_memory(drive, f"{A}/here")[1]
    assert drive.keeper.refresher.forecast.found_share == pytest.approx(0.0, abs=1e-9)


def test_a_page_due_at_an_old_price_is_judged_again() -> None:
    """If the price has risen by the time a page is due, it isn't fetched and gets a later time."""
    drive = start_crawl(web_of(4)).run(HOUR_S)
    url = f"{A}/d/1"
    due_s = drive.pages()[url].due_s
    drive.db.execute(
        "UPDATE life SET value = replace(value, '\"price\": ', '\"price\": 9') WHERE what = 'refresh purse'"
    )
    dear = RefreshScheduler(CrawlRules(recrawl=True), drive.book)
    assert (dear.price or 0.0) > 2 * (drive.keeper.refresher.price or 0.0)
    due, _ = dear.get_due(due_s, 100)
    assert drive.pages()[url].id not in [one.id for one in due]
    assert due_s < drive.pages()[url].due_s < inf


def test_the_gain_of_a_fetch_is_learned_once() -> None:
    """A gain of the latest fetch is kept and learned from; one of an earlier fetch is not."""
    drive = start_crawl(web_of(3, busy=lambda now_s: page(title=letters(now_s)))).run(20 * DAY_S)
    row = drive.pages()[f"{A}/busy"]
    before = read_memory(drive, f"{A}/busy")
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s - DAY_S, 3.0, 1.0)], drive.now_s)
    assert read_memory(drive, f"{A}/busy") == before
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 3.0, None), FetchGain(10**6, 0.0, 1.0, 1.0)], drive.now_s)
    (look,) = drive.book.get_known_pages([row.id])
    assert (look.state.gain, look.state.views) == (3.0, None)
    assert look.state.memory != before[1]


def measured_days(drive: Drive, days: int, gain_of: Mapping[str, float]) -> None:
    """Run, and report each hour the gains of the latest fetches of some pages."""
    for _ in range(days * 24):
        drive.run(HOUR_S)
        rows = [(drive.pages()[url], gain) for url, gain in gain_of.items()]
        drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, gain, 1.0) for row, gain in rows], drive.now_s)


def test_changes_without_effect_on_searches_do_not_count() -> None:
    """Of two pages that always change, the one whose changes don't affect searches is considered quiet."""
    drive = start_crawl(
        web_of(2, loud=lambda now_s: page(title=letters(now_s)), mute=lambda now_s: page(title=letters(now_s)))
    )
    loud, mute = f"{A}/loud", f"{A}/mute"
    drive.run(HOUR_S)
    measured_days(drive, 6, {loud: 1.0, mute: 0.0})
    rates = []
    for url in (loud, mute):
        (look,) = drive.book.get_known_pages([drive.pages()[url].id])
        asked = drive.keeper.refresher.explain_page(look, drive.now_s)
        assert asked is not None
        assert asked.rate_d is not None
        rates.append(asked.rate_d)
    assert rates[1] < rates[0] / 2


def test_a_change_without_a_measured_gain_counts_as_found() -> None:
    """If no more gains arrive, postponed fetches are learned from at the next fetch: nothing is lost."""
    drive = start_crawl(web_of(2, busy=lambda now_s: page(title=letters(now_s)))).run(HOUR_S)
    drive.keeper.on_gains([FetchGain(10**6, 0.0, 1.0, 1.0)], drive.now_s)
    before = drive.keeper.refresher.forecast.refreshes
    fetches = drive.asked_urls().count(f"{A}/busy")
    while drive.asked_urls().count(f"{A}/busy") < fetches + 2:
        drive.run(6 * HOUR_S)
        drive.keeper.on_gains([FetchGain(10**6, 0.0, 1.0, 1.0)], drive.now_s)
    assert (drive.keeper.refresher.forecast.found_share or 0.0) > 0.0
    assert drive.keeper.refresher.forecast.refreshes > before


def test_changing_pages_are_expected_to_change() -> None:
    """After some weeks, most of the pages that change daily are expected to have changed, and have."""
    busy = {f"b{n}": lambda now_s: page(title=letters(now_s)) for n in range(3)}
    drive = start_crawl(web_of(1, **busy)).run(24 * DAY_S)
    forecast = drive.keeper.refresher.forecast
    assert forecast.expected_share == pytest.approx(forecast.found_share, abs=0.25)
    assert sum(forecast.count) == pytest.approx(forecast.refreshes)
    (look,) = drive.book.get_known_pages([drive.pages()[f"{A}/b1"].id])
    asked = drive.keeper.refresher.explain_page(look, drive.now_s)
    assert asked is not None
    assert asked.rate_low_d is not None
    assert asked.rate_low_d <= (asked.rate_d or 0.0) <= (asked.rate_high_d or 0.0)


def test_no_page_is_fetched_twice_in_an_hour() -> None:
    """However large the budget and however small the site."""
    drive = start_crawl(web_of(0, busy=lambda now_s: page(title=letters(now_s))), budget_per_s=10.0).run(DAY_S)
    times = [asked.sent_s for asked in drive.log if asked.url == f"{A}/busy"]
    gaps = np.array([after - before for before, after in pairwise(times)])
    assert len(gaps) > 10
    assert gaps.min() >= HOUR_S


def test_pages_that_are_due_all_the_time_have_turns_in_order() -> None:
    """If more is due than allowed and no price distinguishes pages, no page is overtaken by a similar one."""
    names = ("a", "b")
    more: dict[str, Served | Server] = {name: lambda now_s: page(title=letters(now_s)) for name in names}
    drive = start_crawl(web_of(0, **more), refresh="nutch").run(60 * DAY_S)
    times = [[asked.sent_s for asked in drive.log if asked.url == f"{A}/{name}"] for name in names]
    assert abs(len(times[0]) - len(times[1])) <= 2
    # Three pages, one fetch a day: two may be before it, and it has its own interval.
    assert max(after - before for each in times for before, after in pairwise(each)) < 5 * DAY_S


def test_user_centric_learns_from_fetches_without_gain() -> None:
    """A page whose changes affect searches is fetched more often than pages that never change."""
    drive = start_crawl(web_of(4, rich=lambda now_s: page(title=letters(now_s, DAY_S))), refresh="user-centric")
    for _ in range(40):
        drive.run(DAY_S)
        row = drive.pages()[f"{A}/rich"]
        drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 1.0, 1.0)], drive.now_s)
    asked = [one.url for one in drive.log if one.sent_s > drive.now_s - 20 * DAY_S]
    assert asked.count(f"{A}/rich") > 2 * max(asked.count(f"{A}/d/{n}") for n in range(4))
