"""What refresh policies are told of their fetches beside "changed": what each brought to search, and how much is new.

A policy says which columns of ``Known`` it wants (``wants``). All are worked out of copies and queries, none of what a
page will say: see ``gains`` and ``shingle_shares``.
"""

import numpy as np

from vedette.lab.quality.shingle_shares import ShingleShares
from vedette.lab.quality.workload import Asking
from vedette.lab.runs.refresh.gains import Gains
from vedette.lab.worlds.history import History
from vedette.policy import Floats, Ints

__all__ = ["Measured", "measures_for"]


class Measured:
    """The columns that are wanted, fetch by fetch."""

    def __init__(self, history: History, asking: Asking, wants: frozenset[str]) -> None:
        self._wants = wants
        self._gains = Gains(history, asking.workload)
        self._shares = ShingleShares(history)

    def met(self, pages: Ints, versions: Ints) -> dict[str, Floats]:
        """These are first copies, and this is how often they are seen."""
        self._gains.met(pages, versions)
        return self._views(pages)

    def took(self, pages: Ints, before: Ints, after: Ints) -> dict[str, Floats]:
        """What fetches that replace these copies brought."""
        columns: dict[str, Floats] = {}
        gain = self._gains.took(pages, before, after)
        if "gain" in self._wants:
            columns["gain"] = gain
        if "share" in self._wants:
            columns["share"] = self._shares.between(before, after)
        return columns | self._views(pages)

    def _views(self, pages: Ints) -> dict[str, Floats]:
        return {"views": np.asarray(self._gains.views()[pages])} if "views" in self._wants else {}


def measures_for(policy: object, history: History, asking: Asking | None) -> Measured | None:
    """What a policy wants to be told of this world; None where it wants nothing, or nobody asks anything."""
    wants: frozenset[str] = getattr(policy, "wants", frozenset())
    return Measured(history, asking, wants) if wants and asking is not None else None
