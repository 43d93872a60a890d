"""Folders of format 1: everything in them is found again in format 2, even after an interrupted migration."""

import shutil
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing
from pathlib import Path

import pytest
from tests.data_folders import NOW_S, ORIGIN, URLS, opened
from tests.tree_runs import PATIENCE_S

from vedette.adapters.archive.warc_reader import ImportedAnswer, read_answer, scan_warc
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state, read_state
from vedette.adapters.crawl_store.migrations import migrate_format_1
from vedette.engine.messages import ArchiveLocation as Stood
from vedette.engine.ports import UrlCounts, UrlState
from vedette.errors import StoreCorrupt
from vedette.fetch.robots.state import UNKNOWN, RobotsResponse, apply_event

with warnings.catch_warnings():
    # On import the library warns of the old names that it keeps itself.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator

GOLDEN = Path(__file__).parents[2] / "golden" / "format-1"
# What the kept sample of format 1 was made of; see its README.
BODY = b"<title>Gr\xc3\xbc\xc3\x9fe</title>\x00\xff" * 20
ROBOTS = apply_event(
    UNKNOWN, RobotsResponse(1_799_999_999.0, 200, b"User-agent: *\nDisallow: /private/\n", 0, ()), "vedette"
)

STOP_AT = """
import os, sys
from pathlib import Path
from vedette.adapters.crawl_store.migrations import migrate_format_1

left = int(sys.argv[2])

def stop(event, arguments):
    global left
    if event in {"os.rename", "sqlite3.connect", "os.mkdir"} or event == "open" and arguments[1] in {"w+b", "xb"}:
        left -= 1
        if left < 0:
            os.kill(os.getpid(), 9)

sys.addaudithook(stop)
migrate_format_1(Path(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the stored sample."""
    copy = shutil.copytree(GOLDEN, tmp_path / "data")
    copy.chmod(0o700)
    return copy


def check(folder: Path) -> None:
    """Check everything in the sample."""
    with opened(folder) as state:
        assert state.urls.get_counts() == UrlCounts(known=5, waiting=1, leased=0, fetched=2, refused=1, failed=1)
        assert state.urls.find_ids(URLS).tolist() == [1, 2, 3, 4, 5]
        fates = [state.urls.find_state(id_) for id_ in range(1, 5)]
        assert fates == [UrlState.FETCHED, UrlState.FETCHED, UrlState.REFUSED, UrlState.FAILED]
        notes = [state.store.get_note(id_) for id_ in (3, 4)]
        assert [note and note[0] for note in notes] == ["disallowed by robots.txt: Disallow: /private/", "too slow"]
        assert state.store.load_robots() == {ORIGIN: ROBOTS}
        assert state.store.get_links(1) == (URLS[1], URLS[4])
        (home_url, home), (moved_url, moved) = state.store.iter_pages()
        assert (home_url, moved_url) == (URLS[0], URLS[1])
        assert (home.status, home.title, home.fetched_s, home.kind) == (200, "Grüße", NOW_S + 0.25, "page")
        assert (home.etag, home.last_modified) == ('W/"1"', "Fri, 15 Jan 2027 08:00:00 GMT")
        assert (moved.status, moved.location) == (301, URLS[0])
        assert home.place is not None
        stored = read_answer(folder / "warc", Stood(home.place.file, home.place.offset, home.place.length))
        assert stored.payload == BODY
        depths = state.db.execute("SELECT depth FROM url ORDER BY id").fetchall()
        assert depths == [(0,), (1,), (1,), (1,), (1,)]


def test_the_kept_sample_is_brought_up_to_date(folder: Path) -> None:
    """URLs in order, final states, notes, robots.txt and pages are all there, and one line reports it."""
    with lock_folder(folder):
        state = open_state(folder, "test", NOW_S)
        state.db.close()
    (report,) = state.notices
    assert report.isprintable()
    assert "was upgraded" in report
    assert "sites" in report
    check(folder)


def test_the_old_state_is_kept(folder: Path) -> None:
    """The previous state can be read under another name."""
    with lock_folder(folder):
        migrate_format_1(folder)

    def rows(path: Path) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as db:
            return [*db.execute("SELECT * FROM url"), *db.execute("SELECT * FROM page")]

    assert rows(folder / "state-format-1.db") == rows(GOLDEN / "state.db")


def test_reading_brings_up_to_date_as_well(folder: Path) -> None:
    """Reading an old folder migrates it as well."""
    with read_state(folder) as db:
        assert db.execute("SELECT count(*) FROM archive").fetchone() == (1,)
    check(folder)


def test_the_archive_is_valid(folder: Path) -> None:
    """The bodies are response records with digests that standard tools agree with."""
    with lock_folder(folder):
        migrate_format_1(folder)
    (path,) = (folder / "warc").iterdir()
    found = list(scan_warc(path))
    assert [(record.url, record.status) for record in found if isinstance(record, ImportedAnswer)] == [
        (URLS[0], 200),
        (URLS[1], 301),
    ]
    assert len(found) == 2
    records = list(ArchiveIterator(str(path), parse_http=False, verify_digests=True))
    assert len(records) == 3


@pytest.mark.parametrize("events", range(9))
def test_a_kill_at_any_moment_loses_nothing(folder: Path, events: int) -> None:
    """However far it got before kill -9, the next opening has everything, once."""
    done = subprocess.run([sys.executable, "-c", STOP_AT, str(folder), str(events)], timeout=PATIENCE_S, check=False)
    assert done.returncode in {0, -9}
    check(folder)
    check(folder)
    with opened(folder) as state:
        assert sorted(state.store.load_archive_lengths()) == [path.name for path in (folder / "warc").iterdir()]


@pytest.mark.parametrize("left", [("format",), ("format", "state.db")])
def test_an_old_folder_with_nothing_in_it(folder: Path, left: tuple[str, ...]) -> None:
    """An interrupted first start of format 1 left no state, or an empty one."""
    (folder / "state.db").write_bytes(b"")
    for path in folder.iterdir():
        if path.name not in left:
            path.unlink()
    with opened(folder) as state:
        assert state.urls.get_counts().known == 0


@pytest.mark.parametrize("change", ["UPDATE page SET body = x'00'", "UPDATE page SET links = x'789c'"])
def test_an_old_page_that_cannot_be_unpacked(folder: Path, change: str) -> None:
    """Damage is reported, and the old state stays."""
    with closing(sqlite3.connect(folder / "state.db")) as db, db:
        db.execute(change)
    with lock_folder(folder), pytest.raises(StoreCorrupt, match="restore"):
        open_state(folder, "test", NOW_S)
    assert (folder / "format").read_text() == "1\n"
    with closing(sqlite3.connect(folder / "state.db")) as db:
        assert db.execute("SELECT count(*) FROM url").fetchone() == (5,)


def test_what_the_log_of_the_old_state_holds_is_not_forgotten(folder: Path) -> None:
    """Rows that a crash left only in the write-ahead log are moved as well."""
    program = (
        "import os, sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('PRAGMA journal_mode = WAL'); "
        "db.execute(\"INSERT INTO url (id, partition, url, depth) VALUES (6, 0, 'https://www.example.org/log', 1)\"); "
        "db.commit(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(folder / "state.db")], timeout=PATIENCE_S, check=False)
    assert (folder / "state.db-wal").stat().st_size > 0
    with opened(folder) as state:
        assert state.urls.find_ids(["https://www.example.org/log"]).tolist() == [6]
