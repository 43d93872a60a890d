"""How orders for searching are given: through the keeper where one runs, else on the held folder."""

import argparse
import time
from typing import Any, Literal

from vedette.cli.asking import ask, folder_of
from vedette.edges.state_view import open_view
from vedette.live.commands import Call
from vedette.live.search_orders import SearchOrder, carry_out_search
from vedette.live.writing import written

__all__ = ["ordered", "sentence"]


def ordered(options: argparse.Namespace, verb: Literal["keys", "rules"], order: SearchOrder) -> dict[str, Any]:
    """Carry an order out: what was done, and whether something runs that goes by it at once."""
    folder = folder_of(options)
    reply = ask(folder, Call(verb, {"order": order}))
    if reply is not None:
        return {"done": reply["done"], "running": True}
    with open_view(folder):  # a folder without a crawl is told in words, and none is made
        now_s = time.time()
    with written(folder, now_s) as state:
        return {"done": carry_out_search(order, state, now_s), "running": False}


def sentence(told: dict[str, Any]) -> str:
    """What was done, for people."""
    return f"{told['done'][0].upper()}{told['done'][1:]}."
