"""SQLite files beside ``state.db`` in a data folder, each with a write-ahead log and a schema version.

Such a file can be newer or older than the folder, or damaged, and the crawl continues. So all of them are opened,
migrated and reported in the same way, here.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, ClassVar, Protocol

from vedette.errors import StoreBusy, StoreCorrupt, StoreError, StoreNewer

BUSY_S = 10.0
MAX_WAL_BYTES = 16 << 20
# A damaged file may also be quoted in the message of its error, which is then no text.
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)


@dataclass(frozen=True, slots=True)
class SqliteFile:
    """A kind of SQLite file in a data folder, with its schema and migrations.

    Each of ``migrations`` upgrades one version to the next. ``pragmas`` are run at each opening for writing. A writer
    waits ``busy_s`` for another. ``repair_hint`` says what to do about an unreadable file. If ``is_irreplaceable``, a
    file that was lost is refused as well, which a mark beside it shows; others are created again.
    """

    name: str
    migrations: tuple[str, ...]
    repair_hint: str
    pragmas: tuple[str, ...] = ("synchronous = FULL",)
    busy_s: float = BUSY_S
    max_wal_bytes: int = MAX_WAL_BYTES
    is_irreplaceable: bool = False

    def open(self, folder: Path) -> sqlite3.Connection:
        """Open a SQLite file for writing, created or migrated if needed; a newer version is refused untouched."""
        path = folder / self.name
        with self.explain_errors(folder):
            self._check_presence(folder)
            if not path.exists():  # opening and closing a database that is in use would release its locks
                path.touch(mode=0o600)
            db = sqlite3.connect(path, timeout=self.busy_s, isolation_level=None, check_same_thread=False)
            try:
                self._check_version(db, folder)
                for pragma in ("journal_mode = WAL", *self.pragmas, f"journal_size_limit = {self.max_wal_bytes}"):
                    db.execute(f"PRAGMA {pragma}")
                self._upgrade(db, folder)
                if self.is_irreplaceable and not self._get_mark(folder).exists():
                    self._get_mark(folder).touch(mode=0o600)
            except BaseException:
                db.close()
                raise
            return db

    @contextmanager
    def read(self, folder: Path) -> Iterator[sqlite3.Connection | None]:
        """Open a SQLite file for reading while others write; None if nothing was ever written.

        An older file is migrated first, since it may not have been written since the upgrade.
        """
        path = folder / self.name
        self._check_presence(folder)
        if not path.exists():
            yield None
            return
        with self.explain_errors(folder):
            db = self._connect_readonly(path)
            try:
                version = self._check_version(db, folder)
                if 0 < version < len(self.migrations):
                    db.close()
                    self.open(folder).close()
                    db = self._connect_readonly(path)
                yield db if version else None
            finally:
                db.close()

    def _connect_readonly(self, path: Path) -> sqlite3.Connection:
        address = f"{path.resolve().as_uri()}?mode=ro"
        return sqlite3.connect(address, timeout=self.busy_s, uri=True, isolation_level=None)

    def query(self, folder: Path, sql: str, *values: float | str) -> list[Any]:
        """Return the rows of one SQL query on a SQLite file while others write; empty if nothing was ever written.

        No read transaction stays open: it would prevent the writer from truncating its log.
        """
        with self.read(folder) as db:
            return db.execute(sql, values).fetchall() if db else []

    @contextmanager
    def transaction(self, db: sqlite3.Connection, folder: Path) -> Iterator[sqlite3.Connection]:
        """Run one exclusive write transaction on a SQLite file, all of it or nothing."""
        with self.explain_errors(folder):
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                if db.in_transaction:  # else it was committed inside
                    db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    @contextmanager
    def explain_errors(self, folder: Path) -> Iterator[None]:
        """Turn file system and database errors of a SQLite file into messages that say what to do."""
        path = folder / self.name
        try:
            yield
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise StoreBusy(f"{path} is locked by another vedette process: try again in a moment") from error
            if is_damage(error):
                raise StoreCorrupt(f"{path} cannot be read ({error}): {self.repair_hint}") from error
            raise StoreError(
                f"{path}: {error}. No committed data was lost. Free up disk space or check permissions."
            ) from error
        except DAMAGED as error:
            raise StoreCorrupt(f"{path} cannot be read ({error}): {self.repair_hint}") from error
        except OSError as error:
            raise StoreError(
                f"{error.filename or path}: {error.strerror}. Free up disk space or check permissions."
            ) from error

    def move_aside(self, folder: Path) -> Path:
        """Rename a SQLite file that cannot be read, so that a new one can be created; return its new path."""
        stem = Path(self.name).stem
        names = (folder / f"{stem}-damaged-{number}.db" for number in count(1))
        aside = next(path for path in names if not path.exists())
        (folder / self.name).rename(aside)
        for end in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                (folder / f"{self.name}{end}").rename(f"{aside}{end}")
        return aside

    def _get_mark(self, folder: Path) -> Path:
        return folder / f"{self.name}-created"

    def _check_presence(self, folder: Path) -> None:
        """Refuse an irreplaceable file that was created once, and is missing or empty now."""
        path, mark = folder / self.name, self._get_mark(folder)
        if self.is_irreplaceable and mark.exists() and not (path.exists() and path.stat().st_size):
            raise StoreCorrupt(
                f"{path} is missing or empty: {self.repair_hint}. To start another one, delete {mark.name}"
            )

    def _check_version(self, db: sqlite3.Connection, folder: Path) -> int:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > len(self.migrations):
            raise StoreNewer(
                f"{folder / self.name} has version {version}, but this vedette only knows versions up to "
                f"{len(self.migrations)}: use a newer version"
            )
        return int(version)

    def _upgrade(self, db: sqlite3.Connection, folder: Path) -> None:
        """Migrate a SQLite file to the current schema in one transaction; a second process finds it done."""
        if self._check_version(db, folder) == len(self.migrations):
            return
        db.execute("BEGIN IMMEDIATE")
        execute_schemas(db, *self.migrations[self._check_version(db, folder) :])
        db.execute(f"PRAGMA user_version = {len(self.migrations)}")
        db.execute("COMMIT")


class SqlConnection(Protocol):
    """What stores use of a connection that SQLite or PostgreSQL can be behind; values are ``?`` as in SQLite."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:  # noqa: ANN401 - a cursor of either database
        """Execute a statement; return a cursor."""

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:  # noqa: ANN401 - likewise
        """Execute a statement once per row."""


