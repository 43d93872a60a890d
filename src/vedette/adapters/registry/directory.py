"""Directory of a cluster: where the search process of each shard listens, the cluster's secret, and the gateways."""

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import fence, fetch_row

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

NAME = "cluster"


class Machine(NamedTuple):
    """A machine of the cluster: its name, seconds since its last sign of life, and where it serves, if it does."""

    name: str
    silent_s: float
    gateway: str


def read_secret(connection: "Connection") -> bytes:
    """Return the secret by which gateways and search processes know each other, and by which links are signed."""
    sql = "INSERT INTO vedette.secret VALUES (%s, %s) ON CONFLICT DO NOTHING"
    connection.execute(sql, (NAME, secrets.token_hex(32)))
    (value,) = fetch_row(connection, "SELECT value FROM vedette.secret WHERE name = %s", (NAME,))
    return bytes.fromhex(value)


def publish_search(connection: "Connection", shard: int, epoch: int, address: str) -> None:
    """Publish where a shard's search process listens, unless another node owns the shard by now."""
    fence(connection, shard, epoch)
    sql = """
        INSERT INTO vedette.search_process VALUES (%s, %s, %s)
        ON CONFLICT (shard) DO UPDATE SET epoch = EXCLUDED.epoch, address = EXCLUDED.address
    """
    connection.execute(sql, (shard, epoch, address))


def list_search_addresses(connection: "Connection") -> dict[int, str]:
    """List all shards, each with the address of its search process; empty if it never had one."""
    sql = "SELECT number, coalesce(address, '') FROM vedette.shard LEFT JOIN vedette.search_process ON shard = number"
    return dict(connection.execute(f"{sql} ORDER BY number").fetchall())


def publish_gateway(connection: "Connection", node: str, address: str) -> None:
    """Publish where a node serves pages, API and console."""
    sql = "INSERT INTO vedette.gateway VALUES (%s, %s) ON CONFLICT (node) DO UPDATE SET address = EXCLUDED.address"
    connection.execute(sql, (node, address))


def list_machines(connection: "Connection") -> list[Machine]:
    """List the machines that have joined and not left, by name."""
    sql = """
        SELECT name, extract(epoch FROM clock_timestamp() - seen)::float8, coalesce(address, '')
        FROM vedette.node LEFT JOIN vedette.gateway ON node = name ORDER BY name
    """
    return [Machine(*row) for row in connection.execute(sql)]
