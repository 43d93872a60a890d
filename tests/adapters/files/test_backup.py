"""Backup and restore: a consistent snapshot of a folder in use, which is complete or absent, and works."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from tests.data_folders import BODIES, HOST, NOW_S, URLS, Fetches, opened, write_sample

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LedgerStore
from vedette.adapters.archive.retention import Retention, RetentionPolicy
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.data_folder import FORMAT, State
from vedette.adapters.event_store.reader import EventReader
from vedette.adapters.event_store.search_log import EventLog, get_day_salt
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.files.backup import MARKER, create_backup, restore_backup
from vedette.engine.messages import ArchiveLocation as Stood
from vedette.errors import StoreError, StoreNewer, UsageError
from vedette.learn.events import SearchEvent
from vedette.serve.ads.ledger import AdImpression, AdQuery, ClickContext, ImpressionOffer, PayerBudget

GOLDEN = Path(__file__).parents[2] / "golden"

WRITE = """
import sys
from pathlib import Path
from tests.data_folders import Fetches, opened

with opened(Path(sys.argv[1])) as state, Fetches(state, rotate_bytes=200_000) as fetches:
    number = 0
    while True:
        fetches.page(f"http://busy.test/{number}", str(number).encode() * 1000)
        number += 1
        if number == 50:
            print("ready", flush=True)
"""

COPY = """
import sys
from pathlib import Path
from vedette.adapters.files.backup import create_backup

def look(part, done, total):
    if part == sys.argv[3]:
        print("ready", flush=True)
        sys.stdin.read()

create_backup(Path(sys.argv[1]), Path(sys.argv[2]), look)
"""


def quiet(part: str, done: int, total: int) -> None:
    """Ignore progress."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample."""
    write_sample(tmp_path / "data")
    return tmp_path / "data"


