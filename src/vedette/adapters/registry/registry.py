"""Registry of a cluster: its shards with owners, epochs and leases, its nodes, and its sites.

A node owns a shard while its lease lasts, according to PostgreSQL's clock. A claim increases the epoch, so that all
later writes of the previous owner are refused. A lease that has ended is never renewed: the shard must be claimed
again.
"""

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import (
    SCHEMA,
    SCHEMA_VERSION,
    connect,
    describe_dsn,
    fetch_row,
    load_psycopg,
    parse_object,
)
from vedette.engine.coordinator.shard import ShardMap, split_evenly
from vedette.errors import ClusterError
from vedette.model import PARTITIONS
from vedette.version import __version__

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]


class Cluster(NamedTuple):
    """A cluster: its id, the nodes' version of Vedette, the length of a lease, its shards, and the URL of its storage.

    Without object storage, the URL is empty, and the shards only exist in their data folders.
    """

    id: str
    version: str
    lease_s: float
    shards: ShardMap
    storage: str = ""


class Claim(NamedTuple):
    """A shard that a node owns: number, epoch, the id inside its data folder, and the epoch of its newest copy.

    That epoch is 0 if there is no copy. ``is_local`` says whether the node has the data folder.
    """

    shard: int
    epoch: int
    folder: str
    copy: int = 0
    is_local: bool = True


class ShardStatus(NamedTuple):
    """Status of a shard: owner (empty if none), epoch, seconds left on its lease, links waiting for it, numbers.

    ``copy_age_s`` is the age of its newest copy, or None if there is none.
    """

    number: int
    partitions: range
    owner: str
    epoch: int
    lease_s: float
    waiting: int
    numbers: Mapping[str, Any]
    copy_age_s: float | None = None


class NodeStatus(NamedTuple):
    """Status of a running node: name, maximum number of shards, whether it is being drained, and number of shards."""

    name: str
    most: int
    is_draining: bool
    shards: int


def create_cluster(dsn: str, shards: int, lease_s: float, storage: str = "") -> str:
    """Create a cluster in an empty database; return its id. A database holds one cluster."""
    if not 1 <= shards <= PARTITIONS:
        raise ClusterError(f"a cluster cannot have {shards} shards: use 1 to {PARTITIONS}")
    id_ = secrets.token_hex(8)
    try:
        with connect(dsn) as connection:
            connection.execute(SCHEMA.encode())
            row = (id_, SCHEMA_VERSION, __version__, lease_s, storage)
            sql = "INSERT INTO vedette.cluster (id, schema_version, version, lease_s, storage)"
            connection.execute(f"{sql} VALUES (%s, %s, %s, %s, %s)".encode(), row)
            for number, first in enumerate(split_evenly(shards).firsts):
                connection.execute("INSERT INTO vedette.shard (number, first) VALUES (%s, %s)", (number, first))
                connection.execute("INSERT INTO vedette.lease (shard) VALUES (%s)", (number,))
            if storage:
                from vedette.adapters.durability.object_storage import claim_storage

                claim_storage(storage, id_)
    except (load_psycopg().errors.DuplicateSchema, load_psycopg().errors.UniqueViolation):
        raise ClusterError(
            f"{describe_dsn(dsn)} already has a cluster: run vedette cluster join, or use another database"
        ) from None
    return id_


def load_cluster(connection: "Connection") -> Cluster:
    """Load the cluster of a database; refuse one whose tables belong to another version."""
    id_, schema_version, version = fetch_row(connection, "SELECT id, schema_version, version FROM vedette.cluster")
    if schema_version != SCHEMA_VERSION:
        raise ClusterError(
            f"the cluster was created by vedette {version}, but {__version__} cannot use its tables: install vedette "
            f"{version} here"
        )
    lease_s, storage = fetch_row(connection, "SELECT lease_s, storage FROM vedette.cluster")
    return Cluster(id_, version, lease_s, load_shards(connection), storage)


def load_shards(connection: "Connection") -> ShardMap:
    """Load which shard owns which partitions; a split changes this."""
    rows = connection.execute("SELECT first, number FROM vedette.shard ORDER BY first").fetchall()
    return ShardMap(tuple(first for first, _ in rows), tuple(number for _, number in rows))


