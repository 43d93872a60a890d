"""The data folder: locking, crashes, and which folders are refused with which message."""

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest
from tests.data_folders import (
    AD,
    ADVERTISER,
    BODIES,
    CAMPAIGN,
    CONTENT,
    FIND,
    FIRST_CRAWL,
    GROUP,
    HOST,
    NOW_S,
    OLD_MARKET,
    ORIGIN,
    REMEMBERED,
    ROBOTS,
    SITE,
    URLS,
    WATCH,
    Fetches,
    opened,
    write_sample,
)

from vedette.adapters.ads.campaign_store import CampaignStore
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.archive.warc_writer import UNACKNOWLEDGED_DIR
from vedette.adapters.crawl_store.data_folder import (
    FORMAT,
    explain_database_errors,
    lock_folder,
    open_state,
    read_state,
)
from vedette.adapters.crawl_store.store import SiteRow
from vedette.engine.messages import ArchiveLocation as Stood
from vedette.engine.ports import HostRow, UrlCounts
from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer
from vedette.model import Site
from vedette.parse.change.comparison import StoredVersion

GOLDEN = Path(__file__).parents[2] / "golden"
NOBODY = 65_534

HOLD = """
import sys
from pathlib import Path
from tests.data_folders import Fetches
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state

lock = lock_folder(Path(sys.argv[1]))
state = open_state(Path(sys.argv[1]), "test", 1.0)
fetches = Fetches(state)
fetches.page("http://committed.test/", b"kept" * 1000)
state.commit()
fetches.know(*(f"http://lost.test/{number}" for number in range(int(sys.argv[2]))))
fetches.writer.append_packed([b"not acknowledged"], 1.0)
fetches.writer.flush()
print("ready", flush=True)
sys.stdin.read()
"""

OPEN_AS_NOBODY = """
import os, sys
from pathlib import Path
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.errors import StoreError

if os.getuid() == 0:
    os.setuid(int(sys.argv[2]))
try:
    lock = lock_folder(Path(sys.argv[1]))
    open_state(Path(sys.argv[1]), "test", 1.0)
except StoreError as error:
    print(type(error).__name__, error)
"""


