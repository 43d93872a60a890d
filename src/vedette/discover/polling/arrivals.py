"""The arrival model: how links appear on discovery sources and disappear again, learned from polls.

Links arrive at a source in the rhythm of its host and stay for a while: some for hours, some for days. Each kind of
lifetime has its own rate at each source, and the number of links to be found since the last poll at time s is

    A_c(t) = integral from s to t of pace(x) e^(-(t - x) / tau_c) kept(x) dx,        y ~ Poisson(sum_c rate_c A_c)

where kept(x) is the share that no poll of another source has shown since x (``overlap``). At an even pace and without
others A is tau (1 - e^(-(t - s) / tau)): a source fills up, and its capacity is rate times tau.

Rates are Gamma, with a prior from the host and from all hosts, so a new source starts where its host is. The lifetime
of a link is unknown, so each poll's yield is divided by what was expected of each kind (one step of expectation
maximization). Evidence decays, since sites drift.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from vedette.discover.polling.rates import RatePosterior, compute_drift_chance, estimate_change, mix_rates
from vedette.discover.polling.rhythm import HOURS_PER_WEEK, MAX_HOURS, Rhythm, split_hour
from vedette.discover.polling.sources import Sources, get_latest_yields
from vedette.policy import Floats, Ints
from vedette.timeutil import HOUR_S

# When a poll brings new links, each is divided among kinds of lifetime by what was expected of each kind. Later polls
# know better: a link that stays probably has a long lifetime, one that is gone had a short one, there:  q_c
# proportional to  q_c e^(-dt / tau_c)        gone:  q_c  proportional to  q_c (1 - e^(-dt / tau_c)) and the counts of
# each kind are corrected by the difference. A few links of each source represent all of them.


# How many links of a source are tracked, and at most how many of one poll, so that some are tracked to their end.
TRACKED_PER_SOURCE, TRACKED_PER_POLL = 16, 12


@dataclass(frozen=True, slots=True)
class TrackedLinks:
    """Links whose lifetimes are tracked at each source (-1 for none), their weights, and kinds of lifetime."""

    link: Ints
    weight: Floats
    kind: Floats

    @classmethod
    def empty(cls, kinds: int, places: int = 0) -> "TrackedLinks":
        """Return the state in which no link's lifetime is tracked, for this number of sources."""
        shape = (places, TRACKED_PER_SOURCE)
        return cls(np.full(shape, -1, np.int64), np.zeros(shape), np.zeros((*shape, kinds)))

    def grow_copy(self, places: int) -> "TrackedLinks":
        """Return a writable copy of the tracked links with a row for each of ``places`` sources."""
        more = TrackedLinks.empty(self.kind.shape[2], max(places - len(self.link), 0))
        link = np.concatenate([self.link, more.link])
        return TrackedLinks(link, np.concatenate([self.weight, more.weight]), np.concatenate([self.kind, more.kind]))


def update_lifetimes(
    awaited: TrackedLinks, batch: Sources, rows: Ints, since_s: Floats, now: float, lives_h: Floats
) -> Floats:
    """Update the lifetimes of tracked links, in place, by which of them a poll showed again.

    Returns what to add to the links of each kind of lifetime.
    """
    place = batch.place[rows]
    link, weight, kind = awaited.link[place], awaited.weight[place], awaited.kind[place]
    there = _find_present(link, batch, rows)
    staying = np.exp(-((now - since_s) / HOUR_S)[:, None] / lives_h)[:, None]
    told = _normalize_rows(kind * np.where(there[..., None], staying, 1.0 - staying))
    change: Floats = np.einsum("ij,ijc->ic", np.where(link >= 0, weight, 0.0), told - kind)
    awaited.link[place], awaited.kind[place] = np.where(there, link, -1), told
    return change


def track_new_links(awaited: TrackedLinks, batch: Sources, rows: Ints, kind: Floats, counted: Floats) -> None:
    """Start to track the lifetimes of links that a poll brought, in place.

    The links of a row count for ``counted`` links, split over kinds of lifetime by ``kind``.
    """
    new = _select_new_links(batch, rows)
    place = batch.place[rows]
    known = (new >= 0).sum(axis=1)
    each = np.broadcast_to((counted / np.maximum(known, 1))[:, None], new.shape)
    kinds = np.broadcast_to(_normalize_rows(kind)[:, None], (*new.shape, kind.shape[1]))
    link = np.concatenate([new, awaited.link[place]], axis=1)
    weight = np.concatenate([each, awaited.weight[place]], axis=1)
    shares = np.concatenate([kinds, awaited.kind[place]], axis=1)
    order = np.argsort(link < 0, axis=1, kind="stable")[:, :TRACKED_PER_SOURCE]
    line = np.arange(len(rows))[:, None]
    awaited.link[place] = link[line, order]
    awaited.weight[place], awaited.kind[place] = weight[line, order], shares[line, order]


