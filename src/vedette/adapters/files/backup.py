"""Backup and restore of a data folder: copied while it is in use, restored into a new one.

A backup has ``format``, ``state.db`` as of one moment, the archive files as far as that state acknowledges them,
``record.db`` with everything logged by then, ``watch.db`` with alerts, ``ledger.db`` with the ad ledger, and ``lab``
with the lab's reports; the salt of visitor hashes is never copied. A file that will never be written to again is
hard-linked if the file system supports it: it then takes no space, and neither side ever changes it in place.
Everything is created under another name (``DIR.partial``) and renamed when it is complete and on disk, so DIR is either
complete or does not exist.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vedette.adapters.ads.ledger_store import LEDGER_FILE, LEDGER_NAME
from vedette.adapters.alerts.alert_store import ALERTS_FILE, ALERTS_NAME
from vedette.adapters.archive.warc_writer import find_growing, locate_archive
from vedette.adapters.crawl_store.data_folder import check_format, explain_errors, read_state
from vedette.adapters.event_store.schema import EVENTS_FILE, EVENTS_NAME
from vedette.adapters.event_store.search_log import LOG_DIR, list_logs
from vedette.adapters.event_store.store import EventStore
from vedette.adapters.files.atomic import sync_folder
from vedette.adapters.files.sqlite_file import SqliteFile
from vedette.errors import StoreCorrupt, StoreError, UsageError

MARKER = "vedette-copy-in-progress"
STEP_PAGES = 2000
MAX_ATTEMPTS = 5
REPORTS_DIR = "lab"
# Files that refer to others come first: what they refer to existed before them.
REPORT_KINDS = ("json", "md", "svg")

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class BackupResult:
    """Result of a backup: what was copied, how many archive files are ``linked``, and what is ``missing``, in words."""

    pages: int
    files: int
    linked: int
    size_bytes: int
    missing: tuple[str, ...] = ()


def create_backup(folder: Path, to: Path, progress: Progress) -> BackupResult:
    """Back up a data folder that may be in use, with everything acknowledged at that time."""
    if to.exists():
        raise UsageError(f"{to} already exists: choose a new folder, such as {to}-2")
    if folder.resolve() in to.resolve().parents:
        raise UsageError(f"{to} is inside the data folder: choose a folder outside of {folder}")
    with explain_errors(to), _fill_atomically(to) as partial:
        (partial / "warc").mkdir()
        lengths = _copy_snapshot(folder, partial, progress)
        shutil.copyfile(folder / "format", partial / "format")
        lost = [fault for file in (ALERTS_FILE, LEDGER_FILE) for fault in _copy_database(file, folder, partial)]
        lost += [*_copy_event_store(folder, partial), *_copy_reports(folder, partial)]
        return _summarize(partial, lengths, lost=lost)


def restore_backup(backup: Path, folder: Path, progress: Progress) -> BackupResult:
    """Restore a backup into a new data folder; an existing one is never touched."""
    with explain_errors(backup):
        if check_format(backup) is None or not (backup / "state.db").is_file():
            raise UsageError(
                f"{backup} is not a backup: it has no format file or no state.db. Choose a folder created by vedette "
                "backup"
            )
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"{folder} is not empty, and restore does not overwrite existing data; choose a new folder with --data"
            )
    with explain_errors(folder), _fill_atomically(folder) as partial:
        (partial / "warc").mkdir()
        files = sorted(path for path in (backup / "warc").glob("*.warc.gz") if path.is_file())
        for number, path in enumerate(files, 1):
            _link_or_copy(path, partial / "warc" / path.name, path.stat().st_size, final=True)
            progress("archive files", number, len(files))
        for name in (
            "state.db",
            "format",
            *(name for name in (EVENTS_NAME, ALERTS_NAME, LEDGER_NAME) if (backup / name).is_file()),
        ):
            shutil.copyfile(backup / name, partial / name)
        return _summarize(partial, _read_lengths(partial / "state.db"), lost=_copy_reports(backup, partial))


@contextmanager
def _fill_atomically(folder: Path) -> Iterator[Path]:
    """Create a folder to fill with a backup, named when it is complete; delete the leftovers of an earlier attempt."""
    folder = folder.resolve()
    partial = folder.with_name(f"{folder.name}.partial")
    if partial.exists():
        if not (partial / MARKER).exists():
            raise UsageError(f"{partial} already exists: rename it, or choose another folder")
        shutil.rmtree(partial)
    partial.mkdir(parents=True, mode=0o700)
    try:
        (partial / MARKER).touch()
        yield partial
        (partial / MARKER).unlink()
        _sync_files(partial)
        partial.rename(folder)
        sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _copy_snapshot(folder: Path, partial: Path, progress: Progress) -> dict[str, int]:
    """Back up state and archive of one snapshot; try a later one if retention deletes a file in between."""
    for _ in range(MAX_ATTEMPTS):
        _copy_state(folder, partial / "state.db", progress)
        lengths = _read_lengths(partial / "state.db")
        gone = _copy_archive(folder / "warc", partial / "warc", lengths, progress)
        if not gone or not _has_retired(folder, gone):
            for path in (partial / "warc").iterdir():
                if path.name not in lengths:
                    path.unlink()
            return lengths
    raise StoreError(f"the archive in {folder} kept changing during the backup: try again when the load is lower")


def _has_retired(folder: Path, files: list[str]) -> bool:
    """Check whether the state dropped one of these archive files during the backup; otherwise they are lost."""
    with read_state(folder) as db:
        lengths = dict(db.execute("SELECT file, length FROM archive"))
    return any(file not in lengths for file in files)


def _copy_state(folder: Path, to: Path, progress: Progress) -> None:
    """Back up one snapshot of ``state.db``: an open read transaction holds it while others write."""
    to.unlink(missing_ok=True)
    with read_state(folder) as db, closing(sqlite3.connect(to)) as copy:
        db.backup(copy, pages=STEP_PAGES, progress=lambda _, left, total: progress("state", total - left, total))
        copy.execute("PRAGMA journal_mode = DELETE")


def _copy_database(file: SqliteFile, folder: Path, partial: Path) -> list[str]:
    """Back up a database beside the state; return what could not be copied, in words.

    It is copied after the state, so that it has what the state has dropped.
    """
    try:
        with file.read(folder) as db:
            if db is not None:
                (partial / file.name).touch(mode=0o600)
                with closing(sqlite3.connect(partial / file.name)) as copy:
                    db.backup(copy)
                    copy.execute("PRAGMA journal_mode = DELETE")
    except StoreCorrupt:
        return _leave_out(file, partial)
    return []


def _leave_out(file: SqliteFile, partial: Path) -> list[str]:
    for path in partial.glob(f"{file.name}*"):
        path.unlink()
    return [f"{file.name} cannot be read and is left out"]


def _copy_event_store(folder: Path, partial: Path) -> list[str]:
    """Back up the event store with the search logs ingested; return what could not be copied, in words.

    The logs are copied first: lines ingested meanwhile are then in both, which counts once, and never in neither.
    """
    names = list_logs(folder)
    if not names and not (folder / EVENTS_NAME).exists():
        return []
    try:
        (partial / LOG_DIR).mkdir()
        for name in names:
            with suppress(FileNotFoundError):  # it was just folded
                shutil.copyfile(folder / LOG_DIR / name, partial / LOG_DIR / name)
        lost = _copy_database(EVENTS_FILE, folder, partial)
        if not lost:
            _ingest_copied_logs(partial)
    except StoreCorrupt:
        lost = _leave_out(EVENTS_FILE, partial)
    finally:
        shutil.rmtree(partial / LOG_DIR)
    return lost


def _ingest_copied_logs(partial: Path) -> None:
    with closing(EventStore(partial)) as store:
        store.ingest_all_logs()
    with closing(sqlite3.connect(partial / EVENTS_NAME)) as db:
        db.execute("DELETE FROM folded")  # these files are not there any more
        db.commit()
        db.execute("PRAGMA journal_mode = DELETE")


def _copy_reports(source: Path, target: Path) -> list[str]:
    """Back up the lab's reports, plain files only; return what could not be copied, in words."""
    lost = []
    for path in [path for kind in REPORT_KINDS for path in sorted((source / REPORTS_DIR).glob(f"lab-*.{kind}"))]:
        if path.is_symlink() or not path.is_file():
            continue
        (target / REPORTS_DIR).mkdir(exist_ok=True)
        try:
            shutil.copyfile(path, target / REPORTS_DIR / path.name)
        except FileNotFoundError:  # it just disappeared
            continue
        except PermissionError:
            lost.append(f"{REPORTS_DIR}/{path.name} cannot be read and is left out")
    return lost


