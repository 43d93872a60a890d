"""Accrual: poll the sources where waiting loses most, by a model of links that accumulate and disappear."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from vedette.discover.polling.arrivals import LIFETIMES_H, estimate_answer_chance
from vedette.discover.polling.overlap import AccrualState, compute_accrued
from vedette.discover.polling.poll_value import PATIENCE_H, compute_ucb, compute_urgency, estimate_yield
from vedette.discover.polling.rates import RatePosterior
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints, Picks
from vedette.timeutil import DAY_S, HOUR_S

# The yield of a poll is one thing, its information another. A quiet source is not polled, so nothing shows that its
# site was rebuilt and all news is there now. So uncertainty counts too, to_learn = usual (dt / D)^2,     D =
# max(LEAST_S, n step / (SHARE k)), where *usual* is the mean yield of a poll and dt the time since the last try: after
# D a poll is made even if it should bring nothing, and sooner in hours in which other polls bring little. D leaves all
# but a small share of the polls to their yield: with n sources and k polls a step, all get their turn within it.


# The share of polls that may be exploration, and how soon each source gets its next turn if polls are many.
EXPLORATION_SHARE, MIN_REVISIT_S = 0.05, 14 * DAY_S
# Prior yield of a poll if none ever brought anything: otherwise such sources would never be polled again.
MIN_USUAL = 0.05


def compute_exploration_turn(options: Sources, k: int, now: float, *, is_priced: bool = False) -> float:
    """Compute after how long a source is polled for exploration, even with no expected yield; infinite before any poll.

    If a price decides how many polls are made, k is only the maximum: then the polls of the last day count.
    """
    tried_s = options.last_poll_s
    latest_s = float(tried_s.max(initial=-np.inf))
    if not np.isfinite(latest_s) or k < 1:
        return np.inf
    polls = max(int((options.poll_s > now - DAY_S).sum()), 1)
    between_s = DAY_S / polls if is_priced else (now - latest_s) / k
    return max(MIN_REVISIT_S, between_s * len(options) / EXPLORATION_SHARE)


def estimate_usual_yield(options: Sources) -> float:
    """Estimate the mean yield of a poll of these sources; a small positive number if nothing was ever found."""
    return max(float(options.found.sum() / max(int(options.polls.sum()), 1)), MIN_USUAL)


def compute_exploration_bonus(options: Sources, turn_s: float, now: float, usual: float | None = None) -> Floats:
    """Compute the exploration bonus of polling each discovery source, in new pages; 0 for those never polled.

    ``usual`` is the mean yield of a poll, by default that of these sources.
    """
    usual = estimate_usual_yield(options) if usual is None else usual
    unseen_s = np.where(np.isfinite(options.last_poll_s), now - options.last_poll_s, 0.0)
    worth: Floats = usual * (unseen_s / turn_s) ** 2
    return worth


class PollValues(NamedTuple):
    """The worth of polls of sources, by component: ``total = (hope(lost) * chance + lesson) * weight``.

    ``lost`` is what waiting loses by kind of lifetime, at one link an hour; ``chance`` the probability of a response;
    ``lesson`` the value of exploration. Each source is considered alone.
    """

    lost: Floats
    chance: Floats
    lesson: Floats
    weight: Floats
    total: Floats


class GreedyPicker:
    """Greedy choice of discovery sources to poll, for the accrual policy.

    Gains only decrease, and only those of relatives of a chosen source.
    """

    def __init__(self, belief: AccrualState, options: Sources, values: PollValues, optimism: float, now: float) -> None:
        place = options.place
        self._rates = belief.arrivals.estimate_rates(place, now)
        self._values, self._optimism = values, optimism
        self._lost = values.lost.copy()
        self._age_h = (now - belief.arrivals.find_accrual_start_s(place, now)) / HOUR_S
        row_of = np.full(len(belief.arrivals), -1, np.int64)
        row_of[place] = np.arange(len(place))
        self._share = belief.overlap.estimate_share(place)
        shower = np.where(self._share > 0, row_of[belief.overlap.other[place]], -1)
        row, column = np.nonzero(shower >= 0)
        order = np.argsort(shower[row, column], kind="stable")
        self._row, self._column = row[order], column[order]
        self._starts = np.searchsorted(shower[self._row, self._column], np.arange(len(place) + 1))

    def pick(self, k: int, price: float, pending: Ints) -> Ints:
        """Pick up to k discovery sources to poll, best first; none whose gain is below the price by then.

        Those that are ``pending`` are taken before the first.
        """
        for row in pending.tolist():
            self._take(row)
        gain = self._compute_gain(np.arange(len(self._lost)))
        gain[pending] = -np.inf
        picked = np.zeros(min(k, len(gain)), np.int64)
        for nth in range(len(picked)):
            picked[nth] = best = int(np.argmax(gain))
            if gain[best] < price or np.isneginf(gain[best]):
                return picked[:nth]
            kin = self._take(best)
            gain[kin] = np.where(np.isneginf(gain[kin]), -np.inf, self._compute_gain(kin))
            gain[best] = -np.inf
        return picked

    def _compute_gain(self, rows: Ints) -> Floats:
        rates, values = RatePosterior(self._rates.shape[rows], self._rates.rate[rows]), self._values
        hope = compute_ucb(rates, self._lost[rows], self._optimism)
        gain: Floats = (hope * values.chance[rows] + values.lesson[rows]) * values.weight[rows]
        return gain

    def _take(self, best: int) -> Ints:
        """Take a source, and subtract from its relatives the links that polling it will already show."""
        pairs = slice(self._starts[best], self._starts[best + 1])
        kin, share = self._row[pairs], self._share[self._row[pairs], self._column[pairs]]
        age_h = self._age_h[kin, None]
        part = _compute_accrued_share(np.minimum(age_h, self._age_h[best])) / _compute_accrued_share(age_h)
        self._lost[kin] *= 1.0 - share[:, None] * part
        return kin


def _compute_accrued_share(age_h: Floats) -> Floats:
    part: Floats = -np.expm1(-np.maximum(age_h, 1e-3) / LIFETIMES_H)
    return part


# Future times at which to check when a source is worth a poll.
MIN_WAIT_S, MAX_WAIT_S, TIME_STEPS = 60.0, 30 * DAY_S, 24
# The best of this many times k are compared with each other; the others are never among the k.
CANDIDATES_PER_PICK, MIN_CANDIDATES = 4, 256


@dataclass(frozen=True, slots=True)
class Accrual:
    """Choose the k sources that together lose most by waiting, by a model of how links appear and disappear.

        worth = mean + optimism * deviation  of  sum_c rate_c W(A_c),   times the chance of an answer
        W     = t (1 - e^-x (1 + x)),   x = T / t,   1 / t = 1 / tau + 1 / patience

    A_c is what has accumulated since the last poll and is not known from others (``arrivals``, ``overlap``,
    ``compute_accrued``), T the time in which as much accumulates at an even pace. W is not what a poll would bring now,
    but that minus what it would bring anyway a little later: links that stay for days can wait, those that disappear
    within hours cannot. It is the Whittle index for sources that fill up. A link found after ``patience`` counts 1 / e
    of one found at once. A quiet source may have become the best since (``rates``), so a few polls explore
    (``compute_exploration_bonus``).

    When a source is chosen, the links it will show are subtracted from its relatives before the next is chosen (greedy,
    as GREEDY does). Polls worth less than ``price`` by then are not made, however many are left.

    Useful for any number of sources that show new links in a rhythm; it is the default. Not useful if links never
    disappear and delay does not matter: then the order hardly matters either.

    References: greedy choice Pandey08, 3.5.2; rates Thompson23, 2.4, with exposure instead of polls; the index as in
    ``refresh.freshness_index``; the model is ours.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.sources import PollResults, PollHistory
    >>> book, both, policy = PollHistory(np.zeros(2, np.int64)), np.ones(2, bool), Accrual()
    >>> state = policy.start(None)
    >>> for hour, new in enumerate([9, 9, 9]):
    ...     came = PollResults(np.array([0, 1]), both, np.array([0, 0, new]), np.arange(new) + 9 * hour, np.ones(new,
    ...         bool))
    ...     state = policy.observe(state, book.record(came, 3_600.0 * hour), 3_600.0 * hour)
    >>> policy.choose(state, book.list_options(), k=1, now=10_800.0, rng=rng_for(1, "discover")).rows.tolist()
    [1]
    """

    name: str = "accrual"
    optimism: float = 0.3
    patience_h: float = PATIENCE_H
    price: float = 0.0

    def start(self, config: None) -> AccrualState:
        """Return the accrual policy's state before any source was polled."""
        return AccrualState.empty()

    def observe(self, state: AccrualState, batch: Sources, now: float) -> AccrualState:
        """Learn arrival rates, rhythm and overlap of discovery sources from polls.

        A first poll teaches only what is there.
        """
        if not len(batch):
            return state
        arrivals = state.arrivals.grow_copy(batch)
        state = AccrualState(arrivals, state.overlap).ensure_places(batch)
        ok = batch.failures == 0
        before_s = arrivals.looked_s[batch.place]
        again = ok & np.isfinite(before_s) & (before_s < now)
        rows = np.flatnonzero(again)
        arrivals = arrivals.learn_yields(batch, rows, compute_accrued(state, batch.place[rows], now), now)
        arrivals = arrivals.record_polls(batch.place, batch.place[ok], now)
        return AccrualState(arrivals, state.overlap.learn_polls(batch, before_s, arrivals.looked_s))

    def choose(self, state: AccrualState, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:
        """Choose up to k discovery sources to poll, most urgent first; nothing is random."""
        state = state.ensure_places(options)
        turn_s = compute_exploration_turn(options, k, now, is_priced=self.price > 0)
        values = self.compute_values(state, options, turn_s, now)
        rows = _select_top(values.total, CANDIDATES_PER_PICK * k + MIN_CANDIDATES)
        pending = np.zeros(0, np.int64)
        if options.pending is not None:
            rows = np.union1d(rows, np.flatnonzero(options.pending))
            pending = np.flatnonzero(options.pending[rows])
        some = replace(options, place=options.place[rows])
        picker = GreedyPicker(state, some, PollValues(*(each[rows] for each in values)), self.optimism, now)
        chosen = rows[picker.pick(k, self.price, pending)]
        return Picks(chosen, np.ones(len(chosen)))

    def compute_values(
        self, state: AccrualState, options: Sources, turn_s: float, now: float, usual: float | None = None
    ) -> PollValues:
        """Compute the current worth of polling each source; ``turn_s`` and ``usual`` are those of exploration."""
        arrivals, place = state.arrivals, options.place
        lost = compute_urgency(compute_accrued(state, place, now), self.patience_h)
        chance = estimate_answer_chance(arrivals.down_s[place], options.last_poll_s, now)
        lesson = compute_exploration_bonus(options, turn_s, now, usual) * chance
        weight = np.ones(len(options)) if options.weight is None else options.weight
        hope = compute_ucb(arrivals.estimate_rates(place, now), lost, self.optimism)
        return PollValues(lost, chance, lesson, weight, (hope * chance + lesson) * weight)

    def forecast(
        self, state: AccrualState, options: Sources, turn_s: float, now: float, usual: float | None = None
    ) -> Floats:
        """Forecast when each source will be worth a poll at the price, if nothing is polled until then.

        At most 30 days ahead; values between the computed time steps are interpolated linearly.
        """
        state = state.ensure_places(options)
        wait_s = np.concatenate([[0.0], np.geomspace(MIN_WAIT_S, MAX_WAIT_S, TIME_STEPS)])
        values = [self.compute_values(state, options, turn_s, now + each, usual).total for each in wait_s.tolist()]
        high = np.maximum.accumulate(np.stack(values), axis=0)
        upper = np.minimum((high < self.price).sum(axis=0), TIME_STEPS)
        lower = np.maximum(upper - 1, 0)
        every = np.arange(len(options))
        low_value, gap = high[lower, every], high[upper, every] - high[lower, every]
        part = np.clip(np.where(gap > 0, (self.price - low_value) / np.where(gap > 0, gap, 1.0), 1.0), 0.0, 1.0)
        times: Floats = now + wait_s[lower] + np.where(upper > 0, part, 0.0) * (wait_s[upper] - wait_s[lower])
        return times

    def reason(self, state: AccrualState, batch: Sources, row: int, now: float) -> str:
        """Explain a poll: its expected yield, what waiting would lose, and since when links have accumulated."""
        turn_s = compute_exploration_turn(batch, 1, now, is_priced=True)
        return self.explain(state.ensure_places(batch), batch, turn_s, now)[row]

    def explain(
        self, state: AccrualState, batch: Sources, turn_s: float, now: float, usual: float | None = None
    ) -> list[str]:
        """Explain polls of some sources, with ``turn_s`` and ``usual`` of all sources."""
        values, expected = self.compute_values(state, batch, turn_s, now, usual), estimate_yield(state, batch, now)
        to_learn = (values.lesson * values.weight > values.total / 2) & (values.total > 0)
        age_h = (now - batch.last_poll_s) / HOUR_S
        return [
            f"accrual: {one:.2g} new pages expected {hours:.1f} h after the last poll; waiting loses {worth:.2g}"
            f"{', mostly for what a poll would teach' if learns else ''}"
            if np.isfinite(hours)
            else f"accrual: never polled; a poll may bring {one:.2g} new pages"
            for one, hours, worth, learns in zip(expected, age_h, values.total, to_learn, strict=True)
        ]


def _select_top(value: Floats, count: int) -> Ints:
    """Return the rows of the discovery sources with the largest values, in their own order."""
    if count >= len(value):
        return np.arange(len(value))
    return np.sort(np.argpartition(-value, count)[:count]).astype(np.int64)
