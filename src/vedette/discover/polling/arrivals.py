"""How links appear on sources and vanish again: a model of what a look brings, learned from what looks brought.

Links come to a source in the rhythm of its host and stay for a while: some for hours, some for days. Each kind of life
has a rate of its own at each source, and what is there to be found since the last look at time s is

    A_c(t) = integral from s to t of pace(x) e^(-(t - x) / tau_c) kept(x) dx,        y ~ Poisson(sum_c rate_c A_c)

where kept(x) is the part that no look at another source has shown since x (``overlap``). At an even pace and without
others A is tau (1 - e^(-(t - s) / tau)): a source fills up, and its capacity is rate times tau.

Rates are Gamma, with a prior from the host and from everybody, so that a new source starts where its host is. Which
kind of life a link has is not known, so each look's yield is shared out by what was expected of each kind (one step of
expectation maximisation). Evidence fades, since sites drift.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from vedette.discover.polling.lifetimes import Awaited, corrected, with_new
from vedette.discover.polling.places import latest_yields
from vedette.discover.polling.rates import Rates, chance_of_change, changed, mixed
from vedette.discover.polling.rhythm import HOUR_S, LONGEST_H, WEEK, Rhythm, hours_within
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints

__all__ = ["LIVES_H", "Arrivals", "chance_up", "swell_of"]

# Hours for which links stay, in four kinds: what is other at every look, teasers, news, and what is left standing.
LIVES_H: Floats = np.array([0.5, 3.0, 20.0, 128.0])
KINDS = len(LIVES_H)
# Links an hour that a source has of each kind before anything is known of anybody.
USUAL: Floats = np.array([0.3, 0.3, 0.2, 0.1])
# So many links of its own weigh as much, at a source, as its host does; and hours of exposure, at a host, as everybody.
CONFIDENCE, HOST_CONFIDENCE_H = 1.0, 20.0
# Half of the evidence is forgotten in this time; but not before so many links were expected, or what is rare is never
# learned.
HALF_LIFE_S, HALF_LIFE_LINKS = 60 * 86_400.0, 50.0
# After a few looks, one more counts for at most as many links as all before it, what was expected and this: a site that
# is rebuilt shows as much at once as it bears in years, and its pages do not go on like that.
LEAST_BURST, FEW_LOOKS = 2.0, 3
# What never was looked at is as full as after so long.
UNSEEN_S = 60 * 86_400.0
# A source that failed once is mostly back within the hour; one that failed again, after some three times as long.
FIRST_FAILURE_S, LINGERING, LEAST_WAIT_S = 0.3 * HOUR_S, 3.0, 60.0


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What is believed of each source, by place.

    ``links`` and ``hours`` are what came and the exposure in which it came, kind by kind. ``looked_s`` is the last look
    that succeeded, ``down_s`` when looks began to fail (NaN where the last one did not). ``filled`` is how full a
    source of this host would have been at that look without any look before it: with it, an integral over any time
    costs one subtraction. ``swell[row, hour]`` is the same at the beginning of each hour of the week.
    """

    host: Ints
    links: Floats
    hours: Floats
    looked_s: Floats
    down_s: Floats
    filled: Floats
    rhythm: Rhythm
    swell: Floats
    awaited: Awaited = field(default_factory=lambda: Awaited.none(KINDS))

    @classmethod
    def none(cls) -> "Arrivals":
        """No source is known."""
        nobody, nothing = np.zeros(0), np.zeros((0, KINDS))
        even = Rhythm.even()
        return cls(np.zeros(0, np.int64), nothing, nothing, nobody, nobody, nothing, even, swell_of(even.pace))

    def __len__(self) -> int:
        return len(self.host)

    def reaching(self, batch: Sources) -> "Arrivals":
        """A copy that has an element for each place of a batch, and may be written to."""
        more = max(int(batch.place.max(initial=-1)) + 1 - len(self), 0)
        host = np.concatenate([self.host, np.zeros(more, np.int64)])
        host[batch.place] = batch.host
        return replace(
            self,
            host=host,
            links=_longer(self.links, more, 0.0),
            hours=_longer(self.hours, more, 0.0),
            looked_s=_longer(self.looked_s, more, -np.inf),
            down_s=_longer(self.down_s, more, np.nan),
            filled=np.concatenate([self.filled, np.tile(LIVES_H, (more, 1))]),
        )

    def covering(self, batch: Sources) -> "Arrivals":
        """The same where all places are known, else a copy that has them."""
        return self if int(batch.place.max(initial=-1)) < len(self) else self.reaching(batch)

    def full_at(self, host: Ints, at_s: Floats | float) -> Floats:
        """How full a source of each host would be at a time, had nobody ever looked, at one link an hour."""
        row = self.rhythm.rows_of(host)
        hour, part_h = hours_within(at_s)
        left = np.exp(-np.asarray(part_h)[..., None] / LIVES_H)
        full: Floats = self.swell[row, hour] * left + self.rhythm.pace[row, hour][..., None] * LIVES_H * (1.0 - left)
        return full

    def since_s(self, place: Ints, now: float) -> Floats:
        """From when on links have gathered: the last look, or long ago."""
        return np.maximum(self.looked_s[place], now - UNSEEN_S)

    def rates(self, place: Ints, now: float) -> Rates:
        """What is believed of the rate of each kind now: it may have become another source since the last look."""
        usual = self._usual(place)
        return mixed(self._own(place, usual), usual, self._drifted(place, now))

    def own_rates(self, place: Ints) -> Rates:
        """What looks say of the rate of each kind, leaning on what is usual."""
        return self._own(place, self._usual(place))

    def _own(self, place: Ints, usual: Rates) -> Rates:
        return Rates(self.links[place] + usual.shape, self.hours[place] + usual.rate)

    def _drifted(self, place: Ints, now: float) -> Floats:
        return chance_of_change(now - self.looked_s[place])

    def _usual(self, place: Ints) -> Rates:
        """What would be believed of sources without a look: they lean on the host, and that on everybody."""
        every = (self.links.sum(axis=0) + USUAL) / (self.hours.sum(axis=0) + 1.0)
        hosts = int(self.host.max(initial=-1)) + 1
        came, in_h = (_by_host(self.host, each, hosts) for each in (self.links, self.hours))
        usual = ((came + every * HOST_CONFIDENCE_H) / (in_h + HOST_CONFIDENCE_H))[self.host[place]]
        return Rates(np.full(usual.shape, CONFIDENCE), CONFIDENCE / usual)

    def learned(self, batch: Sources, rows: Ints, gathered: Floats, now: float) -> "Arrivals":
        """After looks at these rows, none of them their first, where so much had ``gathered``."""
        place, yields, awaited = batch.place[rows], latest_yields(batch)[rows], self.awaited.reaching(len(self))
        usual = self._usual(place)
        own, drifted = self._own(place, usual), self._drifted(place, now)
        rates = mixed(own, usual, drifted).mean
        part = rates * gathered
        expected = part.sum(axis=1)
        since_s = self.looked_s[place]
        fading = 0.5 ** np.minimum((now - since_s) / HALF_LIFE_S, expected / HALF_LIFE_LINKS)[:, None]
        foretold, unforeseen = ((each.mean * gathered).sum(axis=1) for each in (own, usual))
        fading *= 1.0 - changed(yields, foretold, unforeseen, drifted)[:, None]
        links, hours = self.links.copy(), self.hours.copy()
        awaited, better = corrected(awaited, batch, rows, since_s, now, LIVES_H)
        most = self.links[place].sum(axis=1) + expected + LEAST_BURST
        counted = np.where(batch.looks[rows] > FEW_LOOKS, np.minimum(yields, most), yields)
        came = counted[:, None] * part / np.maximum(expected, 1e-12)[:, None]
        links[place] = np.maximum(links[place] + better, 0.0) * fading + came
        hours[place] = hours[place] * fading + gathered
        age_h = np.arange(min(LONGEST_H, int(np.ceil((now - since_s).max(initial=0.0) / HOUR_S))))
        weight = np.exp(-age_h[:, None] / LIVES_H) @ rates.T
        rhythm = self.rhythm.heard(self.host[place], since_s, now, yields, expected, weight.T)
        swell = self.swell if rhythm.reckoned_s == self.rhythm.reckoned_s else swell_of(rhythm.pace)
        awaited = with_new(awaited, batch, rows, part, counted)
        swell = _with_rows(swell, len(rhythm.pace))
        return replace(self, links=links, hours=hours, rhythm=rhythm, swell=swell, awaited=awaited)

    def looked(self, place: Ints, ok: Ints, now: float) -> "Arrivals":
        """After tries at these places, of which those in ``ok`` were answered."""
        looked_s, down_s, filled = self.looked_s.copy(), self.down_s.copy(), self.filled.copy()
        down_s[place] = np.where(np.isnan(down_s[place]), now, down_s[place])
        down_s[ok] = np.nan
        looked_s[ok] = now
        filled[ok] = self.full_at(self.host[ok], np.full(len(ok), now))
        return replace(self, looked_s=looked_s, down_s=down_s, filled=filled)


