"""Page reputation from user feedback, looked up by page, host and query during a search."""

from typing import NamedTuple

import numpy as np

from vedette.policy import Floats, Ints

# Views of a page for other queries count as this many views at most: as much as in the estimate for the pair (half of
# ``learn.clicks.page_quality.PAGE_WEIGHT``).
MAX_OTHER_LOOKS = 2.5
_MIX = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class PageBeliefs(NamedTuple):
    """Reputation of some pages for one query: expected quality, and decayed likes and views overall.

    ``here_likes`` and ``here_looks`` are the evidence for the page on this query: that of the query itself, and other
    evidence as far as it applies here. ``general`` is the expected quality of any page, ``views_per_day`` is how often
    results of this query are viewed.
    """

    mean: Floats
    likes: Floats
    looks: Floats
    here_likes: Floats
    here_looks: Floats
    general: float
    views_per_day: float


class Reputation(NamedTuple):
    """Reputation columns, each kind sorted by its first. Queries and pairs are identified by hashes.

    ``teaching`` and ``ahead`` are the information value of a view of a young page and how many views are wanted
    (``explore.prospect.ValueTable``), for one view a day and one day of life.
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

    def look_up(self, ids: Ints, hosts: Ints, query: int) -> PageBeliefs:
        """Look up the reputation of pages for a query: by pair, else by page, else by site and query."""
        _, found = _match_sorted(self.query, np.array([query], np.int64))
        for_query = float(self.query_mean[found[0]]) if len(found) else self.general
        views = float(self.query_views[found[0]]) if len(found) else 0.0
        mean = np.full(len(ids), self.general)
        likes, looks, here_likes, here_looks = np.zeros((4, len(ids)))
        row, at = _match_sorted(self.host, hosts)
        mean[row] = self.host_mean[at]
        mean = (mean + for_query) / 2
        row, at = _match_sorted(self.page, ids)
        mean[row], likes[row], looks[row] = self.mean[at], self.likes[at], self.looks[at]
        row, at = _match_sorted(self.pair, pair_keys(query, ids))
        mean[row], here_likes[row], here_looks[row] = self.pair_mean[at], self.pair_likes[at], self.pair_looks[at]
        others = np.maximum(looks - here_looks, 0.0)
        counted = MAX_OTHER_LOOKS * others / (others + 2 * MAX_OTHER_LOOKS)
        here_likes += counted * np.minimum(np.maximum(likes - here_likes, 0.0) / np.maximum(others, 1e-9), 1.0)
        return PageBeliefs(mean, likes, looks, here_likes, here_looks + counted, self.general, views)


def pair_key(query: int, id_: int) -> int:
    """Hash a query and a page to a signed 64-bit reputation key."""
    mixed = ((query & _MASK) ^ (id_ * _MIX & _MASK)) * _MIX & _MASK
    return mixed - (1 << 64) if mixed >> 63 else mixed


def pair_keys(query: int | Ints, ids: Ints) -> Ints:
    """Hash a query, or one for each page, with many pages to reputation keys.

    >>> pair_keys(-5, np.array([3, 7])).tolist() == [pair_key(-5, 3), pair_key(-5, 7)]
    True
    """
    mixed = (np.asarray(query, np.int64).astype(np.uint64) ^ (ids.astype(np.uint64) * np.uint64(_MIX))) * np.uint64(
        _MIX
    )
    return np.asarray(mixed.view(np.int64))


def _match_sorted(sorted_keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Match wanted reputation keys with sorted known ones: positions in the wanted, and in the known keys."""
    if not len(sorted_keys):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = sorted_keys.searchsorted(wanted)
    at[at == len(sorted_keys)] = 0
    row = np.flatnonzero(sorted_keys[at] == wanted)
    return row, at[row]
