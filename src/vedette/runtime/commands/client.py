"""Client of operator commands: ask the running coordinator, or execute on the data folder if none runs."""

import time
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.ipc import ChannelClosed
from vedette.errors import StoreError, UsageError
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.offline import open_for_write
from vedette.runtime.commands.rpc import Request
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import AddSite, Command, ImportSites


def call_coordinator(folder: Path, request: Request) -> dict[str, Any] | None:
    """Return the response of a data folder's running coordinator to a client's request; None if none runs."""
    try:
        reply: dict[str, Any] = ask_coordinator(folder, request)
    except OSError:
        return None
    except ChannelClosed:
        raise StoreError(
            f"the vedette that runs on {folder} did not answer: it is ending or very busy; try again"
        ) from None
    if "error" in reply:
        raise UsageError(str(reply["error"]))
    return reply


def run_command(folder: Path, command: Command | AdCommand, actor: str) -> dict[str, Any]:
    """Run a client's command via the coordinator or on the folder; return what was done, and if one runs.

    Where a coordinator runs, the command applies at once.
    """
    reply = call_coordinator(folder, Request("order", {"order": command, "who": actor}))
    if reply is not None:
        return {"done": reply["done"], "running": True}
    now_s = time.time()
    if not isinstance(command, AddSite | ImportSites):
        check_crawled(folder)
    with open_for_write(folder, now_s) as state:
        return {"done": execute_command(command, state, now_s, actor).words, "running": False}


def check_crawled(folder: Path) -> Path:
    """Return a data folder that has a crawl, for a client command; raise if it has none, without creating it."""
    with open_state_reader(folder):
        return folder
