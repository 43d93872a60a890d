"""Archive retention: latest versions always, older ones for some days, and intact after any kill."""

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.data_folders import DAY_S, HOST, NOW_S, Fetches, opened

from vedette.adapters.archive.retention import (
    GIVEN_UP,
    REST_STEPS,
    UNREADABLE,
    ArchiveFile,
    Retention,
    RetentionPolicy,
    decide_file,
)
from vedette.adapters.archive.warc_reader import Damage, read_answer, scan_warc
from vedette.adapters.archive.warc_writer import UNACKNOWLEDGED_DIR
from vedette.adapters.crawl_store.data_folder import State
from vedette.engine.messages import ArchiveLocation as Stood

KEEP = RetentionPolicy(keep_s=30 * DAY_S)
LATER_S = NOW_S + 31 * DAY_S
FILE_BYTES = 20_000

KILLED = """
import sys
from pathlib import Path
from tests.data_folders import opened
from vedette.adapters.archive import retention
from vedette.adapters.archive.retention import Retention, RetentionPolicy

retention.STEP_BYTES = 3000
with opened(Path(sys.argv[1])) as state:
    keep = Retention(state, RetentionPolicy(keep_s=0.0), "test", rotate_bytes=20_000)
    print("ready", flush=True)
    for _ in range(10_000):
        keep.step(float(sys.argv[2]), 0.0)
"""


def url(number: int) -> str:
    """Return one of the host's pages."""
    return f"https://{HOST}/{number}"


def body(number: int, version: int) -> bytes:
    """Return a page body that hardly compresses."""
    return random.Random(1000 * number + version).randbytes(1000)  # noqa: S311 - filler


def crawl(state: State, pages: int, versions: int, every_s: float = DAY_S) -> None:
    """Fetch some pages several times, into files of a few dozen records."""
    with Fetches(state, rotate_bytes=FILE_BYTES) as fetches:
        for version in range(versions):
            for number in range(pages):
                state.urls.requeue(state.urls.find_ids([url(number)]).tolist(), priority=1)
                fetches.page(url(number), body(number, version), NOW_S + version * every_s)


def run_retention(state: State, keeping: RetentionPolicy, now_s: float, steps: int = 2 * REST_STEPS) -> None:
    """Run retention for more than a round."""
    retention = Retention(state, keeping, "test", rotate_bytes=FILE_BYTES)
    for _ in range(steps):
        retention.step(now_s, wall_s=now_s)
    retention.close()


def latest(state: State) -> dict[str, bytes | None]:
    """Return the archived copy of each page, None if there is none."""
    copies: dict[str, bytes | None] = {}
    for name, page in state.store.iter_pages():
        place = page.place and Stood(page.place.file, page.place.offset, page.place.length)
        copies[name] = read_answer(state.folder / "warc", place).payload if place else None
    return copies


def archived(state: State) -> list[bytes]:
    """Return every payload; check that nothing is damaged, and that the state has each file's length."""
    folder = state.folder / "warc"
    files = {path.name: path.stat().st_size for path in folder.glob("*.warc.gz")}
    assert files == state.store.load_archive_lengths()
    found = [record for file in sorted(files) for record in scan_warc(folder / file)]
    assert [record for record in found if isinstance(record, Damage)] == []
    return [record.payload for record in found if not isinstance(record, Damage)]


@pytest.mark.parametrize(
    ("stored", "pressed", "expected"),
    [
        (ArchiveFile("a", 1000, NOW_S, 0), False, "keep"),
        (ArchiveFile("a", 1000, NOW_S - 31 * DAY_S, 0), False, "delete"),
        (ArchiveFile("a", 1000, NOW_S - 31 * DAY_S, 400), False, "rewrite"),
        (ArchiveFile("a", 1000, NOW_S - 31 * DAY_S, 900), False, "keep"),
        (ArchiveFile("a", 1000, NOW_S, 0), True, "delete"),
        (ArchiveFile("a", 1000, NOW_S, 700), True, "rewrite"),
        (ArchiveFile("a", 1000, NOW_S, 990), True, "keep"),
    ],
)
def test_a_file_is_judged_by_age_and_share(stored: ArchiveFile, pressed: bool, expected: str) -> None:  # noqa: FBT001 - a table
    """Young files stay unless there is a limit; for old ones, the share of latest versions counts."""
    assert decide_file(stored, KEEP, NOW_S, pressed=pressed) == expected


