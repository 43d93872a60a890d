"""The data folder: who may hold it, what it survives, and which folders are refused with which words."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from vedette.edges.sqlite import FORMAT, SqliteStore
from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer
from vedette.facts import Failure, Origin, Page, Refusal
from vedette.fetch.robots_state import UNKNOWN, RobotsAnswered, observe
from vedette.ring.events import GiveUp, Keep, KeepRobots, Refuse, Remember, Seen
from vedette.ring.store import Counts, Kept

GOLDEN = Path(__file__).parents[1] / "golden"
NOBODY = 65_534

URLS = tuple(f"https://www.example.org/{name}" for name in ("", "a?b=c", "private/", "broken", "later"))
HOME = Page(
    url=URLS[0],
    depth=0,
    status=200,
    fetched_s=1_800_000_000.25,
    title="Grüße",
    links=(URLS[1], URLS[4]),
    body=b"<title>Gr\xc3\xbc\xc3\x9fe</title>\x00\xff" * 20,
    content_type="text/html; charset=utf-8",
    etag='W/"1"',
    last_modified="Fri, 15 Jan 2027 08:00:00 GMT",
)
MOVED = Page(URLS[1], 1, 301, 1_800_000_001.0, "", (), b"", location=URLS[0])
ORIGIN = Origin("https", "www.example.org", 443)
ROBOTS = observe(
    UNKNOWN, RobotsAnswered(1_799_999_999.0, 200, b"User-agent: *\nDisallow: /private/\n", 0, ()), "vedette"
)
# What the kept sample of format 1 was made of.
SAMPLE: tuple[Kept, ...] = (
    Remember(tuple(Seen(url, min(row, 1)) for row, url in enumerate(URLS))),
    KeepRobots(ORIGIN, ROBOTS),
    Keep(HOME),
    Keep(MOVED),
    Refuse(URLS[2], Refusal.ROBOTS, "Disallow: /private/"),
    GiveUp(URLS[3], Failure.TIMEOUT, 1_800_000_002.0),
)

HOLD = """
import sys
from pathlib import Path
from vedette.edges.sqlite import SqliteStore
from vedette.ring.events import Remember, Seen

def batch(name, count):
    return [Remember(tuple(Seen(f"http://{name}.test/{number}", 0) for number in range(count)))]

store = SqliteStore(Path(sys.argv[1]))
store.keep(batch("committed", 500))
store.commit()
store.keep(batch("lost", int(sys.argv[2])))
print("ready", flush=True)
sys.stdin.read()
"""

OPEN_AS_NOBODY = """
import os, sys
from pathlib import Path
from vedette.edges.sqlite import SqliteStore
from vedette.errors import StoreError

if os.getuid() == 0:
    os.setuid(int(sys.argv[2]))
try:
    SqliteStore(Path(sys.argv[1]))
except StoreError as error:
    print(type(error).__name__, error)
"""


def child(program: str, *arguments: object) -> "subprocess.Popen[str]":
    """A real process that runs a few lines of Python."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with the sample in it."""
    store = SqliteStore(tmp_path / "data")
    store.keep(SAMPLE)
    store.close()
    return tmp_path / "data"


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that every user of the machine can reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        path.chmod(0o755)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def check_sample(folder: Path) -> None:
    """The sample is all there."""
    store = SqliteStore(folder)
    assert store.counts() == Counts(known=5, waiting=1, fetched=2, refused=1, failed=1)
    assert list(store.pages()) == [HOME, MOVED]
    known = store.known()
    assert known is not None
    assert (known.waiting, known.robots) == ((Seen(URLS[4], 1),), {ORIGIN: ROBOTS})
    store.close()


def test_a_folder_is_made_and_found_again(tmp_path: Path) -> None:
    """A folder that is missing is made, with its parents, says its format, and has everything after a new start."""
    folder = tmp_path / "deep" / "data"
    store = SqliteStore(folder)
    store.keep(SAMPLE)
    store.close()
    assert (folder / "format").read_text() == f"{FORMAT}\n"
    check_sample(folder)


