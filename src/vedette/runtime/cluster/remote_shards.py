"""Connections of a gateway to the search processes of all shards: call many at once, with a deadline.

A shard that misses the deadline is skipped until it can be reached again in the background, so that a hanging machine
delays only one search. Searches never wait for a connection or for PostgreSQL.
"""

import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias

from vedette.errors import ClusterError
from vedette.runtime.cluster.search_wire import ShardFailure, decode_reply, encode_call
from vedette.runtime.processes.shard_search import derive_key, open_channel

DEADLINE_S = 1.5
CONNECT_TIMEOUT_S = 2.0
RENEW_EVERY_S = 1.0

Channel: TypeAlias = "Connection[bytes, bytes]"


class RemoteShards:
    """The ``engine.search.gateway.Shards`` of a cluster, by the addresses in PostgreSQL."""

    def __init__(
        self, load_addresses: Callable[[], Mapping[int, str]], secret: bytes, deadline_s: float = DEADLINE_S
    ) -> None:
        self._load_addresses, self._secret, self._deadline_s = load_addresses, secret, deadline_s
        self._addresses: Mapping[int, str] = {}
        self._channels: dict[int, tuple[str, Channel]] = {}
        self._turn = threading.Lock()
        self._pool = ThreadPoolExecutor(8, "shards")

    def start(self) -> None:
        """Connect to all shards, and keep connecting in the background."""
        self.renew()
        threading.Thread(target=self._renew_forever, daemon=True).start()

    @property
    def numbers(self) -> Sequence[int]:
        """The numbers of all shards."""
        return tuple(self._addresses)

    def ask(
        self, verb: str, arguments: Mapping[int, tuple[Any, ...]], refusals: dict[int, str] | None = None
    ) -> dict[int, Any]:
        """Call a verb in several shards at once; return the replies that arrived in time.

        ``refusals`` gets the reasons of shards that cannot answer the call.
        """
        with self._turn:
            until_s = time.monotonic() + self._deadline_s
            waiting = self._send(verb, arguments)
            replies: dict[int, Any] = {}
            while waiting and (left_s := until_s - time.monotonic()) > 0:
                for channel in wait(list(waiting), left_s):
                    shard = waiting.pop(channel)  # type: ignore[call-overload]  # these are the ones waited for
                    try:
                        replies[shard] = decode_reply(verb, channel.recv_bytes())  # type: ignore[union-attr]  # likewise
                    except ShardFailure as failure:
                        if refusals is not None:
                            refusals[shard] = str(failure)
                    except (OSError, EOFError, ValueError):
                        self._drop(shard)
            for shard in waiting.values():
                self._drop(shard)
        return replies

    def _send(self, verb: str, arguments: Mapping[int, tuple[Any, ...]]) -> dict[Channel, int]:
        """Send a call to all connected shards; return their channels."""
        waiting: dict[Channel, int] = {}
        for shard, values in arguments.items():
            if shard in self._channels:
                try:
                    self._channels[shard][1].send_bytes(encode_call(verb, values))
                    waiting[self._channels[shard][1]] = shard
                except OSError:
                    self._drop(shard)
        return waiting

    def _drop(self, shard: int) -> None:
        _, channel = self._channels.pop(shard)
        channel.close()

    def renew(self) -> None:
        """Load the addresses again, and connect to shards that are new, have moved or did not respond."""
        with suppress(ClusterError):  # the last addresses are used until PostgreSQL is back
            self._addresses = dict(self._load_addresses())
        with self._turn:
            for shard in [
                shard for shard, (address, _) in self._channels.items() if self._addresses.get(shard) != address
            ]:
                self._drop(shard)
            missing = {
                shard: address for shard, address in self._addresses.items() if address and shard not in self._channels
            }
        for shard, address, channel in self._pool.map(self._connect, missing, missing.values()):
            if channel is not None:
                with self._turn:
                    self._channels[shard] = address, channel

    def _connect(self, shard: int, address: str) -> "tuple[int, str, Channel | None]":
        host, _, port = address.rpartition(":")
        try:
            sock = socket.create_connection((host.strip("[]"), int(port)), CONNECT_TIMEOUT_S)
            return shard, address, open_channel(sock, derive_key(self._secret, address), is_server=False)
        except (OSError, EOFError, AuthenticationError, ValueError):
            return shard, address, None

    def _renew_forever(self) -> None:
        while True:
            time.sleep(RENEW_EVERY_S)  # how soon a shard that moved is found
            self.renew()
