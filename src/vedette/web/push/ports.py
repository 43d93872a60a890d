"""The push service that the endpoints and the console's page call."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.push.push_store import CreditRow, IgnoredSignals, Subscription
from vedette.discover.push.indexnow import Ping


class PushReply(NamedTuple):
    """How something was taken: a status of HTTP, words, and in how many seconds to try again, where that helps."""

    status: int
    words: str = ""
    wait_s: int = 0


class HubDelivery(NamedTuple):
    """What a hub sent: a feed, as it would be fetched, with its signature and its links."""

    body: bytes
    content_type: str = ""
    signature: str = ""
    links: tuple[str, ...] = ()


class PushStatus(NamedTuple):
    """How push stands, for people: no secret is in it, and no address that hubs call."""

    public_url: str = ""
    total: int = 0
    subscriptions: tuple[Subscription, ...] = ()
    credits: tuple[CreditRow, ...] = ()
    ignored: tuple[IgnoredSignals, ...] = ()


class PushService(Protocol):
    """Waits for the keeper: call it in a thread. Where that is away, the answer is 503."""

    def verify_intent(self, token: str, query: Mapping[str, str]) -> PushReply:
        """A hub asks whether it was asked; the words are its challenge where it was."""

    def accept_delivery(self, token: str, delivery: HubDelivery) -> PushReply:
        """A hub sent something."""

    def accept_ping(self, ping: Ping) -> PushReply:
        """Somebody says that URLs are new or have changed."""

    def get_status(self) -> PushStatus:
        """How it stands."""