@pytest.mark.parametrize("number", range(1, FORMAT + 1))
def test_every_format_ever_written_can_be_opened(number: int, tmp_path: Path) -> None:
    """A folder of each past format opens with all that was in it."""
    copy = shutil.copytree(GOLDEN / f"format-{number}", tmp_path / "data")
    check_sample(copy)


def test_a_format_is_not_changed_unnoticed(folder: Path) -> None:
    """Today's folder has the tables of the kept sample of its format: whoever changes one raises the number."""

    def tables(path: Path) -> list[tuple[str, str]]:
        # Immutable, so that looking at the kept sample writes nothing beside it.
        database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        rows = database.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        database.close()
        return rows

    assert tables(folder / "state.db") == tables(GOLDEN / f"format-{FORMAT}" / "state.db")


def test_one_process_holds_a_folder(folder: Path) -> None:
    """A second process is refused with the folder's name while the first one lives, and served when it is gone."""
    holder = child(HOLD, folder, 1)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(StoreBusy, match=str(folder)):
            SqliteStore(folder)
        holder.communicate()
    SqliteStore(folder).close()


def test_one_object_holds_a_folder(folder: Path) -> None:
    """Within a process, too, a folder has one holder at a time."""
    store = SqliteStore(folder)
    with pytest.raises(StoreBusy):
        SqliteStore(folder)
    store.close()
    check_sample(folder)


@pytest.mark.parametrize("lost", [1, 20_000])
def test_committed_data_survives_kill_9(tmp_path: Path, lost: int) -> None:
    """After kill -9 what was committed is there, what was not is absent, and the folder works on."""
    holder = child(HOLD, tmp_path, lost)
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        holder.send_signal(signal.SIGKILL)
    store = SqliteStore(tmp_path)
    known = store.known()
    assert known is not None
    assert [seen.url for seen in known.waiting] == [f"http://committed.test/{number}" for number in range(500)]
    store.keep([Remember((Seen("http://later.test/", 0),))])
    store.close()
    database = sqlite3.connect(tmp_path / "state.db")
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert database.execute("SELECT count(*) FROM url").fetchone() == (501,)
    database.close()


@pytest.mark.parametrize("left", [(), ("format",), ("format", "lock"), ("lock",), ("lock", "format.new")])
def test_a_start_that_was_interrupted(folder: Path, left: tuple[str, ...]) -> None:
    """A folder that a crash left half made is made whole, and says its format from then on."""
    (folder / "format.new").touch()
    for path in folder.iterdir():
        if path.name not in left:
            path.unlink()
    store = SqliteStore(folder)
    store.keep(SAMPLE)
    store.close()
    check_sample(folder)
    assert (folder / "format").read_text() == f"{FORMAT}\n"


def test_a_newer_folder_is_left_untouched(folder: Path) -> None:
    """A folder of a format from the future is refused, and not one byte in it changes."""
    (folder / "format").write_text(f"{FORMAT + 1}\n")
    (folder / "lock").unlink()
    (folder / "state.db").write_bytes(b"something of the future")
    before = contents(folder)
    with pytest.raises(StoreNewer, match="newer vedette"):
        SqliteStore(folder)
    assert contents(folder) == before


@pytest.mark.parametrize("text", [b"", b"one", b"-1", b"0", b"1.5", b"\xff\xfe", "²".encode(), b"9" * 5000])
def test_a_format_that_is_no_number(folder: Path, text: bytes) -> None:
    """A folder whose format cannot be read is refused in one line, and not changed."""
    (folder / "format").write_bytes(text)
    before = contents(folder)
    with pytest.raises(StoreCorrupt) as caught:
        SqliteStore(folder)
    assert "\n" not in str(caught.value)
    assert contents(folder) == before


@pytest.mark.parametrize("content", [b"this is no database" * 1000, b"SQLite format 3\0" + bytes(4080)])
def test_a_database_that_is_none(folder: Path, content: bytes) -> None:
    """A file that is no database is reported as what to restore, kept as it is, and the folder is free again."""
    (folder / "state.db").write_bytes(content)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=r"state\.db.*restore"):
            SqliteStore(folder)
    assert (folder / "state.db").read_bytes() == content


