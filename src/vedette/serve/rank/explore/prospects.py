"""What another view of a page is worth: what it is expected to please now, and what it teaches for the page's life.

If n more people saw the page, its expected quality would move, and it would stand elsewhere for as long as it lives.
With ``gain(q)`` what a page of expected quality q adds to the quality of all views of a day (others move down for it),

    worth = mean + patience x life x views x max over n of (E gain(mean after n) - gain(mean)) / n

which is the knowledge gradient over the best number of views (Frazier and Powell 2010), in quality per view. Views by
people who know the page teach nothing, so the second part is multiplied by the share of those who do not.
"""

from typing import NamedTuple

import numpy as np

from vedette.attention import visibility
from vedette.policy import Floats
from vedette.serve.rank.explore.candidates import Crowd
from vedette.serve.rank.explore.prior import GRID, posterior

__all__ = ["MOST_AWARE", "MOST_LIKES", "Ladder", "Table", "table_of"]

# States with more views or likes have nothing left to learn that would matter; they are taken at their mean.
MOST_AWARE, MOST_LIKES = 40, 12
AHEAD = (1, 2, 4, 8, 16)


class Table(NamedTuple):
    """Expected quality, what a view teaches, and how many views teach most, by awareness (row) and likes (column)."""

    mean: Floats
    teaching: Floats
    ahead: Floats


class Ladder(NamedTuple):
    """A list by expected quality, best first, the share of views of each place, and what all from there on lose."""

    means: Floats
    shares: Floats
    lost: Floats

    @classmethod
    def of(cls, means: Floats) -> "Ladder":
        """The list of pages with these means."""
        ordered = np.sort(means)[::-1]
        shares = visibility(np.arange(1, len(ordered) + 2))
        shares /= shares.sum()
        lost = (shares[:-1] - shares[1:]) * ordered
        return cls(ordered, shares, np.append(np.cumsum(lost[::-1])[::-1], 0.0))

    def gain(self, quality: Floats) -> Floats:
        """What a further page of each quality adds to the expected quality of a view.

        The page at place p pushes all below it down by one: ``s_p q - sum over i >= p of (s_i - s_(i+1)) m_i`` with the
        shares of views s and the means m.

        >>> Ladder.of(np.array([0.2, 0.4])).gain(np.array([0.1, 0.3, 0.5])).round(3).tolist()
        [0.012, 0.048, 0.135]
        """
        places = np.searchsorted(-self.means, -quality)
        return np.asarray(self.shares[places] * quality - self.lost[places])


def table_of(weights: Floats, ladder: Ladder, crowd: Crowd) -> Table:
    """The worth of every state that a young page can be in, under a law of quality, among others."""
    aware, likes = (each.ravel() for each in np.mgrid[: MOST_AWARE + 1, : MOST_LIKES + 1].astype(np.float64))
    believed = posterior(weights, np.minimum(likes, aware), aware)
    mean = believed @ GRID
    now = ladder.gain(mean)
    taught = np.zeros((len(AHEAD), len(mean)))
    for row, views in enumerate(AHEAD):
        chance, after = _after(believed, views)
        taught[row] = ((chance * ladder.gain(after)).sum(axis=1) - now) / views
    best = np.maximum(taught.max(axis=0), 0.0) * crowd.life_days * crowd.views_per_day
    ahead = np.array(AHEAD, np.float64)[taught.argmax(axis=0)]
    shape = (MOST_AWARE + 1, MOST_LIKES + 1)
    return Table(mean.reshape(shape), best.reshape(shape), ahead.reshape(shape))


def _after(believed: Floats, views: int) -> tuple[Floats, Floats]:
    """How probably each number of likes comes of so many views, and the mean that is then expected."""
    likes = np.arange(views + 1)
    ways = np.cumprod(np.append(1.0, (views - likes[:-1]) / (likes[:-1] + 1.0)))
    each = ways * GRID[:, None] ** likes * (1 - GRID[:, None]) ** (views - likes)
    chance = believed @ each
    return chance, (believed @ (GRID[:, None] * each)) / chance
