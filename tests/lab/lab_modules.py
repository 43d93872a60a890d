"""Modules as others might write them, which tests save to files: a small experiment, and valid and invalid policies."""

from pathlib import Path

__all__ = ["EXPERIMENT", "POLICIES", "written"]

EXPERIMENT = '''
"""A question that is answered by lots; every cell notes the process that worked it out, and takes its time."""

import os
import time
from pathlib import Path

from vedette.policy import rng_for


class Tiny:
    name = "tiny"
    about = "what do lots bring?"
    worlds = ("made",)
    metrics = ("freshness", "fetches")
    own = {}
    policies = ("default", "random", "bound-best")
    budgets = (1.0, 2.0)
    of_texts: tuple[str, ...] = ()
    figures: tuple[tuple[str, str], ...] = ()

    def run(self, cell):
        if "TINY_PIDS" in os.environ:
            with Path(os.environ["TINY_PIDS"]).open("a") as file:
                file.write(f"{os.getpid()}\\n")
            if len(Path(os.environ["TINY_PIDS"]).read_text().split()) > int(os.environ["TINY_CELLS"]):
                time.sleep(3600)  # until the test kills it
        if cell.policy == "default" and "TINY_FAILS" in os.environ:
            raise RuntimeError("the lots are gone")
        lot = float(rng_for(cell.seed, f"{cell.policy}/{cell.budget}").random())
        return [{"freshness": lot, "fetches": cell.budget}]


EXPERIMENT = Tiny()
'''

POLICIES = '''
"""Refresh policies from elsewhere, one of which keeps what every policy owes."""

import itertools

import numpy as np


class Hourly:
    name = "hourly"

    def start(self, config):
        return ()

    def observe(self, state, batch, now):
        return state

    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s + 3600.0

    def reason(self, state, batch, row, now):
        return "an hour after the last fetch"


class Short(Hourly):
    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s[1:]


class NotANumber(Hourly):
    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s * np.nan


class Meddler(Hourly):
    def due(self, state, batch, now, price, rng):
        batch.last_fetch_s[:] = 0.0
        return batch.last_fetch_s + 1.0


class Moody(Hourly):
    calls = itertools.count()

    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s + next(self.calls)


class Hoarder(Hourly):
    def start(self, config):
        return []

    def observe(self, state, batch, now):
        state.append(now)
        return state


class Breaks(Hourly):
    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s / len(batch.urls)


class Silent(Hourly):
    def reason(self, state, batch, row, now):
        return ""


class Undecided(Hourly):
    def worth(self, state, batch, now, rng):
        return batch.last_fetch_s


class Nameless:
    def due(self, state, batch, now, price, rng):
        return batch.last_fetch_s


class Demanding(Hourly):
    def __init__(self, interval_s):
        self.interval_s = interval_s
'''


def written(folder: Path, name: str, text: str) -> Path:
    """Save a module of that name with this text in the folder."""
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return folder
