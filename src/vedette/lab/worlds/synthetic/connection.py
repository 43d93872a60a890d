"""A client connection to the synthetic web: requests in, responses out, strictly in order and one at a time.

The common response (a body that fits the socket, no delay) is one write and no task. Every other delivery is a task
that sends a piece whenever the transport has room, so an endless body holds one piece in memory; it ends with the
connection. Logged times favor the client, see ``access_log``.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import cast

from vedette.adapters.clock import Clock
from vedette.lab.worlds.synthetic.http_wire import (
    PIECE_BYTES,
    HttpRequest,
    MalformedRequest,
    body_pieces,
    encode_chunk,
    format_response_head,
    has_body,
    is_chunked,
    is_self_delimiting,
    parse_request_head,
)
from vedette.lab.worlds.world import NORMAL_DELIVERY, Reply
from vedette.model import Headers

HEAD_END = b"\r\n\r\n"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
UNREADABLE_REQUEST = HttpRequest("", "http", "", 0, "", "", None, None, keep_alive=False, minor=1, carries_body=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a client connection to the synthetic web: sizes, and wall seconds it may keep the server waiting."""

    head_bytes: int = 16 * 1024
    waiting_bytes: int = 256 * 1024
    head_s: float = 10.0
    idle_s: float = 60.0
    stalled_s: float = 60.0
    linger_s: float = 2.0


@dataclass(slots=True)
class Exchange:
    """A request in progress on a client connection: what was handed to the socket so far, and since when.

    ``last_seen_s`` is a wall time at which the client was certainly still connected: the time of one tick counts once
    the next tick has passed without news, since the end of a connection may be unread in between.
    """

    request: HttpRequest
    reply: Reply
    address: str
    started_s: float
    status: int = 0
    sent_bytes: int = 0
    is_whole: bool = False
    written_s: float = field(init=False)
    last_seen_s: float = field(init=False)
    _newest_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.written_s = self.last_seen_s = self._newest_s = self.started_s

    def on_tick(self, wall_s: float) -> None:
        """Note on the server's tick that the client of this exchange is still connected."""
        self.last_seen_s, self._newest_s = self._newest_s, wall_s


@dataclass(frozen=True, slots=True)
class ConnectionContext:
    """Context shared by all connections to the synthetic web server: request handler, log, clock, open connections."""

    clock: Clock
    limits: Limits
    answer: Callable[[HttpRequest, float], Reply]
    log_exchange: Callable[[Exchange, float, bool], None]
    connections: dict["Connection", None] = field(default_factory=dict)


