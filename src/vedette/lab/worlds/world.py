"""World interface: the response to a request at time t, and nothing else.

A reply is a value, so that the same world can be served over HTTP and replayed without it.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from vedette.model import Headers


@dataclass(frozen=True, slots=True)
class WorldHost:
    """A host of a world and the loopback address at which it is served.

    A ``name`` that begins with ``*.`` covers every name below it (link farms).
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """A request to a world; ``target`` is path and query as sent, validators are header values or None."""

    host: str
    target: str
    if_none_match: str | None = None
    if_modified_since: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the bytes of a world's reply reach the client; latency and rate are in wall time.

    ``stop_after_bytes`` counts body bytes actually sent before ``then`` happens; ``endless`` repeats the body until
    the client leaves (no Content-Length is sent). ``chunked`` sends the body without Content-Length.
    """

    wait_s: float = 0.0
    bytes_per_s: float | None = None
    stop_after_bytes: int | None = None
    then: Literal["close", "reset", "hang"] = "close"
    endless: bool = False
    chunked: bool = False


NORMAL_DELIVERY = Delivery()


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply of a world: status, headers (the server adds Content-Length, Date and Connection) and body."""

    status: int
    headers: Headers
    body: bytes
    delivery: Delivery = NORMAL_DELIVERY


class World(Protocol):
    """Interface of a world, synthetic or recorded, that replies to requests at any time."""

    @property
    def name(self) -> str:
        """Return the world's name on the command line, such as ``made:small``, with its seed."""

    @property
    def start_s(self) -> float:
        """Return the world time at which the world opens (Unix seconds of its own calendar)."""

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return every host of the world, in a fixed order."""

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """Return the world's reply to a request at a world time: a pure function of world, request and time."""


CONSTANT_HEADERS: Headers = (
    ("content-type", "text/html; charset=utf-8"),
    ("etag", '"constant"'),
    ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
)


@dataclass(frozen=True, slots=True)
class ConstantWorld:
    """World with one constant page of ``size_bytes`` for every URL below ``.test``: measures the cost of serving."""

    size_bytes: int
    start_s: float = 1_704_067_200.0
    _reply: Reply = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reply", Reply(200, CONSTANT_HEADERS, b"x" * self.size_bytes))

    @property
    def name(self) -> str:
        """Return the constant world's name on the command line."""
        return f"constant:{self.size_bytes}"

    def hosts(self) -> tuple[WorldHost, ...]:
        """Return the constant world's only host, a wildcard."""
        return (WorldHost("*.test", "127.0.0.1"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:  # noqa: ARG002 - that neither matters is the point
        """Return the constant world's only page."""
        return self._reply
