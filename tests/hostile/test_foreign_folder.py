"""A data folder, backup or storage from someone else: nothing outside of it is read, changed or deleted."""

import gzip
import sqlite3
from collections.abc import Callable
from contextlib import closing
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from tests.data_folders import NOW_S, opened, write_sample

from vedette.adapters.archive.export import export_warc
from vedette.adapters.archive.warc_reader import read_answer
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.durability.object_storage import ObjectStorage, StorageError
from vedette.adapters.durability.shard_copy import ShardCopy, UnsoundManifest, restore_copy
from vedette.adapters.exchange.link_store import create_exchange_tables
from vedette.adapters.files.backup import create_backup, restore_backup
from vedette.cli.main import main
from vedette.engine.messages import ArchiveLocation
from vedette.errors import StoreCorrupt, StoreError

SECRET = b"not theirs" * 100
FILE = "vedette-w0-00000.warc.gz"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file next to the folders that none of them may touch."""
    path = tmp_path / "victim"
    path.write_bytes(SECRET)
    return path


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A data folder that someone else prepared."""
    folder = tmp_path / "theirs"
    write_sample(folder)
    return folder


def use_folder(folder: Path) -> None:
    """Open a folder for writing."""
    with lock_folder(folder):
        open_state(folder, "test", NOW_S).db.close()


def back_up(folder: Path) -> None:
    """Back up a folder next to it."""
    create_backup(folder, folder.with_name("backup"), lambda *_: None)


def export(folder: Path) -> None:
    """Export the archive of a folder."""
    export_warc(folder, BytesIO(), lambda *_: None)


@pytest.mark.parametrize("use", [use_folder, back_up, export])
@pytest.mark.parametrize("name", ["../../victim", "/{}/victim", "../warc/../../victim"])
def test_archive_files_elsewhere_are_refused(
    theirs: Path, victim: Path, use: Callable[[Path], None], name: str
) -> None:
    """A state whose archive has a file outside of the folder is refused before anything is done with that file."""
    with closing(sqlite3.connect(theirs / "state.db")) as db:
        db.execute("INSERT INTO archive VALUES (?, 10, 0)", (name.format(victim.parent),))
        db.commit()
    with pytest.raises(StoreCorrupt, match="restore a backup"):
        use(theirs)
    assert victim.read_bytes() == SECRET
    assert main(["check", "--data", str(theirs)]) == 1


@pytest.mark.parametrize("name", ["lock", "log", "sessions", "requests.db", "warc/vedette-w9-00000.warc.gz", "index/1"])
def test_links_are_refused(theirs: Path, victim: Path, name: str) -> None:
    """Files that lead elsewhere are not written to, and folders that do are not cleaned up."""
    (theirs / "index").mkdir(exist_ok=True)
    (theirs / "lock").unlink()
    (theirs / name).symlink_to(victim if "." in name or name == "lock" else victim.parent)
    with pytest.raises(StoreError, match=r"is a link to .*: replace it"):
        lock_folder(theirs)
    assert victim.read_bytes() == SECRET


def test_the_archive_may_be_on_another_disk(theirs: Path, tmp_path: Path) -> None:
    """The archive's folder may be a link, but links in it are refused."""
    (theirs / "warc").rename(tmp_path / "disk")
    (theirs / "warc").symlink_to(tmp_path / "disk")
    use_folder(theirs)
    (tmp_path / "disk" / FILE.replace("w0", "w9")).symlink_to(theirs / "state.db")
    with pytest.raises(StoreError, match="is a link"):
        use_folder(theirs)


def test_a_restored_link_is_refused(theirs: Path, victim: Path) -> None:
    """A link among a backup's archive files is not followed after a restore."""
    (theirs / "warc" / FILE.replace("w0", "w9")).symlink_to(victim)
    restored = theirs.with_name("restored")
    restore_backup(theirs, restored, lambda *_: None)
    with pytest.raises(StoreError, match="is a link"):
        use_folder(restored)
    assert victim.read_bytes() == SECRET


