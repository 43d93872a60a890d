"""Disk space and retention during a crawl: it pauses, reports it, loses nothing on a full disk, and resumes."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data_folders import DAY_S, HOST, NOW_S, Fetches, opened
from tests.tree_runs import PATIENCE_S, patiently

from vedette.adapters.archive.warc_reader import Damage, read_answer, scan_warc
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.config import Store
from vedette.engine.messages import ArchiveLocation as Stood
from vedette.runtime.processes.housekeeping import Housekeeper, archive_file_limit

PAGES = 60
PAGE_BYTES = 100_000
SETTINGS = """\
[crawl]
delay = "0s"
address_delay = "0s"
[store]
min_free = "{min_free}"
"""


def body(number: int) -> bytes:
    """Return a page that hardly compresses and links to all others."""
    links = "".join(f"<a href=/{other}>{other}</a>" for other in range(PAGES))
    return links.encode() + random.Random(number).randbytes(PAGE_BYTES).hex().encode()  # noqa: S311 - filler


class _Site(BaseHTTPRequestHandler):
    """Many large pages without a robots.txt."""

    def do_GET(self) -> None:
        number = self.path[1:] or "0"
        found = body(int(number)) if number.isdigit() else b""
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(found)))
        self.end_headers()
        self.wfile.write(found)

    def log_message(self, *_: object) -> None:
        """Do not log."""


@pytest.fixture
def site() -> Iterator[str]:
    """Run a real server on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Site)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass(frozen=True, slots=True)
