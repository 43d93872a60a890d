"""Upper bound ``bound-known`` on freshness: the best share of the budget for each page, by rates known in hindsight.

A page that changes at a rate L as a Poisson process and is fetched at even intervals 1/f is fresh for a share F = (f/L)
(1 - exp(-L/f)) of the time. The sum of F over pages is largest under a budget on the sum of f if all slopes are equal
(one Lagrange multiplier m; r = L/f):

    dF/df = (1 - (1 + r) exp(-r)) / L = m

A page with 1/L <= m is not fetched at all: it changes too fast to be worth it. So the best plan ignores the fastest
pages, and gives slow ones more than their share of changes. As pages appear and disappear, each day has its own m.

It knows rates, not moments: on pages that change by the clock a policy that learns the moments can be better.

Reference: J. Cho, H. Garcia-Molina, *Effective Page Refresh Policies for Web Crawlers*, ACM TODS 28(4), 2003.
"""

from dataclasses import dataclass
from math import ceil, inf, sqrt

import numpy as np

from vedette.lab.worlds.history import History
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages
from vedette.timeutil import DAY_S

HALVINGS = 80
# r = L/f: from a page fetched a million times per change to one fetched once in fifty changes.
RATIOS: Floats = np.geomspace(1e-6, 50.0, 20_001)
SLOPES: Floats = -np.expm1(-RATIOS) - RATIOS * np.exp(-RATIOS)
# Rates that differ by less than half a percent count as one: a day's m then costs the same for any number of pages.
BINS_PER_FACTOR_E = 200


@dataclass(frozen=True, slots=True, eq=False)
class BoundKnown:
    """Freshness bound with known change rates: fetch each page at its optimal frequency, with its own phase.

    Its state is not an array, so batches have the pages' own numbers as places.
    """

    rate: Floats
    slope: Floats
    begin_s: float
    name: str = "bound-known"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the empty state of the known-rates bound, which has nothing to learn."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the state of the known-rates bound unchanged; a fetch teaches it nothing."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return due times after the optimal interval; the first comes after a part of it, to spread pages out."""
        interval_s = self._interval_s(batch, now)
        part = np.where(batch.first_fetch, rng.random(len(batch)), 1.0)
        # A page that is never due has no phase either.
        due: Floats = np.where(np.isfinite(interval_s), batch.last_fetch_s + part * interval_s, inf)
        return due

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """Describe the optimal fetch interval of a page under the known-rates bound, as the reason."""
        return f"bound-known: every {self._interval_s(batch, now)[row] / 3600:.1f} h"

    def _interval_s(self, batch: KnownPages, now: float) -> Floats:
        day = min(int((now - self.begin_s) / DAY_S), len(self.slope) - 1)
        per_s = solve_frequency(self.rate[batch.place], self.slope[day])
        interval_s: Floats = np.divide(1.0, per_s, out=np.full(len(batch), inf), where=per_s > 0)
        return interval_s


def build_bound_known(history: History, begin_s: float, end_s: float, budget: float) -> BoundKnown:
    """Build the known-rates freshness bound for a span of a history and a budget in fetches per day."""
    rate = measure_rates(history, begin_s, end_s)
    moving = np.flatnonzero(rate > 0)
    bin_ = np.rint(np.log(rate[moving]) * BINS_PER_FACTOR_E).astype(np.int64)
    first = int(bin_.min(initial=0))
    days = np.arange(max(ceil((end_s - begin_s) / DAY_S), 1)) * DAY_S + begin_s
    slopes = []
    for day_s in days:
        lived_s = np.minimum(history.died_s[moving], day_s + DAY_S) - np.maximum(history.born_s[moving], day_s)
        alive = np.bincount(bin_ - first, np.maximum(lived_s, 0.0) / DAY_S).astype(np.float64)
        rates = np.exp((np.arange(len(alive)) + first) / BINS_PER_FACTOR_E)
        slopes.append(solve_slope(rates, alive, budget / DAY_S))
    return BoundKnown(rate, np.array(slopes), begin_s)


def measure_rates(history: History, begin_s: float, end_s: float) -> Floats:
    """Measure the change rate of each page, in changes per second, while it existed within a span of a history."""
    lived_s = np.minimum(history.died_s, end_s) - np.maximum(history.born_s, begin_s)
    is_change = np.append(False, history.version_page[1:] == history.version_page[:-1])
    is_change[1:] &= history.digest[1:] != history.digest[:-1]
    is_change &= (history.version_at_s > begin_s) & (history.version_at_s <= end_s)
    changes = np.bincount(history.version_page[is_change], minlength=history.pages)
    rates: Floats = np.divide(changes, lived_s, out=np.zeros(history.pages), where=lived_s > 0)
    return rates


def solve_slope(rates: Floats, pages: Floats, budget_per_s: float) -> float:
    """Solve for the Lagrange slope at which the optimal fetch frequencies of all pages add up to the budget.

    With few pages, each is fetched at most a million times per change, and the rest is not spent.

    >>> m = solve_slope(np.array([1.0, 100.0]), np.ones(2), budget_per_s=1.0)
    >>> solve_frequency(np.array([1.0, 100.0]), m).round(3).tolist()
    [1.0, 0.0]
    """
    some = pages > 0
    if not some.any():
        return inf
    rates, pages = rates[some], pages[some]
    low, high = float(SLOPES[0] / rates.max()), float(1 / rates.min())
    for _ in range(HALVINGS):
        middle = sqrt(low) * sqrt(high)
        low, high = (middle, high) if pages @ solve_frequency(rates, middle) > budget_per_s else (low, middle)
    return high


def solve_frequency(rates: Floats, slope: float) -> Floats:
    """Solve for the fetch frequency (per second) at which each page has this freshness slope; 0 if there is none."""
    # If no page changes, the slope is infinite, and no page has it.
    wanted = np.where(rates > 0, np.maximum(rates, 1e-300) * slope, inf)
    ratio = np.interp(wanted, SLOPES, RATIOS)
    return np.where(wanted < SLOPES[-1], rates / ratio, 0.0)
