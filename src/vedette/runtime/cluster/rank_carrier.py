"""Rank carrier of a shard: exchange the importance of pages between the shard's folder and the other shards."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vedette.adapters.exchange.rank_exchange import MAX_BYTES, fetch_block, list_versions, send_block
from vedette.adapters.index_store.rank_blocks import FOLDER, OUT, receive_block
from vedette.adapters.registry.database import fence
from vedette.runtime.cluster.lease import ShardSettings
from vedette.runtime.processes.settings import RuntimeSettings

if TYPE_CHECKING:
    import psycopg

EVERY_S = 5.0


class RankCarrier:
    """Exchange rank blocks every few seconds; after a restart, all of them again."""

    def __init__(self, settings: RuntimeSettings, shard: ShardSettings) -> None:
        self._folder, self._shard = settings.folder, shard
        self._sent = 0
        self._received: dict[int, int] = {}
        self._next_s = 0.0

    def step(self, connection: "psycopg.Connection[Any]") -> None:
        """Send the shard's block if it is new, and receive one new block."""
        if time.monotonic() < self._next_s:
            return
        self._next_s = time.monotonic() + EVERY_S
        with suppress(FileNotFoundError):
            self._send(connection)
        with connection.transaction():
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            versions = list_versions(connection, self._shard.number)
            new = [shard for shard, version in versions.items() if self._received.get(shard) != version]
            packed = {shard: fetch_block(connection, shard) for shard in new[:1]}
        for shard, block in packed.items():
            receive_block(self._folder, shard, block)
            self._received[shard] = versions[shard]
            self._next_s = 0.0  # there may be more

    def _send(self, connection: "psycopg.Connection[Any]") -> None:
        file = self._folder / FOLDER / OUT
        version = file.stat().st_mtime_ns
        if version == self._sent or file.stat().st_size > MAX_BYTES:
            return
        packed = file.read_bytes()
        with connection.transaction():
            fence(connection, self._shard.number, self._shard.epoch)
            send_block(connection, self._shard.number, version, packed)
        self._sent = version
