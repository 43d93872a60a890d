"""Ports of the console's alerts page: alerts on new pages, and the deliveries to their webhooks."""

from typing import Final, NamedTuple, Protocol

from vedette.adapters.alerts.alert_store import Delivery
from vedette.adapters.crawl_store.new_page_store import AlertRow


class AlertLine(NamedTuple):
    """An alert for the console's alerts page, with its count of new pages and its webhook's signing key."""

    watch: AlertRow
    items: int
    secret: str = ""


class SentMessage(NamedTuple):
    """A message sent to an alert's webhook, with the alert's name; empty if the alert was removed."""

    name: str
    delivery: Delivery


class AlertService(Protocol):
    """Port of the console's alerts page: alerts and webhook messages, implemented by the runtime.

    ``check_webhook`` and ``send_test`` wait for other hosts: call them in a thread.
    """

    def list_alerts(self) -> list[AlertLine]:
        """List all alerts for the console's alerts page, oldest first."""

    def list_messages(self, most: int) -> list[SentMessage]:
        """List the latest webhook messages for the console's alerts page, latest first."""

    def check_webhook(self, webhook: str) -> str:
        """Return why alerts may not be sent to a webhook URL; empty if they may."""

    def send_test(self, name: str) -> SentMessage:
        """Send an alert's webhook a test message without pages; raise ``VedetteError`` if that is impossible."""


class _NoAlerts:
    """Null implementation of the alert port, for a console without alerts."""

    def list_alerts(self) -> list[AlertLine]:
        return []

    def list_messages(self, most: int) -> list[SentMessage]:  # noqa: ARG002 - the port's
        return []

    def check_webhook(self, webhook: str) -> str:  # noqa: ARG002 - the port's
        return ""

    def send_test(self, name: str) -> SentMessage:
        raise LookupError(name)


NO_ALERTS: Final = _NoAlerts()