def child(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A real process that runs a few lines of Python."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


def copies(state: State) -> dict[str, bytes]:
    """Return the archived copy of every page."""
    found = {}
    for url, page in state.store.iter_pages():
        assert page.place is not None
        place = Stood(page.place.file, page.place.offset, page.place.length)
        found[url] = read_answer(state.folder / "warc", place).payload
    return found


def test_a_backup_can_be_restored_and_goes_on(folder: Path, tmp_path: Path) -> None:
    """After a restore, every page has its copy and new pages can be fetched; the original is unchanged."""
    backup, new = tmp_path / "backup", tmp_path / "deep" / "new"
    copied = create_backup(folder, backup, quiet)
    assert (copied.pages, copied.missing) == (2, ())
    assert restore_backup(backup, new, quiet).pages == copied.pages
    with opened(new) as state:
        assert state.notices == ()
        assert copies(state) == dict(zip(URLS, BODIES, strict=False))
        with Fetches(state) as fetches:
            fetches.page(f"https://{HOST}/after", b"after")
    with opened(new) as state:
        assert len(copies(state)) == len(BODIES) + 1
    with opened(folder) as state:
        assert len(copies(state)) == len(BODIES)


def test_a_busy_folder_is_copied_as_of_one_moment(tmp_path: Path) -> None:
    """While pages are committed, the copy has some number of complete pages, and nothing else."""
    folder = tmp_path / "data"
    with child(WRITE, folder) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        copied = [create_backup(folder, tmp_path / f"backup-{number}", quiet) for number in range(3)]
        writer.send_signal(signal.SIGKILL)
    assert 50 <= copied[0].pages < copied[-1].pages
    for number, each in enumerate(copied):
        restore_backup(tmp_path / f"backup-{number}", tmp_path / f"new-{number}", quiet)
        with opened(tmp_path / f"new-{number}") as state:
            assert state.notices == ()
            numbers = range(each.pages)
            assert copies(state) == {f"http://busy.test/{page}": str(page).encode() * 1000 for page in numbers}


def test_complete_files_are_linked_and_open_ones_copied(tmp_path: Path) -> None:
    """A file that a worker may still append to is never shared, whatever its length."""
    folder, backup = tmp_path / "data", tmp_path / "backup"
    with opened(folder) as state, Fetches(state, rotate_bytes=2000) as fetches:
        for number in range(10):
            fetches.page(f"https://{HOST}/{number}", os.urandom(1000))
        copied = create_backup(folder, backup, quiet)
        files = sorted(state.store.load_archive_lengths())
    assert copied.linked == len(files) - 1
    shared = [file for file in files if (folder / "warc" / file).samefile(backup / "warc" / file)]
    assert shared == files[:-1]


def test_without_links_everything_is_copied(folder: Path) -> None:
    """Another file system gets a copy."""
    elsewhere = Path("/dev/shm")  # noqa: S108 - another file system is needed
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == folder.stat().st_dev:
        pytest.skip("there is no other file system to copy to")
    target = elsewhere / f"vedette-test-{os.getpid()}"
    try:
        with opened(folder) as state, Fetches(state) as fetches:
            fetches.page(f"https://{HOST}/new", b"new")
        assert create_backup(folder, target, quiet).linked == 0
        new = folder.with_name("new")
        restore_backup(target, new, quiet)
        with opened(new) as state:
            assert len(copies(state)) == len(BODIES) + 1
    finally:
        shutil.rmtree(target, ignore_errors=True)


@pytest.mark.parametrize("part", ["state", "archive"])
def test_an_interrupted_backup_is_absent(folder: Path, tmp_path: Path, part: str) -> None:
    """After kill -9, there is no backup, and the next attempt succeeds and leaves nothing of the first one."""
    backup = tmp_path / "backup"
    with child(COPY, folder, backup, part) as copier:
        assert copier.stdout is not None
        assert copier.stdout.readline() == "ready\n"
        copier.send_signal(signal.SIGKILL)
    assert not backup.exists()
    assert create_backup(folder, backup, quiet).pages == len(BODIES)
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert not (backup / MARKER).exists()


def test_a_backup_that_fails_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """Whatever fails, neither DIR nor a part of it is left."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(StoreError, match="Free up disk space"):
        create_backup(folder, tmp_path / "backup", fail)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]


def test_nothing_is_overwritten(folder: Path, tmp_path: Path) -> None:
    """No backup, data folder or other folder is touched."""
    backup = tmp_path / "backup"
    create_backup(folder, backup, quiet)
    with pytest.raises(UsageError, match="choose a"):
        create_backup(folder, backup, quiet)
    with pytest.raises(UsageError, match="choose a"):
        restore_backup(backup, folder, quiet)
    theirs = tmp_path / "other.partial"
    theirs.mkdir()
    (theirs / "diary.txt").write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        create_backup(folder, tmp_path / "other", quiet)
    assert (theirs / "diary.txt").read_text() == "mine"
    with pytest.raises(UsageError, match="outside"):
        create_backup(folder, folder / "backup", quiet)


def test_an_empty_folder_may_be_restored_into(folder: Path, tmp_path: Path) -> None:
    """An existing empty folder may be filled."""
    create_backup(folder, tmp_path / "backup", quiet)
    (tmp_path / "empty").mkdir()
    restore_backup(tmp_path / "backup", tmp_path / "empty", quiet)
    with opened(tmp_path / "empty") as state:
        assert len(copies(state)) == len(BODIES)


def test_what_is_no_backup_is_refused(folder: Path, tmp_path: Path) -> None:
    """Covers an empty folder, a missing one, and a newer format."""
    (tmp_path / "nothing").mkdir()
    for name in ("nothing", "missing"):
        with pytest.raises(UsageError, match="not a backup"):
            restore_backup(tmp_path / name, tmp_path / "new", quiet)
    create_backup(folder, tmp_path / "backup", quiet)
    (tmp_path / "backup" / "format").write_text(f"{FORMAT + 1}\n")
    with pytest.raises(StoreNewer):
        restore_backup(tmp_path / "backup", tmp_path / "new", quiet)
    assert not (tmp_path / "new").exists()


def test_a_backup_of_format_1_can_be_restored(tmp_path: Path) -> None:
    """A copy of an old folder is migrated when it is opened."""
    shutil.copytree(GOLDEN / "format-1", tmp_path / "old")
    restore_backup(tmp_path / "old", tmp_path / "new", quiet)
    with opened(tmp_path / "new") as state:
        assert len(copies(state)) == 2


def test_missing_archive_files_are_named(folder: Path, tmp_path: Path) -> None:
    """A backup of a folder with a missing file says so, and so does restoring it."""
    (path,) = (folder / "warc").iterdir()
    path.unlink()
    copied = create_backup(folder, tmp_path / "backup", quiet)
    assert [words.split()[0] for words in copied.missing] == [path.name]
    assert restore_backup(tmp_path / "backup", tmp_path / "new", quiet).missing == copied.missing


def test_what_retention_takes_away_meanwhile_is_not_missed(tmp_path: Path) -> None:
    """Files rewritten between the copies of state and archive cause another attempt."""
    folder, backup = tmp_path / "data", tmp_path / "backup"
    with opened(folder) as state, Fetches(state, rotate_bytes=3000) as fetches:
        for _ in range(2):
            for number in range(20):
                state.urls.requeue(state.urls.find_ids([f"https://{HOST}/{number}"]).tolist(), priority=1)
                fetches.page(f"https://{HOST}/{number}", str(number).encode() * 300)
        retention = Retention(state, RetentionPolicy(keep_s=0.0), "test")

        def meddle(part: str, done: int, total: int) -> None:
            for _ in range(100 if part == "state" and done == total else 0):
                retention.step(NOW_S + 1, NOW_S)

        files = len(state.store.load_archive_lengths())
        copied = create_backup(folder, backup, meddle)
        assert copied.missing == ()
        assert copied.files == len(state.store.load_archive_lengths()) < files
        retention.close()
    restore_backup(backup, tmp_path / "new", quiet)
    with opened(tmp_path / "new") as state:
        assert copies(state) == {f"https://{HOST}/{number}": str(number).encode() * 300 for number in range(20)}


def searched(number: int) -> SearchEvent:
    """A search."""
    return SearchEvent(f"{number:032x}", NOW_S, "Fox", "fox", 1, "mark")


def test_searches_are_part_of_a_backup(folder: Path, tmp_path: Path) -> None:
    """Merged and merely logged events are restored once each, and the servers' files are unchanged.

    The salt of visitor hashes is not copied.
    """
    salt = get_day_salt(folder, "2027-01-15")
    with closing(EventLog(folder, "server")) as log, closing(EventStore(folder)) as book:
        log.append(searched(1))
        book.ingest_logs()
        book.prune(NOW_S, 30)
        log.append(searched(2))
        create_backup(folder, tmp_path / "backup", quiet)
        assert book.ingest_logs().slates == 1
    names = ["format", "record.db", "state.db", "warc"]
    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == names
    assert salt not in b"".join(path.read_bytes() for path in (tmp_path / "backup").glob("*.db"))
    restore_backup(tmp_path / "backup", tmp_path / "new", quiet)
    assert [slate.id for slate in EventReader(tmp_path / "new").iter_searches(0.0)] == [searched(1).id, searched(2).id]
    with closing(EventLog(tmp_path / "new", "server")) as log, closing(EventStore(tmp_path / "new")) as book:
        log.append(searched(3))
        book.ingest_logs()
    assert EventReader(tmp_path / "new").read_totals(0.0).searches == 3


def test_a_damaged_record_does_not_prevent_a_backup(folder: Path, tmp_path: Path) -> None:
    """The crawl is copied, and missing files are listed."""
    (folder / "record.db").write_bytes(b"no database" * 1000)
    copied = create_backup(folder, tmp_path / "backup", quiet)
    assert copied.pages == len(BODIES)
    assert [words.split()[0] for words in copied.missing] == ["record.db"]
    assert restore_backup(tmp_path / "backup", tmp_path / "new", quiet).missing == ()


def test_who_owes_what_is_part_of_a_backup(folder: Path, tmp_path: Path) -> None:
    """Taken while a server writes: holds are charged in either folder, and both ledgers balance."""
    showing = AdImpression("ab", NOW_S, date(2027, 1, 15), "spring", 1, "shoes", 0, 1.0, 1.0, Decimal("0.40"), "")
    budget = PayerBudget(Decimal("1.00"), "ann")
    with closing(LedgerStore(folder)) as book:
        asked = AdQuery(NOW_S, showing.day, 8, "", ("shoes",))
        book.record_impressions([ImpressionOffer(showing, budget, 1.0, 0.1)], asked)
        create_backup(folder, tmp_path / "backup", quiet)
        restore_backup(tmp_path / "backup", tmp_path / "new", quiet)
    with closing(LedgerStore(tmp_path / "new")) as book:
        clicking = ClickContext(NOW_S + 5, "m", is_bot=False, on_target=True, budget=budget)
        assert book.record_click("ab", clicking).charged == Decimal("0.40")
    assert LedgerReader(tmp_path / "new").read_balances(showing.day)["spring"].charged == Decimal("0.40")
    (folder / "ledger.db").write_bytes(b"no ledger" * 1000)
    assert create_backup(folder, tmp_path / "other", quiet).missing == ("ledger.db cannot be read and is left out",)


def test_reports_of_the_lab_are_part_of_a_backup(folder: Path, tmp_path: Path) -> None:
    """Every file of a report is restored; links, partial files and other files are left out."""
    texts = {"lab-refresh.json": "{}", "lab-refresh.md": "# Refresh", "lab-refresh-freshness.svg": "<svg />"}
    (folder / "lab").mkdir()
    for name, text in {**texts, "lab-refresh.json.new": "{", "diary.txt": "mine"}.items():
        (folder / "lab" / name).write_text(text)
    (folder / "lab" / "lab-elsewhere.json").symlink_to(folder / "state.db")
    (folder / "lab" / "lab-folder.json").mkdir()
    copied = create_backup(folder, tmp_path / "backup", quiet)
    restored = restore_backup(tmp_path / "backup", tmp_path / "new", quiet)
    for place in ("backup", "new"):
        assert {path.name: path.read_text() for path in (tmp_path / place / "lab").iterdir()} == texts
    assert (copied.missing, restored.missing) == ((), ())
    without = sum(path.stat().st_size for name in ("*.db", "warc/*") for path in (tmp_path / "backup").glob(name))
    assert copied.size_bytes == without + sum(map(len, texts.values()))


def test_a_report_that_cannot_be_read_is_named(folder: Path, tmp_path: Path) -> None:
    """The rest is copied."""
    (folder / "lab").mkdir()
    locked = folder / "lab" / "lab-locked.json"
    locked.touch(mode=0o000)
    if os.access(locked, os.R_OK):
        pytest.skip("whoever may read everything cannot be refused")
    copied = create_backup(folder, tmp_path / "backup", quiet)
    assert copied.pages == len(BODIES)
    assert [words.split()[0] for words in copied.missing] == ["lab/lab-locked.json"]


def test_a_backup_is_a_plain_database(folder: Path, tmp_path: Path) -> None:
    """It is one file without a log, valid according to SQLite's own check."""
    create_backup(folder, tmp_path / "backup", quiet)
    assert sorted(path.name for path in (tmp_path / "backup").iterdir()) == ["format", "state.db", "warc"]
    with closing(sqlite3.connect(tmp_path / "backup" / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
