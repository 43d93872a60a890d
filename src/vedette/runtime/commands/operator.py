"""The operator of a data folder, as the console sees him: rights out of the state, orders to the keeper."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.operator_store import ActionRow
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.net.ipc import Gone
from vedette.errors import StoreError, UsageError
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.web.auth.tokens import fits
from vedette.web.commands.commands import Done, Order
from vedette.web.console.ports.sites import ActionLine

__all__ = ["FolderOperator"]

T = TypeVar("T")


class FolderOperator:
    """A ``web.console.ports.Operator`` over one data folder; it reads beside the keeper."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = b""

    def secret(self) -> bytes:
        """It never changes."""
        self._secret = self._secret or self._read(StateBook.secret)
        return self._secret

    def token_fits(self, token: str) -> bool:
        """Asked anew each time, so that a replaced token ends at once."""
        return fits(token, self._read(StateBook.token_digest))

    def session_opened_s(self, digest: str) -> float | None:
        """So is a session."""
        return self._read(lambda book: book.session_opened_s(digest))

    def order(self, order: Order, by: str) -> Done:
        """Through the keeper, which commits before it answers."""
        try:
            reply = ask_keeper(self._folder, Call("order", {"order": order, "who": by}))
        except (OSError, Gone):
            raise StoreError(
                "the crawler does not answer: it is being started again; try once more in a moment"
            ) from None
        if "error" in reply:
            raise UsageError(str(reply["error"]))
        action = reply["action"]
        assert isinstance(action, int)
        return Done(str(reply["done"]), action)

    def actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """As they are kept."""
        return [_line(row) for row in self._read(lambda book: book.actions(most, before))]

    def _read(self, question: Callable[[StateBook], T]) -> T:
        with read_state(self._folder) as db:
            return question(StateBook(db))


def _line(row: ActionRow) -> ActionLine:
    action = row.action
    is_open = bool(action.undo) and row.undone_s is None
    return ActionLine(row.id, action.at_s, action.what, action.who, is_open, row.undone_s)