def _read_lengths(path: Path) -> dict[str, int]:
    """Read the acknowledged length of each archive file to back up; an old format has no archive."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)) as db:
        if not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'archive'").fetchone():
            return {}
        return dict(db.execute("SELECT file, length FROM archive ORDER BY file"))


def _copy_archive(source: Path, target: Path, lengths: dict[str, int], progress: Progress) -> list[str]:
    """Back up the archive files and return those that are gone."""
    gone, done, total = [], 0, sum(lengths.values())
    open_files = find_growing(lengths)
    for file, length in lengths.items():
        here, there = locate_archive(source, file), target / file
        if not there.exists() or there.stat().st_size < length:
            there.unlink(missing_ok=True)
            if not _link_or_copy(here, there, length, final=file not in open_files):
                gone.append(file)
        done += length
        progress("archive", done, total)
    return gone


def _link_or_copy(source: Path, target: Path, length: int, *, final: bool) -> bool:
    """Hard-link a final file of this length into the backup, else copy its beginning; return whether it existed."""
    try:
        with source.open("rb") as file:
            if final and os.fstat(file.fileno()).st_size == length and _try_link(source, target):
                return True
            with target.open("xb") as copy:
                _copy_bytes(file.fileno(), copy.fileno(), length)
            shutil.copystat(source, target)
    except FileNotFoundError:
        return False
    return True


def _try_link(source: Path, target: Path) -> bool:
    try:
        target.hardlink_to(source)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        return False
    return True


def _copy_bytes(source: int, target: int, length: int) -> None:
    while length > 0 and (sent := os.sendfile(target, source, None, min(length, 1 << 24))):
        length -= sent


def _summarize(partial: Path, lengths: dict[str, int], lost: Iterable[str] = ()) -> BackupResult:
    """Summarize a backup as it is on disk; ``lost`` is known to be missing."""
    sizes = {path.name: path.stat() for path in (partial / "warc").iterdir()}
    with closing(sqlite3.connect(f"{(partial / 'state.db').resolve().as_uri()}?immutable=1", uri=True)) as db:
        (pages,) = db.execute("SELECT count(*) FROM page").fetchone()
    missing = (
        f"{file} has {sizes[file].st_size if file in sizes else 0} of {length} bytes"
        for file, length in lengths.items()
        if file not in sizes or sizes[file].st_size < length
    )
    return BackupResult(
        pages,
        len(sizes),
        sum(stat.st_nlink > 1 for stat in sizes.values()),
        sum(path.stat().st_size for path in (*partial.glob("*.db"), *partial.glob(f"{REPORTS_DIR}/*")))
        + sum(stat.st_size for stat in sizes.values()),
        (*missing, *lost),
    )


def _sync_files(folder: Path) -> None:
    folders = [path for path in (folder / "warc", folder / REPORTS_DIR) if path.is_dir()]
    for path in [path for each in (folder, *folders) for path in each.iterdir()]:
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())
    for each in (*folders, folder):
        sync_folder(each)
