"""Migrations: upgrade data folders of older formats; a kill at any moment leaves the old or the new one intact.

Format 3 added the tables of page content, format 4 those of search, format 5 operator actions with undo and unlisted
hosts, format 6 the memory of refresh policies, format 7 discoveries and alerts, format 8 ads, format 9 identities of
near-duplicates and retries of failed URLs, format 10 advertiser budgets. Missing tables are created; failed URLs get
another try, content fills as pages are fetched again, refresh memory within an hour, and the index is built from the
archive. The state as it was is kept as ``state-format-N.db``, so that the version that wrote it can be used again.

Format 1 stored page bodies in the database and had no sites, hosts or archive. The new state is built beside the old
one in ``state.new.db``, in one transaction, with the bodies in an archive file; then the files are renamed:

1. the old ``state.db`` becomes ``state-format-1.db`` (without such a file, building starts over),
2. ``state.new.db`` becomes ``state.db``,
3. ``format`` says 2.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.store import CrawlStore, create_tables
from vedette.adapters.files.atomic import replace_text, sync_folder
from vedette.adapters.url_store.rows import create_url_tables
from vedette.adapters.url_store.store import UrlStore
from vedette.discover.urls.scope import SiteIndex
from vedette.engine.messages import FetchSuccess, FetchTask
from vedette.engine.ports import LinkBatch
from vedette.errors import StoreCorrupt
from vedette.model import Refusal, origin_of, partition_of

# The current format.
NEWEST_FORMAT = 10
_BATCH = 5000
_LIMIT_BYTES = 1 << 30
_WRITER = "format1"
_FRONTS = 8
# Columns that later formats added to existing tables.
_ADDED = (
    ("content", "private", "TEXT NOT NULL DEFAULT ''"),
    ("content", "identity", "BLOB NOT NULL DEFAULT x''"),
    ("action", "who", "TEXT NOT NULL DEFAULT ''"),
    ("action", "undo", "TEXT"),
    ("action", "undone_s", "REAL"),
    ("advertiser", "budget", "TEXT NOT NULL DEFAULT ''"),
)
# Before format 9, failed URLs were never retried unless they had been fetched before.
_RETRY_FAILED = (
    "INSERT OR IGNORE INTO retry SELECT url_id, 1, at_s, at_s FROM note WHERE NOT EXISTS "
    "(SELECT 1 FROM page WHERE id = url_id) AND NOT EXISTS "
    "(SELECT 1 FROM json_each(?) WHERE substr(why, 1, length(value)) = value)"
)

_PAGES = (
    "SELECT id, url, depth, status, fetched_s, title, links, body, content_type, etag, last_modified, location "
    "FROM page JOIN url USING (id) ORDER BY id"
)


def upgrade_folder(folder: Path, number: int | None) -> list[str]:
    """Upgrade a locked data folder of an older format; return notices for the operator."""
    notices = [migrate_format_1(folder)] if number == 1 else []
    if number is not None and number in range(1, NEWEST_FORMAT):
        notices += [_keep_old_state(folder, number)] if number > 1 else []
        with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            create_tables(db)
            for table, column, kind in _ADDED:
                if column not in [row[1] for row in db.execute(f"PRAGMA table_info({table})")]:
                    db.execute(f"ALTER TABLE {table} ADD COLUMN {column} {kind}")
            if number < 9:
                db.execute(_RETRY_FAILED, (json.dumps([str(refusal) for refusal in Refusal]),))
            CrawlStore(db).create_secret()
            db.execute("COMMIT")
        write_format(folder, NEWEST_FORMAT)
    return notices


def _keep_old_state(folder: Path, number: int) -> str:
    """Copy the state of an older format before it is upgraded; return what happened, in one line."""
    saved, copy = folder / f"state-format-{number}.db", folder / "state.copy.db"
    if not saved.exists():
        copy.unlink(missing_ok=True)
        with closing(sqlite3.connect(folder / "state.db", isolation_level=None)) as db:
            db.execute("VACUUM INTO ?", (str(copy),))
        copy.rename(saved)
        sync_folder(folder)
    return f"{folder} had format {number} and was upgraded (the old state is in {saved.name}, which you can delete)"


def migrate_format_1(folder: Path) -> str:
    """Migrate a data folder from format 1 to 2; return what happened, in one line."""
    old, saved, new = folder / "state.db", folder / "state-format-1.db", folder / "state.new.db"
    if old.exists() and not saved.exists():
        _build_format_2(folder, old, new)
        old.rename(saved)
    if new.exists():
        new.rename(old)
    write_format(folder, 2)
    return (
        f"{folder} had format 1 and was upgraded; add its sites again, because format 1 did not store them "
        f"(the old state is in {saved.name}, which you can delete)"
    )


def write_format(folder: Path, number: int) -> None:
    """Write the format number of a data folder atomically: no crash leaves a folder of unknown format."""
    replace_text(folder / "format", f"{number}\n")


def _build_format_2(folder: Path, old: Path, new: Path) -> None:
    """Build the whole state of format 2, durable on return; delete what an interrupted migration left."""
    new.unlink(missing_ok=True)
    archive = folder / "warc"
    archive.mkdir(exist_ok=True)
    for path in archive.glob(f"vedette-{_WRITER}-*.warc.gz"):
        path.unlink()
    with (
        closing(WarcWriter(archive, _WRITER, "vedette", sync=True)) as writer,
        closing(_open_old(old)) as before,
        closing(sqlite3.connect(new, isolation_level=None)) as db,
    ):
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        create_url_tables(db)
        create_tables(db)
        try:
            _Migration(before, db, writer).move()
        except (zlib.error, UnicodeDecodeError) as error:
            raise StoreCorrupt(f"a page in {old} cannot be unpacked ({error}): restore a backup") from error
        db.execute("COMMIT")
    sync_folder(folder)


def _open_old(path: Path) -> sqlite3.Connection:
    """Open the state of format 1 with its write-ahead log folded in, so that the file can be renamed."""
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
    except BaseException:
        db.close()
        raise
    return db


@dataclass(slots=True)
class _Migration:
    """Copy everything from the state of format 1 to the new one, in the order in which URLs were first seen."""

    old: sqlite3.Connection
    new: sqlite3.Connection
    writer: WarcWriter
    known_by_s: float = 0.0

    def move(self) -> None:
        # An interrupted start left a database without tables.
        if not self.old.execute("SELECT 1 FROM sqlite_schema WHERE name = 'url'").fetchone():
            return
        # Format 1 did not record when a URL was found or refused: no later than the last page arrived.
        self.known_by_s = self.old.execute("SELECT coalesce(max(fetched_s), 0.0) FROM page").fetchone()[0]
        self._move_urls()
        self._move_robots()
        self._move_pages()

    def _move_urls(self) -> None:
        urls = UrlStore(self.new, epoch=0)
        rows = self.old.execute("SELECT id, url, depth, state, note FROM url ORDER BY id")
        while batch := rows.fetchmany(_BATCH):
            ids, names, depths, _, _ = zip(*batch, strict=True)
            hosts = urls.intern_hosts([origin_of(url).host for url in names])
            links = LinkBatch(names, hosts, depths, [min(depth + (depth > 0), _FRONTS - 1) for depth in depths])
            if urls.add(links, self.known_by_s).tolist() != list(ids):
                raise StoreCorrupt("the URLs of this folder of format 1 are not numbered in order: restore a backup")
            self._move_fates(batch)

    def _move_fates(self, batch: Sequence[tuple[int, str, int, int, str | None]]) -> None:
        fates = [(id_, fate) for id_, _, _, fate, _ in batch if fate]
        sql = "INSERT INTO fate (partition, url_id, fate) SELECT partition, id, ? FROM url WHERE id = ?"
        self.new.executemany(sql, [(fate, id_) for id_, fate in fates])
        notes = [(id_, note, self.known_by_s) for id_, _, _, _, note in batch if note]
        self.new.executemany("INSERT INTO note VALUES (?, ?, ?)", notes)

    def _move_robots(self) -> None:
        rows = [
            (origin, partition_of(origin_of(f"{origin}/").host), state)
            for origin, state in self.old.execute("SELECT origin, state FROM robots ORDER BY origin")
        ]
        self.new.executemany("INSERT INTO robots VALUES (?, ?, ?)", rows)

    def _move_pages(self) -> None:
        store = CrawlStore(self.new)
        hosts = dict(self.new.execute("SELECT name, id FROM host"))
        from vedette.engine.scheduling.schedule import Schedule

        schedule = Schedule(recrawl=True)
        for result in self._iter_results():
            host = hosts[result.task.host]
            store.save_pages(list(schedule.build_rows([(host, result)], {})))
        store.acknowledge_archive(self.writer.close(), self.known_by_s)

    def _iter_results(self) -> Iterator[FetchSuccess]:
        # What reads pages is imported only for a folder that has to be migrated.
        from vedette.adapters.archive.replay import ImportedResponse, ReplayResult, replay
        from vedette.engine.links import LinkResolver

        no_links = LinkResolver(SiteIndex())
        for id_, url, depth, status, fetched_s, title, links, body, *fields in self.old.execute(_PAGES):
            names = ("content-type", "etag", "last-modified", "location")
            headers = tuple((name, value) for name, value in zip(names, fields, strict=True) if value)
            errand = FetchTask(id_, origin_of(url).host, url, "page", depth=depth)
            old = ImportedResponse(url, fetched_s, status, headers, zlib.decompress(body), "format 1")
            found = replay(old, errand, no_links, _LIMIT_BYTES)
            assert isinstance(found, ReplayResult), "a body without coding needs no unpacking"
            place = self.writer.append_packed([found.record], fetched_s)
            text = zlib.decompress(links).decode()
            yield found.result._replace(title=title, links=tuple(text.split("\n")) if text else (), place=place)
