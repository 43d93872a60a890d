"""Port of the console's Cluster page: machines and shards, as PostgreSQL knows them."""

from typing import NamedTuple, Protocol


class MachineLine(NamedTuple):
    """A machine: seconds since its last sign of life, where it serves (empty if nowhere), its shards, their pages.

    ``copy_age_s`` is the age of the oldest copy of its shards; None if one of them has no copy.
    """

    name: str
    silent_s: float
    gateway: str
    shards: int
    pages: int
    copy_age_s: float | None = None


class ShardLine(NamedTuple):
    """A shard: its partitions, owner (empty if none), epoch, seconds left of its lease, numbers, links that wait.

    ``copy_age_s`` is the age of its newest copy; None without one.
    """

    number: int
    partitions: str
    owner: str
    epoch: int
    lease_s: float
    pages: int
    known: int
    requests: int
    waiting: int
    copy_age_s: float | None = None


class ClusterStatus(NamedTuple):
    """The machines and shards of a cluster, for the Cluster page, and whether shards are copied to object storage."""

    machines: tuple[MachineLine, ...] = ()
    shards: tuple[ShardLine, ...] = ()
    has_storage: bool = False


class ClusterService(Protocol):
    """Port of the console's Cluster page; it may take a moment, so call it in a thread."""

    def load_cluster(self) -> ClusterStatus:
        """Load the machines and shards of the cluster."""
