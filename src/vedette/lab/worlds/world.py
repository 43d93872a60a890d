"""World interface: what a request at time t would have brought, and nothing else.

A reply is a value, so that the same world can be served over HTTP and replayed without it.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from vedette.model import Headers


@dataclass(frozen=True, slots=True)
class WorldHost:
    """A host of the world and the loopback address at which it is served.

    A ``name`` that begins with ``*.`` stands for every name below it (link farms).
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class WorldRequest:
    """A request as a server sees it; ``target`` is path and query as sent, validators are header values or None."""

    host: str
    target: str
    if_none_match: str | None = None
    if_modified_since: str | None = None


@dataclass(frozen=True, slots=True)
class Delivery:
    """How the bytes of a reply reach the client; latency and rate are of wall time.

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
    """Status, headers (without Content-Length, Date and Connection, which the server adds) and body."""

    status: int
    headers: Headers
    body: bytes
    delivery: Delivery = NORMAL_DELIVERY


class World(Protocol):
    """Anything that can be asked: made or recorded."""

    @property
    def name(self) -> str:
        """How it is written on the command line, such as ``made:small``, with its seed."""

    @property
    def start_s(self) -> float:
        """The world time at which it opens (Unix seconds of its own calendar)."""

    def hosts(self) -> tuple[WorldHost, ...]:
        """Every host, in a fixed order."""

    def reply(self, question: WorldRequest, now_s: float) -> Reply:
        """What this request brings at this world time: a pure function of world, question and time."""


CONSTANT_HEADERS: Headers = (
    ("content-type", "text/html; charset=utf-8"),
    ("etag", '"constant"'),
    ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
)


@dataclass(frozen=True, slots=True)
class ConstantWorld:
    """One page of ``size_bytes`` for every target of every name below ``.test``: measures what serving alone costs."""

    size_bytes: int
    start_s: float = 1_704_067_200.0
    _reply: Reply = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reply", Reply(200, CONSTANT_HEADERS, b"x" * self.size_bytes))

    @property
    def name(self) -> str:
        """How it is written on the command line."""
        return f"constant:{self.size_bytes}"

    def hosts(self) -> tuple[WorldHost, ...]:
        """One wildcard."""
        return (WorldHost("*.test", "127.0.0.1"),)

    def reply(self, question: WorldRequest, now_s: float) -> Reply:  # noqa: ARG002 - that neither matters is the point
        """The one page."""
        return self._reply
