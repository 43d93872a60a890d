"""The weekly rhythm of each host: how many new links each hour of the week brings, compared with expectation."""

from dataclasses import dataclass, replace

import numpy as np

from vedette.discover.polling.sources import hour_of_week
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S, HOUR_S

HOURS_PER_DAY, DAYS_PER_WEEK, HOURS_PER_WEEK = 24, 7, 168
# Hosts with their own rhythm; the evidence of the others goes to row 0, which is shared.
MAX_HOSTS = 4_096
# This many links of evidence weigh as much as the shared rhythm (and, for that, as no rhythm).
PRIOR_LINKS = 30.0
# The share of old evidence that is left after a day: rhythms drift with seasons.
DAILY_DECAY = 0.99
# A poll is evidence about the hours before it, at most this many.
MAX_HOURS = 48


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The weekly rhythm in which links appear: row 0 is that of all hosts, row h + 1 that of host h.

    ``day`` and ``week`` hold, for each hour of the day and each day of the week, the links that arrived and those that
    would have arrived at an even pace. ``pace[row, hour of the week]`` follows from them, once a day; its mean is 1.
    """

    day: Floats
    week: Floats
    pace: Floats
    computed_s: float = -np.inf

    @classmethod
    def uniform(cls) -> "Rhythm":
        """Return the uniform weekly rhythm, in which no hour differs from another."""
        return cls(np.zeros((1, HOURS_PER_DAY, 2)), np.zeros((1, DAYS_PER_WEEK, 2)), np.ones((1, HOURS_PER_WEEK)))

    def find_rows(self, host: Ints) -> Ints:
        """Return the row of each host in the rhythm: that of all hosts for an unknown one."""
        return np.where(host + 1 < len(self.pace), host + 1, 0)

    def learn_polls(
        self, host: Ints, since_s: Floats, now: float, links: Floats, expected: Floats, weight: Floats
    ) -> "Rhythm":
        """Learn the weekly rhythm of hosts from polls that brought ``links`` where ``expected`` were expected.

        ``weight[i, j]`` is the share of links that arrived j hours before poll i and are still there.
        """
        age_h = np.arange(weight.shape[1], dtype=np.float64)
        hour = hour_of_week(now - HOUR_S * (age_h + 0.5))
        grown = self._grow_copy(host)
        row = grown.find_rows(host)
        pace = grown.pace[row][:, hour]
        part = weight * pace * (age_h < np.ceil((now - since_s) / HOUR_S)[:, None])
        part /= np.maximum(part.sum(axis=1, keepdims=True), 1e-12)
        tally = np.stack([links[:, None] * part, expected[:, None] * part / pace], axis=-1)
        for rows in (row[row > 0], np.zeros_like(row)):
            told = tally[row > 0] if len(rows) and rows[0] else tally
            np.add.at(grown.day, (rows[:, None], hour % HOURS_PER_DAY), told)
            np.add.at(grown.week, (rows[:, None], hour // HOURS_PER_DAY), told)
        return _refresh_pace(grown, now)

    def _grow_copy(self, host: Ints) -> "Rhythm":
        """Return a writable copy of the rhythm with a row for each of these hosts."""
        rows = max(len(self.pace), min(int(host.max(initial=-1)) + 2, MAX_HOSTS))
        more = rows - len(self.pace)
        day = np.concatenate([self.day, np.zeros((more, HOURS_PER_DAY, 2))])
        week = np.concatenate([self.week, np.zeros((more, DAYS_PER_WEEK, 2))])
        pace = np.concatenate([self.pace, np.repeat(self.pace[:1], more, axis=0)])
        return replace(self, day=day, week=week, pace=pace)


def _refresh_pace(rhythm: Rhythm, now: float) -> Rhythm:
    """Recompute the weekly pace of each host from the rhythm's tallies, once a day."""
    if now < rhythm.computed_s + DAY_S:
        return rhythm
    pace = (_shrink_ratios(rhythm.week)[:, :, None] * _shrink_ratios(rhythm.day)[:, None, :]).reshape(
        -1, HOURS_PER_WEEK
    )
    pace = np.maximum(pace / pace.mean(axis=1, keepdims=True), 0.02)
    return Rhythm(rhythm.day * DAILY_DECAY, rhythm.week * DAILY_DECAY, pace, now)


def _shrink_ratios(tally: Floats) -> Floats:
    """Compute the rhythm's ratios of links to expected links, shrunk to all hosts', and those to evenness."""
    every = (tally[0, :, 0] + PRIOR_LINKS) / (tally[0, :, 1] + PRIOR_LINKS)
    ratio: Floats = (tally[..., 0] + PRIOR_LINKS * every) / (tally[..., 1] + PRIOR_LINKS)
    ratio /= ratio.mean(axis=1, keepdims=True)
    return ratio


def split_hour(at_s: Floats | float) -> tuple[Ints, Floats]:
    """Split a time into the hour of the week and the elapsed fraction of that hour.

    >>> [one.tolist() for one in split_hour(np.array([4 * 86_400.0 + 5_400.0]))]
    [[1], [0.5]]
    """
    at = np.asarray(at_s, np.float64)
    return hour_of_week(at), at % HOUR_S / HOUR_S
