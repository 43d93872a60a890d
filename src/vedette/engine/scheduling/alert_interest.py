"""Which sources bring what somebody waits for: new pages at a watched place are worth more than others.

A watch names a place: a host, a path on one, or everywhere. What a source will bring lies where the rest of what it
links to lies, so its part of watched links, as it was last kept, is the part of its new pages that somebody waits for.
A watch for a query alone says nothing of where, and moves no look; a query within a place counts as the place.
"""

from collections.abc import Sequence

import numpy as np

from vedette.engine.ports import Book
from vedette.index.fields import places_of
from vedette.policy import Floats

__all__ = ["WATCHED_WORTH", "Watched"]

# A page that somebody waits for counts for so many others. What is lost by waiting grows about with the square of the
# time, so what is watched as a whole is looked at about twice as often.
WATCHED_WORTH = 4.0
EVERYWHERE = "*"
# So many links of a source, from all over it, speak for the others.
SAMPLE = 64


class Watched:
    """What is asked of the book is remembered until the source is looked at again, or watches are others."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._places: frozenset[str] = frozenset()
        self._share: dict[int, float] = {}

    def worth(self, ids: Sequence[int]) -> Floats:
        """How many ordinary new pages one of each of these sources counts for."""
        return 1.0 + (WATCHED_WORTH - 1.0) * np.array(self.shares(ids), np.float64)

    def shares(self, ids: Sequence[int]) -> list[float]:
        """The part of what each of these sources links to that lies where somebody watches."""
        places = frozenset(self._book.watched_places())
        if places != self._places:
            self._places, self._share = places, {}
        if not places or EVERYWHERE in places:
            return [float(bool(places))] * len(ids)
        for id_ in ids:
            if id_ not in self._share:
                self._share[id_] = _share(self._book.links_of(id_), places)
        return [self._share[id_] for id_ in ids]

    def looked(self, id_: int) -> None:
        """A source was looked at: what it links to may be other than before."""
        self._share.pop(id_, None)


def _share(links: Sequence[str], places: frozenset[str]) -> float:
    """The part of some links that lies at one of these places.

    >>> _share(["https://a.example/news/1", "https://a.example/shop"], frozenset({"a.example/news"}))
    0.5
    """
    some = links[:: len(links) // SAMPLE + 1]
    return sum(not places.isdisjoint(places_of(link)) for link in some) / len(some) if some else 0.0
