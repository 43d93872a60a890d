"""Directory of a cluster: the addresses of the shards' search processes, the cluster's secret, and the gateways."""

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import fence, fetch_row

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

NAME = "cluster"


class Machine(NamedTuple):
    """A machine of the cluster: its name, seconds since its last heartbeat, and its public address, if it has one."""

    name: str
    silent_s: float
    gateway: str


def read_secret(connection: "Connection") -> bytes:
    """Return the secret with which gateways and search processes authenticate each other and sign links."""
    sql = "INSERT INTO vedette.secret VALUES (%s, %s) ON CONFLICT DO NOTHING"
    connection.execute(sql, (NAME, secrets.token_hex(32)))
    (value,) = fetch_row(connection, "SELECT value FROM vedette.secret WHERE name = %s", (NAME,))
    return bytes.fromhex(value)


def publish_search(connection: "Connection", shard: int, epoch: int, address: str) -> None:
    """Publish the address of a shard's search process, unless another node owns the shard now."""
    fence(connection, shard, epoch)
    sql = """
        INSERT INTO vedette.search_process VALUES (%s, %s, %s)
        ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch, address = EXCLUDED.address
    """
    connection.execute(sql, (shard, epoch, address))


def list_search_addresses(connection: "Connection") -> dict[int, str]:
    """List all shards with the addresses of their search processes; empty for a shard that has never had one."""
    sql = "SELECT number, coalesce(address, '') FROM vedette.shard LEFT JOIN vedette.search_process ON shard = number"
    return dict(connection.execute(f"{sql} ORDER BY number").fetchall())


def publish_gateway(connection: "Connection", node: str, address: str) -> None:
    """Publish the address where a node serves pages, API and console."""
    sql = "INSERT INTO vedette.gateway VALUES (%s, %s) ON CONFLICT (node) DO UPDATE SET address = EXCLUDED.address"
    connection.execute(sql, (node, address))


def list_machines(connection: "Connection") -> list[Machine]:
    """List the machines that have joined and not left, sorted by name."""
    sql = """
        SELECT name, extract(epoch FROM clock_timestamp() - seen)::float8, coalesce(address, '')
        FROM vedette.node LEFT JOIN vedette.gateway ON node = name ORDER BY name
    """
    return [Machine(*row) for row in connection.execute(sql)]
