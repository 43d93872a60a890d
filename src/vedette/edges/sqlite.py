"""The state of a crawl in a data folder: ``state.db`` (SQLite, write-ahead log), ``format`` and ``lock``.

One process at a time holds the folder. Rows are appended by increasing id; a row that belongs to a host carries its
partition. What is committed survives kill -9; what is not is fetched again.
"""

import fcntl
import json
import re
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import IO

from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer
from vedette.facts import Origin, Page, fingerprint, origin_of, partition_of
from vedette.fetch.request import PRODUCT
from vedette.fetch.robots_state import from_json, to_json
from vedette.ring.events import GiveUp, Keep, KeepRobots, Known, Refuse, Remember, Seen
from vedette.ring.store import Counts, Kept

__all__ = ["FORMAT", "SqliteStore"]

FORMAT = 1

_WAITING, _FETCHED, _REFUSED, _FAILED = range(4)

_SCHEMA = """
CREATE TABLE url (
  id INTEGER PRIMARY KEY,          -- in the order in which URLs were first seen
  partition INTEGER NOT NULL,
  url TEXT NOT NULL,
  depth INTEGER NOT NULL,          -- links from a start URL
  state INTEGER NOT NULL DEFAULT 0, -- 0 waiting, 1 fetched, 2 refused, 3 failed
  note TEXT                        -- why it was refused or given up
) STRICT;
CREATE TABLE page (
  id INTEGER PRIMARY KEY,          -- that of its url
  partition INTEGER NOT NULL,
  status INTEGER NOT NULL,
  fetched_s REAL NOT NULL,
  title TEXT NOT NULL,
  content_type TEXT NOT NULL,
  etag TEXT NOT NULL,
  last_modified TEXT NOT NULL,
  location TEXT NOT NULL,
  links BLOB NOT NULL,             -- all out-links, packed
  body BLOB NOT NULL               -- compressed
) STRICT;
CREATE TABLE robots (
  origin TEXT PRIMARY KEY,
  partition INTEGER NOT NULL,
  state TEXT NOT NULL
) STRICT;
"""
_PAGES = (
    "SELECT url, depth, status, fetched_s, title, links, body, content_type, etag, last_modified, location "
    "FROM page JOIN url USING (id) ORDER BY id"
)


