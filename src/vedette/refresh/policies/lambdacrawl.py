"""LambdaCrawl refresh: every missed change costs a little less than the previous one, so no page is given up."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.freshness_index import elapsed_days, fill_unknown, select_rows, to_due_times
from vedette.refresh.known_pages import KnownPages, Memory

# Days of the two prior intervals of every page, one with a change and one without.
PSEUDO_D = 0.5
SLOWEST, FASTEST = 0.0005, 7.0  # changes a day
BISECTION_STEPS = 40
# Changed intervals are stored by length, in bins that widen by a factor of four: their number, and total length.
EDGES_D: Floats = np.array([0.125, 0.5, 2.0, 8.0, 32.0, 128.0, 512.0])
BINS = len(EDGES_D) + 1
RATE, UNCHANGED, COUNTS, DAYS = 0, 1, slice(2, 2 + BINS), slice(2 + BINS, 2 + 2 * BINS)


@dataclass(frozen=True, slots=True)
class LambdaCrawl:
    """Refresh each page at the rate where one more fetch saves as much as it costs, by harmonic staleness.

    n missed changes cost mu (1 + 1/2 + ... + 1/n), so a page that is fetched x times a day costs -mu ln(x / (x + D)),
    and one more fetch saves mu D / (x (x + D)), which is the price at

        x   =  (-D + sqrt(D^2 + 4 mu D / price)) / 2
        due =  last_fetch + 1 / x

    mu is the views if known, else 1: pass views for all pages or for none. A fetch of cost c pays c times the price. D
    is the most likely rate given which intervals a contained a change and which did not,

        sum_changed a / (exp(D a) - 1)  =  sum_unchanged a

    with one prior interval of each kind of half a day, within 0.0005 and 7 per day. For the intervals with a change,
    eight sums by length are stored instead of each interval; those of similar length count with their mean.

    Useful if no page may be given up, however fast it changes. Not useful with few fetches of each page: rates are not
    shrunk to those of others, and a page without history is assumed to change more than once a day.

    Reference: A. Kolobov, Y. Peres, C. Lu, E. Horvitz, *Staying up to Date with Online Content Changes Using
    Reinforcement Learning for Scheduling*, NeurIPS 2019 (LambdaCrawl, LambdaLearnAndCrawl); constants of their program.

    >>> from vedette.policy import rng_for
    >>> day_s, no = 86_400.0, np.zeros(2, bool)
    >>> batch = KnownPages(np.arange(2), np.full(2, 10 * day_s), np.array([True, False]), no, np.full(2, np.nan),
    ...     before_s=np.zeros(2))
    >>> policy = LambdaCrawl()
    >>> memory = policy.observe(policy.start(None), batch, now=10 * day_s)
    >>> (policy.due(memory, batch, 10 * day_s, 1.0, rng_for(1, "refresh")) / day_s).round(1).tolist()
    [11.5, 13.8]
    """

    name: str = "lambdacrawl"
    priced: bool = True

    def start(self, config: None) -> Memory:
        """Return an empty LambdaCrawl memory: no page was fetched yet."""
        return Memory.empty(page_width=2 + 2 * BINS, group_width=1)

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Add one interval per page, and fit its most likely change rate for LambdaCrawl."""
        after, days = state.grow_for(batch), elapsed_days(batch)
        after.pages[batch.place[batch.first_fetch]] = 0.0
        rows = after.pages[batch.place]
        rows[:, UNCHANGED] += np.where(batch.changed, 0.0, days)
        changed = np.flatnonzero(batch.changed & (days > 0))
        bins = np.searchsorted(EDGES_D, days[changed])
        rows[changed, COUNTS.start + bins] += 1
        rows[changed, DAYS.start + bins] += days[changed]
        rows[:, RATE] = _fit_rates(rows)
        after.pages[batch.place] = rows
        return after

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return last fetch plus the LambdaCrawl interval of the page's rate; never without views."""
        return to_due_times(
            batch, _interval_days(self._rates(state, batch), fill_unknown(batch.views, 1.0), price * batch.cost)
        )

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe how often a page changes, as LambdaCrawl estimates it."""
        return f"lambdacrawl: changes about every {1 / self._rates(state, batch)[row]:.1f} days"

    def _rates(self, state: Memory, batch: KnownPages) -> Floats:
        rates = select_rows(state.pages[:, : RATE + 1], batch.place)[:, 0]
        return np.where(rates > 0, rates, np.log(2) / PSEUDO_D)


def _interval_days(rates: Floats, weights: Floats, price: Floats) -> Floats:
    """Compute the LambdaCrawl interval 1 / x, without dividing by zero if the price is zero."""
    # 1/x = 2 / (-D + sqrt(D^2 + 4 mu D / price)); with p = price / mu this is p / 2 (1 + sqrt(1 + 4 / (p D))).
    part = np.divide(price, weights, out=np.full(len(rates), np.inf), where=weights > 0)
    days: Floats = (part + np.sqrt(part) * np.sqrt(part + 4 / rates)) / 2
    return days


def _fit_rates(rows: Floats) -> Floats:
    """Fit the change rates at which both sides of the equation are equal, by bisection on their logarithm."""
    pseudo = np.full((len(rows), 1), 1.0)
    counts, days = np.hstack([rows[:, COUNTS], pseudo]), np.hstack([rows[:, DAYS], PSEUDO_D * pseudo])
    # An empty bin counts nothing, whatever its length.
    length = np.divide(days, counts, out=np.ones_like(days), where=counts > 0)
    unchanged = rows[:, UNCHANGED] + PSEUDO_D
    low, high = np.full(len(rows), np.log(SLOWEST)), np.full(len(rows), np.log(FASTEST))
    for _ in range(BISECTION_STEPS):
        middle = (low + high) / 2
        # exp(x) - 1 of a long interval overflows; exp(700) is large enough.
        growth = np.expm1(np.minimum(np.exp(middle)[:, None] * length, 700.0))
        faster = (counts * length / growth).sum(axis=1) > unchanged
        low, high = np.where(faster, middle, low), np.where(faster, high, middle)
    rates: Floats = np.exp((low + high) / 2)
    return rates