class Connection(asyncio.Protocol):
    """The server's side of one client connection to the synthetic web, as an asyncio protocol."""

    def __init__(self, service: ConnectionContext) -> None:
        self._service = service
        self._clock = service.clock
        self._inbox = bytearray()
        self._heads: deque[tuple[bytes, float]] = deque()
        self._waiting_bytes = 0
        self._head_since_s: float | None = None
        self._exchange: Exchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._input_closed = False
        self._deadline_s = inf

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register a new client connection."""
        self._loop = asyncio.get_running_loop()
        self._transport = cast("asyncio.Transport", transport)
        # With no slack in the buffer, a call to resume means that everything was sent.
        self._transport.set_write_buffer_limits(high=0)
        self.closed = self._loop.create_future()
        self._address = str(transport.get_extra_info("sockname")[0])
        self._service.connections[self] = None
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the reason changes nothing
        """End the exchange in progress when the client connection closes."""
        self._input_closed = True
        self._heads.clear()
        self._service.connections.pop(self, None)
        self.closed.set_result(None)
        if self._task is not None:
            self._task.cancel()
        if self._exchange is not None:
            # A client that leaves with the last byte may be quicker than the task that records it.
            whole = self._exchange.is_whole and self._writable is None
            self._service.log_exchange(
                self._exchange, self._exchange.written_s if whole else self._exchange.last_seen_s, whole
            )
            self._exchange = None

    def data_received(self, data: bytes) -> None:
        """Buffer received bytes and split off request heads at once, each with the time at which it was complete."""
        if self._input_closed:
            return
        self._inbox += data
        self._split_heads(self._clock.wall_now())
        self._answer_waiting()

    def pause_writing(self) -> None:
        """Pause sending on the connection: the socket is full."""
        self._writable = self._loop.create_future()
        self._deadline_s = self._loop.time() + self._service.limits.stalled_s

    def resume_writing(self) -> None:
        """Resume sending on the connection: everything was sent."""
        room, self._writable = self._writable, None
        self._deadline_s = self._loop.time() + self._service.limits.linger_s if self._input_closed else inf
        if room is not None and not room.done():
            room.set_result(None)
        self._answer_waiting()

    def on_tick(self, wall_s: float, loop_s: float) -> None:
        """Check the connection on the server's tick: note that the client is connected, and drop it after a timeout."""
        if self._exchange is not None:
            self._exchange.on_tick(wall_s)
        if loop_s > self._deadline_s:
            self.drop()

    def drop(self) -> None:
        """Drop the client connection now."""
        self._transport.abort()

    def _split_heads(self, wall_s: float) -> None:
        limits = self._service.limits
        while (end := self._inbox.find(HEAD_END, 0, limits.head_bytes + len(HEAD_END))) >= 0:
            self._queue_head(bytes(self._inbox[:end]), wall_s)
            del self._inbox[: end + len(HEAD_END)]
        if len(self._inbox) > limits.head_bytes or self._inbox.endswith(b"\n\n"):
            self._input_closed = True
            self._queue_head(b"", wall_s)
        if self._waiting_bytes > limits.waiting_bytes:
            self.drop()

    def _queue_head(self, head: bytes, wall_s: float) -> None:
        self._heads.append((head, wall_s))
        self._waiting_bytes += len(head) + len(HEAD_END)
        self._head_since_s = None

    def _answer_waiting(self) -> None:
        while self._heads and self._is_free():
            head, started_s = self._heads.popleft()
            self._waiting_bytes -= len(head) + len(HEAD_END)
            self._answer(head, started_s)
        if self._is_free() and not self._input_closed:
            self._wait_for_head()

    def _is_free(self) -> bool:
        return self._exchange is None and self._writable is None and not self._transport.is_closing()

    def _wait_for_head(self) -> None:
        """Set the connection's deadline: a request head that has begun must end in time, otherwise it may idle."""
        now_s, limits = self._loop.time(), self._service.limits
        if not self._inbox:
            self._deadline_s = now_s + limits.idle_s
            return
        if self._head_since_s is None:
            self._head_since_s = now_s
        self._deadline_s = self._head_since_s + limits.head_s

    def _answer(self, head: bytes, started_s: float) -> None:
        request, reply = self._parse_request(head, started_s)
        exchange = Exchange(request, reply, self._address, started_s)
        if reply.delivery == NORMAL_DELIVERY and reply.status and len(reply.body) <= PIECE_BYTES:
            self._send_at_once(exchange)
        else:
            self._exchange = exchange
            self._deadline_s = inf
            self._task = self._loop.create_task(self._deliver(exchange))

    def _parse_request(self, head: bytes, started_s: float) -> tuple[HttpRequest, Reply]:
        try:
            request = parse_request_head(head)
        except MalformedRequest as fault:
            return UNREADABLE_REQUEST, text_reply(400, f"This is no HTTP/1.1 request: {fault}.")
        return request, self._service.answer(request, self._clock.to_world_s(started_s))

    def _send_at_once(self, exchange: Exchange) -> None:
        request, reply = exchange.request, exchange.reply
        keeps = _can_keep_alive(exchange)
        body = reply.body if has_body(reply, request.method) else b""
        exchange.status, exchange.sent_bytes = reply.status, len(body)
        data = self._format_head(exchange, keeps=keeps) + body
        exchange.written_s = self._clock.wall_now()
        self._transport.write(data)
        self._service.log_exchange(exchange, exchange.written_s, True)
        if not keeps:
            self._close_after_reply(exchange)

    def _format_head(self, exchange: Exchange, *, keeps: bool) -> bytes:
        world_s = self._clock.to_world_s(exchange.started_s)
        return format_response_head(exchange.reply, minor=exchange.request.minor, keep_alive=keeps, world_s=world_s)

    async def _deliver(self, exchange: Exchange) -> None:
        delivery = exchange.reply.delivery
        await asyncio.sleep(delivery.wait_s)
        if exchange.reply.status:
            await self._send_slowly(exchange)
        if delivery.then == "hang" and not exchange.is_whole:
            await self._loop.create_future()
        self._exchange = None
        self._service.log_exchange(exchange, exchange.written_s, exchange.is_whole)
        if delivery.then == "reset" and not exchange.is_whole:
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self.drop()
        elif _can_keep_alive(exchange):
            self._answer_waiting()
        else:
            self._close_after_reply(exchange)

    async def _send_slowly(self, exchange: Exchange) -> None:
        reply, request = exchange.reply, exchange.request
        exchange.status = reply.status
        exchange.is_whole = not has_body(reply, request.method)
        await self._write(exchange, self._format_head(exchange, keeps=_can_keep_alive(exchange)))
        if not exchange.is_whole:
            await self._send_body(exchange)

    async def _send_body(self, exchange: Exchange) -> None:
        reply = exchange.reply
        in_chunks = is_chunked(reply.delivery, exchange.request.minor)
        began_s = self._loop.time()
        for piece in body_pieces(reply.body, reply.delivery):
            await self._pace(exchange, began_s)
            exchange.sent_bytes += len(piece)
            exchange.is_whole = exchange.sent_bytes == len(reply.body) and not reply.delivery.endless
            await self._write(exchange, encode_chunk(piece, last=exchange.is_whole) if in_chunks else piece)

    async def _write(self, exchange: Exchange, data: bytes) -> None:
        """Write response bytes to the connection's socket and wait for room; an empty body has ended with its head."""
        if not data:
            return
        exchange.written_s = self._clock.wall_now()
        self._transport.write(data)
        if self._writable is not None:
            await self._writable

    async def _pace(self, exchange: Exchange, began_s: float) -> None:
        """Pace a slow response on the connection until the sent bytes are due; without a rate, only yield to others."""
        rate = exchange.reply.delivery.bytes_per_s
        due_s = began_s if rate is None else began_s + exchange.sent_bytes / rate
        await asyncio.sleep(max(0.0, due_s - self._loop.time()))

    def _close_after_reply(self, exchange: Exchange) -> None:
        """Close the connection after the reply; let a client finish sending, so that no reset discards the reply."""
        self._input_closed = True
        self._heads.clear()
        if exchange.request.carries_body and not self._transport.is_closing():
            self._deadline_s = self._loop.time() + self._service.limits.linger_s
            self._transport.write_eof()
        else:
            self._transport.close()


def _can_keep_alive(exchange: Exchange) -> bool:
    request, reply = exchange.request, exchange.reply
    if request.carries_body or not request.keep_alive or reply.delivery.stop_after_bytes is not None:
        return False
    return reply.status != 0 and is_self_delimiting(reply, request)


def text_reply(status: int, text: str, headers: Headers = ()) -> Reply:
    """Build a plain-text reply of the server's own on a connection, such as an error."""
    return Reply(status, (("content-type", "text/plain; charset=utf-8"), *headers), f"{text}\n".encode())
