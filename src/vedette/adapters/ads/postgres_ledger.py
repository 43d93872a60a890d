"""Ads of a cluster in PostgreSQL: one ledger, and one set of advertisers, campaigns and ads, for all gateways.

The tables are those of ``ledger.db`` and ``state.db``, in a schema of their own, and the same code writes them. A
writer holds an advisory lock for its transaction, as ``BEGIN IMMEDIATE`` does in SQLite: so a click is charged within
the budgets whichever gateway has it, and a gateway that is killed leaves nothing half done.
"""

import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import Ledger, verify_balances
from vedette.adapters.files.sqlite_file import SqlConnection
from vedette.adapters.registry.database import explain_database, open_connection
from vedette.errors import ClusterError

if TYPE_CHECKING:
    import psycopg

VERSION = 1
# After a failure, searches are served without ads for so long instead of each waiting for PostgreSQL.
RETRY_EVERY_S = 5.0
# A machine that is lost in a transaction delays the clicks of the others by this at most.
IDLE_TIMEOUT_MS = 2000
# Arbitrary, and the same on every gateway.
_WRITER_LOCK = 0x7665_6461
_SCHEMA = """
CREATE SCHEMA vedette_ads;
CREATE TABLE vedette_ads.version (number integer NOT NULL);
CREATE TABLE vedette_ads.salt (
  day text PRIMARY KEY,                -- visitor hashes are the same on all gateways, and identify no one the day after
  value text NOT NULL
);
CREATE TABLE vedette_ads.entry (
  seq bigserial PRIMARY KEY,
  kind text NOT NULL,
  token text NOT NULL,
  payer text NOT NULL,
  day text NOT NULL,
  amount text NOT NULL,                -- exact
  at_s double precision NOT NULL,
  reason text NOT NULL
);
CREATE UNIQUE INDEX entry_once ON vedette_ads.entry (token, (kind = 'held'), (kind = 'refunded'));
CREATE FUNCTION vedette_ads.refuse() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN RAISE EXCEPTION ''entries are only added''; END';
CREATE TRIGGER entry_stays BEFORE UPDATE OR DELETE OR TRUNCATE ON vedette_ads.entry
  FOR EACH STATEMENT EXECUTE FUNCTION vedette_ads.refuse();
CREATE TABLE vedette_ads.balance (
  payer text NOT NULL,
  day text NOT NULL,
  charged text NOT NULL,
  held text NOT NULL,
  advertiser text NOT NULL DEFAULT '',
  PRIMARY KEY (payer, day)
);
CREATE TABLE vedette_ads.showing (
  token text COLLATE "C" PRIMARY KEY,
  at_s double precision NOT NULL,
  day text NOT NULL,
  payer text NOT NULL,
  ad bigint NOT NULL,
  phrase text COLLATE "C" NOT NULL,
  slot bigint NOT NULL,
  score double precision NOT NULL,
  propensity double precision NOT NULL,
  price text NOT NULL,
  reason text NOT NULL,
  closed text NOT NULL,
  said text NOT NULL,
  held text NOT NULL,
  counted bigint NOT NULL,
  charged text NOT NULL,
  mark text NOT NULL
);
CREATE INDEX showing_open ON vedette_ads.showing (at_s) WHERE closed = '';
CREATE INDEX showing_at ON vedette_ads.showing (at_s);
CREATE INDEX showing_clicked ON vedette_ads.showing (payer, day)
  WHERE closed IN ('charged', 'refused', 'refunded');
CREATE TABLE vedette_ads.tally (
  day text NOT NULL,
  ad bigint NOT NULL,
  phrase text COLLATE "C" NOT NULL,
  payer text NOT NULL,
  shown bigint NOT NULL,
  views double precision NOT NULL,
  clicked bigint NOT NULL,
  charged text NOT NULL,
  lost_budget bigint NOT NULL,
  lost_rank bigint NOT NULL,
  lost_reserve bigint NOT NULL,
  PRIMARY KEY (day, ad, phrase)
);
CREATE TABLE vedette_ads.asked (
  day text NOT NULL,
  hour bigint NOT NULL,
  phrase text COLLATE "C" NOT NULL,
  times bigint NOT NULL,
  PRIMARY KEY (day, hour, phrase)
);
CREATE TABLE vedette_ads.refusal (
  day text NOT NULL,
  payer text COLLATE "C" NOT NULL,
  reason text COLLATE "C" NOT NULL,
  times bigint NOT NULL,
  PRIMARY KEY (day, payer, reason)
);
CREATE TABLE vedette_ads.learned (
  ad bigint NOT NULL,
  phrase text COLLATE "C" NOT NULL,
  shown bigint NOT NULL,
  views double precision NOT NULL,
  clicked bigint NOT NULL,
  PRIMARY KEY (ad, phrase)
);
CREATE TABLE vedette_ads.phrase (phrase text COLLATE "C" PRIMARY KEY, times bigint NOT NULL);
CREATE TABLE vedette_ads.quota (
  day text NOT NULL,
  mark text NOT NULL,
  topic text NOT NULL,
  times bigint NOT NULL,
  PRIMARY KEY (day, mark, topic)
);
CREATE TABLE vedette_ads.advertiser (
  name text COLLATE "C" PRIMARY KEY,
  reader_key text NOT NULL,
  key_digest text NOT NULL,
  added_s double precision NOT NULL,
  budget text NOT NULL DEFAULT ''
);
CREATE TABLE vedette_ads.campaign (
  name text COLLATE "C" PRIMARY KEY,
  advertiser text NOT NULL,
  budget text NOT NULL,
  starts text NOT NULL,
  ends text NOT NULL,
  paused bigint NOT NULL,
  added_s double precision NOT NULL
);
CREATE TABLE vedette_ads.ad (
  id bigserial PRIMARY KEY,
  campaign text NOT NULL,
  title text NOT NULL,
  text text NOT NULL,
  url text NOT NULL,
  targets text NOT NULL,
  negatives text NOT NULL,
  bid text NOT NULL,
  standing text NOT NULL,
  added_s double precision NOT NULL
);
"""


