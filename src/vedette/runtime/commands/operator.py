"""The operator of a data folder, for the console: rights from the state, commands to the coordinator."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.operator_store import ActionRow
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.ipc import ChannelClosed
from vedette.errors import StoreError, UsageError
from vedette.runtime.commands.rpc import Request
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.web.auth.tokens import matches_digest
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import Command, CommandResult
from vedette.web.console.ports.sites import ActionLine

T = TypeVar("T")


def send_command(folder: Path, command: Command | AdCommand, by: str) -> CommandResult:
    """Send an operator's command to the coordinator of a data folder, which commits before it answers."""
    try:
        reply = ask_coordinator(folder, Request("order", {"order": command, "who": by}))
    except (OSError, ChannelClosed):
        words = "the crawler does not answer: it is being started again; try once more in a moment"
        raise StoreError(words) from None
    if "error" in reply:
        raise UsageError(str(reply["error"]))
    action = reply["action"]
    assert isinstance(action, int)
    return CommandResult(str(reply["done"]), action)


class FolderOperator:
    """The console's ``AdminService`` for the operator of one data folder, read beside the coordinator."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = b""

    def get_signing_secret(self) -> bytes:
        """Return the data folder's signing secret for console tokens, which never changes."""
        self._secret = self._secret or self._query(CrawlStore.read_secret)
        return self._secret

    def is_operator_token(self, token: str) -> bool:
        """Check the operator's token against the data folder; never cached, so a replaced token ends at once."""
        return matches_digest(token, self._query(CrawlStore.read_token_digest))

    def session_opened_s(self, digest: str) -> float | None:
        """Return when an operator's console session was opened, read from the data folder each time."""
        return self._query(lambda store: store.read_session_start(digest))

    def run_command(self, command: Command, by: str) -> CommandResult:
        """Run an operator's command through the data folder's coordinator."""
        return send_command(self._folder, command, by)

    def list_actions(self, most: int, before: int | None = None) -> list[ActionLine]:
        """List the operator's logged actions from the data folder's state, latest first."""
        return [_build_line(row) for row in self._query(lambda store: store.list_actions(most, before))]

    def _query(self, question: Callable[[CrawlStore], T]) -> T:
        with read_state(self._folder) as db:
            return question(CrawlStore(db))


def _build_line(row: ActionRow) -> ActionLine:
    action = row.action
    is_open = bool(action.undo) and row.undone_s is None
    return ActionLine(row.id, action.at_s, action.what, action.who, is_open, row.undone_s)
