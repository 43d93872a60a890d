"""Ask the coordinator that runs on a data folder, or carry a command out on the folder itself where nothing runs."""

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
    """Return what the coordinator of a folder answers; None where nothing runs."""
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
    """Carry a command out; return what was done, and whether something runs that goes by it at once."""
    reply = call_coordinator(folder, Request("order", {"order": command, "who": actor}))
    if reply is not None:
        return {"done": reply["done"], "running": True}
    now_s = time.time()
    if not isinstance(command, AddSite | ImportSites):
        check_crawled(folder)
    with open_for_write(folder, now_s) as state:
        return {"done": execute_command(command, state, now_s, actor).words, "running": False}


def check_crawled(folder: Path) -> Path:
    """Return a folder that has a crawl; raise an error that says so of one that has none, and do not create it."""
    with open_state_reader(folder):
        return folder
