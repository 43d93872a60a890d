"""Copies of shards with the real engines: what a step copied can be restored, whatever an old owner does."""

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from tests.s3_server import MISSING, find_weed, run_s3
from tests.tree_runs import patiently

from vedette.adapters.alerts.alert_store import AlertStore, NewPage
from vedette.adapters.crawl_store.data_folder import State, open_state
from vedette.adapters.durability.object_storage import ObjectStorage, StorageError, claim_storage, parse_url
from vedette.adapters.durability.shard_copy import MAX_SMALL_PARTS, ShardCopy, restore_copy
from vedette.adapters.exchange.link_store import create_exchange_tables
from vedette.errors import ClusterError, UsageError

FILE = "vedette-w0-00000.warc.gz"


@pytest.fixture(scope="module")
def s3() -> Iterator[None]:
    """Start an S3-compatible server, and point the environment to it."""
    if find_weed() is None:
        pytest.skip(MISSING)
    with run_s3() as server, pytest.MonkeyPatch.context() as patch:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        yield


@pytest.fixture(params=["folder", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty storage of each kind."""
    if request.param == "folder":
        return (tmp_path / "storage").as_uri()
    request.getfixturevalue("s3")
    return f"s3://tests/{tmp_path.name}"


@pytest.fixture
def folder_url(tmp_path: Path) -> str:
    """Return the URL of an empty storage in a folder."""
    return (tmp_path / "storage").as_uri()


class Shard:
    """A data folder that is written to as in a crawl."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.state: State = open_state(folder, "test", 0.0)
        create_exchange_tables(self.state.db)

    def archive(self, data: bytes, file: str = FILE) -> None:
        """Append to an archive file, and acknowledge it."""
        path = self.folder / "warc" / file
        with path.open("ab") as out:
            out.write(data)
        self.state.db.execute("BEGIN")
        self.state.store.acknowledge_archive({file: path.stat().st_size}, 0.0)
        self.state.commit()

    def note(self, text: str) -> None:
        """Save something in the state."""
        self.state.db.execute("BEGIN")
        self.state.store.set_value("note", text)
        self.state.commit()


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    """A running shard."""
    one = Shard(tmp_path / "shard")
    yield one
    one.state.db.close()


def read_note(folder: Path) -> str:
    """Return the last value saved before the state was restored."""
    with closing(sqlite3.connect(folder / "state.db")) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (text,) = db.execute("SELECT value FROM life WHERE what = 'note'").fetchone()
        return str(text)


def test_alerts_are_copied_with_the_state(shard: Shard, url: str, tmp_path: Path) -> None:
    """New pages and sent messages are restored as of the last step, and the next owner continues with them."""
    page = NewPage(7, 1, 10.0, "feed", "https://a.test/feed", 20.0)
    with closing(ShardCopy(url, shard.folder, 0, 1, 0)) as copy, closing(AlertStore(shard.folder)) as alerts:
        copy.step()
        alerts.add_new_pages([page], (), (), 20.0)
        patiently(lambda: copy.step() is not None and has_alerts(url, 1, tmp_path / "probe"))
        assert copy.list_garbage() != []  # the copy before
    for epoch in (1, 2):
        restored = tmp_path / f"restored-{epoch}"
        restore_copy(url, 0, epoch, restored)
        with closing(AlertStore(restored)) as alerts:
            alerts.add_new_pages([page._replace(at_s=30.0)], (), (), 30.0)
            assert alerts.list_new_pages(9) == [page]
        with closing(ShardCopy(url, restored, 0, epoch + 1, epoch)) as copy:
            copy.step()


def has_alerts(url: str, epoch: int, folder: Path) -> bool:
    """Whether the copy of an epoch has a new page."""
    restore_copy(url, 0, epoch, folder)
    with closing(AlertStore(folder)) as alerts:
        return bool(alerts.list_new_pages(9))


def test_a_restored_shard_is_as_of_the_last_step(shard: Shard, url: str, tmp_path: Path) -> None:
    """State and archive are restored together; later changes are in neither."""
    with closing(ShardCopy(url, shard.folder, 3, 1, 0)) as copy:
        shard.archive(b"first")
        copy.step()
        shard.archive(b", second")
        shard.archive(b"other", "vedette-w1-00000.warc.gz")
        shard.note("copied")
        copy.step()
        shard.archive(b", third")
        shard.note("lost")
    restore_copy(url, 3, 1, tmp_path / "restored")
    assert read_note(tmp_path / "restored") == "copied"
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == b"first, second"
    again = open_state(tmp_path / "restored", "test", 0.0)
    assert again.notices == ()
    assert again.store.load_archive_lengths() == {FILE: 13, "vedette-w1-00000.warc.gz": 5}
    again.db.close()


def test_a_copy_of_a_busy_shard_is_sound(shard: Shard, folder_url: str, tmp_path: Path) -> None:
    """Copies made during writes are intact, and have everything committed before."""
    shard.state.db.execute("CREATE TABLE many (id INTEGER PRIMARY KEY, x)")
    is_over = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(shard.folder / "state.db", isolation_level=None, timeout=60.0)) as db:
            db.execute("PRAGMA wal_autocheckpoint = 0")  # as the coordinator of a copied shard does
            for number in count():
                if is_over.wait(0.005):
                    return
                rows = [((number * 20 + each) * 7919 % 20_000, "x" * (each * 40)) for each in range(20)]
                db.execute("BEGIN IMMEDIATE")
                db.executemany("INSERT OR REPLACE INTO many VALUES (?, ?)", rows)
                db.execute("COMMIT")

    writer = threading.Thread(target=write)
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        copy.step()
        writer.start()
        try:
            for number in range(10):
                for _ in range(6):
                    copy.step()
                restore_copy(folder_url, 3, 1, tmp_path / f"restored {number}")
        finally:
            is_over.set()
            writer.join()


def test_an_earlier_owner_changes_nothing_of_the_next(shard: Shard, url: str, tmp_path: Path) -> None:
    """Two owners copy at once, as after a lease was lost without noticing: each epoch has its own copy."""
    with closing(ShardCopy(url, shard.folder, 3, 1, 0)) as old:
        shard.archive(b"shared")
        shard.note("shared")
        old.step()
        restore_copy(url, 3, 1, tmp_path / "next")
        new_owner = Shard(tmp_path / "next")
        with closing(ShardCopy(url, new_owner.folder, 3, 2, 1)) as new:
            new_owner.note("new")
            new.step()
            shard.archive(b", late")
            shard.note("late")
            old.step()
            new_owner.archive(b"own", "vedette-w0-00001.warc.gz")
            new.step()
            new.delete(new.list_garbage())
        new_owner.state.db.close()
    restore_copy(url, 3, 2, tmp_path / "restored")
    assert read_note(tmp_path / "restored") == "new"
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == b"shared"
    assert (tmp_path / "restored" / "warc" / "vedette-w0-00001.warc.gz").read_bytes() == b"own"
    with pytest.raises(StorageError, match="no copy of shard 3 at epoch 1"):
        restore_copy(url, 3, 1, tmp_path / "other")


def test_the_next_epoch_stores_only_what_is_new(shard: Shard, folder_url: str) -> None:
    """An owner that has the folder reuses what its last epoch stored, and deletes that epoch's stream."""
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        shard.archive(b"first")
        copy.step()
    with closing(ShardCopy(folder_url, shard.folder, 3, 2, 1)) as copy:
        shard.note("second")
        copy.step()
        copy.delete(copy.list_garbage())
    storage = ObjectStorage(folder_url)
    archived = [one.key for one in storage.list("") if "/archive/" in one.key]
    assert archived == [f"shard-0003/0000000001/archive/{FILE}/0-5"]
    assert {one.key.split("/")[1] for one in storage.list("") if "/state-" in one.key} == {"0000000002"}


def test_many_small_parts_become_one(shard: Shard, folder_url: str, tmp_path: Path) -> None:
    """A slowly growing file is stored in few parts, and in a single one once the next file has begun."""
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        for number in range(MAX_SMALL_PARTS + 2):
            shard.archive(f"{number:04}".encode())
            copy.step()
        copy.delete(copy.list_garbage())
        grown = [one.key for one in ObjectStorage(folder_url).list("") if "/archive/" in one.key]
        shard.archive(b"next", "vedette-w0-00001.warc.gz")
        copy.step()
        copy.delete(copy.list_garbage())
        ended = [one.key for one in ObjectStorage(folder_url).list("") if "/archive/" in one.key]
    assert len(grown) < 4
    assert len(ended) == 2
    restore_copy(folder_url, 3, 1, tmp_path / "restored")
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == (shard.folder / "warc" / FILE).read_bytes()


def test_a_deleted_archive_file_leaves_the_copy_with_its_state(shard: Shard, folder_url: str, tmp_path: Path) -> None:
    """Later copies do not have what retention deletes, and a restored state does not refer to it."""
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        shard.archive(b"old")
        shard.archive(b"new", "vedette-w0-00001.warc.gz")
        copy.step()
        shard.state.db.execute("DELETE FROM archive WHERE file = ?", (FILE,))
        (shard.folder / "warc" / FILE).unlink()
        copy.step()
        copy.delete(copy.list_garbage())
    restore_copy(folder_url, 3, 1, tmp_path / "restored")
    assert [path.name for path in (tmp_path / "restored" / "warc").iterdir()] == ["vedette-w0-00001.warc.gz"]


def test_a_copy_has_what_was_written_without_a_replicator(shard: Shard, folder_url: str, tmp_path: Path) -> None:
    """Changes that left the write-ahead log while no replicator was running are in the next copy."""
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        shard.archive(b"first")
        copy.step()
        copy._stream._process.kill()
    shard.note("between")
    shard.state.db.executescript("CREATE TABLE many (x); BEGIN;")
    shard.state.db.executemany("INSERT INTO many VALUES (?)", [("x" * 500,)] * 2000)
    shard.state.commit()
    shard.state.db.close()
    shard.state.db = sqlite3.connect(shard.folder / "state.db", isolation_level=None)
    shard.state.db.execute("INSERT INTO many VALUES ('last')")
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as again:
        again.step()
        again.delete(again.list_garbage())
    restore_copy(folder_url, 3, 1, tmp_path / "restored")
    assert read_note(tmp_path / "restored") == "between"
    with closing(sqlite3.connect(tmp_path / "restored" / "state.db")) as db:
        assert db.execute("SELECT count(*) FROM many").fetchone() == (2001,)
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == b"first"


def test_a_storage_that_does_not_work_says_what_to_do(
    s3: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing bucket, an unreachable server, another cluster's storage and an invalid URL give one line each."""
    del s3
    claim_storage(f"s3://tests/{tmp_path.name}", "one")
    cases = [("s3://missing/x", "no such bucket: create it"), (f"s3://tests/{tmp_path.name}", "copies of cluster one")]
    for url, words in cases:
        with pytest.raises(ClusterError, match=words) as raised:
            claim_storage(url, "two")
        assert "\n" not in str(raised.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match="check --storage, AWS_ACCESS_KEY_ID") as raised:
        claim_storage("s3://tests/x", "two")
    assert "\n" not in str(raised.value)
    for url in ("tests", "s3:/tests", "http://a.test/"):
        with pytest.raises(UsageError, match="is not a storage URL: use s3://BUCKET/PREFIX"):
            parse_url(url)


def test_a_storage_with_holes_is_not_restored(shard: Shard, folder_url: str, tmp_path: Path) -> None:
    """A missing object makes the restore fail, instead of leaving a gap in the archive."""
    with closing(ShardCopy(folder_url, shard.folder, 3, 1, 0)) as copy:
        shard.archive(b"first")
        copy.step()
    shutil.rmtree(tmp_path / "storage" / "shard-0003" / "0000000001" / "archive")
    with pytest.raises(StorageError, match="restore the storage from a backup"):
        restore_copy(folder_url, 3, 1, tmp_path / "restored")
