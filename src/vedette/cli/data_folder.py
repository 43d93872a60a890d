"""What verbs need to talk to a data folder: which one, whether somebody runs it, and words from its keeper."""

import argparse
from pathlib import Path
from typing import Any

from vedette.adapters.net.ipc import Gone
from vedette.config import load
from vedette.errors import StoreError, UsageError
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.supervisor import ask_keeper

__all__ = ["ask", "folder_of", "hint"]


def folder_of(options: argparse.Namespace) -> Path:
    """The data folder that the command line or the settings name."""
    if options.data is not None:
        return Path(options.data)
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return load(path).store.data


def hint(command: str, options: argparse.Namespace) -> str:
    """A command for the same folder, to be typed next."""
    place = f" --data {options.data}" if options.data is not None else ""
    if command == "up":  # what is not kept in the folder has to be said again
        contact = getattr(options, "contact", None)
        place += f" --contact {contact}" if contact else ""
        place += " --allow-private" if getattr(options, "allow_private", False) else ""
    return f"vedette {command}{place}"


def ask(folder: Path, call: Call) -> dict[str, Any] | None:
    """What the keeper of a folder answers; None where nothing runs."""
    try:
        reply: dict[str, Any] = ask_keeper(folder, call)
    except OSError:
        return None
    except Gone:
        raise StoreError(
            f"the vedette that runs on {folder} did not answer: it is ending or very busy; try again"
        ) from None
    if "error" in reply:
        raise UsageError(str(reply["error"]))
    return reply
