"""Search process of a shard: answer the gateways of the cluster over one data folder.

Gateways connect by TCP, and both sides prove that they know the cluster's secret and mean this address (HMAC, as
``multiprocessing.connection`` does it); messages are MessagePack. They are not encrypted: the machines of a cluster
share a private network, as with PostgreSQL.
"""

import hmac
import queue
import signal
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from vedette.adapters.clock import Clock
from vedette.adapters.registry.database import connect
from vedette.adapters.registry.directory import publish_search, read_secret
from vedette.engine.search.search import Searcher
from vedette.engine.search.shard_search import ShardSearcher, ShownResults, ShownRow
from vedette.errors import ClusterError, VedetteError
from vedette.runtime.cluster.search_wire import (
    call_verb,
    decode_call,
    encode_failure,
    encode_reply,
    is_for_console,
)
from vedette.runtime.cluster.shard_console import ShardConsole
from vedette.runtime.processes.loop import print_error
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.runtime.search.meaning import LEARNED, OFF
from vedette.runtime.search.searcher import FolderSearch
from vedette.serve.slate import SearchRequest, Slate

if TYPE_CHECKING:
    Channel: TypeAlias = Connection[bytes, bytes]

HANDSHAKE_TIMEOUT_S = 5.0
MESSAGE_TIMEOUT_S = 2  # once it has begun: a machine that hangs holds up no other
RETRY_EVERY_S = 1.0
MAX_GATEWAYS = 64  # and as many handshakes at once


class ShardFolderSearch(FolderSearch):
    """Search over a shard's data folder, in the rounds of a gateway."""

    def __init__(self, folder: Path, clock: Clock, embedding_model: str = OFF) -> None:
        # Each shard learns a space of its own, so only vectors of a model can be compared.
        super().__init__(
            folder, clock, learn=False, embedding_model=OFF if embedding_model == LEARNED else embedding_model
        )

    def get_searcher(self) -> ShardSearcher | None:
        """Return the searcher of the current index; None before the first page is indexed."""
        self._refresh()
        searcher = self._searcher
        assert searcher is None or isinstance(searcher, ShardSearcher)
        return searcher

    def show(self, id_: str, rows: tuple[ShownRow, ...], finds_missing: bool) -> ShownResults:  # noqa: FBT001 - as it is sent
        """Build the results at these rows, each with its number of duplicates."""
        searcher, snapshot = self.get_searcher(), self._snapshot
        if searcher is None or snapshot is None:
            return ShownResults((None,) * len(rows))
        shown = searcher.show(id_, rows, finds_missing)
        known = tuple(result for result in shown.results if result is not None)
        counted = iter(self._add_copy_counts(Slate(SearchRequest(""), 0, known), snapshot).results)
        return shown._replace(results=tuple(None if result is None else next(counted) for result in shown.results))

    def _build_searcher(self, snapshot: LiveIndexSnapshot) -> Searcher:
        return ShardSearcher(snapshot, self._rules, self._meaning)


