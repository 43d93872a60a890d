"""Live crawlers compared with the truth of a synthetic web: their copies, costs and quality."""

from collections.abc import Sequence
from functools import cache

import pytest

from vedette.lab.judge.access_log import AccessEntry
from vedette.lab.judge.live_quality import CrawlerLog, CrawlQuality, GroundTruth, HeldPage, measure_runs
from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.page_traits import last_text_change_s

DAY_S = 86_400.0
DAYS = 6
SEED = 1


@cache
def world() -> SyntheticWorld:
    """The smallest synthetic web, without traps."""
    return open_synthetic_world("tiny", SEED, calm=True)


@cache
def truth() -> GroundTruth:
    """Return the truth, shared by all tests: it depends only on the world."""
    return GroundTruth(world())


@cache
def pages() -> tuple[str, ...]:
    """Return the pages that exist and can be found when the world opens."""
    living = (url for host in world().sites for url in world().live_pages(host, world().start_s))
    return tuple(url for url in living if truth().version_at(url, world().start_s) >= 0)


def log_line(url: str, at_s: float, status: int = 200) -> AccessEntry:
    """Return a line of the log."""
    host, _, path = url.partition("://")[2].partition("/")
    return AccessEntry(
        at_s, at_s, at_s, at_s, host, "http", 80, "127.0.0.2", "GET", f"/{path}", status, 1, True, "test"
    )


def entries_of(days: Sequence[int], urls: Sequence[str]) -> list[AccessEntry]:
    """Return fetches of all these pages when the world opens and on some days, with their responses."""
    begin_s = world().start_s
    return [
        log_line(url, begin_s + day * DAY_S, 200 if truth().version_at(url, begin_s + day * DAY_S) >= 0 else 404)
        for day in (0, *days)
        for url in urls
    ]


def watched(policy: str, entries: Sequence[AccessEntry]) -> CrawlerLog:
    """Return a crawler with the copies that its log implies, measured once a day."""
    holdings = []
    for at_s in looks_s():
        last = {entry.url: entry for entry in entries if entry.start_s <= at_s}
        holdings.append({url: HeldPage(_status(entry), entry.start_s, "page") for url, entry in last.items()})
    return CrawlerLog(policy, holdings, entries)


def _status(entry: AccessEntry) -> int:
    return 200 if entry.status == 304 else entry.status


def looks_s() -> list[float]:
    """Once a day."""
    return [world().start_s + day * DAY_S for day in range(1, DAYS + 1)]


def run_of(entries: Sequence[AccessEntry]) -> CrawlQuality:
    """Return the measurements of a crawler, starting just after the first fetches."""
    begin_s = world().start_s + 1.0
    return measure_runs(truth(), looks_s(), begin_s, SEED, [watched("one", entries)], pages())[0]


def test_versions_differ_exactly_where_the_world_says_that_a_text_changed() -> None:
    """Two times have the same version if the text did not change in between; boxes and frames do not count."""
    begin_s, end_s = world().start_s, world().start_s + DAYS * DAY_S
    compared = 0
    for url in pages():
        settled = world().truth(url)
        before, after = truth().version_at(url, begin_s), truth().version_at(url, end_s)
        if settled is None or after < 0:
            continue
        compared += 1
        site = world().sites[url.split("/")[2]]
        assert (before != after) == (last_text_change_s(site, settled.number, end_s) > begin_s), url
    assert compared > len(pages()) / 2


def test_a_crawler_that_fetches_everything_whenever_it_is_looked_at_is_perfect() -> None:
    """All copies are current, all pages are found, and all changes are detected."""
    run = run_of(entries_of(range(1, DAYS + 1), pages()))
    assert run.freshness == 1.0
    assert run.quality == pytest.approx(1.0)
    assert run.unrefreshed < run.quality
    assert 0 < run.changed < run.refreshes


def test_a_crawler_that_never_comes_back_gains_nothing() -> None:
    """It never refreshes, so its quality is the one without refreshes."""
    run = run_of(entries_of((), pages()))
    assert run.refreshes == run.changed == 0
    assert run.quality == run.unrefreshed < 1.0
    assert run.gain_per_refresh == 0.0


def test_what_is_found_changed_agrees_with_what_was_stale() -> None:
    """A round of refreshes finds as many changes as pages were stale or gone before it."""
    begin_s = world().start_s
    run = run_of(entries_of((3,), pages()))
    stale = sum(truth().version_at(url, begin_s) != truth().version_at(url, begin_s + 3 * DAY_S) for url in pages())
    assert run.refreshes == len(pages())
    assert run.changed == stale


def test_asking_again_for_what_is_gone_is_no_refresh() -> None:
    """Requests for a URL that was already gone are counted separately, because no refresh policy chose them."""
    url, begin_s = pages()[0], world().start_s
    gone = [log_line(f"{url}-is-gone", begin_s + day * DAY_S, 404) for day in range(3)]
    run = run_of([*entries_of((), pages()), *gone])
    assert run.refreshes == 0
    assert (run.others["first"], run.others["gone"]) == (0, 2)


def test_a_server_that_wrongly_says_not_modified_leaves_the_old_copy() -> None:
    """The crawler gets no new text, so the copy stays stale and no change is found."""
    lied = [log_line(url, world().start_s + 3 * DAY_S, 304) for url in pages()]
    run, idle = run_of([*entries_of((), pages()), *lied]), run_of(entries_of((), pages()))
    assert run.refreshes == len(pages())
    assert run.changed == 0
    assert run.freshness == idle.freshness
