"""Client of operator commands: send them to the running coordinator, or run them on the data folder if none runs."""

import time
from pathlib import Path
from typing import Any
from uuid import uuid4

from vedette.adapters.crawl_store.data_folder import lock_folder, open_for_write, read_state
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.status_file import read_status
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.net.ipc import ChannelClosed, NoAnswer, Request
from vedette.errors import CommandPending, StoreBusy, StoreError, UsageError
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import AddSite, Command, ImportSites, command_to_json

COMMAND_TIMEOUT_S = 10.0
BRIEF_TIMEOUT_S = 0.5
# How long to wait for a coordinator that is starting, and how often to try.
START_TIMEOUT_S = 30.0
RETRY_S = 0.1


def call_coordinator(folder: Path, request: Request) -> dict[str, Any] | None:
    """Return the response of a data folder's running coordinator to a client's request; None if none runs."""
    try:
        reply: dict[str, Any] = ask_coordinator(folder, request)
    except OSError:
        return None
    except ChannelClosed:
        raise StoreError(
            f"the vedette process using {folder} did not respond: it is stopping or very busy; try again"
        ) from None
    return _check_reply(reply)


def call_starting_coordinator(folder: Path, request: Request) -> dict[str, Any] | None:
    """Like ``call_coordinator``, but wait for a coordinator that is starting: it holds the folder before it answers."""
    give_up_s = time.monotonic() + START_TIMEOUT_S
    while (reply := call_coordinator(folder, request)) is None and time.monotonic() < give_up_s:
        if not folder.exists():  # a lock would create it
            return None
        try:
            lock_folder(folder).close()
        except StoreBusy:
            time.sleep(RETRY_S)  # nothing signals that the coordinator has started
        else:
            return None
    return reply


def ask_briefly(folder: Path, request: Request) -> dict[str, Any] | None:
    """Query a data folder's coordinator for what the state does not contain; None if none runs.

    Raises ``ChannelClosed`` if it does not respond at once: there is an answer without it.
    """
    try:
        return _check_reply(ask_coordinator(folder, request, BRIEF_TIMEOUT_S))
    except OSError:
        return None


def send_command(
    folder: Path, command: Command | AdCommand, actor: str, id_: str = "", timeout_s: float = COMMAND_TIMEOUT_S
) -> dict[str, Any] | None:
    """Have a data folder's coordinator execute a command, once per ``id_``; None if none runs.

    If no response comes in time, the state says whether the command was executed.
    """
    request = Request("order", {"order": command_to_json(command), "who": actor}, id_ or uuid4().hex)
    try:
        return _check_reply(ask_coordinator(folder, request, timeout_s))
    except OSError:
        return None
    except ChannelClosed as error:
        with read_state(folder) as db:
            reply = CrawlStore(db).find_answer(request.id)
        if reply is None:
            raise _explain_silence(folder, error) from None
        return _check_reply(reply)


def _check_reply(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise UsageError(str(reply["error"]))
    return reply


def _explain_silence(folder: Path, error: ChannelClosed) -> StoreError:
    """Explain why a command has no response, and whether it will be executed."""
    if not isinstance(error, NoAnswer):
        return StoreError(
            f"the command did not run: the vedette process using {folder} is stopping or overloaded; try again"
        )
    silent_s = read_status(folder).age_s
    return CommandPending(
        f"not done yet: the crawler has been busy for {silent_s:.0f} s. The command is queued and runs as soon as "
        "possible, unless you stop the crawler first"
    )


def run_command(folder: Path, command: Command | AdCommand, actor: str) -> dict[str, Any]:
    """Run a client's command via the coordinator or on the folder; return what was done, and if one runs.

    If a coordinator runs, the command applies at once. One that is starting holds the folder before it can be asked.
    """
    id_, give_up_s = uuid4().hex, time.monotonic() + START_TIMEOUT_S
    while True:
        reply = send_command(folder, command, actor, id_)
        if reply is not None:
            return {"done": reply["done"], "running": True}
        try:
            return {"done": _run_on_folder(folder, command, actor), "running": False}
        except StoreBusy as error:
            if time.monotonic() > give_up_s:
                raise StoreBusy(f"not done: {error}") from None
            time.sleep(RETRY_S)  # nothing signals that the coordinator has started


def _run_on_folder(folder: Path, command: Command | AdCommand, actor: str) -> str:
    """Run a client's command on a data folder without a coordinator."""
    now_s = time.time()
    if not isinstance(command, AddSite | ImportSites):
        check_crawled(folder)
    with open_for_write(folder, now_s) as state:
        return execute_command(command, state, now_s, actor).words


def check_crawled(folder: Path) -> Path:
    """Return a data folder that has a crawl, for a client command; raise if it has none, without creating it."""
    with open_state_reader(folder):
        return folder
