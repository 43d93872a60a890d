"""The port of the push service (WebSub, IndexNow) for the push endpoints and the console's push page."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.push.push_store import CreditRow, IgnoredSignals, Subscription
from vedette.discover.push.indexnow import Ping


class PushReply(NamedTuple):
    """The reply to a push request: an HTTP status, a message, and the seconds to retry after, if that helps."""

    status: int
    words: str = ""
    wait_s: int = 0


class HubDelivery(NamedTuple):
    """A WebSub hub's delivery: a feed as it would be fetched, with its signature and its links."""

    body: bytes
    content_type: str = ""
    signature: str = ""
    links: tuple[str, ...] = ()


class PushStatus(NamedTuple):
    """The status of push for the console's push page: without secrets and the callback URLs of hubs."""

    public_url: str = ""
    total: int = 0
    subscriptions: tuple[Subscription, ...] = ()
    credits: tuple[CreditRow, ...] = ()
    ignored: tuple[IgnoredSignals, ...] = ()


class PushService(Protocol):
    """The push service; it waits for the coordinator, so call it in a thread. Without one the reply is 503."""

    def verify_intent(self, token: str, query: Mapping[str, str]) -> PushReply:
        """Verify a WebSub hub's request to confirm a subscription; reply with its challenge if we asked for it."""

    def accept_delivery(self, token: str, delivery: HubDelivery) -> PushReply:
        """Accept a WebSub hub's delivery of a feed."""

    def accept_ping(self, ping: Ping, client: str = "") -> PushReply:
        """Accept an IndexNow ping about new or changed URLs; ``client`` is the network that it came from."""

    def get_status(self) -> PushStatus:
        """Return the status of push subscriptions and pings for the console's push page."""
