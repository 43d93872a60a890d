"""Gateway of a node: search over all shards of the cluster and commands to them, including shards of other nodes.

A gateway has its own small data folder for the operator's token, sessions and recorded searches. Everything else comes
from the shards or from PostgreSQL.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vedette.adapters.clock import Clock
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import list_search_addresses, read_secret
from vedette.adapters.registry.registry import load_cluster
from vedette.runtime.cluster.cluster_search import ClusterSearch
from vedette.runtime.cluster.remote_shards import RemoteShards
from vedette.web.console.ports.monitoring import RuntimeSettings

COMMAND_TIMEOUT_S = 5.0
POLL_EVERY_S = 0.05


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Settings of a node's gateway: the cluster's PostgreSQL, and the node's name."""

    dsn: str
    node: str


class ClusterDirectory:
    """What a gateway loads from PostgreSQL in the background: addresses of search processes, and owners."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        with connect(dsn) as connection:
            self.secret = read_secret(connection)
            self._shards = load_cluster(connection).shards

    def load_addresses(self) -> dict[int, str]:
        """Load the address of each shard's search process, and the partitions of each shard."""
        with connect(self._dsn) as connection:
            self._shards = load_cluster(connection).shards
            return list_search_addresses(connection)

    def find_shard(self, partition: int) -> int:
        """Return the shard that owns a partition, according to the last load."""
        return self._shards.find(partition)


def open_cluster_search(
    directory: ClusterDirectory, clock: Clock, learned: Path, get_settings: Callable[[], RuntimeSettings]
) -> ClusterSearch:
    """Connect to the shards of a cluster, and return a search over them."""
    shards = RemoteShards(directory.load_addresses, directory.secret)
    shards.start()
    return ClusterSearch(shards, directory.find_shard, clock, learned, get_settings)
