"""A world that says the same everywhere: what serving costs when making the page costs nothing."""

from dataclasses import dataclass, field

from vedette.lab.worlds.world import Reply, WorldHost, WorldRequest
from vedette.model import Headers

HEADERS: Headers = (
    ("content-type", "text/html; charset=utf-8"),
    ("etag", '"constant"'),
    ("last-modified", "Mon, 01 Jan 2024 00:00:00 GMT"),
)


@dataclass(frozen=True, slots=True)
class ConstantWorld:
    """Every name below ``.test`` answers every target with one page of ``size_bytes``."""

    size_bytes: int
    start_s: float = 1_704_067_200.0
    _reply: Reply = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reply", Reply(200, HEADERS, b"x" * self.size_bytes))

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
