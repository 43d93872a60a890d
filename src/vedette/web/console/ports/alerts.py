"""What the console needs of whatever tells people of new pages: the watches, and what became of messages."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import Delivery
from vedette.adapters.crawl_store.new_page_store import WatchRow

__all__ = ["NO_WATCHES", "KeptWatch", "SentMessage", "WatchDesk"]


class KeptWatch(NamedTuple):
    """A watch, how many new pages it has had, and by what its webhook knows messages from here."""

    watch: WatchRow
    items: int
    secret: str = ""


class SentMessage(NamedTuple):
    """A message to a webhook, and the name of its watch; empty where that is gone."""

    name: str
    delivery: Delivery


class WatchDesk(Protocol):
    """Watches and messages. ``refusal`` and ``test`` wait for others: call them in a thread."""

    def watches(self) -> list[KeptWatch]:
        """All of them, the oldest first."""

    def messages(self, most: int) -> list[SentMessage]:
        """The latest messages, the last one first."""

    def refusal(self, webhook: str) -> str:
        """Why nothing may be sent to a URL; empty where it may."""

    def test(self, name: str) -> SentMessage:
        """Send a message without pages now. A ``VedetteError`` says why there is none to send."""


class _None:
    """Where nobody is told anything."""

    def watches(self) -> list[KeptWatch]:
        return []

    def messages(self, most: int) -> list[SentMessage]:  # noqa: ARG002 - the port's
        return []

    def refusal(self, webhook: str) -> str:  # noqa: ARG002 - the port's
        return ""

    def test(self, name: str) -> SentMessage:
        raise LookupError(name)


NO_WATCHES: Final = _None()