def test_nothing_goes_before_its_time(tmp_path: Path) -> None:
    """While the last version is younger than the retention period, all versions stay."""
    with opened(tmp_path) as state:
        crawl(state, pages=10, versions=5)
        before = archived(state)
        run_retention(state, KEEP, NOW_S + 29 * DAY_S)
        assert archived(state) == before
        assert len(before) == 50


def test_old_versions_go_and_the_latest_stay(tmp_path: Path) -> None:
    """After the retention period, hardly more than the latest versions is left, and all of them can be read."""
    with opened(tmp_path) as state:
        crawl(state, pages=40, versions=5)
        size = sum(state.store.load_archive_lengths().values())
        run_retention(state, KEEP, LATER_S + 10 * DAY_S)
        assert latest(state) == {url(number): body(number, 4) for number in range(40)}
        left = archived(state)
        assert len(left) < 100
        assert sum(state.store.load_archive_lengths().values()) < size / 2


def test_versions_within_the_days_stay_when_others_go(tmp_path: Path) -> None:
    """Everything fetched in the last thirty days is kept."""
    with opened(tmp_path) as state:
        crawl(state, pages=40, versions=4, every_s=20 * DAY_S)
        run_retention(state, KEEP, NOW_S + 61 * DAY_S)
        young = {body(number, version) for number in range(40) for version in (2, 3)}
        assert young <= set(archived(state))
        assert latest(state) == {url(number): body(number, 3) for number in range(40)}


def test_a_file_that_is_still_written_to_is_not_touched(tmp_path: Path) -> None:
    """The latest file of a series stays, however old its records are."""
    with opened(tmp_path) as state:
        with Fetches(state) as fetches:
            fetches.page(url(1), body(1, 1))
        before = state.store.load_archive_lengths()
        run_retention(state, RetentionPolicy(keep_s=0.0, max_bytes=1), LATER_S)
        assert before.items() <= state.store.load_archive_lengths().items()


def test_it_comes_to_rest(tmp_path: Path) -> None:
    """Files that were rewritten once are not rewritten again and again."""
    with opened(tmp_path) as state:
        crawl(state, pages=60, versions=3)
        run_retention(state, RetentionPolicy(keep_s=0.0), LATER_S, steps=5 * REST_STEPS)
        files = state.store.load_archive_lengths()
        run_retention(state, RetentionPolicy(keep_s=0.0), LATER_S, steps=5 * REST_STEPS)
        again = state.store.load_archive_lengths()
        assert latest(state) == {url(number): body(number, 2) for number in range(60)}
        assert sum(again.values()) <= sum(files.values())
        assert len(again) <= len(files) + 1


def test_a_limit_takes_older_versions_first(tmp_path: Path) -> None:
    """If the latest versions fit, no page loses its copy, however young the others are."""
    with opened(tmp_path) as state:
        crawl(state, pages=40, versions=5)
        run_retention(state, RetentionPolicy(30 * DAY_S, max_bytes=110_000), NOW_S + 5 * DAY_S)
        assert sum(state.store.load_archive_lengths().values()) <= 110_000
        assert latest(state) == {url(number): body(number, 4) for number in range(40)}


