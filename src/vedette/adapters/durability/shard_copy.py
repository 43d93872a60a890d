"""Copy of a shard in object storage: state by Litestream, archive in parts, alerts whole, and a manifest of them.

shard-0003/0000000007/state-1a2b/…      the stream of ``state.db`` at epoch 7
shard-0003/0000000007/archive/FILE/…    parts of archive files, named by their first and last byte
shard-0003/0000000007/alerts/…          ``watch.db`` at one moment after that of the state
shard-0003/0000000007/manifest          the transaction up to which the copy is complete, and the parts of all files

An epoch writes only below its own prefix, so an owner that lost its lease changes nothing of the next one. The manifest
is written after what it names. It has every archive file that the state refers to at its transaction, so a restored
shard is consistent: what was fetched later is fetched again.
"""

import re
import secrets
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from itertools import accumulate
from pathlib import Path

import msgspec

from vedette.adapters.alerts.alert_store import ALERTS_NAME
from vedette.adapters.archive.warc_writer import find_growing, locate_archive, parse_file_name
from vedette.adapters.durability.litestream import Litestream, begin_stream, restore
from vedette.adapters.durability.object_storage import ObjectStorage, StorageError
from vedette.adapters.exchange.link_store import LinkStore, Position

DATABASE = "state.db"
# How many times longer the pause after a copy of the alerts is than the copy took.
ALERTS_REST_FACTOR = 20.0
# Small parts at the end of a growing file are merged when there are this many.
MAX_SMALL_PARTS = 32
SMALL_PART_BYTES = 8 << 20


_STREAM = re.compile(r"state-[0-9a-f]{8}")
_KEY = re.compile(r"shard-(\d{4})/(\d{10})/(?!.*\.\.)")


class UnsoundManifest(StorageError):
    """Storage error: a manifest that no copy of this shard could have."""


class Part(msgspec.Struct, array_like=True, frozen=True):
    """A part of an archive file: the key of its object, and its length."""

    key: str
    length: int


class Manifest(msgspec.Struct, frozen=True):
    """What makes up a shard's copy: the stream of its state, the last transaction, and the parts of the archive.

    ``format`` is the format of the data folder, and ``alerts`` the key of its new pages and alerts, or empty.
    """

    stream: str
    transaction: int = 0
    format: str = ""
    files: dict[str, list[Part]] = {}
    alerts: str = ""

    def list_keys(self) -> set[str]:
        """List the objects that the copy needs in addition to the stream of its state."""
        return {part.key for parts in self.files.values() for part in parts} | {self.alerts}


class ShardCopy:
    """The copy of a running shard at its owner's epoch; ``earlier`` is the epoch of the previous copy, or 0."""

    def __init__(self, url: str, folder: Path, shard: int, epoch: int, earlier: int) -> None:
        self._storage, self._folder, self._shard, self._epoch = ObjectStorage(url), folder.resolve(), shard, epoch
        self._prefix = _build_prefix(shard, epoch)
        self._manifest = self._begin(self._load_earlier(epoch) or self._load_earlier(earlier))
        begin_stream(self._folder, DATABASE)
        target = f"{self._storage.url}/{self._prefix}/{self._manifest.stream}"
        self._stream = Litestream(self._folder, DATABASE, target)
        self._alerts_version = -1
        self._alerts_next_s = float("-inf")
        self._alerts: sqlite3.Connection | None = None

    def step(self) -> Mapping[int, Position]:
        """Bring the copy up to date; return up to which position it has the links of each other shard."""
        uri = f"{(self._folder / DATABASE).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
            positions, before = LinkStore(db).get_positions(), _read_lengths(db)
            transaction = self._stream.sync()
            after = _read_lengths(db)
        files = dict(self._manifest.files)
        for file, length in {**before, **after}.items():
            files[file] = self._upload(file, files.get(file, []), length, is_growing=file in find_growing(after))
        kept = {file: parts for file, parts in files.items() if file in before or file in after}
        format_ = (self._folder / "format").read_text("utf-8")
        manifest = Manifest(self._manifest.stream, transaction, format_, kept, self._copy_alerts())
        if manifest != self._manifest:
            self._storage.put(f"{self._prefix}/manifest", msgspec.json.encode(manifest))
            self._manifest = manifest
        return positions

    def list_garbage(self) -> list[str]:
        """List the objects of this shard that its copy does not need, such as those of earlier epochs."""
        needed = self._manifest.list_keys()
        own = (f"{self._prefix}/{self._manifest.stream}/", f"{self._prefix}/manifest")
        found = (one.key for one in self._storage.list(f"{_build_shard_prefix(self._shard)}/"))
        unneeded = (key for key in found if key not in needed and not key.startswith(own))
        return [key for key in unneeded if _parse_epoch(key) in range(1, self._epoch + 1)]

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects that no copy needs."""
        self._storage.delete(keys)

    def close(self) -> None:
        """Stop copying."""
        self._stream.close()
        if self._alerts is not None:
            self._alerts.close()

    def _copy_alerts(self) -> str:
        """Store new pages and alerts if they have changed; return the key of the newest copy.

        The database is copied whole, because several processes write to it. The longer that takes, the less often it is
        done.
        """
        path, began_s = self._folder / ALERTS_NAME, time.monotonic()
        if not path.exists() or began_s < self._alerts_next_s:
            return self._manifest.alerts
        if self._alerts is None:
            self._alerts = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        (version,) = self._alerts.execute("PRAGMA data_version").fetchone()
        if version == self._alerts_version:
            return self._manifest.alerts
        key = f"{self._prefix}/alerts/{secrets.token_hex(4)}"
        with (
            tempfile.TemporaryDirectory(prefix=".alerts-", dir=self._folder) as place,
            closing(sqlite3.connect(f"{place}/copy")) as copy,
        ):
            self._alerts.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            self._storage.put(key, Path(place, "copy").read_bytes())
        ended_s = time.monotonic()
        self._alerts_version, self._alerts_next_s = version, ended_s + ALERTS_REST_FACTOR * (ended_s - began_s)
        return key

    def _load_earlier(self, epoch: int) -> Manifest | None:
        """Load an earlier manifest; without a valid one, everything is stored again."""
        with suppress(UnsoundManifest):
            return _load_manifest(self._storage, self._shard, epoch)
        return None

    def _begin(self, earlier: Manifest | None) -> Manifest:
        """Begin a copy with the previous copy's archive files that are in the folder: they are not stored again."""
        files = earlier.files if earlier is not None else {}
        kept = {file: parts for file, parts in files.items() if self._has(file, parts)}
        return Manifest(f"state-{secrets.token_hex(4)}", files=kept)

    def _has(self, file: str, parts: list[Part]) -> bool:
        """Check whether the data folder has a stored file; if it does, its bytes are the same."""
        path = locate_archive(self._folder / "warc", file)
        return path.exists() and path.stat().st_size >= sum(part.length for part in parts)

    def _upload(self, file: str, parts: list[Part], length: int, *, is_growing: bool) -> list[Part]:
        """Store the new bytes of an archive file; merge small parts, and merge all parts once the file is complete."""
        stored = sum(part.length for part in parts)
        if length <= stored and (is_growing or len(parts) <= 1):
            return parts
        kept = _choose_kept(parts) if is_growing else 0
        start = sum(part.length for part in parts[:kept])
        end = max(length, stored)
        key = f"{self._prefix}/archive/{file}/{start}-{end}"
        try:
            self._storage.put_range(key, locate_archive(self._folder / "warc", file), start, end)
        except FileNotFoundError:
            raise StorageError(f"{file} was deleted while it was being copied: trying again") from None
        return [*parts[:kept], Part(key, end - start)]


