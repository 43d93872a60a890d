"""The watches of a data folder, as console and command line see them."""

from vedette.adapters.alerts.alert_store import WatchView
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.errors import UsageError
from vedette.runtime.alerts.watch_messages import secret_of
from vedette.runtime.alerts.webhooks import Sender
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.console.ports.alerts import KeptWatch, SentMessage

__all__ = ["FolderWatchDesk"]


class FolderWatchDesk:
    """A ``web.console.herald_ports.WatchDesk`` over one data folder; it reads beside those who write."""

    def __init__(self, settings: LiveSettings) -> None:
        self._folder = settings.folder
        self._view = WatchView(settings.folder)
        self._sender = Sender(settings)

    def watches(self) -> list[KeptWatch]:
        """As the state has them now."""
        counts = self._view.counts()
        with read_state(self._folder) as db:
            book = StateBook(db)
            secret = book.secret()
            return [KeptWatch(row, counts.get(row.mark, 0), secret_of(secret, row)) for row in book.watches()]

    def messages(self, most: int) -> list[SentMessage]:
        """As the book has them."""
        names = {kept.watch.mark: kept.watch.name for kept in self.watches()}
        return [SentMessage(names.get(one.watch, ""), one) for one in self._view.deliveries(most)]

    def held_up(self) -> dict[str, tuple[SentMessage, int]]:
        """By watch: the message that its receiver does not take, and how many wait behind it."""
        names = {kept.watch.mark: kept.watch.name for kept in self.watches()}
        found = ((names.get(one.watch, ""), one, behind) for one, behind in self._view.held_up())
        return {name: (SentMessage(name, one), behind) for name, one, behind in found}

    def refusal(self, webhook: str) -> str:
        """As names say today; it is looked at again with each message."""
        return self._sender.refusal(webhook)

    def test(self, name: str) -> SentMessage:
        """Whatever the receiver says is in the message's row afterwards."""
        watch = next((kept.watch for kept in self.watches() if kept.watch.name == name), None)
        if watch is None:
            raise UsageError(f'there is no watch "{name}"')
        if not watch.webhook:
            raise UsageError(f'the watch "{name}" has no webhook to test')
        self._sender.test(watch)
        return SentMessage(name, self._view.deliveries(1, watch.mark)[0])
