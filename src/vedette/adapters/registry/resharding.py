"""Splits and moves of running shards: requests and their outcomes.

A split is requested by a mark on its shard, and carried out by the owner. Until it is saved, the shard is whole, and a
new owner starts the split again. To move a shard, its node releases it for another node to claim. If none does in time,
the first node takes it back.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

from vedette.adapters.registry.database import fence, fetch_row
from vedette.adapters.registry.registry import list_nodes, list_shards, load_cluster
from vedette.errors import ClusterError

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[Any]

# Another node has this many lease periods to claim a shard that is moved.
LEASES_TO_MOVE = 4.0


class Half(NamedTuple):
    """A shard after a split: number, first partition, the id inside its data folder, and whether it was copied."""

    number: int
    first: int
    folder: str
    is_copied: bool


def request_split(connection: "Connection", shard: int) -> None:
    """Request that the owner of a shard splits it; fail if that is impossible."""
    known = {one.number: one for one in list_shards(connection)}
    if shard not in known:
        raise ClusterError(f"there is no shard {shard}: choose one from 0 to {len(known) - 1}")
    if not known[shard].owner:
        raise ClusterError(f"shard {shard} has no owner: start a node first")
    if len(known[shard].partitions) < 2:
        raise ClusterError(f"shard {shard} has one partition, which cannot be split: choose another shard")
    nodes, storage = list_nodes(connection), load_cluster(connection).storage
    # Without storage, only the node that has the folder can run the new shard.
    hosts = [one for one in nodes if not one.is_draining and (storage or one.name == known[shard].owner)]
    if not any(one.most > one.shards for one in hosts):
        where = "no node has" if storage else f"{known[shard].owner} does not have"
        raise ClusterError(f"{where} room for one more shard: start another node, or restart one with more --shards")
    connection.execute("UPDATE vedette.shard SET is_splitting = true WHERE number = %s", (shard,))


def list_splits(connection: "Connection", node: str) -> list[int]:
    """List the shards of a node that should be split."""
    sql = "SELECT number FROM vedette.shard WHERE owner = %s AND is_splitting"
    return [number for (number,) in connection.execute(sql, (node,))]


def refuse_split(connection: "Connection", shard: int) -> None:
    """Withdraw the request to split a shard, because it is impossible."""
    connection.execute("UPDATE vedette.shard SET is_splitting = false WHERE number = %s", (shard,))


def save_split(connection: "Connection", shard: int, epoch: int, lower: Half, upper: Half) -> None:
    """Save that a shard was split; both halves have no owner, and can be claimed immediately.

    Links, commands and sites go to the lower half, which keeps the number of the whole shard and forwards what is not
    its own. The upper half has done everything that the whole shard has done.
    """
    fence(connection, shard, epoch)
    sql = "INSERT INTO vedette.shard (number, first, epoch, folder) VALUES (%s, %s, 1, %s)"
    connection.execute(sql, (upper.number, upper.first, upper.folder))
    connection.execute("INSERT INTO vedette.lease (shard) VALUES (%s)", (upper.number,))
    sql = "UPDATE vedette.shard SET owner = '', epoch = epoch + 1, folder = %s, is_splitting = false WHERE number = %s"
    connection.execute(sql, (lower.folder, shard))
    connection.execute("UPDATE vedette.lease SET until = '-infinity' WHERE shard = %s", (shard,))
    connection.execute("DELETE FROM vedette.copy WHERE shard = %s", (shard,))
    for half, copied in ((lower, epoch + 1), (upper, 1)):
        if half.is_copied:
            sql = "INSERT INTO vedette.copy VALUES (%s, %s, clock_timestamp())"
            connection.execute(sql, (half.number, copied))
    sql = """
        INSERT INTO vedette.command_reply
        SELECT number, %s, words, is_error, action FROM vedette.command_reply WHERE shard = %s
    """
    connection.execute(sql, (upper.number, shard))


def rebalance(connection: "Connection") -> list[tuple[int, str]]:
    """Have nodes with more shards than others hand some over; return these shards with their nodes."""
    if not load_cluster(connection).storage:
        raise ClusterError("the cluster has no storage, so shards cannot move: stop a node to hand its shards over")
    nodes = [node for node in list_nodes(connection) if not node.is_draining]
    if len(nodes) < 2:
        raise ClusterError("moving shards requires at least two running nodes: start another node")
    counts = {node.name: node.shards for node in nodes}
    room = {node.name: node.most for node in nodes}
    owned = {name: [one.number for one in list_shards(connection) if one.owner == name] for name in counts}
    moves: list[tuple[int, str]] = []
    while True:
        full = max(counts, key=lambda name: counts[name])
        free = [name for name in counts if counts[name] < room[name]]
        empty = min(free, key=lambda name: counts[name], default=full)
        if counts[full] - counts[empty] < 2:
            break
        moves.append((owned[full].pop(), full))
        counts[full] -= 1
        counts[empty] += 1
    (lease_s,) = fetch_row(connection, "SELECT lease_s FROM vedette.cluster")
    sql = """
        UPDATE vedette.shard SET leaves = owner, leaves_until = clock_timestamp() + make_interval(secs => %s)
        WHERE number = ANY(%s)
    """
    connection.execute(sql, (LEASES_TO_MOVE * lease_s, [shard for shard, _ in moves]))
    return moves