def test_a_tight_limit_takes_the_copies_of_pages_fetched_longest_ago(tmp_path: Path) -> None:
    """The archive meets its limit, the youngest pages keep their copies, and the others have a reason."""
    limit = 60_000
    with opened(tmp_path) as state:
        with Fetches(state, rotate_bytes=10_000) as fetches:
            for number in range(100):
                fetches.page(url(number), body(number, 0), NOW_S + number)
        run_retention(state, RetentionPolicy(30 * DAY_S, max_bytes=limit), NOW_S + DAY_S, steps=5 * REST_STEPS)
        assert sum(state.store.load_archive_lengths().values()) <= limit
        copies = latest(state)
        kept = [number for number in range(100) if copies[url(number)] is not None]
        assert kept == list(range(100 - len(kept), 100))
        assert len(kept) > 30
        assert all(copies[url(number)] == body(number, 0) for number in kept)
        (lost,) = state.urls.find_ids([url(0)]).tolist()
        note, page = state.store.get_note(lost), state.store.get_page(lost)
        assert note is not None
        assert page is not None
        assert note[0] == GIVEN_UP
        assert (page.status, page.etag, page.payload_digest) == (200, "", "")
        assert page.digest


def half_renewed(state: State) -> tuple[int, Path, int]:
    """Fetch every other page a second time; return an old page's id, its file and its offset."""
    crawl(state, pages=60, versions=1)
    with Fetches(state, rotate_bytes=FILE_BYTES) as fetches:
        for number in range(0, 60, 2):
            state.urls.requeue(state.urls.find_ids([url(number)]).tolist(), priority=1)
            fetches.page(url(number), body(number, 1), NOW_S + DAY_S)
    (id_,) = state.urls.find_ids([url(3)]).tolist()
    page = state.store.get_page(id_)
    assert page is not None
    assert page.place is not None
    return id_, state.folder / "warc" / page.place.file, page.place.offset


def test_a_copy_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A damaged record does not spoil the file that the others are moved to."""
    with opened(tmp_path) as state:
        id_, path, offset = half_renewed(state)
        data = bytearray(path.read_bytes())
        data[offset + 20 : offset + 60] = bytes(40)
        path.write_bytes(data)
        run_retention(state, RetentionPolicy(keep_s=0.0), LATER_S)
        note = state.store.get_note(id_)
        assert note is not None
        assert note[0] == UNREADABLE
        assert not path.exists()
        assert [name for name, copy in latest(state).items() if copy is None] == [url(3)]
        archived(state)


def test_a_file_that_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    """If an archive file is deleted by hand, its pages are lost; the state says so, and retention continues."""
    with opened(tmp_path) as state:
        id_, path, _ = half_renewed(state)
        path.unlink()
        run_retention(state, RetentionPolicy(keep_s=0.0), LATER_S)
        page = state.store.get_page(id_)
        assert page is not None
        assert page.place is None
        lost = [name for name, copy in latest(state).items() if copy is None]
        assert url(3) in lost
        assert len(lost) < 15
        archived(state)


def test_what_nobody_vouches_for_grows_old(tmp_path: Path) -> None:
    """Files that were moved aside are kept as long as older versions."""
    with opened(tmp_path) as state:
        crawl(state, pages=10, versions=1)
        state.db.execute("DELETE FROM archive")
        state.db.execute("DELETE FROM page")
    with opened(tmp_path) as state:
        aside = tmp_path / "warc" / UNACKNOWLEDGED_DIR
        count = len(list(aside.iterdir()))
        assert count > 0
        moved_s = max(path.stat().st_mtime for path in aside.iterdir())
        run_retention(state, KEEP, moved_s + 29 * DAY_S)
        assert len(list(aside.iterdir())) == count
        run_retention(state, KEEP, moved_s + 31 * DAY_S)
        assert list(aside.iterdir()) == []


@pytest.mark.parametrize("moment_s", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_kill_in_the_middle_costs_no_latest_version(tmp_path: Path, moment_s: float) -> None:
    """After kill -9 during a rewrite, every page still has its copy, and the next run finishes the work."""
    with opened(tmp_path) as state:
        crawl(state, pages=60, versions=4)
        size = sum(state.store.load_archive_lengths().values())
    command = [sys.executable, "-c", KILLED, str(tmp_path), str(LATER_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            process.wait(moment_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    with opened(tmp_path) as state:
        expected = {url(number): body(number, 3) for number in range(60)}
        assert latest(state) == expected
        run_retention(state, RetentionPolicy(keep_s=0.0), LATER_S)
        assert latest(state) == expected
        assert sum(state.store.load_archive_lengths().values()) < size
