"""The console's data of a folder, with and without a running coordinator."""

import threading
from contextlib import closing
from pathlib import Path

import pytest
from tests.data_folders import write_sample

from vedette.adapters.clock import real_clock
from vedette.adapters.event_store.schema import EVENTS_NAME
from vedette.adapters.event_store.store import EventStore
from vedette.config import Config, Serve, Store
from vedette.runtime.monitoring.console import FolderMonitor

CONFIG = Config(store=Store(max_bytes=10**9, keep_days=7), serve=Serve(keep_slates_days=0))
DAY_S = 86_400.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample, without a running process."""
    write_sample(tmp_path / "data")
    return tmp_path / "data"


def test_a_folder_that_nobody_runs_is_told_by_its_record(folder: Path) -> None:
    """It says that nothing is running; numbers are the last known ones, and there are no hosts."""
    clock = real_clock()
    with closing(EventStore(folder)) as book:
        book.add_points(clock.now(), {"known": 12.0, "waiting": 5.0})
    crawl = FolderMonitor(folder, clock, CONFIG).get_crawl_status()
    assert (crawl.is_running, crawl.sites, crawl.known, crawl.waiting) == (False, 1, 12, 5)
    assert FolderMonitor(folder, clock, CONFIG).list_hosts().rows == ()


def test_room_is_that_of_the_files(folder: Path) -> None:
    """Each part has its size, and the limits are the configured ones."""
    storage = FolderMonitor(folder, real_clock(), CONFIG).get_storage_status()
    sizes = {part.name: part.size_bytes for part in storage.parts}
    assert sizes["Archive"] == sum(path.stat().st_size for path in (folder / "warc").iterdir())
    assert sizes["State"] >= (folder / "state.db").stat().st_size
    assert (storage.archive_limit_bytes, storage.keep_days) == (10**9, 7)
    assert storage.free_bytes > 0


def test_a_folder_with_nothing_in_it_is_told_as_empty(tmp_path: Path) -> None:
    """Nothing fails before there is a crawl, or with an unreadable event store."""
    for damage in (None, b"this is no database" * 100):
        if damage:
            (tmp_path / EVENTS_NAME).write_bytes(damage)
        watch = FolderMonitor(tmp_path, real_clock(), CONFIG)
        assert watch.get_crawl_status().sites == 0
        assert watch.load_series("pages", 0.0, 10) == []
        assert watch.get_latest_values() == {}
        assert watch.get_search_stats(DAY_S).totals.searches == 0
        assert not watch.is_recording()


def test_many_may_look_at_once(folder: Path) -> None:
    """Threads share cached data, and each of them gets it."""
    watch = FolderMonitor(folder, real_clock(), CONFIG)
    seen: list[object] = []
    threads = [
        threading.Thread(target=lambda: seen.append((watch.get_crawl_status(), watch.get_storage_status())))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 8
    assert len(set(map(repr, seen))) == 1