class PostgresSession:
    """The ``SqlConnection`` of PostgreSQL, over ``connection``."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self.connection = connection

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Any:  # noqa: ANN401 - a cursor of psycopg
        """Execute a statement; return a cursor."""
        return self.connection.execute(sql.replace("?", "%s").encode(), tuple(values))

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:  # noqa: ANN401 - likewise
        """Execute a statement once per row."""
        cursor = self.connection.cursor()
        cursor.executemany(sql.replace("?", "%s").encode(), [tuple(row) for row in rows])
        return cursor


class AdDatabase:
    """The ads' tables in a cluster's PostgreSQL: a connection that is kept, for one transaction after the other."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.Connection[Any] | None = None
        self._turn = threading.RLock()
        self._failed_s, self._trouble = float("-inf"), ""

    @contextmanager
    def read(self) -> Iterator[PostgresSession]:
        """Begin a transaction that reads one snapshot."""
        with self._turn, self._begin() as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield PostgresSession(connection)

    @contextmanager
    def write(self) -> Iterator[PostgresSession]:
        """Begin a transaction, alone among all writers of the cluster."""
        with self._turn, self._begin() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITER_LOCK,))
            yield PostgresSession(connection)

    def close(self) -> None:
        """Close the connection; the next transaction opens one again."""
        with self._turn:
            if self._connection is not None:
                with suppress(Exception):
                    self._connection.close()
            self._connection = None

    @contextmanager
    def _begin(self) -> "Iterator[psycopg.Connection[Any]]":
        if time.monotonic() - self._failed_s < RETRY_EVERY_S:
            raise ClusterError(self._trouble)
        try:
            with explain_database(self._dsn):
                if self._connection is None or self._connection.closed:
                    self._connection = self._open()
                with self._connection.transaction():
                    yield self._connection
        except ClusterError as error:
            self.close()
            self._failed_s, self._trouble = time.monotonic(), str(error)
            raise

    def _open(self) -> "psycopg.Connection[Any]":
        """Connect, and create the tables in a cluster that has none yet; check the ledger in them."""
        connection = open_connection(self._dsn)
        try:
            with connection.transaction():
                _prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(connection: "psycopg.Connection[Any]") -> None:
    """Create the tables of a cluster that has none yet, and prepare a connection to them."""
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITER_LOCK,))
    (found,) = connection.execute("SELECT to_regclass('vedette_ads.version')").fetchone() or (None,)
    if found is None:
        connection.execute(_SCHEMA.encode())
        connection.execute("INSERT INTO vedette_ads.version VALUES (%s)", (VERSION,))
    (version,) = connection.execute("SELECT number FROM vedette_ads.version").fetchone() or (0,)
    if version != VERSION:
        raise ClusterError(
            f"the ad tables in PostgreSQL have schema version {version}: use the same version of vedette on all nodes"
        )
    connection.execute("SET search_path TO vedette_ads")
    connection.execute(f"SET idle_in_transaction_session_timeout = {IDLE_TIMEOUT_MS}".encode())


class PostgresLedger(Ledger):
    """Writer of the cluster's ad ledger; opening it checks that its balances follow from its entries."""

    def __init__(self, database: AdDatabase) -> None:
        self._database = database
        self._db: Any = None
        with database.read() as db:
            db.execute("SET LOCAL statement_timeout = 0")
            db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            verify_balances(db, "restore the schema vedette_ads from a backup")

    @contextmanager
    def _transaction(self) -> Iterator[SqlConnection]:
        with self._database.write() as self._db:
            yield self._db


class PostgresLedgerReader(LedgerReader):
    """Reader of the cluster's ad ledger."""

    def __init__(self, database: AdDatabase) -> None:
        super().__init__(Path())
        self._database = database

    def _query(self, sql: str, *values: float | str) -> list[Any]:
        with self._database.read() as db:
            return list(db.execute(sql, values).fetchall())


def get_shared_salt(database: AdDatabase, day: str, yesterday: str) -> bytes:
    """Return the salt of visitor hashes of a day, the same on all gateways; older ones than yesterday's are deleted."""
    with database.write() as db:
        db.execute("DELETE FROM salt WHERE day < ?", (yesterday,))
        db.execute("INSERT INTO salt VALUES (?, ?) ON CONFLICT DO NOTHING", (day, secrets.token_hex(32)))
        (value,) = db.execute("SELECT value FROM salt WHERE day = ?", (day,)).fetchone()
    return bytes.fromhex(value)
