"""Index generations: one folder each, so that a new one can be built while the old one serves.

index/current   the number of the serving generation
index/7/        one generation: tantivy/ (the index), and its side files (``page_table``, ``indexer_store``)
index/7/seq     the last queued change that is durable in it
index/7/complete  exists once it has all pages
index/7/repairs   exists if it replaces a damaged one: the number of attempts so far, and what was wrong
index/7/damaged   exists if a reader found it damaged; its writer then puts it aside
index/6.damaged/  a damaged generation that was put aside, until its replacement is complete
index/7/lock    held by its writer
"""

import fcntl
import json
import shutil
import struct
import time
import zlib
from collections.abc import Iterable
from contextlib import suppress
from os import stat_result
from pathlib import Path
from typing import IO, Any

from vedette.adapters.files.atomic import replace_text
from vedette.errors import StoreBusy, StoreCorrupt

RETRY_S, RETRIES = 0.02, 25
MAX_REPAIRS = 3

META_FILE = "meta.json"  # of the Tantivy index
_SEGMENT_KINDS = ("idx", "pos", "term", "store", "fast", "fieldnorm")
_FOOTER_END = struct.Struct("<II")  # the length of the footer before it, and a number by which it is known
_FOOTER_MAGIC = 1337
_CHECK_BYTES = 1 << 20
MAX_CHECKS = 5


