"""The new pages of a data folder, as pages, feeds, API and command line ask for them."""

from collections.abc import Callable
from pathlib import Path

from vedette.adapters.alerts.alert_store import Item, WatchView
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.errors import UsageError
from vedette.runtime.alerts.visibility import seen_by
from vedette.runtime.alerts.webhooks import Sender, secret_of
from vedette.runtime.processes.settings import LiveSettings
from vedette.web.console.ports.alerts import KeptWatch, SentMessage
from vedette.web.public.new_page_ports import Batch

__all__ = ["FolderNewPages", "FolderWatchDesk"]


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


# What one question looks through at most; whoever may see little goes on from the cursor.
STEPS = 10
LAST = 1 << 62

Read = Callable[[int, int, str | None], list[Item]]


class FolderNewPages:
    """A ``web.new_ports.NewPages`` over one data folder; it reads beside those who write."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._view = WatchView(folder)

    def is_watch(self, name: str) -> bool:
        """As the state has it now."""
        return name in self.watches()

    def watches(self) -> dict[str, WatchRow]:
        """All watches by name."""
        if not (self._folder / "state.db").exists():
            return {}
        with read_state(self._folder) as db:
            return {row.name: row for row in StateBook(db).watches()}

    def after(self, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:
        """The oldest first. A cursor beyond the end, as of another folder, begins at the end."""
        oldest, newest = self._view.ends()
        missed = 0 < cursor < oldest - 1
        return self._gathered(self._view.items, min(cursor, newest), most, watch, allowed)._replace(missed=missed)

    def latest(self, most: int, watch: str, allowed: tuple[str, ...], before: int | None = None) -> Batch:
        """The newest first."""
        return self._gathered(self._view.latest, LAST if before is None else before, most, watch, allowed)

    def _gathered(self, read: Read, cursor: int, most: int, watch: str, allowed: tuple[str, ...]) -> Batch:
        """What the reader may see; the cursor passes the rest."""
        mark, found, more = self._mark(watch), list[Item](), True
        for _ in range(STEPS):
            items = read(cursor, most, mark)
            more = len(items) == most
            found += seen_by(self._folder, items, allowed)
            cursor = items[-1].seq if items else cursor
            if not more or len(found) >= most:
                break
        if len(found) > most:
            found, cursor, more = found[:most], found[most - 1].seq, True
        return Batch(tuple(found), cursor, more)

    def _mark(self, watch: str) -> str | None:
        """None where all are meant; of a watch that is not there nothing is."""
        if not watch:
            return None
        row = self.watches().get(watch)
        return row.mark if row else ""
