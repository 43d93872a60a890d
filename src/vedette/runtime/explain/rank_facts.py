"""What readers made of a page, and what orders results now, as plain values, out of what is on disk."""

from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.index_store.generations import Generations
from vedette.runtime.search.ranking_told import read_told, status_words
from vedette.runtime.search.reputation_store import ReputationFile

__all__ = ["rank_facts"]

Told = dict[str, Any]


def rank_facts(id_: int, url: str, folder: Path, now_s: float) -> Told | None:
    """How results are ordered, and what is known of a page; None before anything was recorded.

    ``likes``, ``looks`` and ``expected`` are None where what was learned is not used, or has nothing of the page.
    """
    generations = Generations(folder)
    told = read_told(generations.folder)
    if told is None or not told.searches:
        return None
    tried = next((page for page in told.promoted if page.url == url), None)
    return {
        "order": status_words(told, now_s),
        "guard_until_s": told.guard.until_s if told.guard.holds(now_s) else None,
        **_known(id_, generations.current()),
        "general": told.general if told.is_learned else None,
        "tried": tried._asdict() if tried else None,
    }


def _known(id_: int, generation: Path | None) -> Told:
    nothing = {"likes": None, "looks": None, "expected": None}
    if generation is None:
        return nothing
    file = ReputationFile(generation)
    file.look()
    known = file.reputation
    at = int(np.searchsorted(known.page, id_)) if known is not None else 0
    if known is None or at >= len(known.page) or known.page[at] != id_:
        return nothing
    return {"likes": float(known.likes[at]), "looks": float(known.looks[at]), "expected": float(known.mean[at])}
