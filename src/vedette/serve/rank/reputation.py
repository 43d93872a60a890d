"""What is believed of pages by what people made of them, found by page, host and query while a search is answered."""

from typing import NamedTuple

import numpy as np

from vedette.decide import Floats, Ints

__all__ = ["Believed", "Reputation", "pair_key", "pair_keys"]

# However often a page was looked at elsewhere, for another query that counts as so many looks at most: as much as in
# what is believed of the pair (half of ``learn.quality.PAGE_WEIGHT``).
ELSEWHERE = 2.5
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Believed(NamedTuple):
    """Of some pages for one query: expected quality, and faded likes and looks of the page anywhere.

    ``here_likes`` and ``here_looks`` are what is known of the page for this query: those of the query, and what was
    seen elsewhere as far as it says something here. ``general`` is what is expected of any page, ``views_per_day`` how
    often results of this query are looked at.
    """

    mean: Floats
    likes: Floats
    looks: Floats
    here_likes: Floats
    here_looks: Floats
    general: float
    views_per_day: float


class Reputation(NamedTuple):
    """Columns, each kind sorted by its first. Queries are known by a number (their fingerprint), and so are pairs.

    ``teaching`` and ``ahead`` are what a view of a young page teaches and how many are wanted
    (``promote.prospects.Table``), for one view a day and one day of life.
    """

    page: Ints
    likes: Floats
    looks: Floats
    mean: Floats
    pair: Ints
    pair_mean: Floats
    pair_likes: Floats
    pair_looks: Floats
    query: Ints
    query_mean: Floats
    query_views: Floats
    host: Ints
    host_mean: Floats
    teaching: Floats
    ahead: Floats
    general: float
    people: float

    def of(self, ids: Ints, hosts: Ints, query: int) -> Believed:
        """What is believed of pages for a query: of the pair, else of the page, else of its site and the query."""
        asked, was_asked = _places(self.query, np.array([query], np.int64))
        for_query = float(self.query_mean[asked[0]]) if was_asked[0] else self.general
        views = float(self.query_views[asked[0]]) if was_asked[0] else 0.0
        at, of_host = _places(self.host, hosts)
        mean = (np.where(of_host, _taken(self.host_mean, at), self.general) + for_query) / 2
        at, is_known = _places(self.page, ids)
        mean = np.where(is_known, _taken(self.mean, at), mean)
        likes = np.where(is_known, _taken(self.likes, at), 0.0)
        looks = np.where(is_known, _taken(self.looks, at), 0.0)
        at, is_pair = _places(self.pair, pair_keys(query, ids))
        here_likes, here_looks = (
            np.where(is_pair, _taken(each, at), 0.0) for each in (self.pair_likes, self.pair_looks)
        )
        others = np.maximum(looks - here_looks, 0.0)
        counted = ELSEWHERE * others / (others + 2 * ELSEWHERE)
        here_likes += counted * np.minimum(np.maximum(likes - here_likes, 0.0) / np.maximum(others, 1e-9), 1.0)
        mean = np.where(is_pair, _taken(self.pair_mean, at), mean)
        return Believed(mean, likes, looks, here_likes, here_looks + counted, self.general, views)


def pair_key(query: int, id_: int) -> int:
    """The number of a page for a query: a signed one of 64 bits, mixed so that neighbours are far apart."""
    mixed = ((query & _MASK) ^ (id_ * _MIX & _MASK)) * _MIX & _MASK
    return mixed - (1 << 64) if mixed >> 63 else mixed


def pair_keys(query: int, ids: Ints) -> Ints:
    """The same for many pages.

    >>> pair_keys(-5, np.array([3, 7])).tolist() == [pair_key(-5, 3), pair_key(-5, 7)]
    True
    """
    mixed = (np.uint64(query & _MASK) ^ (ids.astype(np.uint64) * np.uint64(_MIX))) * np.uint64(_MIX)
    return np.asarray(mixed.view(np.int64))


def _places(known: Ints, wanted: Ints) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Where each is among what is known, and whether it is there."""
    if not len(known):
        return np.zeros(len(wanted), np.int64), np.zeros(len(wanted), bool)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return at, known[at] == wanted


def _taken(values: Floats, at: Ints) -> Floats:
    return values[at] if len(values) else np.zeros(len(at))
