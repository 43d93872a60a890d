"""What verbs need to talk to a data folder: which one, whether somebody runs it, and words from its keeper."""

import argparse
import time
from pathlib import Path
from typing import Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.dns import look_up
from vedette.adapters.net.ipc import Gone
from vedette.cli.commands.crawl import check_addresses
from vedette.config import load
from vedette.errors import StoreError, UsageError
from vedette.fetch.connect_to import detour_for
from vedette.model import origin_of
from vedette.runtime.commands.executor import carry_out
from vedette.runtime.commands.offline import written
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.settings import LiveSettings, rules_for
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.web.commands.ads_commands import MarketOrder
from vedette.web.commands.commands import AddSite, ImportSites, Order

__all__ = ["WHO", "ask", "check_known", "folder_of", "hint", "ordered", "sentence"]


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


WHO = "the command line"


def ordered(options: argparse.Namespace, order: Order | MarketOrder) -> dict[str, Any]:
    """Carry an order out: what was done, and whether something runs that goes by it at once."""
    folder = folder_of(options)
    reply = ask(folder, Call("order", {"order": order, "who": WHO}))
    if reply is not None:
        return {"done": reply["done"], "running": True}
    now_s = time.time()
    if not isinstance(order, AddSite | ImportSites):
        with open_view(folder):  # a folder without a crawl is told in words, and none is made
            pass
    with written(folder, now_s) as state:
        return {"done": carry_out(order, state, now_s, WHO).words, "running": False}


def sentence(told: dict[str, Any], options: argparse.Namespace | None = None) -> str:
    """What was done, for people; with ``options`` also from when on it holds."""
    when = "" if told["running"] or options is None else f"; holds from the next {hint('up', options)} on"
    return f"{told['done'][0].upper()}{told['done'][1:]}{when}."


# That is no reason not to begin: the others go on, and the console says so, too.


def check_known(settings: LiveSettings, rows: list[SiteRow]) -> list[str]:
    """What to do about each site that is not paused and may not be asked."""
    rules = rules_for(settings, rows)
    told = []
    for site in rules.sites:
        origin = origin_of(site.start)
        detour = detour_for(origin, settings.detours)
        addresses = (detour.address,) if detour else look_up(origin.host).addresses
        try:
            if addresses:
                check_addresses(site, addresses, rules)
        except UsageError as error:
            told.append(f"nothing of {site.start} is fetched: {error}; or pause it: vedette sites pause {site.start}")
    return told