def child(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A real process that runs a few lines of Python."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    root = Path(__file__).parents[3]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample in it."""
    write_sample(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """Return a folder that every user of the machine can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder, including those in subfolders."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def check_sample(folder: Path, contents: dict[int, StoredVersion], site: Site = SITE, format_: int = FORMAT) -> None:
    """Check that the sample is complete, archived copies match what was fetched, and the upgrade is announced."""
    with opened(folder) as state:
        assert [f"had format {format_} and was upgraded" in notice for notice in state.notices] == [True] * (
            format_ < FORMAT
        )
        assert state.urls.get_counts() == UrlCounts(known=5, waiting=1, leased=0, fetched=2, refused=1, failed=1)
        pages = list(state.store.iter_pages())
        assert [url for url, _ in pages] == list(URLS[:2])
        for (_, page), body in zip(pages, BODIES, strict=True):
            assert page.place is not None
            place = Stood(page.place.file, page.place.offset, page.place.length)
            assert read_answer(folder / "warc", place).payload == body
        assert state.store.get_links(1) == (URLS[1], URLS[4])
        assert state.store.load_robots() == {ORIGIN: ROBOTS}
        assert state.store.load_hosts() == [HostRow(HOST, NOW_S + 5, 1, "status 503")]
        assert state.store.list_sites() == [SiteRow(site, paused=True, added_s=NOW_S)]
        assert {id_: row.baseline for id_, row in state.store.get_contents([1, 2]).items()} == contents
        notes = [state.store.get_note(id_) for id_ in (3, 4)]
        assert [note and note[0] for note in notes] == ["disallowed by robots.txt: Disallow: /private/", "too slow"]


def test_a_folder_is_made_and_found_again(tmp_path: Path) -> None:
    """A missing folder is created with its parents, records its format, and is complete after a restart."""
    folder = tmp_path / "deep" / "data"
    write_sample(folder)
    assert (folder / "format").read_text() == f"{FORMAT}\n"
    check_sample(folder, {1: CONTENT.baseline})


@pytest.mark.parametrize(
    ("number", "contents"), [(2, {}), *((number, {1: CONTENT.baseline}) for number in range(3, FORMAT + 1))]
)
def test_the_kept_samples_can_be_opened(number: int, contents: dict[int, StoredVersion], tmp_path: Path) -> None:
    """A folder of an older format opens with all its contents and is upgraded to the newest format."""
    folder = shutil.copytree(GOLDEN / f"format-{number}", tmp_path / "data")
    folder.chmod(0o700)
    # The oldest does not say what counts as a change: the default does.
    check_sample(folder, contents, replace(SITE, change=Site(SITE.start).change) if number == 2 else SITE, number)
    assert (folder / "format").read_text() == f"{FORMAT}\n"
    with opened(folder) as state:
        assert [row.action.what for row in state.store.list_actions(9)] == [f"added {SITE.start}"]
        assert len(state.store.read_secret()) == 32
        (look,) = state.store.get_known_pages([1])
        assert (look.url, state.store.get_groups()) == (URLS[0], [GROUP] if number >= 6 else [])
        assert look.state == REMEMBERED if number >= 6 else not look.state.memory
        assert state.store.list_alerts() == ([WATCH] if number >= 7 else [])
        assert state.store.get_discoveries([2]) == ({2: FIND} if number >= 7 else {})
        assert state.store.get_first_crawls() == ([FIRST_CRAWL] if number >= 7 else [])
        market = CampaignStore(state.db)
        found = [*market.list_advertisers(), *market.list_campaigns(), *market.list_ads()]
        assert found == ([ADVERTISER, CAMPAIGN, AD] if number >= 10 else OLD_MARKET if number >= 8 else [])


def test_a_format_is_not_changed_unnoticed(folder: Path) -> None:
    """Today's folder has the tables of the stored sample of its format: changing one requires a new number."""

    def tables(path: Path) -> list[tuple[str, str]]:
        # Immutable, so that opening the stored sample writes nothing beside it.
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as database:
            return database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()

    assert tables(folder / "state.db") == tables(GOLDEN / f"format-{FORMAT}" / "state.db")


def test_one_process_holds_a_folder(folder: Path) -> None:
    """While the first process lives, a second one is refused with the folder's name; later it can open it."""
    with child(HOLD, folder, 1) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreBusy, match=str(folder)):
            lock_folder(folder)
        holder.communicate()
    lock_folder(folder).close()


def test_a_folder_is_free_when_the_children_of_a_killed_process_have_ended(folder: Path) -> None:
    """A crawl can be restarted right after kill -9: the start waits for the last of its processes."""
    with child(HOLD, folder, 1) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with (folder / "lock").open("r+") as lock:  # as if the holder were a child of a process that is gone
            lock.truncate(0)
            lock.write(f"{find_free_pid()}\n")
        ending = Timer(0.3, holder.kill)
        ending.start()
        lock_folder(folder).close()
        ending.join()
        holder.communicate()


def find_free_pid() -> int:
    """Return the number of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


@pytest.mark.parametrize("lost", [1, 20_000])
def test_committed_data_survives_kill_9(tmp_path: Path, lost: int) -> None:
    """After kill -9, committed data is present, uncommitted data is absent, and the folder stays usable."""
    with child(HOLD, tmp_path, lost) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        holder.send_signal(signal.SIGKILL)
    with opened(tmp_path) as state:
        assert not state.clean
        assert [url for url, _ in state.store.iter_pages()] == ["http://committed.test/"]
        assert state.urls.get_counts().known == 1
        acknowledged = state.store.load_archive_lengths()
        with Fetches(state) as fetches:
            fetches.page("http://later.test/", b"later")
    assert {path.name: path.stat().st_size for path in (tmp_path / "warc").glob("*.gz")}.items() >= acknowledged.items()
    assert [path.read_bytes() for path in (tmp_path / "warc" / UNACKNOWLEDGED_DIR).iterdir()] == [b"not acknowledged"]
    with closing(sqlite3.connect(tmp_path / "state.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("SELECT url FROM url ORDER BY id").fetchall() == [
            ("http://committed.test/",),
            ("http://later.test/",),
        ]


def test_a_clean_end_is_told_from_a_crash(folder: Path) -> None:
    """The next start knows whether the last process closed the folder cleanly, but later starts do not."""
    with opened(folder) as state:
        assert state.clean
    with lock_folder(folder):
        open_state(folder, "test", NOW_S).db.close()
    with opened(folder) as state:
        assert not state.clean
    with opened(folder) as state:
        assert state.clean


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_lost_state_is_refused(folder: Path, is_missing: bool) -> None:  # noqa: FBT001 - both kinds
    """Archived pages without a state are not mistaken for a new folder's leftovers: nothing is moved or deleted."""
    before = {path.name: path.read_bytes() for path in (folder / "warc").iterdir()}
    (folder / "state.db").unlink() if is_missing else (folder / "state.db").write_bytes(b"")
    for _ in range(2):
        with lock_folder(folder), pytest.raises(StoreCorrupt, match="restore a backup"):
            open_state(folder, "test", NOW_S)
    assert {path.name: path.read_bytes() for path in (folder / "warc").iterdir()} == before


def test_an_older_state_costs_no_archived_byte(folder: Path, tmp_path: Path) -> None:
    """If state.db is replaced by an older copy, later archive data is moved aside instead of deleted."""
    older = shutil.copy(folder / "state.db", tmp_path / "older.db")
    with opened(folder) as state, Fetches(state) as fetches:
        row = fetches.page("https://www.example.org/new", b"young" * 100)
    assert row.place is not None
    new = (folder / "warc" / row.place.file).read_bytes()
    shutil.copy(older, folder / "state.db")
    with opened(folder) as state:
        assert [words.split()[0] for words in state.notices] == [row.place.file]
    assert (folder / "warc" / UNACKNOWLEDGED_DIR / row.place.file).read_bytes() == new
    check_sample(folder, {1: CONTENT.baseline})


@pytest.mark.parametrize("left", [(), ("format",), ("format", "lock"), ("lock",), ("lock", "format.new")])
def test_a_start_that_was_interrupted(tmp_path: Path, left: tuple[str, ...]) -> None:
    """A folder left incomplete by a crash is completed, and then records its format."""
    made = tmp_path / "made"
    with lock_folder(made):
        pass
    for name in left:
        (made / name).write_text(f"{FORMAT}\n" if name == "format" else "")
    if "lock" not in left:
        (made / "lock").unlink()
    write_sample(made)
    check_sample(made, {1: CONTENT.baseline})
    assert (made / "format").read_text() == f"{FORMAT}\n"


def test_a_newer_folder_is_left_untouched(folder: Path) -> None:
    """A folder of a newer format is refused by every way of opening it, and no byte of it changes."""
    (folder / "format").write_text(f"{FORMAT + 1}\n")
    (folder / "lock").unlink()
    (folder / "state.db").write_bytes(b"something of the future")
    before = contents(folder)
    with pytest.raises(StoreNewer, match="use a newer version"):
        lock_folder(folder)
    with pytest.raises(StoreNewer):
        open_state(folder, "test", NOW_S)
    with pytest.raises(StoreNewer), read_state(folder):
        pass
    assert contents(folder) == before


@pytest.mark.parametrize("text", [b"", b"one", b"-1", b"0", b"1.5", b"\xff\xfe", "²".encode(), b"9" * 5000])
def test_a_format_that_is_no_number(folder: Path, text: bytes) -> None:
    """A folder whose format cannot be read is refused in one line, and not changed."""
    (folder / "format").write_bytes(text)
    before = contents(folder)
    with pytest.raises(StoreCorrupt) as caught:
        lock_folder(folder)
    assert str(caught.value).isprintable()
    assert contents(folder) == before


@pytest.mark.parametrize("content", [b"this is no database" * 1000, b"SQLite format 3\0" + bytes(4080)])
def test_a_database_that_is_none(folder: Path, content: bytes) -> None:
    """A file that isn't a database is reported with what to restore and left unchanged, and the folder is unlocked."""
    (folder / "state.db").write_bytes(content)
    for _ in range(2):
        with lock_folder(folder), pytest.raises(StoreCorrupt, match=r"state\.db.*restore"):
            open_state(folder, "test", NOW_S)
    assert (folder / "state.db").read_bytes() == content


def test_damage_anywhere_in_the_database_is_reported(folder: Path) -> None:
    """Whichever page of the file is overwritten, the folder either works as before or reports the damage."""
    path = folder / "state.db"
    whole = path.read_bytes()
    reported = 0
    for start in range(4096, len(whole), 4096):
        path.write_bytes(whole[:start] + b"\xff" * 4096 + whole[start + 4096 :])
        for name in ("urls", "state.db-wal", "state.db-shm"):
            (folder / name).unlink(missing_ok=True)
        try:
            look_at_everything(folder)
        except StoreError:
            reported += 1
    assert reported > 0


def look_at_everything(folder: Path) -> None:
    """Read everything in a state, as the coordinator does, and close it."""
    with lock_folder(folder):
        state = open_state(folder, "test", NOW_S)
        try:
            with explain_database_errors(folder):
                list(state.store.iter_pages())
                state.store.get_links(1)
                state.store.load_robots()
                state.store.list_sites()
                state.store.load_hosts()
        finally:
            state.db.close()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    """A path that isn't a folder is refused by name."""
    path = tmp_path / "data"
    path.touch()
    with pytest.raises(StoreError, match=str(path)):
        lock_folder(path)


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_may_not_be_written_to(open_to_all: Path, exists: bool) -> None:  # noqa: FBT001 - both kinds
    """Without permission, the error suggests another folder, and no file is created."""
    if exists:
        write_sample(open_to_all)
        (open_to_all / "lock").unlink()
    for path in open_to_all.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    open_to_all.chmod(0o555)
    before = contents(open_to_all)
    message, _ = child(OPEN_AS_NOBODY, open_to_all if exists else open_to_all / "data", NOBODY).communicate()
    assert message.startswith("StoreError")
    assert "you can write to" in message
    assert contents(open_to_all) == before


def test_a_database_that_may_not_be_written_to(open_to_all: Path) -> None:
    """A database of another program is reported, with what to do."""
    write_sample(open_to_all)
    for path in open_to_all.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (open_to_all / "state.db").chmod(0o444)
    open_to_all.chmod(0o777)
    message, _ = child(OPEN_AS_NOBODY, open_to_all, NOBODY).communicate()
    assert message.startswith("StoreError")
    assert "permissions" in message


def test_a_full_disk_is_told_and_costs_nothing_committed(folder: Path) -> None:
    """A commit without disk space says so, and the folder reopens with what was committed before."""
    with lock_folder(folder):
        state = open_state(folder, "test", NOW_S)
        pages = (folder / "state.db").stat().st_size // 4096
        state.db.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match=r"full.*Free up disk space"), explain_database_errors(folder):
            Fetches(state).know(*(f"http://a.test/{number}" for number in range(20_000)))
        state.db.close()
    with opened(folder) as state:
        assert state.urls.get_counts().known == len(URLS)


