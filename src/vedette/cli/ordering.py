"""How an operator's orders are given: through the keeper where one runs, else on the held folder."""

import argparse
import time
from typing import Any

from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import ask, folder_of, hint
from vedette.runtime.commands.executor import carry_out
from vedette.runtime.commands.offline import written
from vedette.runtime.commands.rpc import Call
from vedette.web.commands.ads_commands import MarketOrder
from vedette.web.commands.commands import AddSite, ImportSites, Order

__all__ = ["WHO", "ordered", "sentence"]

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