def test_a_database_with_holes(folder: Path) -> None:
    """Damage is reported as damage wherever it is met: on opening, on counting or on reading."""
    path = folder / "state.db"
    data = bytearray(path.read_bytes())
    for start in range(4096, len(data), 4096):
        hurt = bytearray(data)
        hurt[start : start + 4096] = b"\xff" * 4096
        path.write_bytes(hurt)
        with pytest.raises(StoreCorrupt):
            look_at_everything(folder)


def look_at_everything(folder: Path) -> None:
    """Read all that a store has, and let go of it."""
    store = SqliteStore(folder)
    try:
        store.known()
        store.counts()
        list(store.pages())
        store.keep([KeepRobots(ORIGIN, ROBOTS)])
    finally:
        store.close()


@pytest.mark.parametrize("change", ["UPDATE page SET body = x'00'", "UPDATE page SET links = x'789c'"])
def test_a_page_that_cannot_be_unpacked(folder: Path, change: str) -> None:
    """A row whose content makes no sense is reported as damage, not as a bug."""
    edit(folder, change)
    store = SqliteStore(folder)
    with pytest.raises(StoreCorrupt):
        list(store.pages())
    store.close()


@pytest.mark.parametrize("state", ["{", "[]", "{}", "7"])
def test_a_robots_state_that_cannot_be_read(folder: Path, state: str) -> None:
    """What is stored of a robots.txt is checked when it is read."""
    edit(folder, f"UPDATE robots SET state = '{state}'")  # noqa: S608 - our own words
    store = SqliteStore(folder)
    with pytest.raises(StoreCorrupt):
        store.known()
    store.close()


def edit(folder: Path, change: str) -> None:
    """Change the database behind the store's back."""
    database = sqlite3.connect(folder / "state.db")
    with database:
        database.execute(change)
    database.close()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    """A path that is no folder is refused with its name."""
    path = tmp_path / "data"
    path.touch()
    with pytest.raises(StoreError, match=str(path)):
        SqliteStore(path)


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_may_not_be_written_to(open_to_all: Path, exists: bool) -> None:  # noqa: FBT001 - both kinds
    """Without permission the person is told to name another folder, and nothing is left behind."""
    if exists:
        SqliteStore(open_to_all).close()
    for path in open_to_all.iterdir():
        path.chmod(0o444)
    open_to_all.chmod(0o555)
    before = contents(open_to_all)
    said, _ = child(OPEN_AS_NOBODY, open_to_all if exists else open_to_all / "data", NOBODY).communicate()
    assert said.startswith("StoreError")
    assert "you may write to" in said
    assert contents(open_to_all) == before


def test_a_database_that_may_not_be_written_to(open_to_all: Path) -> None:
    """A database of somebody else's is reported with what to do, too."""
    SqliteStore(open_to_all).close()
    for path in open_to_all.iterdir():
        path.chmod(0o666)
    (open_to_all / "state.db").chmod(0o444)
    open_to_all.chmod(0o777)
    said, _ = child(OPEN_AS_NOBODY, open_to_all, NOBODY).communicate()
    assert said.startswith("StoreError")
    assert "permissions" in said


def test_closing_lets_go_even_of_a_full_disk(folder: Path) -> None:
    """When the last commit fails, the failure is told and the folder is free all the same."""
    store = SqliteStore(folder)
    size = (folder / "state.db").stat().st_size // 4096
    store._db.execute(f"PRAGMA max_page_count = {size}")
    with pytest.raises(StoreError, match="make room"):
        store.keep([Remember(tuple(Seen(f"http://a.test/{number}", 0) for number in range(10_000)))])
    store.close()
    SqliteStore(folder).close()


def test_no_descriptor_is_left_open(folder: Path) -> None:
    """Neither a store that was closed nor one that could not be opened keeps files open."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - not a real folder
    for _ in range(5):
        SqliteStore(folder).close()
    (folder / "state.db").write_bytes(b"this is no database" * 1000)
    for _ in range(5):
        with pytest.raises(StoreCorrupt):
            SqliteStore(folder)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - not a real folder