def test_reading_sees_one_moment(folder: Path) -> None:
    """A reader sees the state as of its start, even if more is committed meanwhile."""
    with opened(folder) as state, read_state(folder) as db, Fetches(state) as fetches:
        fetches.page("http://later.test/", b"later")
        assert db.execute("SELECT count(*) FROM url").fetchone() == (len(URLS),)
        with read_state(folder) as later:
            assert later.execute("SELECT count(*) FROM url").fetchone() == (len(URLS) + 1,)


def test_reading_needs_a_data_folder(tmp_path: Path) -> None:
    """A path without a data folder is refused with the command to type, and nothing is created."""
    with pytest.raises(StoreError, match="--data"), read_state(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_no_descriptor_is_left_open(folder: Path) -> None:
    """Neither a closed state nor one that failed to open keeps files open."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - not a real folder
    for _ in range(3):
        check_sample(folder, {1: CONTENT.baseline})
    (folder / "state.db").write_bytes(b"this is no database" * 1000)
    for _ in range(3):
        with lock_folder(folder), pytest.raises(StoreCorrupt):
            open_state(folder, "test", NOW_S)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - not a real folder


@pytest.mark.parametrize(("before", "after"), [(0o755, 0o750), (0o777, 0o750), (0o770, 0o750), (0o750, 0o750)])
def test_a_folder_that_is_open_to_others_is_closed(tmp_path: Path, before: int, after: int) -> None:
    """The permissions of a folder created by hand are restricted when it is opened; the operator is notified once."""
    tmp_path.chmod(before)
    for expected in (before != after, False):
        with opened(tmp_path) as state:
            assert any("open to other users" in notice for notice in state.notices) is expected
        assert stat.S_IMODE(tmp_path.stat().st_mode) == after


def test_files_are_for_their_user_alone(tmp_path: Path) -> None:
    """Whatever the shell's umask is, other users can't read what a command writes."""
    command = [sys.executable, "-m", "vedette", "sites", "add", "http://127.0.0.1:9/", "--data", str(tmp_path / "data")]
    done = subprocess.run([*command, "--allow-private"], check=True, capture_output=True, umask=0o000)
    assert b"127.0.0.1" in done.stdout
    found = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data", *(tmp_path / "data").rglob("*"))}
    assert tmp_path / "data" / "state.db" in found
    assert {path: mode for path, mode in found.items() if mode & 0o077} == {}
