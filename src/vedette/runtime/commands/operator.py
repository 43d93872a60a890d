"""The operator of a data folder, for the console: rights from the state, commands to the coordinator."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from vedette.adapters.crawl_store import session_files
from vedette.adapters.crawl_store.data_folder import explain_errors, read_state
from vedette.adapters.crawl_store.operator_store import ActionRow
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.ipc import Channel, ChannelClosed, Request, connect
from vedette.errors import StoreError
from vedette.runtime.commands import client
from vedette.runtime.processes.loop import print_error
from vedette.web.auth.tokens import matches_digest
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import Command, CommandResult, LogSignIn, command_to_json
from vedette.web.console.ports.sites import ActionLine

T = TypeVar("T")
PAGE_TIMEOUT_S = 3.0


def send_command(folder: Path, command: Command | AdCommand, by: str, id_: str = "") -> CommandResult:
    """Send an operator's command to the coordinator of a data folder, which commits before it responds."""
    reply = client.send_command(folder, command, by, id_, PAGE_TIMEOUT_S)
    if reply is None:
        raise StoreError("the command did not run: the crawler is restarting; try again in a moment")
    return CommandResult(str(reply["done"]), int(reply["action"]))


def _post_command(folder: Path, command: Command, by: str) -> None:
    """Queue a command with the coordinator of a data folder, without waiting for its response."""
    channel = Channel(connect(folder / SOCKET))
    channel.send(Request("order", {"order": command_to_json(command), "who": by}))
    channel.close()


class FolderOperator:
    """The console's ``AdminService`` for the operator of one data folder, read while the coordinator runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._secret = b""

    def get_signing_secret(self) -> bytes:
        """Return the data folder's signing secret for console tokens, which never changes."""
        self._secret = self._secret or self._query(CrawlStore.read_secret)
        return self._secret

    def is_operator_token(self, token: str) -> bool:
        """Check the operator's token against the data folder; never cached, so a replaced token is invalid at once."""
        return matches_digest(token, self._query(CrawlStore.read_token_digest))

    def session_opened_s(self, digest: str) -> float | None:
        """Return when an operator's console session was opened, read from the data folder each time."""
        return session_files.read_session_start(self._folder, digest, self._query(CrawlStore.read_token_digest))

    def open_session(self, digest: str, wall_s: float, by: str) -> None:
        """Open an operator's console session; the coordinator logs it when it has time."""
        with explain_errors(self._folder):
            session_files.open_session(self._folder, digest, self._query(CrawlStore.read_token_digest), wall_s)
        try:
            _post_command(self._folder, LogSignIn(), by)
        except (OSError, ChannelClosed):
            print_error("someone signed in to the console while no crawler was running: the action log has no entry")

    def close_session(self, digest: str) -> None:
        """Close an operator's console session."""
        with explain_errors(self._folder):
            session_files.close_session(self._folder, digest)

    def run_command(self, command: Command, by: str, id_: str = "") -> CommandResult:
        """Run an operator's command through the data folder's coordinator, once per ``id_``."""
        return send_command(self._folder, command, by, id_)

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