def test_a_bomb_in_the_archive_is_not_inflated(tmp_path: Path) -> None:
    """A record that expands a thousandfold is refused before it fills the memory."""
    member = gzip.compress(b"WARC/1.1\r\nWARC-Type: response\r\n\r\n" + bytes(1 << 28))
    (tmp_path / FILE).write_bytes(member)
    with pytest.raises(StoreCorrupt, match="larger than 134217728 bytes"):
        read_answer(tmp_path, ArchiveLocation(FILE, 0, len(member)))


@pytest.fixture
def storage(tmp_path: Path) -> ObjectStorage:
    """A storage with a copy of shard 3 at epoch 1."""
    url = (tmp_path / "storage").as_uri()
    with opened(tmp_path / "shard") as state:
        create_exchange_tables(state.db)
        (state.folder / "warc" / FILE).write_bytes(b"first")
        state.db.execute("BEGIN")
        state.store.acknowledge_archive({FILE: 5}, 0.0)
        state.commit()
        with closing(ShardCopy(url, state.folder, 3, 1, 0)) as copy:
            copy.step()
    return ObjectStorage(url)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("files", {"../../victim": [["shard-0003/0000000001/x", 10]]}),
        ("files", {"../../../victim": []}),
        ("files", {FILE: [["shard-0004/0000000001/archive/x", 10]]}),
        ("files", {FILE: [["shard-0003/0000000001/../../cluster", 10]]}),
        ("files", {FILE: [["shard-0003/0000000001/x", -10]]}),
        ("files", {FILE: ["x"]}),
        ("stream", "../../elsewhere"),
        ("transaction", -1),
        ("transaction", "one"),
        ("", b"no JSON \xff"),
        ("", b"[" * 100_000),
    ],
)
def test_a_forged_manifest_is_refused(
    storage: ObjectStorage, victim: Path, tmp_path: Path, field: str, value: object
) -> None:
    """Whatever a manifest lists, only archive files in the new folder are written, from this shard's objects."""
    key = "shard-0003/0000000001/manifest"
    manifest = msgspec.json.decode(storage.get(key) or b"")
    storage.put(key, value if isinstance(value, bytes) else msgspec.json.encode({**manifest, field: value}))
    with pytest.raises(UnsoundManifest, match="restore the storage from a backup"):
        restore_copy(storage.url, 3, 1, tmp_path / "restored")
    assert not (tmp_path / "restored").exists()
    assert victim.read_bytes() == SECRET
    # The owner of the folder stores everything again.
    with opened(tmp_path / "shard") as state, closing(ShardCopy(storage.url, state.folder, 3, 2, 1)) as copy:
        copy.step()
    restore_copy(storage.url, 3, 2, tmp_path / "restored")
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == b"first"


def test_an_oversized_object_does_not_fill_the_disk(storage: ObjectStorage, tmp_path: Path) -> None:
    """No more of an archive object is written than the manifest says."""
    (key,) = (one.key for one in storage.list("") if "/archive/" in one.key)
    storage.put(key, b"first" + bytes(1 << 26))
    restore_copy(storage.url, 3, 1, tmp_path / "restored")
    assert (tmp_path / "restored" / "warc" / FILE).read_bytes() == b"first"
    storage.put(key, b"cut")
    with pytest.raises(StorageError, match="only has part of"):
        restore_copy(storage.url, 3, 1, tmp_path / "again")


def test_foreign_objects_in_the_storage_stay(storage: ObjectStorage, tmp_path: Path) -> None:
    """Objects without an epoch, or of a later one, are neither deleted nor a problem."""
    foreign = ["shard-0003/notes", "shard-0003/x/y", "shard-0003/-1/manifest", "shard-0003/0000000009/manifest"]
    for key in foreign:
        storage.put(key, b"x")
    with opened(tmp_path / "shard") as state, closing(ShardCopy(storage.url, state.folder, 3, 2, 1)) as copy:
        copy.step()
        copy.delete(copy.list_garbage())
    assert set(foreign) <= {one.key for one in storage.list("shard-0003/")}
