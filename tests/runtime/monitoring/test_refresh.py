"""The console's refresh data, from a data folder without a running coordinator."""

from contextlib import closing
from pathlib import Path

import pytest
from tests.data_folders import DAY_S, HOST, NOW_S, Fetches, opened

from vedette.adapters.clock import real_clock
from vedette.adapters.index_store.gain_store import Gain, GainStore
from vedette.adapters.index_store.generations import Generations
from vedette.config import Config
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import Schedule
from vedette.index.quality.query_curves import QueryCurveBuilder
from vedette.index.quality.watched_queries import build_watched
from vedette.runtime.indexing.query_curves import CurveInfo, save_curves
from vedette.runtime.monitoring.console import FolderMonitor
from vedette.runtime.monitoring.refresh import BUCKET_S, MAX_DUE, GainSums, load_refresh_report
from vedette.web.console.ports.monitoring import RefreshStatus

LATER_S = NOW_S + DAY_S


def fetched(folder: Path, pages: int) -> None:
    """Return a home page and this many others, all fetched at the same time and judged by the preferred policy."""
    with opened(folder) as state:
        with Fetches(state) as fetches:
            for name in ("", *(f"d/{number}" for number in range(pages))):
                fetches.page(f"https://{HOST}/{name}", name.encode())
        refreshing = RefreshScheduler(CrawlRules(recrawl=True), state.store)
        for step in range(3 + pages // 100):
            refreshing.step(NOW_S + 3600.0 * step)
        state.commit()


def test_pages_are_judged_as_the_keeper_would(tmp_path: Path) -> None:
    """Pages have probability and worth, a source has a rule; the older the fetch, the fewer are current."""
    fetched(tmp_path, 3)
    soon = load_refresh_report(tmp_path, Schedule(), NOW_S + 60)
    with opened(tmp_path) as state:
        refreshing = RefreshScheduler(CrawlRules(recrawl=True), state.store)
        assert refreshing.freshness.share == soon.current
        for step in range(3):
            refreshing.step(NOW_S + (30 + step) * DAY_S)
        state.commit()
    later = load_refresh_report(tmp_path, Schedule(), NOW_S + 33 * DAY_S)
    assert (soon.judged, later.judged) == (3, 3)
    assert soon.current is not None
    assert later.current is not None
    assert 0 < later.current < soon.current < 1
    assert [page.due_s for page in soon.soon] == sorted(page.due_s for page in soon.soon)
    by_url = {page.url.removeprefix(f"https://{HOST}/"): page for page in soon.soon}
    assert set(by_url) == {"", "d/0", "d/1", "d/2"}
    assert by_url["d/0"].chance is not None
    assert by_url["d/0"].worth is not None
    assert (by_url[""].chance, by_url[""].worth) == (None, None)
    assert by_url[""].rule


def test_a_round_of_the_keeper_judges_all_pages(tmp_path: Path) -> None:
    """Only this many due pages are shown, however many there are."""
    fetched(tmp_path, 350)
    report = load_refresh_report(tmp_path, Schedule(), LATER_S)
    assert report.judged == 350
    assert len(report.soon) == MAX_DUE


def test_nothing_is_told_before_there_is_anything(tmp_path: Path) -> None:
    """This includes no folder and one without pages; unmeasured numbers are left out."""
    watch = FolderMonitor(tmp_path / "none", real_clock(), Config())
    assert watch.get_refresh_status() == RefreshStatus()
    with opened(tmp_path / "data"):
        pass
    watch = FolderMonitor(tmp_path / "data", real_clock(), Config())
    assert watch.get_refresh_status().soon == ()
    assert watch.list_gains(0.0) == []
    assert {"current_share", "gain_day", "overlap_at_10"}.isdisjoint(watch.get_latest_values())


def test_overlap_with_served_results_is_a_live_number(tmp_path: Path) -> None:
    """It is measured with the curves of the current generation."""
    with opened(tmp_path):
        generations = Generations(tmp_path)
        generation = generations.begin()
        generations.activate(generation)
    save_curves(generation, QueryCurveBuilder(build_watched([])).build(0), CurveInfo(12, 0.5, 0.0, 0.875))
    assert FolderMonitor(tmp_path, real_clock(), Config()).get_latest_values()["overlap_at_10"] == 0.875


def gain(at_s: float, what: str = "again", won: float = 0.5) -> Gain:
    """Return a row of the list."""
    return Gain(0, 1, at_s, what, won, 0.0, None)  # type: ignore[arg-type]  # the tests name only kinds that there are


def test_gains_are_summed_and_read_on(tmp_path: Path) -> None:
    """Each gain counts once, first fetches do not count, and old ones expire."""
    sums = GainSums(tmp_path)
    assert sums.sum_since(0.0, NOW_S) == []
    with closing(GainStore(tmp_path / "index")) as book:
        book.append([gain(NOW_S - 900), gain(NOW_S - 900, "names"), gain(NOW_S - 900, "first"), gain(0.0)])
        book.commit()
        assert [won for _, won in sums.sum_since(0.0, NOW_S)] == [1.0]
        book.append([gain(NOW_S - 1, "gone", 0.25), gain(NOW_S, won=float("inf"))])
        book.commit()
        for _ in range(2):
            found = sums.sum_since(0.0, NOW_S)
            assert [won for _, won in found] == [1.0, 0.25]
            assert NOW_S - 900 <= found[0][0] <= NOW_S - 900 + BUCKET_S
    assert sum(won for _, won in sums.sum_since(NOW_S - 60, NOW_S)) == pytest.approx(0.25)
