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
import numpy.typing as npt

from vedette.discover.polling.rates import Rates, chance_of_change, changed, mixed
from vedette.discover.polling.rhythm import HOUR_S, LONGEST_H, WEEK, Rhythm, hours_within
from vedette.discover.polling.sources import Sources, latest_yields
from vedette.policy import Floats, Ints

__all__ = ["LIVES_H", "Arrivals", "Awaited", "chance_up", "corrected", "swell_of", "with_new"]

# When a look brings new links, each is shared out among kinds of life by what was expected of each kind. Later looks
# know better: what stays is rather of a long life, what is gone was rather of a short one, there:  q_c  proportional
# to  q_c e^(-dt / tau_c)        gone:  q_c  proportional to  q_c (1 - e^(-dt / tau_c)) and what was counted for each
# kind is put right by the difference. A few links of each source stand for all of them.


# So many links of a source are followed, and at most so many of one look, so that some are followed to their end.
FOLLOWED, OF_A_LOOK = 16, 12


@dataclass(frozen=True, slots=True)
class Awaited:
    """By place: links that are followed (-1 where none), for how many links each stands, and its kinds of life."""

    link: Ints
    weight: Floats
    kind: Floats

    @classmethod
    def none(cls, kinds: int, places: int = 0) -> "Awaited":
        """Nothing is followed at so many sources."""
        shape = (places, FOLLOWED)
        return cls(np.full(shape, -1, np.int64), np.zeros(shape), np.zeros((*shape, kinds)))

    def reaching(self, places: int) -> "Awaited":
        """A copy that has an element for so many places, and may be written to."""
        more = Awaited.none(self.kind.shape[2], max(places - len(self.link), 0))
        link = np.concatenate([self.link, more.link])
        return Awaited(link, np.concatenate([self.weight, more.weight]), np.concatenate([self.kind, more.kind]))


def corrected(
    awaited: Awaited, batch: Sources, rows: Ints, since_s: Floats, now: float, lives_h: Floats
) -> tuple[Awaited, Floats]:
    """What is followed from now on, and what to add to the links of each kind, now that it is seen what stayed."""
    place = batch.place[rows]
    link, weight, kind = awaited.link[place], awaited.weight[place], awaited.kind[place]
    there = _there(link, batch, rows)
    staying = np.exp(-((now - since_s) / HOUR_S)[:, None] / lives_h)[:, None]
    told = _shares(kind * np.where(there[..., None], staying, 1.0 - staying))
    change: Floats = np.einsum("ij,ijc->ic", np.where(link >= 0, weight, 0.0), told - kind)
    after = awaited.reaching(len(awaited.link))
    after.link[place], after.kind[place] = np.where(there, link, -1), told
    return after, change


def with_new(awaited: Awaited, batch: Sources, rows: Ints, kind: Floats, counted: Floats) -> Awaited:
    """What these rows brought, which ``counted`` for so many, is followed from now on, shared out by ``kind``."""
    new = _first_new(batch, rows)
    place = batch.place[rows]
    known = (new >= 0).sum(axis=1)
    each = np.broadcast_to((counted / np.maximum(known, 1))[:, None], new.shape)
    kinds = np.broadcast_to(_shares(kind)[:, None], (*new.shape, kind.shape[1]))
    link = np.concatenate([new, awaited.link[place]], axis=1)
    weight = np.concatenate([each, awaited.weight[place]], axis=1)
    shares = np.concatenate([kinds, awaited.kind[place]], axis=1)
    order = np.argsort(link < 0, axis=1, kind="stable")[:, :FOLLOWED]
    line = np.arange(len(rows))[:, None]
    after = awaited.reaching(len(awaited.link))
    after.link[place], after.weight[place], after.kind[place] = (
        link[line, order],
        weight[line, order],
        shares[line, order],
    )
    return after


def _first_new(batch: Sources, rows: Ints) -> Ints:
    """The first new links of each row, -1 where there are fewer."""
    line = np.full(len(batch), -1, np.int64)
    line[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))
    counted = np.concatenate([[0], np.cumsum(batch.shown_new)])
    nth = counted[:-1] - counted[batch.shown_start[:-1]][row]
    some = batch.shown_new & (line[row] >= 0) & (nth < OF_A_LOOK)
    first = np.full((len(rows), OF_A_LOOK), -1, np.int64)
    first[line[row[some]], nth[some]] = batch.shown[some]
    return first


def _there(link: Ints, batch: Sources, rows: Ints) -> npt.NDArray[np.bool_]:
    """Which of the links of each row the look showed again."""
    size = int(max(batch.shown.max(initial=-1), link.max(initial=-1))) + 2
    shown = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start)) * size + batch.shown
    there: npt.NDArray[np.bool_] = np.isin(rows[:, None] * size + link, shown) & (link >= 0)
    return there


def _shares(amount: Floats) -> Floats:
    shares: Floats = amount / np.maximum(amount.sum(axis=-1, keepdims=True), 1e-12)
    return shares


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
