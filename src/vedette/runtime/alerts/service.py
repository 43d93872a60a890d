"""The new pages of a data folder, as pages, feeds, API and command line ask for them."""

from collections.abc import Callable
from pathlib import Path

from vedette.adapters.alerts.alert_store import Item, WatchView
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.new_page_store import WatchRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.runtime.alerts.watch_seeing import seen_by
from vedette.web.public.new_ports import Batch

__all__ = ["FolderNewPages"]

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
