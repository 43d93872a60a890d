"""Changes of synthetic pages, listed by each of the two forms that must agree: as arrays, and as served."""

import numpy as np

from vedette.lab.worlds.synthetic.change_times import ChangeProcess
from vedette.lab.worlds.synthetic.page_arrays import list_changes
from vedette.lab.worlds.synthetic.page_traits import CHANGE_LAWS, ChangeProcesses, last_text_change_s
from vedette.lab.worlds.synthetic.sites import Site


def edit_times(process: ChangeProcess, birth_s: float, until_s: float) -> list[float]:
    """Every change after birth, up to a time, in order, as the arrays have it."""
    law, key = np.array([CHANGE_LAWS.index(process.law)]), np.array([process.key], np.uint64)
    processes = ChangeProcesses(law, key, np.array([process.per_s]))
    return sorted(list_changes(processes, np.array([birth_s]), np.array([until_s])).at_s.tolist())


def change_times(site: Site, number: int, until_s: float) -> list[float]:
    """Every change of a page's text after its birth, up to a time, as it is served: from the last one back."""
    moments: list[float] = []
    while (last_s := last_text_change_s(site, number, until_s)) > site.births.birth_s(number):
        moments.append(last_s)
        until_s = last_s - 1e-3
    return moments[::-1]
