"""What the addresses for push, and the console's page on it, need of whatever runs the crawl."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from vedette.adapters.push.push_store import CreditRow, Ignored, Subscription
from vedette.discover.push.indexnow import Ping

__all__ = ["Delivery", "Push", "PushLook", "Told"]


class Told(NamedTuple):
    """How something was taken: a status of HTTP, words, and in how many seconds to try again, where that helps."""

    status: int
    words: str = ""
    wait_s: int = 0


class Delivery(NamedTuple):
    """What a hub sent: a feed, as it would be fetched, with its signature and its links."""

    body: bytes
    content_type: str = ""
    signature: str = ""
    links: tuple[str, ...] = ()


class PushLook(NamedTuple):
    """How push stands, for people: no secret is in it, and no address that hubs call."""

    public_url: str = ""
    total: int = 0
    subscriptions: tuple[Subscription, ...] = ()
    credits: tuple[CreditRow, ...] = ()
    ignored: tuple[Ignored, ...] = ()


class Push(Protocol):
    """Waits for the keeper: call it in a thread. Where that is away, the answer is 503."""

    def asked_back(self, token: str, query: Mapping[str, str]) -> Told:
        """A hub asks whether it was asked; the words are its challenge where it was."""

    def delivered(self, token: str, delivery: Delivery) -> Told:
        """A hub sent something."""

    def pinged(self, ping: Ping) -> Told:
        """Somebody says that URLs are new or have changed."""

    def look(self) -> PushLook:
        """How it stands."""