class ShardServer:
    """Accept gateways, and answer them one request after the other.

    Searches stay in one thread. Another one answers the console, which may take longer, and the rest are handshakes.
    """

    def __init__(
        self, search: ShardFolderSearch, secret: bytes, host: str, console: ShardConsole | None = None
    ) -> None:
        self._search, self._console = search, console
        self._aside = ThreadPoolExecutor(1, "console")
        self._listener = socket.create_server((host, 0), family=_find_family(host))
        name = f"[{host}]" if ":" in host else host
        self.address = f"{name}:{self._listener.getsockname()[1]}"
        self._key = derive_key(secret, self.address)
        self._channels: list[Channel] = []
        self._handshakes = threading.BoundedSemaphore(MAX_GATEWAYS)
        self._new: queue.SimpleQueue[Channel] = queue.SimpleQueue()
        self._bell, self._push = socket.socketpair()

    def run(self) -> None:
        """Serve until the process ends."""
        while True:
            for ready in wait([self._listener, self._bell, *self._channels]):
                if ready is self._listener:
                    self._accept()
                elif ready is self._bell:
                    self._bell.recv(1)
                    self._channels.append(self._new.get())
                else:
                    self._answer(cast("Channel", ready))

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        if len(self._channels) < MAX_GATEWAYS and self._handshakes.acquire(blocking=False):
            threading.Thread(target=self._greet, args=(sock,), daemon=True).start()
        else:
            sock.close()

    def _greet(self, sock: socket.socket) -> None:
        """Let a gateway in that knows the secret."""
        try:
            with suppress(OSError, EOFError, AuthenticationError):
                self._new.put(open_channel(sock, self._key, is_server=True))
                self._push.send(b"!")
        finally:
            self._handshakes.release()

    def _answer(self, channel: "Channel") -> None:
        try:
            data = channel.recv_bytes()
            if is_for_console(data):
                self._channels.remove(channel)  # until it is answered
                self._aside.submit(self._answer_console, channel, data)
                return
            channel.send_bytes(self._call(data))
        except (OSError, EOFError):  # the gateway is gone
            self._channels.remove(channel)
            channel.close()

    def _answer_console(self, channel: "Channel", data: bytes) -> None:
        try:
            channel.send_bytes(self._call(data))
        except (OSError, EOFError):
            channel.close()
            return
        self._new.put(channel)
        self._push.send(b"!")

    def _call(self, data: bytes) -> bytes:
        """Return the reply to a call; a failed one says why, and the gateway goes on without this shard."""
        try:
            verb, arguments = decode_call(data)
            method = self._console.find(verb) if self._console is not None else None
            return encode_reply(method(*arguments) if method else call_verb(self._search, verb, arguments))
        except VedetteError as error:
            return encode_failure(str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, other calls are answered
            return encode_failure(f"{type(error).__name__}: {error}")


def derive_key(secret: bytes, address: str) -> bytes:
    """Return the key of the search process at an address.

    A program that listens where a search process was could pass handshakes on to another one. As each address has its
    own key, they prove nothing there.
    """
    return hmac.digest(secret, address.encode(), "sha256")


def open_channel(sock: socket.socket, key: bytes, *, is_server: bool) -> "Channel":
    """Return a channel over a socket whose other end knows the key, or raise ``AuthenticationError``."""
    sock.settimeout(None)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own = sock.dup()
    watch = threading.Timer(HANDSHAKE_TIMEOUT_S, _shut, (own,))
    watch.start()
    channel: Channel = Connection(sock.detach())
    try:
        first, second = (deliver_challenge, answer_challenge) if is_server else (answer_challenge, deliver_challenge)
        first(channel, key)
        second(channel, key)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            own.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", MESSAGE_TIMEOUT_S, 0))
    except AssertionError:  # what answers is no search process
        channel.close()
        raise AuthenticationError("no challenge") from None
    except BaseException:
        channel.close()
        raise
    finally:
        watch.cancel()
        own.close()
    return channel


def _shut(sock: socket.socket) -> None:
    """End a connection whose other end does not respond."""
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _find_family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def run_shard_search(settings: RuntimeSettings) -> int:
    """Run the search process of a shard until SIGTERM."""
    assert settings.shard is not None, "only a shard is searched by gateways"
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing has to be saved
    shard = settings.shard
    while not (settings.folder / "format").exists():
        time.sleep(RETRY_EVERY_S)  # nothing signals that the coordinator has created the folder
    console = ShardConsole(settings)
    trouble = ""
    while True:
        try:
            with connect(shard.dsn) as connection:
                secret = read_secret(connection)
                model = settings.config.serve.embedding_model
                search = ShardFolderSearch(settings.folder, settings.clock, model)
                server = ShardServer(search, secret, shard.host, console)
                publish_search(connection, shard.number, shard.epoch, server.address)
            break
        except ClusterError as error:
            if str(error) != trouble:
                print_error(f"shard {shard.number} cannot be searched yet: {error}")
            trouble = str(error)
            time.sleep(RETRY_EVERY_S)  # nothing signals that PostgreSQL is back
    server.run()
    return 0