def _select_new_links(batch: Sources, rows: Ints) -> Ints:
    """Return the first new links of each polled source, to track their lifetimes; -1 if there are fewer."""
    line = np.full(len(batch), -1, np.int64)
    line[rows] = np.arange(len(rows))
    row = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start))
    counted = np.concatenate([[0], np.cumsum(batch.shown_new)])
    nth = counted[:-1] - counted[batch.shown_start[:-1]][row]
    some = batch.shown_new & (line[row] >= 0) & (nth < TRACKED_PER_POLL)
    first = np.full((len(rows), TRACKED_PER_POLL), -1, np.int64)
    first[line[row[some]], nth[some]] = batch.shown[some]
    return first


def _find_present(link: Ints, batch: Sources, rows: Ints) -> npt.NDArray[np.bool_]:
    """Check which tracked links of each source the poll showed again."""
    size = int(max(batch.shown.max(initial=-1), link.max(initial=-1))) + 2
    shown = np.repeat(np.arange(len(batch)), np.diff(batch.shown_start)) * size + batch.shown
    there: npt.NDArray[np.bool_] = np.isin(rows[:, None] * size + link, shown) & (link >= 0)
    return there


def _normalize_rows(amount: Floats) -> Floats:
    shares: Floats = amount / np.maximum(amount.sum(axis=-1, keepdims=True), 1e-12)
    return shares


# Hours for which links stay, in four kinds: rotating links, teasers, news, and permanent links.
LIFETIMES_H: Floats = np.array([0.5, 3.0, 20.0, 128.0])
LIFETIME_KINDS = len(LIFETIMES_H)
# Prior rate of links per hour for each kind of lifetime.
PRIOR_RATES: Floats = np.array([0.3, 0.3, 0.2, 0.1])
# How many links of its own weigh as much, at a source, as its host's; and hours of exposure, at a host, as all hosts'.
PRIOR_LINKS, HOST_PRIOR_H = 1.0, 20.0
# Half-life of the evidence; but not before this many links were expected, otherwise rare events are never learned.
HALF_LIFE_S, HALF_LIFE_LINKS = 60 * 86_400.0, 50.0
# After a few polls, one more counts for at most as many links as all before it, plus the expected ones and one: a
# rebuilt site shows as much at once as it normally does in years, and does not continue like that.
MIN_BURST, FEW_POLLS = 2.0, 3
# A source that was never polled is as full as after this long.
NEVER_POLLED_S = 60 * 86_400.0
# A source that failed once is usually back within the hour; one that failed again, after about three times as long.
TYPICAL_OUTAGE_S, OUTAGE_GROWTH, MIN_WAIT_S = 0.3 * HOUR_S, 3.0, 60.0