def join_cluster(connection: "Connection", node: str, most: int) -> Cluster:
    """Register a node; refuse it if its name is in use or its version is incompatible with the running nodes.

    Versions that differ only in the last number can run together. If no node is running, any version is accepted.
    """
    cluster = load_cluster(connection)
    connection.execute("LOCK TABLE vedette.node")
    sql = "SELECT name FROM vedette.node WHERE seen > clock_timestamp() - make_interval(secs => %s)"
    alive = [name for (name,) in connection.execute(sql, (cluster.lease_s,))]
    if node in alive:
        raise ClusterError(
            f"a node named {node} is running, or was moments ago: wait {cluster.lease_s:g} s, or choose another --name"
        )
    if alive and cluster.version.rpartition(".")[0] != __version__.rpartition(".")[0]:
        raise ClusterError(
            f"this is vedette {__version__}, but the cluster runs {cluster.version} on {', '.join(sorted(alive))}: "
            f"install {cluster.version} here, or stop the other nodes first"
        )
    connection.execute("UPDATE vedette.cluster SET version = %s", (__version__,))
    connection.execute("DELETE FROM vedette.node WHERE name = %s", (node,))
    connection.execute("INSERT INTO vedette.node VALUES (%s, clock_timestamp(), %s)", (node, most))
    return cluster._replace(version=__version__)


def renew_leases(connection: "Connection", node: str, claims: Sequence[Claim], lease_s: float) -> set[int]:
    """Renew the leases of a node; return the shards that it still owns. An ended lease is not renewed."""
    connection.execute("UPDATE vedette.node SET seen = clock_timestamp() WHERE name = %s", (node,))
    sql = """
        UPDATE vedette.lease SET until = clock_timestamp() + make_interval(secs => %s)
        FROM vedette.shard WHERE shard.number = lease.shard AND shard.owner = %s
        AND (shard.number, shard.epoch) IN (SELECT * FROM unnest(%s::int[], %s::bigint[]))
        AND until > clock_timestamp() RETURNING lease.shard
    """
    numbers, epochs = [claim.shard for claim in claims], [claim.epoch for claim in claims]
    return {shard for (shard,) in connection.execute(sql, (lease_s, node, numbers, epochs))}


def claim_shard(
    connection: "Connection",
    node: str,
    folders: Collection[str],
    lease_s: float,
    *,
    can_restore: bool = False,
    running: Collection[int] = (),
) -> Claim | None:
    """Claim a shard without an owner whose data folder is among ``folders``, or one that has none yet.

    A node that can restore copies claims other shards after these, and creates new folders for them, but never a shard
    that is still ``running`` on this node. Returns None if there is none.
    """
    sql = """
        SELECT number, folder, coalesce(copy.epoch, 0) FROM vedette.shard
        JOIN vedette.lease ON lease.shard = shard.number LEFT JOIN vedette.copy ON copy.shard = shard.number
        WHERE until < clock_timestamp() AND NOT number = ANY(%(running)s)
        AND (folder = ANY(%(folders)s) OR folder = '' OR %(can_restore)s)
        AND (leaves <> %(node)s OR leaves_until < clock_timestamp())
        ORDER BY folder = ANY(%(folders)s) DESC, folder = '', number
        LIMIT 1 FOR UPDATE OF shard, lease SKIP LOCKED
    """
    values = {"node": node, "running": list(running), "folders": list(folders), "can_restore": can_restore}
    found = connection.execute(sql, values).fetchone()
    if found is None:
        return None
    number, folder, copy = found
    is_local = folder in folders
    folder = folder if is_local else secrets.token_hex(8)
    sql = """
        UPDATE vedette.shard SET owner = %s, epoch = epoch + 1, folder = %s, leaves = '' WHERE number = %s
        RETURNING epoch
    """
    (epoch,) = connection.execute(sql, (node, folder, number)).fetchone() or (0,)
    sql = "UPDATE vedette.lease SET until = clock_timestamp() + make_interval(secs => %s) WHERE shard = %s"
    connection.execute(sql, (lease_s, number))
    return Claim(number, epoch, folder, copy, is_local)


def save_copy(connection: "Connection", shard: int, epoch: int, age_s: float) -> bool:
    """Save how many seconds ago a shard's copy at an epoch was complete; return whether it is the first copy.

    The transaction must begin with ``fence``.
    """
    sql = "SELECT epoch FROM vedette.copy WHERE shard = %s"
    known = connection.execute(sql, (shard,)).fetchone()
    sql = """
        INSERT INTO vedette.copy VALUES (%s, %s, clock_timestamp() - make_interval(secs => %s))
        ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch, taken = EXCLUDED.taken
    """
    connection.execute(sql, (shard, epoch, age_s))
    return known != (epoch,)