class Disk:
    """A file system whose size can be changed."""

    path: Path

    def resize(self, size_mib: int) -> None:
        """Change its size."""
        subprocess.run(["mount", "-o", f"remount,size={size_mib}m", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A small disk."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(path)]
    if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only who may mount a file system can fill a small one")
    yield Disk(path)
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@dataclass(frozen=True, slots=True)
class Crawl:
    """A running crawl with its output in a file."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    data: Path

    def messages(self) -> str:
        """Return its output so far."""
        return (self.folder / "messages.txt").read_text()

    def ends(self) -> dict[str, object]:
        """Return the numbers at its end."""
        assert self.process.wait(timeout=PATIENCE_S) == 0, self.messages()
        report: dict[str, object] = json.loads((self.folder / "summary.json").read_text())
        return report

    def check(self) -> None:
        """Check that every page is stored once as the server sent it, and that the archive is not damaged."""
        with closing(sqlite3.connect(self.data / "state.db")) as db:
            pages = {url.rpartition("/")[2]: page for url, page in CrawlStore(db).iter_pages()}
        assert sorted(pages) == sorted(["", *map(str, range(PAGES))])
        for name, page in pages.items():
            assert page.place is not None
            place = Stood(page.place.file, page.place.offset, page.place.length)
            assert read_answer(self.data / "warc", place).payload == body(int(name or "0"))
        for path in (self.data / "warc").glob("*.warc.gz"):
            assert [found for found in scan_warc(path) if isinstance(found, Damage)] == []


@pytest.fixture
def crawl(tmp_path: Path, site: str) -> Iterator[Callable[[Path, str], Crawl]]:
    """Start a crawl of the site into a folder."""
    started: list[subprocess.Popen[bytes]] = []

    def start(data: Path, min_free: str) -> Crawl:
        (tmp_path / "vedette.toml").write_text(SETTINGS.format(min_free=min_free))
        command = [sys.executable, "-m", "vedette", "crawl", site, "--allow-private", "--json", "--speed", "60"]
        command += ["--data", str(data), "--config", str(tmp_path / "vedette.toml")]
        with (tmp_path / "messages.txt").open("wb") as message, (tmp_path / "summary.json").open("wb") as report:
            started.append(subprocess.Popen(command, stdout=report, stderr=message, start_new_session=True))
        return Crawl(started[-1], tmp_path, data)

    yield start
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def status(data: Path) -> dict[str, object]:
    """Return the status of the running tree."""
    command = [sys.executable, "-m", "vedette", "status", "--data", str(data), "--json"]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    report: dict[str, object] = json.loads(done.stdout or b"{}")
    return report


def test_a_full_disk_loses_nothing_and_is_survived(disk: Disk, crawl: Callable[[Path, str], Crawl]) -> None:
    """When the disk is full it says so and keeps trying; with space again it ends as if nothing had happened."""
    running = crawl(disk.path / "data", "0B")
    patiently(lambda: "Free up disk space" in running.messages())
    assert running.process.poll() is None
    disk.resize(64)
    assert running.ends()["ending"] == "done"
    assert "Traceback" not in running.messages()
    running.check()


def test_little_room_pauses_fetching_until_there_is_more(disk: Disk, crawl: Callable[[Path, str], Crawl]) -> None:
    """Below store.min_free nothing is fetched, and the status says why; with more space it resumes."""
    disk.resize(32)
    running = crawl(disk.path / "data", "40MiB")
    patiently(lambda: "store.min_free" in str(status(running.data)))
    with closing(sqlite3.connect(running.data / "state.db")) as db:
        assert list(CrawlStore(db).iter_pages()) == []
    disk.resize(128)
    assert running.ends()["ending"] == "done"
    running.check()


def test_a_backup_of_a_running_crawl_can_be_continued(tmp_path: Path, crawl: Callable[[Path, str], Crawl]) -> None:
    """Taken in the middle, restored elsewhere and crawled to the end, it has every page."""
    running = crawl(tmp_path / "data", "0B")
    patiently(lambda: int(str(status(running.data).get("pages", 0))) > 3)
    done = subprocess.run(
        [sys.executable, "-m", "vedette", "backup", str(tmp_path / "backup"), "--data", str(running.data), "--json"],
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert 0 < json.loads(done.stdout)["pages"] <= PAGES + 1
    assert running.ends()["ending"] == "done"
    command = [sys.executable, "-m", "vedette", "restore", str(tmp_path / "backup"), "--data", str(tmp_path / "new")]
    subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=True)
    restored = crawl(tmp_path / "new", "0B")
    assert restored.ends()["ending"] == "done"
    restored.check()
    running.check()


def test_it_pauses_below_the_threshold_and_resumes_above_it(tmp_path: Path) -> None:
    """Reaching the threshold is not enough, so that it does not flap."""
    free = [10**12]
    with opened(tmp_path) as state:
        chores = Housekeeper(state, Store(min_free_bytes=1000), "test", free_bytes=lambda _: free[0])
        seen = []
        for free[0] in (1001, 999, 1000, 1001, 2000, 1001):
            chores.step(NOW_S, NOW_S)
            seen.append(bool(chores.get_pause_reason()))
        assert seen == [False, True, True, True, False, False]
        assert chores.get_warning() == ""


def test_the_pause_names_the_setting_and_the_folder(tmp_path: Path) -> None:
    """One line says what is short, where, and which setting decides."""
    with opened(tmp_path) as state:
        chores = Housekeeper(state, Store(min_free_bytes=2**30), "test", free_bytes=lambda _: 0)
        chores.step(NOW_S, NOW_S)
        assert chores.get_warning() == chores.get_pause_reason()
        assert all(word in chores.get_pause_reason() for word in ("1GiB", "store.min_free", str(tmp_path)))


def test_retention_runs_beside(tmp_path: Path) -> None:
    """One step per second is enough to expire old versions; with too little space, files are only deleted."""
    with opened(tmp_path) as state:
        with Fetches(state, rotate_bytes=2000) as fetches:
            for version in range(10):
                state.urls.requeue(state.urls.find_ids([f"https://{HOST}/"]).tolist(), priority=1)
                fetches.page(f"https://{HOST}/", os.urandom(1500), NOW_S + version)
        before = set(state.store.load_archive_lengths())
        chores = Housekeeper(state, Store(keep_days=1), "test", free_bytes=lambda _: 0)
        for _ in range(50):
            chores.step(NOW_S + 2 * DAY_S, NOW_S + 2 * DAY_S)
        after = set(state.store.load_archive_lengths())
        assert after < before
        assert not any("kept" in file for file in after)


def test_a_failing_retention_does_not_end_the_coordinator(tmp_path: Path) -> None:
    """If retention fails, that is reported, and the next step continues."""
    with opened(tmp_path) as state:
        with Fetches(state, rotate_bytes=2000) as fetches:
            for number in range(10):
                fetches.page(f"https://{HOST}/{number}", os.urandom(1500))
        first = min(state.store.load_archive_lengths())
        path = tmp_path / "warc" / first
        path.unlink()
        path.mkdir()
        state.db.execute("UPDATE page SET file = NULL WHERE file = ?", (first,))
        chores = Housekeeper(state, Store(keep_days=0, min_free_bytes=0), "test")
        troubles = []
        for _ in range(30):
            chores.step(NOW_S + DAY_S, NOW_S + DAY_S)
            troubles.append(chores.get_warning())
        assert any("cleaned up" in words for words in troubles)
        assert troubles[-1] == ""
        assert chores.get_pause_reason() == ""
        path.rmdir()


@given(limit=st.integers(0, 10**13), workers=st.integers(1, 64))
def test_open_files_are_a_small_part_of_the_limit(limit: int, workers: int) -> None:
    """All open files together stay well below the limit, and no file is ever huge."""
    size = archive_file_limit(Store(max_bytes=limit), workers)
    assert 0 < size <= 10**9
    if limit >= 10**9:
        assert size * workers < limit / 4 or size == 1 << 20
