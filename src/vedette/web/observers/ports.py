"""The port of the observer service, for the endpoint of observers and the console."""

from typing import NamedTuple, Protocol


class ObserverReply(NamedTuple):
    """The reply to an observer: a status, and its orders with their signature, or a message."""

    status: int
    body: bytes = b""
    signature: str = ""
    words: str = ""


class ObserverView(NamedTuple):
    """An observer as shown to the operator: its last report, its errands, and its link to home.

    ``latency_s`` and ``per_byte_s`` are None before a few exchanges; ``trouble`` says why it was revoked.
    """

    name: str
    added_s: float
    heard_s: float | None
    lease_until_s: float
    held: int
    revoked_s: float | None = None
    trouble: str = ""
    secret_sites: tuple[str, ...] = ()
    latency_s: float | None = None
    per_byte_s: float | None = None
    checks: int = 0
    mismatches: int = 0
    refused: int = 0
    is_auto: bool = False


class ObservedHostView(NamedTuple):
    """A host of an observer, why the observer has it, and what an observation costs there and from home.

    The seconds (eq. 41 and 42) are None until there are enough measurements. ``next`` gets the host once it has been
    released.
    """

    host: str
    observer: str
    since_s: float
    why: str
    by_hand: bool
    next: str | None
    looks: int = 0
    change_share: float | None = None
    compression: float | None = None
    sent_per_look: float | None = None
    page_bytes: float | None = None
    direct_s: float | None = None
    remote_s: float | None = None


class ObserverService(Protocol):
    """The observer service; it waits for the observer hub, so call it in a thread."""

    def exchange(self, name: str, signature: str, body: bytes) -> ObserverReply:
        """Pass on a signed report from an observer, and return its signed orders."""

    def has_any(self) -> bool:
        """Whether any observer was ever added."""

    def list_observers(self) -> tuple[ObserverView, ...]:
        """List all observers by name, including revoked ones."""

    def list_hosts(self) -> tuple[ObservedHostView, ...]:
        """List the hosts of observers."""

    def list_kept(self) -> tuple[str, ...]:
        """List the hosts that an operator assigned to home."""
