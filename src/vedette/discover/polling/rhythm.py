"""The rhythm of the week in which links appear, host by host: what hours bring, against what was expected of them."""

from dataclasses import dataclass, replace

import numpy as np

from vedette.discover.polling.sources import hour_of_week
from vedette.policy import Floats, Ints

__all__ = ["HOUR_S", "LONGEST_H", "WEEK", "Rhythm", "hours_within"]

HOUR_S = 3_600.0
HOURS, DAYS, WEEK = 24, 7, 168
DAY_S = 86_400.0
# Hosts with a rhythm of their own; what is known of the others goes to row 0, which is everybody's.
MOST_HOSTS = 4_096
# So many links of evidence weigh as much as the rhythm of everybody does (and, for that, as no rhythm).
CONFIDENCE = 30.0
# What is left of old evidence after a day: rhythms drift with seasons.
KEPT_A_DAY = 0.99
# A look speaks of the hours before it, at most of so many.
LONGEST_H = 48


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Row 0 speaks of everybody, row h + 1 of host h.

    ``day`` and ``week`` hold, for each hour of the day and each day of the week, the links that came and those that
    would have come at an even pace. ``pace[row, hour of the week]`` follows from them, once a day; its mean is 1.
    """

    day: Floats
    week: Floats
    pace: Floats
    reckoned_s: float = -np.inf

    @classmethod
    def even(cls) -> "Rhythm":
        """No hour is known to differ from another."""
        return cls(np.zeros((1, HOURS, 2)), np.zeros((1, DAYS, 2)), np.ones((1, WEEK)))

    def rows_of(self, host: Ints) -> Ints:
        """The row that speaks of each host: everybody's, where nothing is known of it."""
        return np.where(host + 1 < len(self.pace), host + 1, 0)

    def heard(
        self, host: Ints, since_s: Floats, now: float, links: Floats, expected: Floats, weight: Floats
    ) -> "Rhythm":
        """Looks at sources of these hosts brought ``links`` where ``expected`` were; a new rhythm each day.

        ``weight[i, j]`` is how much of what came j hours before the look is still there at look i.
        """
        age_h = np.arange(weight.shape[1], dtype=np.float64)
        hour = hour_of_week(now - HOUR_S * (age_h + 0.5))
        grown = self._with_room(host)
        row = grown.rows_of(host)
        pace = grown.pace[row][:, hour]
        part = weight * pace * (age_h < np.ceil((now - since_s) / HOUR_S)[:, None])
        part /= np.maximum(part.sum(axis=1, keepdims=True), 1e-12)
        tally = np.stack([links[:, None] * part, expected[:, None] * part / pace], axis=-1)
        for rows in (row[row > 0], np.zeros_like(row)):
            told = tally[row > 0] if len(rows) and rows[0] else tally
            np.add.at(grown.day, (rows[:, None], hour % HOURS), told)
            np.add.at(grown.week, (rows[:, None], hour // HOURS), told)
        return _reckoned(grown, now)

    def _with_room(self, host: Ints) -> "Rhythm":
        """A copy that may be written to."""
        rows = max(len(self.pace), min(int(host.max(initial=-1)) + 2, MOST_HOSTS))
        more = rows - len(self.pace)
        day = np.concatenate([self.day, np.zeros((more, HOURS, 2))])
        week = np.concatenate([self.week, np.zeros((more, DAYS, 2))])
        pace = np.concatenate([self.pace, np.repeat(self.pace[:1], more, axis=0)])
        return replace(self, day=day, week=week, pace=pace)


def _reckoned(rhythm: Rhythm, now: float) -> Rhythm:
    """The pace that follows from the tallies, once a day."""
    if now < rhythm.reckoned_s + DAY_S:
        return rhythm
    pace = (_leaning(rhythm.week)[:, :, None] * _leaning(rhythm.day)[:, None, :]).reshape(-1, WEEK)
    pace = np.maximum(pace / pace.mean(axis=1, keepdims=True), 0.02)
    return Rhythm(rhythm.day * KEPT_A_DAY, rhythm.week * KEPT_A_DAY, pace, now)


def _leaning(tally: Floats) -> Floats:
    """How many came for each expected; those with little evidence lean on everybody, and everybody on evenness."""
    every = (tally[0, :, 0] + CONFIDENCE) / (tally[0, :, 1] + CONFIDENCE)
    ratio: Floats = (tally[..., 0] + CONFIDENCE * every) / (tally[..., 1] + CONFIDENCE)
    ratio /= ratio.mean(axis=1, keepdims=True)
    return ratio


def hours_within(at_s: Floats | float) -> tuple[Ints, Floats]:
    """The hour of the week, and how much of it has gone by, in hours.

    >>> [one.tolist() for one in hours_within(np.array([4 * 86_400.0 + 5_400.0]))]
    [[1], [0.5]]
    """
    at = np.asarray(at_s, np.float64)
    return hour_of_week(at), at % HOUR_S / HOUR_S