@dataclass(frozen=True, slots=True)
class ArrivalModel:
    """The arrival model: beliefs about each source's rate of new links and their lifetimes, by position.

    ``links`` and ``hours`` are the arrivals and the exposure in which they arrived, kind by kind. ``looked_s`` is the
    last successful poll, ``down_s`` when polls began to fail (NaN if the last one succeeded). ``filled`` is how full a
    source of this host would have been at that poll if never polled before: with it, an integral over any time costs
    one subtraction. ``weekly_fill[row, hour]`` is the same at the start of each hour of the week.
    """

    host: Ints
    links: Floats
    hours: Floats
    looked_s: Floats
    down_s: Floats
    filled: Floats
    rhythm: Rhythm
    weekly_fill: Floats
    tracked: TrackedLinks = field(default_factory=lambda: TrackedLinks.empty(LIFETIME_KINDS))

    @classmethod
    def empty(cls) -> "ArrivalModel":
        """Return an arrival model without any source."""
        nobody, nothing = np.zeros(0), np.zeros((0, LIFETIME_KINDS))
        even = Rhythm.uniform()
        return cls(
            np.zeros(0, np.int64), nothing, nothing, nobody, nobody, nothing, even, compute_weekly_fill(even.pace)
        )

    def __len__(self) -> int:
        return len(self.host)

    def grow_copy(self, batch: Sources) -> "ArrivalModel":
        """Return a writable copy of the arrival model with an element for each position of a batch."""
        more = max(int(batch.place.max(initial=-1)) + 1 - len(self), 0)
        host = np.concatenate([self.host, np.zeros(more, np.int64)])
        host[batch.place] = batch.host
        return replace(
            self,
            host=host,
            links=_extend_rows(self.links, more, 0.0),
            hours=_extend_rows(self.hours, more, 0.0),
            looked_s=_extend_rows(self.looked_s, more, -np.inf),
            down_s=_extend_rows(self.down_s, more, np.nan),
            filled=np.concatenate([self.filled, np.tile(LIFETIMES_H, (more, 1))]),
        )

    def select(self, places: Ints) -> "ArrivalModel":
        """Return the arrival model of some sources, in this order; rhythms of hosts stay."""
        tracked = self.tracked.grow_copy(len(self))
        columns = {
            name: getattr(self, name)[places] for name in ("host", "links", "hours", "looked_s", "down_s", "filled")
        }
        followed = TrackedLinks(tracked.link[places], tracked.weight[places], tracked.kind[places])
        return replace(self, **columns, tracked=followed)

    def ensure_places(self, batch: Sources) -> "ArrivalModel":
        """Return this arrival model if it has all positions of a batch, else a copy that has them."""
        return self if int(batch.place.max(initial=-1)) < len(self) else self.grow_copy(batch)

    def compute_fill(self, host: Ints, at_s: Floats | float) -> Floats:
        """Compute how full a source of each host would be at a time, if never polled, at one link an hour."""
        row = self.rhythm.find_rows(host)
        hour, part_h = split_hour(at_s)
        left = np.exp(-np.asarray(part_h)[..., None] / LIFETIMES_H)
        full: Floats = self.weekly_fill[row, hour] * left + self.rhythm.pace[row, hour][..., None] * LIFETIMES_H * (
            1.0 - left
        )
        return full

    def find_accrual_start_s(self, place: Ints, now: float) -> Floats:
        """Return since when links have accumulated on each source: the last poll, or long ago."""
        return np.maximum(self.looked_s[place], now - NEVER_POLLED_S)

    def estimate_rates(self, place: Ints, now: float) -> RatePosterior:
        """Estimate each source's current arrival rate by kind of lifetime, allowing for drift since its poll."""
        usual = self._compute_prior(place)
        return mix_rates(self._compute_posterior(place, usual), usual, self._compute_drift_chance(place, now))

    def estimate_own_rates(self, place: Ints) -> RatePosterior:
        """Estimate each source's arrival rate by kind of lifetime from its own polls, shrunk to its host's."""
        return self._compute_posterior(place, self._compute_prior(place))

    def _compute_posterior(self, place: Ints, usual: RatePosterior) -> RatePosterior:
        return RatePosterior(self.links[place] + usual.shape, self.hours[place] + usual.rate)

    def _compute_drift_chance(self, place: Ints, now: float) -> Floats:
        return compute_drift_chance(now - self.looked_s[place])

    def _compute_prior(self, place: Ints) -> RatePosterior:
        """Compute the prior arrival rates of sources without a poll: shrunk to the host's, and that to all hosts'."""
        every = (self.links.sum(axis=0) + PRIOR_RATES) / (self.hours.sum(axis=0) + 1.0)
        hosts = int(self.host.max(initial=-1)) + 1
        came, in_h = (_sum_by_host(self.host, each, hosts) for each in (self.links, self.hours))
        usual = ((came + every * HOST_PRIOR_H) / (in_h + HOST_PRIOR_H))[self.host[place]]
        return RatePosterior(np.full(usual.shape, PRIOR_LINKS), PRIOR_LINKS / usual)

    def learn_yields(self, batch: Sources, rows: Ints, gathered: Floats, now: float) -> "ArrivalModel":
        """Learn arrival rates from polls of these sources, none their first, with the ``gathered`` exposure."""
        place, yields, awaited = batch.place[rows], get_latest_yields(batch)[rows], self.tracked.grow_copy(len(self))
        usual = self._compute_prior(place)
        own, drifted = self._compute_posterior(place, usual), self._compute_drift_chance(place, now)
        rates = mix_rates(own, usual, drifted).mean
        part = rates * gathered
        expected = part.sum(axis=1)
        since_s = self.looked_s[place]
        fading = 0.5 ** np.minimum((now - since_s) / HALF_LIFE_S, expected / HALF_LIFE_LINKS)[:, None]
        foretold, unforeseen = ((each.mean * gathered).sum(axis=1) for each in (own, usual))
        fading *= 1.0 - estimate_change(yields, foretold, unforeseen, drifted)[:, None]
        links, hours = self.links.copy(), self.hours.copy()
        better = update_lifetimes(awaited, batch, rows, since_s, now, LIFETIMES_H)
        most = self.links[place].sum(axis=1) + expected + MIN_BURST
        counted = np.where(batch.polls[rows] > FEW_POLLS, np.minimum(yields, most), yields)
        came = counted[:, None] * part / np.maximum(expected, 1e-12)[:, None]
        links[place] = np.maximum(links[place] + better, 0.0) * fading + came
        hours[place] = hours[place] * fading + gathered
        age_h = np.arange(min(MAX_HOURS, int(np.ceil((now - since_s).max(initial=0.0) / HOUR_S))))
        weight = np.exp(-age_h[:, None] / LIFETIMES_H) @ rates.T
        rhythm = self.rhythm.learn_polls(self.host[place], since_s, now, yields, expected, weight.T)
        swell = self.weekly_fill if rhythm.computed_s == self.rhythm.computed_s else compute_weekly_fill(rhythm.pace)
        track_new_links(awaited, batch, rows, part, counted)
        swell = _add_rows(swell, len(rhythm.pace))
        return replace(self, links=links, hours=hours, rhythm=rhythm, weekly_fill=swell, tracked=awaited)

    def record_polls(self, place: Ints, ok: Ints, now: float) -> "ArrivalModel":
        """Record polls of these sources in the arrival model: those in ``ok`` got a response, the others failed."""
        looked_s, down_s, filled = self.looked_s.copy(), self.down_s.copy(), self.filled.copy()
        down_s[place] = np.where(np.isnan(down_s[place]), now, down_s[place])
        down_s[ok] = np.nan
        looked_s[ok] = now
        filled[ok] = self.compute_fill(self.host[ok], np.full(len(ok), now))
        return replace(self, looked_s=looked_s, down_s=down_s, filled=filled)


