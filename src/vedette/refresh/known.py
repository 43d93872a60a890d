"""What is known of pages that were fetched: the batch that refresh policies judge."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.decide import Floats, Ints

__all__ = ["Bools", "Known"]

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Known:
    """Columns of equal length, one row per known page; all of them speak of its latest fetch that brought an answer.

    A policy may remember something of each page, as an array with one element per page; ``place`` says which element
    is this page's. Whoever keeps the array may hand over all of it, or only the elements of the pages in question with
    places 0, 1, 2 … : a batch then costs what the batch is large, however many pages are known.

        kept[pages] = policy.observe(kept[pages], batch_with_places_0_to_n, now)

    ``changed`` says whether the fetch found another content than the one before, and means nothing where
    ``first_fetch`` is set. ``modified_s`` is when the page last changed as far as is known: the server's word where it
    gives one, else the fetch that found the change; NaN where nothing is known. Failed fetches are no observations:
    when to try again is for the retry rules to say.
    """

    place: Ints
    last_fetch_s: Floats
    changed: Bools
    first_fetch: Bools
    modified_s: Floats

    def __len__(self) -> int:
        return len(self.place)