class SqliteStore:
    """A ``ring.store.Store`` over a folder, which is made when it is missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with _said_plainly(folder), ExitStack() as held:
            _check_format(folder)
            folder.mkdir(parents=True, exist_ok=True)
            held.enter_context(_hold(folder))
            _check_format(folder)  # again: whoever held it until now may have raised it
            _write_format(folder)
            self._db = held.enter_context(closing(sqlite3.connect(folder / "state.db", isolation_level=None)))
            self._open_database()
            rows = self._db.execute("SELECT id, url FROM url")
            self._ids: dict[int, int] = {fingerprint(url): row for row, url in rows}
            self._held = held.pop_all()

    def _open_database(self) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        # Whether it may be written to is tried before anything is fetched, not after.
        self._db.executescript("BEGIN; PRAGMA user_version = 0; ROLLBACK")
        if not self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'url'").fetchone():
            self._db.executescript(f"BEGIN; {_SCHEMA} COMMIT")

    def keep(self, commands: Iterable[Kept]) -> None:
        """Take note; durable with the next ``commit``."""
        with _said_plainly(self.folder):
            for command in commands:
                if not self._db.in_transaction:
                    self._db.execute("BEGIN")
                self._keep(command)

    def commit(self) -> None:
        """From here on it survives the end of the process."""
        with _said_plainly(self.folder):
            if self._db.in_transaction:
                self._db.execute("COMMIT")

    def known(self) -> Known | None:
        """What earlier runs left behind; None if nothing."""
        if not self._ids:
            return None
        with _said_plainly(self.folder):
            waiting = self._db.execute("SELECT url, depth FROM url WHERE state = ? ORDER BY id", (_WAITING,))
            robots = self._db.execute("SELECT origin, state FROM robots")
            return Known(
                frozenset(self._ids),
                tuple(Seen(*row) for row in waiting),
                {_origin(text): from_json(json.loads(state), PRODUCT) for text, state in robots},
            )

    def counts(self) -> Counts:
        """Numbers for people."""
        with _said_plainly(self.folder):
            by_state = dict(self._db.execute("SELECT state, count(*) FROM url GROUP BY state"))
        return Counts(sum(by_state.values()), *(by_state.get(state, 0) for state in range(4)))

    def pages(self) -> Iterator[Page]:
        """Every fetched page, in the order in which its URL was first seen."""
        with _said_plainly(self.folder):
            for url, depth, status, fetched_s, title, links, body, *rest in self._db.execute(_PAGES):
                yield Page(url, depth, status, fetched_s, title, _unpack(links), zlib.decompress(body), *rest)

    def close(self) -> None:
        """Commit and let go of the folder."""
        with self._held:
            self.commit()

    def _keep(self, command: Kept) -> None:
        match command:
            case Remember(urls):
                for seen in urls:
                    self._remember(seen)
            case Keep(page):
                self._keep_page(page)
            case Refuse(url, refusal, detail):
                self._end(url, _REFUSED, f"{refusal}: {detail}")
            case GiveUp(url, failure):
                self._end(url, _FAILED, failure)
            case KeepRobots(origin, state):
                row = (str(origin), partition_of(origin.host), json.dumps(to_json(state)))
                self._db.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?)", row)

    def _remember(self, seen: Seen) -> None:
        name, row = fingerprint(seen.url), len(self._ids) + 1
        if name in self._ids:
            return
        values = (row, partition_of(origin_of(seen.url).host), seen.url, seen.depth)
        self._db.execute("INSERT INTO url (id, partition, url, depth) VALUES (?, ?, ?, ?)", values)
        self._ids[name] = row

    def _keep_page(self, page: Page) -> None:
        row = self._end(page.url, _FETCHED, None)
        values = (
            *(row, partition_of(origin_of(page.url).host), page.status, page.fetched_s, page.title),
            *(page.content_type, page.etag, page.last_modified, page.location),
            *(_pack(page.links), zlib.compress(page.body, 1)),
        )
        self._db.execute("INSERT OR REPLACE INTO page VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)

    def _end(self, url: str, state: int, note: str | None) -> int:
        row = self._ids[fingerprint(url)]
        self._db.execute("UPDATE url SET state = ?, note = ? WHERE id = ?", (state, note, row))
        return row


def _hold(folder: Path) -> IO[str]:
    lock = (folder / "lock").open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise StoreBusy(f"{folder} is in use by another vedette: stop that one, or name another folder") from None
    return lock


def _check_format(folder: Path) -> None:
    """Refuse a folder that a newer Vedette wrote, before anything in it is touched."""
    path = folder / "format"
    text = path.read_text("utf-8", "replace").strip() if path.exists() else str(FORMAT)
    if not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise StoreCorrupt(f'{path} says "{text[:40]}" where a format number should be: this is no data folder')
    if int(text) > FORMAT:
        raise StoreNewer(
            f"{folder} has format {text}, and this vedette knows formats up to {FORMAT}: use a newer vedette"
        )


def _write_format(folder: Path) -> None:
    """Before there is anything that it speaks of, and in one step: no crash leaves a folder of unknown format."""
    if not (folder / "format").exists():
        draft = folder / "format.new"
        draft.write_text(f"{FORMAT}\n", "utf-8")
        draft.replace(folder / "format")


@contextmanager
def _said_plainly(folder: Path) -> Iterator[None]:
    """Troubles of file system and database, in words that say what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StoreError(
            f"{folder}: {error}; nothing committed is lost: make room or set permissions, then run again"
        ) from error
    except (sqlite3.DatabaseError, zlib.error, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"{folder}/state.db cannot be read ({error}): restore it, or name another folder") from error
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror or error}: name a folder that you may write to") from error


def _origin(text: str) -> Origin:
    return origin_of(f"{text}/")


def _pack(links: tuple[str, ...]) -> bytes:
    return zlib.compress("\n".join(links).encode(), 1)


def _unpack(blob: bytes) -> tuple[str, ...]:
    text = zlib.decompress(blob).decode()
    return tuple(text.split("\n")) if text else ()
