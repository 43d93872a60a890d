"""Look where most would be lost by waiting: links gather since the last look, and vanish; others show some of them."""

from dataclasses import dataclass

import numpy as np

from vedette.discover.policies.exploring import to_learn
from vedette.discover.policies.picking import Picking
from vedette.discover.polling.arrivals import chance_up
from vedette.discover.polling.overlap import Belief, gathered
from vedette.discover.polling.poll_value import PATIENCE_H, hoped, index, urgency, worth
from vedette.discover.polling.rhythm import HOUR_S
from vedette.discover.polling.sources import Sources
from vedette.policy import Floats, Ints, Picks

__all__ = ["Accrual"]

# Of so many times k the best are weighed against each other; the others are never among the k.
CANDIDATES, LEAST_CANDIDATES = 4, 256


@dataclass(frozen=True, slots=True)
class Accrual:
    """Choose the k sources that together lose most by waiting, by a model of how links come and go.

        worth = mean + optimism * deviation  of  sum_c rate_c W(A_c),   times the chance of an answer
        W     = t (1 - e^-x (1 + x)),   x = T / t,   1 / t = 1 / tau + 1 / patience

    A_c is what has gathered since the last look and is not known from others (``arrivals``, ``overlap``, ``gathered``),
    T the time in which as much gathers at an even pace. W is not what a look would bring now, but that less what it
    would bring anyway a little later: links that stay for days can wait, those that go within hours cannot. It is
    the index of Whittle for sources that fill up. A link found after ``patience`` counts 1 / e of one found at once.
    What was dull may have become the best since (``rates``), so a few looks are made to learn (``exploring``).

    When one is chosen, what it shows is taken from its relatives before the next is chosen (greedy, as GREEDY does).
    Looks that are worth less than ``price`` by then are not made, however many are left.

    Useful for any number of sources that show new links in a rhythm; it is the default. Not useful where links never
    vanish and delay does not matter: then the order hardly matters either.

    References: greedy choice Pandey08, 3.5.2; rates Thompson23, 2.4, with exposure instead of looks; the index as in
    ``refresh.index_rule``; the model is ours.

    >>> from vedette.policy import rng_for
    >>> from vedette.discover.polling.look_book import Brought, LookBook
    >>> book, both, policy = LookBook(np.zeros(2, np.int64)), np.ones(2, bool), Accrual()
    >>> state = policy.start(None)
    >>> for hour, new in enumerate([9, 9, 9]):
    ...     came = Brought(np.array([0, 1]), both, np.array([0, 0, new]), np.arange(new) + 9 * hour, np.ones(new, bool))
    ...     state = policy.observe(state, book.enter(came, 3_600.0 * hour), 3_600.0 * hour)
    >>> policy.choose(state, book.options(), k=1, now=10_800.0, rng=rng_for(1, "discover")).rows.tolist()
    [1]
    """

    name: str = "accrual"
    optimism: float = 0.3
    patience_h: float = PATIENCE_H
    price: float = 0.0

    def start(self, config: None) -> Belief:  # noqa: ARG002 - the shape that all policies of its kind have
        """Nothing was looked at."""
        return Belief.none()

    def observe(self, state: Belief, batch: Sources, now: float) -> Belief:
        """What looks brought teaches rates, rhythm and overlap; a first look teaches only what is there."""
        arrivals = state.arrivals.reaching(batch)
        state = Belief(arrivals, state.overlap).covering(batch)
        ok = batch.failures == 0
        before_s = arrivals.looked_s[batch.place]
        again = ok & np.isfinite(before_s) & (before_s < now)
        rows = np.flatnonzero(again)
        arrivals = arrivals.learned(batch, rows, gathered(state, batch.place[rows], now), now)
        arrivals = arrivals.looked(batch.place, batch.place[ok], now)
        return Belief(arrivals, state.overlap.learned(batch, before_s, arrivals.looked_s))

    def choose(self, state: Belief, options: Sources, k: int, now: float, rng: np.random.Generator) -> Picks:  # noqa: ARG002 - the shape that all policies of its kind have
        """Up to k rows, most urgent first; nothing is drawn."""
        state = state.covering(options)
        arrivals, place = state.arrivals, options.place
        lost = urgency(gathered(state, place, now), self.patience_h)
        chance = chance_up(arrivals.down_s[place], options.last_look_s, now)
        lesson = to_learn(options, k, now, is_priced=self.price > 0) * chance
        hope = hoped(arrivals.rates(place, now), lost, self.optimism) * chance + lesson
        rows = _most(hope, CANDIDATES * k + LEAST_CANDIDATES)
        picking = Picking(state, place[rows], lost[rows], chance[rows], lesson[rows], self.optimism, now)
        chosen = rows[picking.best(k, self.price)]
        return Picks(chosen, np.ones(len(chosen)))

    def reason(self, state: Belief, batch: Sources, row: int, now: float) -> str:
        """What a look would bring, what waiting would lose, and since when."""
        one = worth(state, batch, now)[row]
        lost = index(state, batch, now)[row]
        if not np.isfinite(batch.last_look_s[row]):
            return f"accrual: never looked at; a look may bring {one:.1f} new pages"
        age_h = (now - batch.last_look_s[row]) / HOUR_S
        return f"accrual: {one:.1f} new pages expected {age_h:.1f} h after the last try; waiting loses {lost:.1f}"


def _most(value: Floats, count: int) -> Ints:
    """The rows of the largest values, in their own order."""
    if count >= len(value):
        return np.arange(len(value))
    return np.sort(np.argpartition(-value, count)[:count]).astype(np.int64)