def release_shard(connection: "Connection", claim: Claim) -> None:
    """End the lease of a shard whose processes have ended, so that it can be claimed immediately."""
    sql = "UPDATE vedette.shard SET owner = '' WHERE number = %s AND epoch = %s RETURNING number"
    if connection.execute(sql, (claim.shard, claim.epoch)).fetchone():
        connection.execute("UPDATE vedette.lease SET until = '-infinity' WHERE shard = %s", (claim.shard,))


def find_moves(connection: "Connection", node: str) -> list[int]:
    """List the shards that a node should hand over: those that move to another node, or all if it is being drained."""
    sql = """
        SELECT number FROM vedette.shard JOIN vedette.node ON node.name = owner
        WHERE owner = %s AND (is_draining OR (leaves = owner AND leaves_until > clock_timestamp()))
    """
    return [number for (number,) in connection.execute(sql, (node,))]


def is_draining(connection: "Connection", node: str) -> bool:
    """Check whether a node should hand over its shards and stop."""
    found = connection.execute("SELECT is_draining FROM vedette.node WHERE name = %s", (node,)).fetchone()
    return bool(found and found[0])


def drain_node(connection: "Connection", node: str) -> None:
    """Request that a node hands over its shards and stops; fail if the other nodes have no room for them."""
    nodes = {one.name: one for one in list_nodes(connection)}
    if node not in nodes:
        running = ", ".join(nodes) or "none"
        raise ClusterError(f"no node named {node} is running: choose a running one ({running})")
    room = sum(one.most - one.shards for one in nodes.values() if one.name != node and not one.is_draining)
    if room < nodes[node].shards:
        raise ClusterError(
            f"the other nodes have room for {room} shards, but {node} runs {nodes[node].shards}: start another node, "
            "or restart one with a higher --shards"
        )
    connection.execute("UPDATE vedette.node SET is_draining = true WHERE name = %s", (node,))


def list_nodes(connection: "Connection") -> list[NodeStatus]:
    """List the running nodes."""
    sql = """
        SELECT name, most, is_draining, (
            SELECT count(*) FROM vedette.shard JOIN vedette.lease ON lease.shard = shard.number
            WHERE owner = node.name AND until > clock_timestamp())
        FROM vedette.node, vedette.cluster WHERE seen > clock_timestamp() - make_interval(secs => lease_s) ORDER BY name
    """
    return [NodeStatus(*row) for row in connection.execute(sql.encode())]


def remove_node(connection: "Connection", node: str) -> None:
    """Remove a node that has stopped."""
    connection.execute("DELETE FROM vedette.node WHERE name = %s", (node,))


def list_shards(connection: "Connection") -> list[ShardStatus]:
    """List the status of every shard, in one statement: a split may replace shards at any time."""
    sql = """
        SELECT first, number, CASE WHEN until > clock_timestamp() THEN owner ELSE '' END, shard.epoch, numbers,
        greatest(extract(epoch FROM CASE WHEN isfinite(until) THEN until - clock_timestamp() ELSE interval '0' END), 0),
        (SELECT count(*) FROM vedette.link_batch WHERE target = number AND applied IS NULL),
        extract(epoch FROM clock_timestamp() - taken)::float8
        FROM vedette.shard JOIN vedette.lease ON lease.shard = shard.number
        LEFT JOIN vedette.copy ON copy.shard = shard.number ORDER BY first
    """
    rows = connection.execute(sql).fetchall()
    shards = ShardMap(tuple(row[0] for row in rows), tuple(row[1] for row in rows))
    status = [
        ShardStatus(
            number, shards.partitions(number), owner, epoch, float(lease_s), waiting, parse_object(numbers), age_s
        )
        for _, number, owner, epoch, numbers, lease_s, waiting, age_s in rows
    ]
    return sorted(status, key=lambda one: one.number)


def save_numbers(connection: "Connection", shard: int, numbers: Mapping[str, Any]) -> None:
    """Save the numbers of a shard for the status of the cluster."""
    connection.execute("UPDATE vedette.shard SET numbers = %s WHERE number = %s", (json.dumps(numbers), shard))


# sites


def add_site(connection: "Connection", start: str, command: Mapping[str, object]) -> bool:
    """Add a site to all shards, as a command; return whether it is new."""
    sql = "INSERT INTO vedette.site (start, command) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number"
    return connection.execute(sql, (start, json.dumps(command))).fetchone() is not None


def list_sites(connection: "Connection", after: int = 0) -> list[tuple[int, dict[str, Any]]]:
    """List the commands with a higher number that add the cluster's sites, each with its number."""
    rows = connection.execute("SELECT number, command FROM vedette.site WHERE number > %s ORDER BY number", (after,))
    return [(number, parse_object(command)) for number, command in rows]
