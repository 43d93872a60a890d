"""How places are looked at, told by results that lots put there: what no model of reading has to be believed for.

A good page stands high, so clicks by place say more about pages than about places. But where lots decided the place of
a page for a query, the same page was shown high and low for no reason of its own, and the difference is the places'.

    clicks of result r at place k  ~  showings(r, k) examined(k) attraction(r)

is fitted to these showings alone, by turns: one product in each row and each column, as in tables of counts. What it
says is relative: lots are never drawn for the first place where the operator keeps it, so the level is left to the
model of all clicks, and lots correct its shape, as far as they saw clicks.
"""

import numpy as np

from vedette.learn.clicks.impressions import Bools, Impressions
from vedette.policy import Floats, Ints

__all__ = ["examined_by_lots"]

STEPS = 50
# So many clicks at a place count as much as the model of all clicks does.
CONFIDENCE = 50.0
_TINY = 1e-9


def examined_by_lots(seen: Impressions, modelled: Floats) -> Floats:
    """What a model says of each place, corrected by showings whose place lots decided.

    Nothing is corrected without such showings, or where each result was shown at one place only.
    """
    by_lot = (seen.propensity > 0) & (seen.propensity < 1) & (seen.place < len(modelled))
    if not by_lot.any():
        return modelled
    pairs = np.column_stack([seen.group[by_lot], seen.page[by_lot]])
    _, result = np.unique(pairs, axis=0, return_inverse=True)
    shown, clicked = _tables(result.ravel(), seen.place[by_lot], seen.clicked[by_lot], len(modelled))
    # Who stood at one place alone says nothing of places.
    moved = (shown > 0).sum(axis=1) > 1
    shown, clicked = shown[moved], clicked[moved]
    heard = clicked.sum(axis=0)
    if np.count_nonzero(heard) < 2:
        return modelled
    examined = _fitted(shown, clicked, modelled)
    # The level is the model's: on average over clicks, logarithms stay what they were.
    offset = np.average(np.log(modelled / np.maximum(examined, _TINY)), weights=heard)
    weight = heard / (heard + CONFIDENCE)
    mixed = (1 - weight) * np.log(modelled) + weight * (np.log(np.maximum(examined, _TINY)) + offset)
    return np.asarray(np.minimum(np.exp(mixed), 1.0))


def _tables(result: Ints, place: Ints, clicked: Bools, places: int) -> tuple[Floats, Floats]:
    """Showings and clicks, a row for each result and a column for each place."""
    rows = int(result.max()) + 1
    at = result * places + place
    counts = (np.bincount(at, each, rows * places) for each in (np.ones(len(at)), clicked.astype(np.float64)))
    shown, chosen = (each.reshape(rows, places).astype(np.float64) for each in counts)
    return shown, chosen


def _fitted(shown: Floats, clicked: Floats, start: Floats) -> Floats:
    examined = start
    for _ in range(STEPS):
        attraction = clicked.sum(axis=1) / np.maximum(shown @ examined, _TINY)
        looks = attraction @ shown
        examined = np.where(looks > _TINY, clicked.sum(axis=0) / np.maximum(looks, _TINY), examined)
    return np.asarray(examined)