def estimate_answer_chance(down_s: Floats, tried_s: Floats, now: float) -> Floats:
    """Estimate the probability that a poll gets a response: a long outage tends to last (Pareto, exponent 1).

    >>> estimate_answer_chance(np.array([np.nan, 0.0]), np.array([0.0, 7_200.0]), 9_000.0).round(2).tolist()
    [1.0, 0.08]
    """
    down = ~np.isnan(down_s) & np.isfinite(tried_s)
    waited_s = np.where(down, np.maximum(now - tried_s, MIN_WAIT_S), 1.0)
    down_for_s = np.where(down & (tried_s > down_s), OUTAGE_GROWTH * (tried_s - down_s), TYPICAL_OUTAGE_S)
    chance: Floats = np.where(down, waited_s / (waited_s + down_for_s), 1.0)
    return chance


def compute_weekly_fill(pace: Floats) -> Floats:
    """Compute how full sources are at the start of each hour of the week, in a steady state."""
    hour = np.exp(-1.0 / LIFETIMES_H)
    full = np.zeros((len(pace), LIFETIME_KINDS))
    swell = np.zeros((len(pace), HOURS_PER_WEEK, LIFETIME_KINDS))
    for each in range(HOURS_PER_WEEK):
        swell[:, each] = full
        full = full * hour + pace[:, each, None] * LIFETIMES_H * (1.0 - hour)
    # What one week leaves, all earlier weeks have left too: a decaying geometric series.
    left = full / (1.0 - hour**HOURS_PER_WEEK)
    swell += left[:, None] * hour ** np.arange(HOURS_PER_WEEK)[:, None]
    return swell


def _add_rows(swell: Floats, rows: int) -> Floats:
    return np.concatenate([swell, np.repeat(swell[:1], rows - len(swell), axis=0)])


def _sum_by_host(host: Ints, rows: Floats, hosts: int) -> Floats:
    return np.stack([np.bincount(host, rows[:, kind], hosts) for kind in range(LIFETIME_KINDS)], axis=1)


def _extend_rows(rows: Floats, more: int, value: float) -> Floats:
    return np.concatenate([rows, np.full((more, *rows.shape[1:]), value)])
