"""Alert service: alerts and new pages of a data folder, for the console, feeds, API and command line."""

from collections.abc import Callable
from pathlib import Path

from vedette.adapters.alerts.alert_store import AlertItem, AlertReader
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.errors import UsageError
from vedette.runtime.alerts.publisher import filter_visible
from vedette.runtime.alerts.webhooks import WebhookSender, derive_secret, read_signing_secret
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.console.ports.alerts import AlertLine, SentMessage
from vedette.web.public.new_page_ports import ItemBatch


class FolderAlertService:
    """A ``web.console.ports.alerts.AlertService`` over one data folder; it reads while others write."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._folder, self._settings = settings.folder, settings
        self._reader = AlertReader(settings.folder)
        self._sender = WebhookSender(settings)

    def list_alerts(self) -> list[AlertLine]:
        """List the current alerts of the data folder, for the console's alerts page."""
        counts = self._reader.count_by_alert()
        with read_state(self._folder) as db:
            store = CrawlStore(db)
            secret = read_signing_secret(self._settings, store)
            return [
                AlertLine(row, counts.get(row.alert_id, 0), derive_secret(secret, row)) for row in store.list_alerts()
            ]

    def list_messages(self, most: int) -> list[SentMessage]:
        """List the latest webhook messages of alerts, for the console's alerts page."""
        names = {alert.watch.alert_id: alert.watch.name for alert in self.list_alerts()}
        return [SentMessage(names.get(one.watch, ""), one) for one in self._reader.list_deliveries(most)]

    def list_stuck(self) -> dict[str, tuple[SentMessage, int]]:
        """Return, by alert, the webhook message that its receiver rejects, and how many wait behind it."""
        names = {alert.watch.alert_id: alert.watch.name for alert in self.list_alerts()}
        found = ((names.get(one.watch, ""), one, behind) for one, behind in self._reader.list_stalled())
        return {name: (SentMessage(name, one), behind) for name, one, behind in found}

    def check_webhook(self, webhook: str) -> str:
        """Return why an alert's webhook URL is refused today; it is checked again with each message."""
        return self._sender.find_refusal(webhook)

    def send_test(self, name: str) -> SentMessage:
        """Send a test webhook message of an alert and return its row with the receiver's answer."""
        watch = next((alert.watch for alert in self.list_alerts() if alert.watch.name == name), None)
        if watch is None:
            raise UsageError(f'there is no watch "{name}"')
        if not watch.webhook:
            raise UsageError(f'the watch "{name}" has no webhook to test')
        self._sender.send_test(watch)
        return SentMessage(name, self._reader.list_deliveries(1, watch.alert_id)[0])


# How many items one request scans at most; a user who may see few continues from the cursor.
MAX_READS = 10
LAST_SEQ = 1 << 62

ReadItems = Callable[[int, int, str | None], list[AlertItem]]


class FolderNewPages:
    """A ``web.public.new_page_ports.NewPages`` over one data folder; it reads while others write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reader = AlertReader(folder)

    def has_alert(self, name: str) -> bool:
        """Check whether an alert of this name exists now."""
        return name in self.load_alerts()

    def load_alerts(self) -> dict[str, AlertRow]:
        """Load all alerts by name."""
        if not (self._folder / "state.db").exists():
            return {}
        with read_state(self._folder) as db:
            return {row.name: row for row in CrawlStore(db).list_alerts()}

    def list_after(self, cursor: int | None, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """List new pages after a cursor, oldest first; a cursor beyond the end, or None, starts at the end."""
        oldest, newest = self._reader.read_seq_range()
        missed = cursor is not None and 0 < cursor < oldest - 1
        start = newest if cursor is None else min(cursor, newest)
        return self._collect(self._reader.list_items, start, most, watch, allowed)._replace(missed=missed)

    def list_latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> ItemBatch:
        """List the latest new pages, newest first."""
        return self._collect(
            self._reader.list_latest, LAST_SEQ if before is None else min(before, LAST_SEQ), most, watch, allowed
        )

    def _collect(self, read: ReadItems, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> ItemBatch:
        """Collect a batch of new pages that the user may see; the cursor skips the rest."""
        mark, found, more = self._get_alert_id(watch), list[AlertItem](), True
        for _ in range(MAX_READS):
            items = read(cursor, most, mark)
            more = len(items) == most
            found += filter_visible(self._folder, items, allowed)
            cursor = items[-1].seq if items else cursor
            if not more or len(found) >= most:
                break
        if len(found) > most:
            found, cursor, more = found[:most], found[most - 1].seq, True
        return ItemBatch(tuple(found), cursor, more)

    def _get_alert_id(self, watch: str) -> str | None:
        """Return the id of an alert, or None for new pages of all alerts.

        An alert that does not exist matches nothing.
        """
        if not watch:
            return None
        row = self.load_alerts().get(watch)
        return row.alert_id if row else ""