def restore_copy(url: str, shard: int, epoch: int, folder: Path) -> None:
    """Restore the copy of a shard at an epoch to a new folder, either completely or not at all."""
    storage = ObjectStorage(url)
    manifest = _load_manifest(storage, shard, epoch)
    if manifest is None:
        raise StorageError(f"{url} has no copy of shard {shard} at epoch {epoch}: restore the storage from a backup")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    (folder / "warc").mkdir()
    target = f"{storage.url}/{_build_prefix(shard, epoch)}/{manifest.stream}"
    restore(target, manifest.transaction, folder.resolve() / DATABASE)
    for file, parts in manifest.files.items():
        path = locate_archive(folder / "warc", file)
        path.touch()
        with suppress(FileNotFoundError):
            for part in parts:
                storage.append_to(path, part.key, part.length)
        if path.stat().st_size != sum(part.length for part in parts):
            raise StorageError(f"{url} only has part of {file} for shard {shard}: restore the storage from a backup")
    if manifest.alerts:
        alerts = storage.get(manifest.alerts)
        if alerts is None:
            raise StorageError(f"{url} has no alerts for shard {shard}: restore the storage from a backup")
        (folder / ALERTS_NAME).write_bytes(alerts)
    (folder / "format").write_text(manifest.format, "utf-8")


def _choose_kept(parts: list[Part]) -> int:
    """Return how many parts to keep when bytes are added: all, or all except the small ones at the end.

    >>> large, small = Part("a", 9 << 20), Part("b", 10)
    >>> _choose_kept([large, *[small] * 31]), _choose_kept([large, *[small] * 32])
    (32, 1)
    """
    sizes = accumulate(part.length for part in reversed(parts))
    small = sum(size < SMALL_PART_BYTES for size in sizes)
    return len(parts) - small if small >= MAX_SMALL_PARTS else len(parts)


def _read_lengths(db: sqlite3.Connection) -> dict[str, int]:
    return dict(db.execute("SELECT file, length FROM archive WHERE length > 0"))


def _load_manifest(storage: ObjectStorage, shard: int, epoch: int) -> Manifest | None:
    key = f"{_build_prefix(shard, epoch)}/manifest"
    found = storage.get(key)
    if found is None:
        return None
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        manifest = msgspec.json.decode(found, type=Manifest)
        if _is_sound(manifest, shard):
            return manifest
    raise UnsoundManifest(f"{storage.url}/{key} cannot be read: restore the storage from a backup")


def _is_sound(manifest: Manifest, shard: int) -> bool:
    """Check that a manifest only names objects that copies of this shard have: someone else may have written it."""
    parts = [part for parts in manifest.files.values() for part in parts]
    return (
        _STREAM.fullmatch(manifest.stream) is not None
        and manifest.transaction >= 0
        and all(parse_file_name(file) for file in manifest.files)
        and all(part.length >= 0 and _parse_epoch(part.key) and _parse_shard(part.key) == shard for part in parts)
    )


def _parse_shard(key: str) -> int | None:
    found = _KEY.match(key)
    return int(found[1]) if found else None


def _parse_epoch(key: str) -> int:
    """Return the epoch that an object belongs to, or 0 if it is not part of a copy.

    >>> _parse_epoch("shard-0003/0000000007/manifest"), _parse_epoch("shard-0003/notes"), _parse_epoch("../secret")
    (7, 0, 0)
    """
    found = _KEY.match(key)
    return int(found[2]) if found else 0


def _build_prefix(shard: int, epoch: int) -> str:
    return f"{_build_shard_prefix(shard)}/{epoch:010}"


def _build_shard_prefix(shard: int) -> str:
    return f"shard-{shard:04}"
