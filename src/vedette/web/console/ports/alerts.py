"""Ports of the console's page on alerts: alerts on new pages, and what became of their messages."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import Delivery
from vedette.adapters.crawl_store.new_page_store import AlertRow


class AlertLine(NamedTuple):
    """A watch, how many new pages it has had, and by what its webhook knows messages from here."""

    watch: AlertRow
    items: int
    secret: str = ""


class SentMessage(NamedTuple):
    """A message to a webhook, and the name of its watch; empty where that is gone."""

    name: str
    delivery: Delivery


class AlertService(Protocol):
    """Watches and messages. ``check_webhook`` and ``send_test`` wait for others: call them in a thread."""

    def list_alerts(self) -> list[AlertLine]:
        """All of them, the oldest first."""

    def list_messages(self, most: int) -> list[SentMessage]:
        """The latest messages, the last one first."""

    def check_webhook(self, webhook: str) -> str:
        """Why nothing may be sent to a URL; empty where it may."""

    def send_test(self, name: str) -> SentMessage:
        """Send a message without pages now. A ``VedetteError`` says why there is none to send."""


class _NoAlerts:
    """Where nobody is told anything."""

    def list_alerts(self) -> list[AlertLine]:
        return []

    def list_messages(self, most: int) -> list[SentMessage]:  # noqa: ARG002 - the port's
        return []

    def check_webhook(self, webhook: str) -> str:  # noqa: ARG002 - the port's
        return ""

    def send_test(self, name: str) -> SentMessage:
        raise LookupError(name)


NO_ALERTS: Final = _NoAlerts()
