"""Made-up batches of sources, on which discovery policies are tried before anything depends on them."""

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.look_book import Brought, LookBook
from vedette.discover.polling.sources import Sources
from vedette.policy import Ints

__all__ = ["sample_sources"]

NOW_S = 1_700_000_000.0
_HOUR_S = 3_600.0
_MOST_HOURS = 6
_TARGETS = 40  # few, so that sources show the same ones


def sample_sources(rng: np.random.Generator, rows: int) -> Sources:
    """Sources after some hours of looks that failed, brought something, or brought nothing.

    Half of the batches are to choose from; the others are as after a look at every source, in any order.
    """
    book = LookBook(rng.integers(0, 3, rows))
    known = np.zeros(_TARGETS, bool)
    for hour in range(int(rng.integers(0, _MOST_HOURS)), 0, -1):
        some = rng.permutation(rows)[: rng.integers(0, rows + 1)]
        book.enter(_looks(rng, some, known), NOW_S - hour * _HOUR_S)
    return book.options() if rng.random() < 0.5 else book.enter(_looks(rng, rng.permutation(rows), known), NOW_S)


def _looks(rng: np.random.Generator, place: Ints, known: npt.NDArray[np.bool_]) -> Brought:
    """What a look at each of these sources brings, up to five targets; ``known`` learns of it."""
    ok = rng.random(len(place)) < 0.8
    many = rng.integers(0, 6, len(place)) * ok
    start = np.concatenate([[0], np.cumsum(many)]).astype(np.int64)
    first = rng.integers(0, _TARGETS, len(place)) - start[:-1]
    target = (np.repeat(first, many) + np.arange(start[-1])) % _TARGETS
    new = ~known[target]
    known[target] = True
    return Brought(place, ok, start, target, new)
