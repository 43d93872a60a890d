"""PostgreSQL of a cluster: its schema, connections, and one-line errors that say what to do.

All tables are in the schema ``vedette``. Every write of a shard checks its epoch and lease in the same transaction:
``fence`` locks the shard's row, so that no other node can claim the shard before the transaction ends.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from vedette.errors import ClusterError, UsageError

if TYPE_CHECKING:
    import psycopg

DSN_ENV = "VEDETTE_POSTGRES"
SCHEMA_VERSION = 4
CONNECT_TIMEOUT_S = 3
# A call that takes longer counts as failed: a lease must be renewed well before it ends.
STATEMENT_TIMEOUT_MS = 3000
# If a node loses its network within a transaction, it must not keep its shards locked for longer than a lease.
IDLE_TIMEOUT_MS = 8000
MAX_CLOCK_GAP_S = 30.0

SCHEMA = """
CREATE SCHEMA vedette;
CREATE TABLE vedette.cluster (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  id text NOT NULL,
  schema_version integer NOT NULL,
  version text NOT NULL,               -- of Vedette on every node
  lease_s double precision NOT NULL,
  storage text NOT NULL                -- the URL of the object storage; empty if there are no copies
);
CREATE TABLE vedette.node (
  name text PRIMARY KEY,
  seen timestamptz NOT NULL,
  most integer NOT NULL,               -- shards that it runs at most
  is_draining boolean NOT NULL DEFAULT false
);
CREATE TABLE vedette.shard (
  number integer PRIMARY KEY,
  first integer UNIQUE NOT NULL,       -- its first partition; the next one of any shard ends the range
  owner text NOT NULL DEFAULT '',
  epoch bigint NOT NULL DEFAULT 0,     -- raised by each claim; writes that carry another one are refused
  folder text NOT NULL DEFAULT '',     -- the name inside its data folder; empty before its first claim
  numbers text NOT NULL DEFAULT '{}',
  is_splitting boolean NOT NULL DEFAULT false,
  leaves text NOT NULL DEFAULT '',     -- the node that gives it up to another one, and must not claim it
  leaves_until timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE TABLE vedette.lease (
  shard integer PRIMARY KEY,           -- apart from its shard, whose row a write locks: renewing waits for no write
  until timestamptz NOT NULL DEFAULT '-infinity'
);
CREATE TABLE vedette.copy (
  shard integer PRIMARY KEY,
  epoch bigint NOT NULL,               -- whose copy in object storage is the newest that is complete
  taken timestamptz NOT NULL           -- it has everything that was saved by then
);
CREATE TABLE vedette.site (
  start text PRIMARY KEY,
  command text NOT NULL,               -- the command that adds it, as JSON
  number bigserial
);
CREATE TABLE vedette.link_batch (
  target integer NOT NULL,
  source integer NOT NULL,
  epoch bigint NOT NULL,
  sequence bigint NOT NULL,
  links bytea NOT NULL,
  applied timestamptz,                 -- kept until the owner's state is safe, for one that lost its last moments
  PRIMARY KEY (target, source, epoch, sequence)
);
CREATE INDEX link_batch_waiting ON vedette.link_batch (target, source, epoch, sequence) WHERE applied IS NULL;
CREATE TABLE vedette.address (
  address text PRIMARY KEY,
  shard integer NOT NULL,
  epoch bigint NOT NULL,
  is_free boolean NOT NULL,
  ready timestamptz NOT NULL           -- no request of another shard before
);
CREATE TABLE vedette.address_wait (
  address text NOT NULL,
  shard integer NOT NULL,
  since timestamptz NOT NULL,
  PRIMARY KEY (address, shard)
);
CREATE TABLE vedette.daily_requests (
  day integer NOT NULL,
  kind text NOT NULL,                  -- address, domain
  name text NOT NULL,
  reserved integer NOT NULL,           -- requests that shards may send today, and those that they sent
  PRIMARY KEY (day, kind, name)
);
CREATE TABLE vedette.budget (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  state text NOT NULL DEFAULT '',      -- of the price controller, as JSON
  at timestamptz NOT NULL DEFAULT '-infinity',
  policy text NOT NULL DEFAULT '',     -- the refresh policy that the price is for
  price double precision,
  target_per_s double precision NOT NULL DEFAULT 0,
  pages double precision NOT NULL DEFAULT 0
);
INSERT INTO vedette.budget DEFAULT VALUES;
CREATE TABLE vedette.shard_spending (
  shard integer PRIMARY KEY,
  refreshes bigint NOT NULL,           -- since the controller counted
  others bigint NOT NULL,
  pages double precision NOT NULL,
  price double precision,
  is_settled boolean NOT NULL
);
CREATE TABLE vedette.fetch_pool (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  pages double precision NOT NULL DEFAULT 0,   -- of the budget that shards may draw
  at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO vedette.fetch_pool DEFAULT VALUES;
CREATE TABLE vedette.fetch_want (
  shard integer PRIMARY KEY,
  lacking double precision NOT NULL,           -- what the shard lacked after its last draw
  due double precision NOT NULL                -- what has arrived for it since
);
CREATE TABLE vedette.rank_block (
  shard integer NOT NULL,
  version bigint NOT NULL,
  part integer NOT NULL,
  data bytea NOT NULL,                 -- importance of the shard's pages, and what flows to those of others
  PRIMARY KEY (shard, part)
);
CREATE TABLE vedette.secret (
  name text PRIMARY KEY,
  value text NOT NULL
);
CREATE TABLE vedette.search_process (
  shard integer PRIMARY KEY,
  epoch bigint NOT NULL,
  address text NOT NULL
);
CREATE TABLE vedette.gateway (
  node text PRIMARY KEY,
  address text NOT NULL                -- where the node serves pages, API and console
);
CREATE TABLE vedette.command (
  number bigserial PRIMARY KEY,
  id text UNIQUE NOT NULL,
  shard integer,                       -- NULL: for all shards
  command text NOT NULL,
  actor text NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  undoes bigint                        -- the command that this one undoes
);
CREATE TABLE vedette.command_reply (
  number bigint NOT NULL,
  shard integer NOT NULL,
  words text NOT NULL,
  is_error boolean NOT NULL,
  action bigint NOT NULL,              -- its number in the shard's log of actions; 0 if it cannot be undone
  PRIMARY KEY (number, shard)
);
CREATE TABLE vedette.alert_page (
  alert text NOT NULL,
  page bigint NOT NULL,                -- fingerprint of its URL
  shard integer NOT NULL,              -- the one that sends it
  is_sent boolean NOT NULL DEFAULT false,
  PRIMARY KEY (alert, page)
);
"""


def read_dsn(given: str | None) -> str:
    """Return the connection string of the cluster's PostgreSQL from an option or the environment."""
    dsn = given or os.environ.get(DSN_ENV, "")
    if not dsn:
        raise UsageError(
            f"missing --postgres: use postgresql://USER@HOST/DATABASE, or set {DSN_ENV} if it contains a password, "
            "because other users can see the command line"
        )
    return dsn


@contextmanager
def explain_database(dsn: str) -> Iterator[None]:
    """Turn PostgreSQL errors into one line that says what to do, without the password."""
    psycopg = load_psycopg()
    try:
        yield
    except psycopg.errors.UndefinedTable:
        raise ClusterError(f"there is no cluster in {describe_dsn(dsn)}: run vedette cluster init first") from None
    except psycopg.errors.InsufficientPrivilege as error:
        raise ClusterError(
            f"{describe_dsn(dsn)}: {_first_line(error)}; grant the user CREATE on the database"
        ) from None
    except (
        psycopg.OperationalError,
        psycopg.InterfaceError,
        psycopg.errors.IdleInTransactionSessionTimeout,  # this process was stopped for too long
    ) as error:
        raise ClusterError(
            f"cannot use PostgreSQL at {describe_dsn(dsn)}: {_first_line(error)}; check --postgres, and make sure that "
            "the server is running and accepts connections from this machine"
        ) from None


@contextmanager
def connect(dsn: str) -> "Iterator[psycopg.Connection[Any]]":
    """Connect to the cluster's PostgreSQL for one transaction, committed at the end."""
    with explain_database(dsn), open_connection(dsn) as connection:
        yield connection


def open_connection(dsn: str) -> "psycopg.Connection[Any]":
    """Open a connection on which no call blocks for longer than a lease allows."""
    library = load_psycopg()
    try:
        connection: psycopg.Connection[Any] = library.connect(
            dsn,
            connect_timeout=CONNECT_TIMEOUT_S,
            tcp_user_timeout=STATEMENT_TIMEOUT_MS,
            keepalives_idle=2,
            options=f"-c statement_timeout={STATEMENT_TIMEOUT_MS} "
            f"-c idle_in_transaction_session_timeout={IDLE_TIMEOUT_MS}",
            application_name="vedette",
        )
    except library.ProgrammingError as error:
        raise UsageError(
            f"not a PostgreSQL connection string ({_first_line(error)}): use postgresql://USER@HOST/DATABASE"
        ) from None
    return connection


def load_psycopg() -> Any:  # noqa: ANN401 - the module, which is installed only with the extra
    """Import psycopg, or say which extra provides it."""
    try:
        import psycopg
    except ImportError:
        raise UsageError('a cluster needs the extra "cluster": run pip install "vedette[cluster]"') from None
    return psycopg


def describe_dsn(dsn: str) -> str:
    """Describe a connection string by host, port and database, without its password."""
    psycopg = load_psycopg()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return "the given address"
    place = f"{parts.get('host', 'the local socket')}:{parts.get('port', 5432)}"
    return f"{place}, database {parts.get('dbname', parts.get('user', 'postgres'))}"


def check_clock(connection: "psycopg.Connection[Any]") -> None:
    """Refuse to start if this machine's clock is far from PostgreSQL's: due times would not be comparable."""
    before_s = time.time()
    (theirs_s,) = fetch_row(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
    gap_s = (before_s + time.time()) / 2 - theirs_s
    if abs(gap_s) > MAX_CLOCK_GAP_S:
        side = "ahead of" if gap_s > 0 else "behind"
        raise ClusterError(
            f"this machine's clock is {abs(gap_s):.0f} s {side} PostgreSQL's: synchronize both with NTP, then try again"
        )


def fetch_row(connection: "psycopg.Connection[Any]", sql: str, values: tuple[object, ...] = ()) -> Any:  # noqa: ANN401 - a row of any columns
    """Return the first row of a query."""
    return connection.execute(sql.encode(), values).fetchone()


def parse_object(text: str) -> dict[str, Any]:
    """Parse a JSON object from a row; return an empty one for bad rows, so that they do not stop the readers.

    >>> parse_object('{"order": "add_site"}'), parse_object("[1]"), parse_object("[" * 100_000)
    ({'order': 'add_site'}, {}, {})
    """
    with suppress(ValueError, RecursionError):
        value = json.loads(text)
        return value if isinstance(value, dict) else {}
    return {}


def fence(connection: "psycopg.Connection[Any]", shard: int, epoch: int) -> None:
    """Abort the transaction unless the shard's lease is held at this epoch; keep the lease until its end."""
    own = fetch_row(
        connection, "SELECT 1 FROM vedette.shard WHERE number = %s AND epoch = %s FOR SHARE", (shard, epoch)
    )
    held = fetch_row(connection, "SELECT 1 FROM vedette.lease WHERE shard = %s AND until > clock_timestamp()", (shard,))
    if own is None or held is None:
        raise LeaseLost(f"shard {shard} is no longer this node's at epoch {epoch}")


class LeaseLost(ClusterError):
    """Cluster error: a write by a shard whose lease has ended or that another node owns."""


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
