"""The lease of a shard, shared by the processes of its tree.

The node renews leases in PostgreSQL, and writes to shared memory until when the shard may send requests: until 70% of
the lease has passed since the last renewal was sent. Fetchers compare this with their own clock before each request, so
they stop even if the node hangs. The clock counts from boot, and also runs while the machine is suspended.
"""

import mmap
import struct
import time
from dataclasses import dataclass, field
from math import inf

from vedette.engine.coordinator.shard import ShardMap

SAFE_SHARE = 0.7
# A shard whose copy is older than this sends no requests: losing its machine would cost too much.
MAX_UNCOPIED_S = 600.0
_TIMES = struct.Struct("dd")
_TIME = struct.Struct("d")


def read_clock_s() -> float:
    """Return the seconds since boot, which all processes of a machine share."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SharedLease:
    """A lease in memory that the node shares with the processes it forks."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIMES.size + _TIME.size)
        self.note_copied(inf)

    def extend(self, asked_s: float, lease_s: float) -> None:
        """Extend the lease after a renewal that was sent at this time of ``read_clock_s``."""
        _TIMES.pack_into(self._memory, 0, asked_s + SAFE_SHARE * lease_s, asked_s + lease_s)

    def note_copied(self, at_s: float) -> None:
        """Note the time of the shard's newest copy; without object storage, it never becomes outdated."""
        _TIME.pack_into(self._memory, _TIMES.size, at_s + MAX_UNCOPIED_S)

    def may_request(self) -> bool:
        """Check that requests may be sent: no other node can own the shard yet, and its copy is recent enough."""
        safe_s, copied_s = (
            float(_TIMES.unpack_from(self._memory)[0]),
            float(_TIME.unpack_from(self._memory, _TIMES.size)[0]),
        )
        return read_clock_s() < min(safe_s, copied_s)

    def has_ended(self) -> bool:
        """Check whether the lease has ended, so that the shard must be claimed again."""
        return read_clock_s() >= float(_TIMES.unpack_from(self._memory)[1])


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """Settings of one shard's process tree: its part of the cluster, its epoch, and its lease.

    Gateways reach its search process at ``host``. ``storage`` is the URL for its copies, or empty. ``copy`` is the
    epoch of the previous copy, or 0 if there is none.
    """

    number: int
    epoch: int
    shards: ShardMap
    dsn: str
    host: str = "127.0.0.1"
    lease: SharedLease = field(default_factory=SharedLease)
    storage: str = ""
    copy: int = 0
