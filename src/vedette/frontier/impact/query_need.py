"""Neediness of queries: which are worth a sketch, searched often and still improvable (Impact08, section 5.2).

    neediness(q) = f(q) improvability(mean score of the first K results of q)

*Improvability* is how many new results among the first K a query gets in a crawl cycle. It is learned from past cycles:
queries are put into buckets by their mean score, and a line is fitted to the logarithm of the bucket means. A bucket
that is empty, or that never improved, has no logarithm and is left out; with fewer than two others improvability is the
same for all. Old cycles decay.
"""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats, Ints

BUCKETS = 20
CYCLE_DECAY = 0.8  # per cycle


@dataclass(frozen=True, slots=True)
class Improvability:
    """Improvability of queries by their mean score: decaying sums in equal buckets from 0 to ``top``.

    >>> rates = Improvability().add_cycle(np.array([0.1, 0.1, 0.9, 0.9]), np.array([4.0, 4.0, 1.0, 1.0]))
    >>> rates.predict(np.array([0.1, 0.5, 0.9])).round(2).tolist()
    [4.0, 2.0, 1.0]
    """

    top: float = 1.0
    times: tuple[float, ...] = (0.0,) * BUCKETS
    scores: tuple[float, ...] = (0.0,) * BUCKETS
    gains: tuple[float, ...] = (0.0,) * BUCKETS

    def add_cycle(self, mean_score: Floats, improved: Floats) -> "Improvability":
        """Add a crawl cycle: the mean score of each query before it, and how many new results it got."""
        bucket = np.clip((mean_score / self.top * BUCKETS).astype(np.int64), 0, BUCKETS - 1)
        old = (self.times, self.scores, self.gains)
        new = (np.ones(len(bucket)), mean_score, improved)
        sums = [
            _fade(before, np.bincount(bucket, each, BUCKETS).astype(np.float64))
            for before, each in zip(old, new, strict=True)
        ]
        return Improvability(self.top, *sums)

    def compute_points(self) -> tuple[Floats, Floats, Floats]:
        """Compute the mean score, mean improvement and number of queries of each bucket that ever improved."""
        times, scores, gains = (np.array(each) for each in (self.times, self.scores, self.gains))
        some = (times > 0) & (gains > 0)
        return scores[some] / times[some], gains[some] / times[some], times[some]

    def fit_line(self) -> tuple[float, float]:
        """Fit ``a`` and ``b`` of improvability = exp(a + b score), buckets weighted by the root of their queries."""
        at, improved, times = self.compute_points()
        if len(at) < 2 or np.ptp(at) <= 0:
            return (float(np.log(np.average(improved, weights=times))) if len(at) else 0.0), 0.0
        slope, level = np.polyfit(at, np.log(improved), 1, w=times**0.25)
        return float(level), float(slope)

    def predict(self, mean_score: Floats) -> Floats:
        """Predict how much queries with these mean scores will improve in a crawl cycle."""
        level, slope = self.fit_line()
        return np.asarray(np.exp(np.clip(level + slope * mean_score, -50.0, 50.0)))


def needy(frequency: Floats, improvability: Floats, share: float) -> Ints:
    """Return the neediest queries, a share of all (at least one), ascending.

    >>> needy(np.array([9.0, 1.0, 5.0]), np.array([0.1, 1.0, 1.0]), 0.4).tolist()
    [1, 2]
    """
    count = min(max(int(np.ceil(share * len(frequency))), 1), len(frequency))
    return np.sort(np.argsort(-frequency * improvability, kind="stable")[:count])


def _fade(before: tuple[float, ...], new: Floats) -> tuple[float, ...]:
    return tuple((CYCLE_DECAY * np.array(before) + new).tolist())
