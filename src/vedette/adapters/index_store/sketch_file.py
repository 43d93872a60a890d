"""Sketches of the queries that people ask, kept in their generation between two makings, with how far they are.

A generation that has none begins anew, and so does one whose file is damaged.
"""

import zipfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from vedette.frontier.impact.query_need import BUCKETS, Improvability
from vedette.frontier.impact.sketches import FIRST, Sketches
from vedette.policy import Ints

__all__ = ["KeptSketches", "read_sketches", "write_sketches"]

FILE = "sketches"
UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


class KeptSketches(NamedTuple):
    """A sketch for each query, by the print of its words; ``seq`` is up to which change of pages they are true."""

    prints: Ints
    sketches: Sketches
    rates: Improvability
    seq: int


def write_sketches(generation: Path, kept: KeptSketches) -> None:
    """Keep them, in one step."""
    draft, sketches, rates = generation / f"{FILE}.new", kept.sketches, kept.rates
    with draft.open("wb") as file:
        np.savez(
            file,
            prints=kept.prints,
            score=sketches.score.astype(np.float32),
            page=sketches.page.astype(np.int32),
            lost=sketches.lost,
            rates=np.array([rates.times, rates.scores, rates.gains]),
            top=np.array(rates.top),
            seq=np.array(kept.seq),
        )
    draft.replace(generation / FILE)


def read_sketches(generation: Path) -> KeptSketches | None:
    """Those of a generation; None where there are none that can be read."""
    with suppress(*UNREADABLE), (generation / FILE).open("rb") as file, np.load(file) as kept:
        score, page = kept["score"].astype(np.float64), kept["page"].astype(np.int64)
        prints, lost, rates = kept["prints"], kept["lost"], kept["rates"]
        is_sound = score.ndim == 2 and score.shape == page.shape and score.shape[1] > FIRST
        if is_sound and len(prints) == len(lost) == len(score) and rates.shape == (3, BUCKETS):
            times, scores, gains = (tuple(row) for row in rates.tolist())
            fitted = Improvability(float(kept["top"]), times, scores, gains)
            return KeptSketches(prints, Sketches(score, page, lost), fitted, int(kept["seq"]))
    return None