class Generations:
    """The index generations of a data folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "index"

    def current(self) -> Path | None:
        """Return the index generation that serves; None if there is none yet."""
        with suppress(FileNotFoundError, ValueError):
            path = self.folder / str(int((self.folder / "current").read_text("utf-8")))
            return path if path.is_dir() else None
        return None

    def begin(self) -> Path:
        """Begin a new index generation, not in use yet; delete abandoned ones."""
        current = self.current()
        serving = int(current.name) if current else 0
        self._remove(number for number in self._list_numbers() if number > serving)
        aside = [int(path.name.partition(".")[0]) for path in self._list_aside()]
        number = max((*self._list_numbers(), *aside), default=0) + 1  # never one again that a reader may have open
        path = self.folder / str(number)
        (path / "tantivy").mkdir(parents=True, mode=0o700)
        return path

    def report_damage(self, generation: Path, damage: str) -> None:
        """Report an index generation as damaged to its writer, from a reader that checked it."""
        with suppress(OSError):
            replace_text(generation / "damaged", f"{damage}\n")

    def read_report(self, generation: Path) -> str:
        """Return what a reader found damaged in an index generation; empty if no one found anything."""
        with suppress(OSError):
            return (generation / "damaged").read_text("utf-8", "replace").strip()
        return ""

    def put_aside(self, generation: Path, damage: str) -> Path:
        """Put a damaged index generation aside and begin the one that replaces it, which serves while it is built.

        Where that was done ``MAX_REPAIRS`` times and none became complete, it is not the files that are at fault:
        ``StoreCorrupt``.
        """
        tries = 0 if self.is_complete(generation) else self._count_repairs(generation)
        if tries >= MAX_REPAIRS:
            raise StoreCorrupt(
                f"{generation} is damaged ({damage}), as were the last {tries} that were built: check disk and memory"
            )
        self.remove_aside()
        generation.rename(generation.with_name(f"{generation.name}.damaged"))
        replacement = self.begin()
        replace_text(replacement / "repairs", f"{tries + 1} {damage}\n")
        self.activate(replacement)
        return replacement

    def remove_aside(self) -> None:
        """Delete damaged index generations that were put aside."""
        for path in self._list_aside():
            shutil.rmtree(path, ignore_errors=True)

    def get_repair_reason(self, generation: Path) -> str:
        """Return which damage an incomplete index generation repairs; empty if none, or it is complete."""
        if self.is_complete(generation):
            return ""
        with suppress(OSError):
            return (generation / "repairs").read_text("utf-8", "replace").partition(" ")[2].strip()
        return ""

    def _count_repairs(self, generation: Path) -> int:
        with suppress(OSError, ValueError):
            return int((generation / "repairs").read_text("utf-8", "replace").partition(" ")[0])
        return 0

    def _list_aside(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("*.damaged") if path.name.partition(".")[0].isdigit())

    def activate(self, generation: Path) -> None:
        """Make this index generation the one that serves."""
        replace_text(self.folder / "current", f"{generation.name}\n")

    def remove_old(self) -> None:
        """Delete index generations that no longer serve."""
        current = self.current()
        serving = int(current.name) if current else 0
        self._remove(number for number in self._list_numbers() if number < serving)

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            path = self.folder / str(number)
            with suppress(FileNotFoundError):  # it is gone already
                lock = self._try_lock(path)
                if lock is not None:
                    shutil.rmtree(path, ignore_errors=True)
                    lock.close()

    def lock(self, generation: Path) -> IO[str]:
        """Lock an index generation as its one writer; wait briefly for a process that only checks the lock."""
        for _ in range(RETRIES):
            lock = self._try_lock(generation)
            if lock is not None:
                return lock
            time.sleep(RETRY_S)  # another process holds it briefly; there is no notification when it is released
        raise StoreBusy(f"{generation} is being written by another vedette process: stop it, or wait until it ends")

    def save_seq(self, generation: Path, seq: int) -> None:
        """Save up to which sequence number queued changes are durable in an index generation."""
        replace_text(generation / "seq", f"{seq}\n")

    def mark_complete(self, generation: Path) -> None:
        """Mark an index generation as complete: it has seen all pages."""
        (generation / "complete").touch()
        self.remove_aside()

    def is_complete(self, generation: Path) -> bool:
        """Check whether an index generation has seen all pages, or is still being built."""
        return (generation / "complete").exists()

    def min_indexed_seq(self) -> int | None:
        """Return the last queued change that no index generation needs any more; None without a generation.

        An abandoned one needs none.
        """
        current = self.current()
        others = [self.folder / str(number) for number in self._list_numbers()]
        needing = [path for path in others if path == current or self._is_locked(path)]
        return min(map(_read_seq, needing), default=None)

    def _list_numbers(self) -> list[int]:
        with suppress(FileNotFoundError):
            return sorted(int(path.name) for path in self.folder.iterdir() if path.name.isdigit())
        return []

    def _is_locked(self, generation: Path) -> bool:
        """Check whether a process is writing an index generation; not if it was removed meanwhile."""
        try:
            lock = self._try_lock(generation, "r")
        except FileNotFoundError:
            return False
        if lock is not None:
            lock.close()
        return lock is None

    def _try_lock(self, generation: Path, mode: str = "a") -> IO[str] | None:
        lock: IO[str] = (generation / "lock").open(mode)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            return None
        return lock


def _read_seq(generation: Path) -> int:
    with suppress(FileNotFoundError, ValueError):
        return int((generation / "seq").read_text("utf-8"))
    return 0


def find_index_damage(folder: Path) -> str:
    """Return what is wrong with the files of the Tantivy index, by their checksums; empty if nothing is.

    A merge replaces files at any time, so files that are missing are looked for again in the next version.
    """
    for _ in range(MAX_CHECKS):
        version = read_version(folder) if (folder / META_FILE).exists() else None
        damage = _check_files(folder)
        if not damage or version is None or version == read_version(folder):
            return damage
    return ""


def _check_files(folder: Path) -> str:
    try:
        meta = json.loads((folder / META_FILE).read_bytes())
        names = [name for segment in meta["segments"] for name in _list_segment_files(segment)]
    except FileNotFoundError:
        return "" if not any(folder.glob("*.idx")) else f"{META_FILE} is missing"
    except (ValueError, TypeError, LookupError, AttributeError):
        return f"{META_FILE} cannot be read"
    return next((f"{name} {fault}" for name in names if (fault := _check_file(folder / name))), "")


def _list_segment_files(segment: dict[str, Any]) -> list[str]:
    stem = segment["segment_id"].replace("-", "")
    deleted = [f"{stem}.{segment['deletes']['opstamp']}.del"] if segment["deletes"] else []
    return [*(f"{stem}.{kind}" for kind in _SEGMENT_KINDS), *deleted]


def _check_file(path: Path) -> str:
    """Check one file of the Tantivy index: its last bytes are a footer with the checksum of the others."""
    try:
        size, checksum = path.stat().st_size, 0
        with path.open("rb") as file:
            file.seek(max(size - _FOOTER_END.size, 0))
            length, magic = _FOOTER_END.unpack(file.read())
            body = size - _FOOTER_END.size - length
            if magic != _FOOTER_MAGIC or body < 0:
                return "is cut off"
            file.seek(body)
            expected = json.loads(file.read(length))["crc"]
            file.seek(0)
            while body > 0 and (data := file.read(min(body, _CHECK_BYTES))):
                checksum, body = zlib.crc32(data, checksum), body - len(data)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    except (struct.error, ValueError, TypeError, LookupError):
        return "is cut off"
    return "" if checksum == expected else "has a wrong checksum"


def read_version(folder: Path) -> tuple[int, int, int]:
    """Return the version of the Tantivy index on disk, which changes with each commit or merge."""
    about: stat_result = (folder / META_FILE).stat()
    return about.st_ino, about.st_mtime_ns, about.st_size
