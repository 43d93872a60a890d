"""What verbs need to talk to a data folder: which one, whether somebody runs it, and words from its keeper."""

import argparse
import time
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.dns import resolve_host
from vedette.adapters.net.ipc import ChannelClosed
from vedette.cli.commands.crawl import check_addresses
from vedette.config import load
from vedette.errors import StoreError, UsageError
from vedette.fetch.connect_to import find_endpoint
from vedette.model import origin_of
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.offline import open_for_write
from vedette.runtime.commands.rpc import Request
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.runtime.processes.supervisor import ask_coordinator
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import AddSite, Command, ImportSites


def data_folder(options: argparse.Namespace) -> Path:
    """The data folder that the command line or the settings name."""
    if options.data is not None:
        return Path(options.data)
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return load(path).store.data


def format_command(command: str, options: argparse.Namespace) -> str:
    """A command for the same folder, to be typed next."""
    place = f" --data {options.data}" if options.data is not None else ""
    if command == "up":  # what is not kept in the folder has to be said again
        contact = getattr(options, "contact", None)
        place += f" --contact {contact}" if contact else ""
        place += " --allow-private" if getattr(options, "allow_private", False) else ""
    return f"vedette {command}{place}"


def call_coordinator(folder: Path, call: Request) -> dict[str, Any] | None:
    """What the keeper of a folder answers; None where nothing runs."""
    try:
        reply: dict[str, Any] = ask_coordinator(folder, call)
    except OSError:
        return None
    except ChannelClosed:
        raise StoreError(
            f"the vedette that runs on {folder} did not answer: it is ending or very busy; try again"
        ) from None
    if "error" in reply:
        raise UsageError(str(reply["error"]))
    return reply


ACTOR = "the command line"


def run_command(options: argparse.Namespace, order: Command | AdCommand) -> dict[str, Any]:
    """Carry an order out: what was done, and whether something runs that goes by it at once."""
    folder = data_folder(options)
    reply = call_coordinator(folder, Request("order", {"order": order, "who": ACTOR}))
    if reply is not None:
        return {"done": reply["done"], "running": True}
    now_s = time.time()
    if not isinstance(order, AddSite | ImportSites):
        with open_state_reader(folder):  # a folder without a crawl is told in words, and none is made
            pass
    with open_for_write(folder, now_s) as state:
        return {"done": execute_command(order, state, now_s, ACTOR).words, "running": False}


def format_done(told: dict[str, Any], options: argparse.Namespace | None = None) -> str:
    """What was done, for people; with ``options`` also from when on it holds."""
    when = "" if told["running"] or options is None else f"; holds from the next {format_command('up', options)} on"
    return f"{told['done'][0].upper()}{told['done'][1:]}{when}."


# That is no reason not to begin: the others go on, and the console says so, too.


def check_known_sites(settings: RuntimeSettings, rows: list[SiteRow]) -> list[str]:
    """What to do about each site that is not paused and may not be asked."""
    rules = build_rules(settings, rows)
    told = []
    for site in rules.sites:
        origin = origin_of(site.start)
        detour = find_endpoint(origin, settings.detours)
        addresses = (detour.address,) if detour else resolve_host(origin.host).addresses
        try:
            if addresses:
                check_addresses(site, addresses, rules)
        except UsageError as error:
            told.append(f"nothing of {site.start} is fetched: {error}; or pause it: vedette sites pause {site.start}")
    return told
