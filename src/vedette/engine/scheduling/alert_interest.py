"""Which sources bring what somebody waits for: new pages at a watched place are worth more than others.

A watch names a place: a host, a path on one, or everywhere. What a source will bring lies where the rest of what it
links to lies, so its part of watched links, as it was last kept, is the part of its new pages that somebody waits for.
A watch for a query alone says nothing of where, and moves no look; a query within a place counts as the place.
"""

from collections.abc import Sequence

import numpy as np

from vedette.engine.ports import CrawlStore
from vedette.index.fields import list_site_values
from vedette.policy import Floats

# A page that somebody waits for counts for so many others. What is lost by waiting grows about with the square of the
# time, so what is watched as a whole is looked at about twice as often.
ALERT_WEIGHT = 4.0
EVERYWHERE = "*"
# So many links of a source, from all over it, speak for the others.
SAMPLE = 64


class AlertInterest:
    """What is asked of the book is remembered until the source is looked at again, or watches are others."""

    def __init__(self, book: CrawlStore) -> None:
        self._store = book
        self._places: frozenset[str] = frozenset()
        self._share: dict[int, float] = {}

    def get_weights(self, ids: Sequence[int]) -> Floats:
        """How many ordinary new pages one of each of these sources counts for."""
        return 1.0 + (ALERT_WEIGHT - 1.0) * np.array(self.get_shares(ids), np.float64)

    def get_shares(self, ids: Sequence[int]) -> list[float]:
        """The part of what each of these sources links to that lies where somebody watches."""
        places = frozenset(self._store.get_alert_places())
        if places != self._places:
            self._places, self._share = places, {}
        if not places or EVERYWHERE in places:
            return [float(bool(places))] * len(ids)
        for id_ in ids:
            if id_ not in self._share:
                self._share[id_] = _compute_share(self._store.get_links(id_), places)
        return [self._share[id_] for id_ in ids]

    def invalidate(self, id_: int) -> None:
        """A source was looked at: what it links to may be other than before."""
        self._share.pop(id_, None)


def _compute_share(links: Sequence[str], places: frozenset[str]) -> float:
    """The part of some links that lies at one of these places.

    >>> _compute_share(["https://a.example/news/1", "https://a.example/shop"], frozenset({"a.example/news"}))
    0.5
    """
    some = links[:: len(links) // SAMPLE + 1]
    return sum(not places.isdisjoint(list_site_values(link)) for link in some) / len(some) if some else 0.0