class SqliteStore:
    """Base class of writers of a SQLite file in a data folder; each operation is one transaction."""

    FILE: ClassVar[SqliteFile]

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = self.FILE.open(folder)

    def close(self) -> None:
        """Close the connection to the SQLite file."""
        self._db.close()

    def _query(self, sql: str, *values: float | str) -> list[Any]:
        with self.FILE.explain_errors(self._folder):
            return self._db.execute(sql, values).fetchall()

    def _transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        return self.FILE.transaction(self._db, self._folder)


def is_damage(error: sqlite3.OperationalError) -> bool:
    """Check whether a query failed because tables, columns or text are lost, which SQLite calls operational."""
    return str(error).startswith(("no such table", "no such column", "Could not decode"))


def execute_schemas(db: sqlite3.Connection, *schemas: str) -> None:
    """Execute the SQL statements of schemas one by one, in the caller's transaction if there is one."""
    for schema in schemas:
        for statement in _split_statements(schema):
            db.execute(statement)


def _split_statements(step: str) -> Iterator[str]:
    r"""Split SQL into whole statements; those of triggers have semicolons inside.

    >>> list(_split_statements("CREATE TABLE a (b);\nCREATE TABLE c (d)"))
    ['CREATE TABLE a (b);\n', 'CREATE TABLE c (d)']
    """
    text = ""
    for line in step.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            yield text
            text = ""
    if text.strip():
        yield text