def chance_up(down_s: Floats, tried_s: Floats, now: float) -> Floats:
    """The chance that a look is answered: what was down for long stays down for long (Pareto with exponent 1).

    >>> chance_up(np.array([np.nan, 0.0]), np.array([0.0, 7_200.0]), 9_000.0).round(2).tolist()
    [1.0, 0.08]
    """
    down = ~np.isnan(down_s) & np.isfinite(tried_s)
    waited_s = np.where(down, np.maximum(now - tried_s, LEAST_WAIT_S), 1.0)
    down_for_s = np.where(down & (tried_s > down_s), LINGERING * (tried_s - down_s), FIRST_FAILURE_S)
    chance: Floats = np.where(down, waited_s / (waited_s + down_for_s), 1.0)
    return chance


def swell_of(pace: Floats) -> Floats:
    """How full sources are at the beginning of each hour of the week, when the week has gone on for ever."""
    hour = np.exp(-1.0 / LIVES_H)
    full = np.zeros((len(pace), KINDS))
    swell = np.zeros((len(pace), WEEK, KINDS))
    for each in range(WEEK):
        swell[:, each] = full
        full = full * hour + pace[:, each, None] * LIVES_H * (1.0 - hour)
    # What one week leaves, all weeks before it have left, too: a geometric series, which goes on fading.
    left = full / (1.0 - hour**WEEK)
    swell += left[:, None] * hour ** np.arange(WEEK)[:, None]
    return swell


def _with_rows(swell: Floats, rows: int) -> Floats:
    return np.concatenate([swell, np.repeat(swell[:1], rows - len(swell), axis=0)])


def _by_host(host: Ints, rows: Floats, hosts: int) -> Floats:
    return np.stack([np.bincount(host, rows[:, kind], hosts) for kind in range(KINDS)], axis=1)


def _longer(rows: Floats, more: int, value: float) -> Floats:
    return np.concatenate([rows, np.full((more, *rows.shape[1:]), value)])
