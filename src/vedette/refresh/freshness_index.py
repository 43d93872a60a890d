"""Freshness index: the worth of fetching a page after a wait, and the wait after which it is worth a price.

A page of weight mu changes as a Poisson process with a rate of D a day. When its copy is t days old, a fetch is worth

    (mu / D) (1 - exp(-D t) (1 + D t))

and fetching every page whenever this reaches one price for all is optimal for a given budget. Cho and Garcia-Molina
(2003) state it as equal slopes, Azar and others (2018) as a plan of rates, Olston and Pandey (2008, appendix) as this
index. It grows with t towards mu / D, so a page with mu / D at or below its price is never worth a fetch: it changes
too fast, or matters too little.

The wait has a closed form up to one equation: with z = price D / mu it is x - ln(1 + x) = -ln(1 - z) for x = D t, whose
left side is convex, so Newton's steps approach from above and never overshoot.

If a share r of all changes is announced and false announcements come at a rate v, the index is that of GREEDY-NCIS: the
fresh time of a staleness threshold in a cycle, minus the freshness at its end times the length of the cycle. Only the
last announcement is known, so the sums over their number have a closed form (``announced_worth``). It is never more
than mu / D, whatever was announced.

Rates are shrunk to that of all pages: with c changes in T days a page has D = (c + 1/2) / (T + 1/2 / Dbar). With less
shrinkage the index loses to fetching in turn on most real sites.
"""

import numpy as np

from vedette.policy import Floats, Ints
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.timeutil import DAY_S

STEPS = 6  # by then Newton has converged, wherever it started
# A copy is certainly out of date above this staleness; the interval up to it is halved this many times.
MAX_STALENESS, HALVINGS = 50.0, 45
# Below this, differences of nearly equal numbers lose too many digits; a series keeps them all.
SMALL = 0.01
PSEUDO_COUNT = 0.5
# Prior: a page changes once a month.
FIRST_RATE_D = 1 / 30


def staleness_worth(changes: Floats) -> Floats:
    """Compute 1 - exp(-x) (1 + x), the index for x changes expected since the last fetch, by any model."""
    series = changes**2 * (1 / 2 - changes * (1 / 3 - changes * (1 / 8 - changes / 30)))
    exact = -np.expm1(-changes) - changes * np.exp(-changes)
    return np.where(changes < SMALL, series, exact)


def solve_staleness(part: Floats) -> Floats:
    """Solve ``staleness_worth(x) = part`` for x; infinity if there is no solution.

    >>> solve_staleness(staleness_worth(np.array([0.001, 2.0]))).round(6).tolist(), solve_staleness(np.ones(1)).tolist()
    ([0.001, 2.0], [inf])
    """
    changes = np.full(len(part), np.inf)
    possible = part < 1
    changes[possible] = _solve_changes(part[possible])
    return changes


def announced_worth(staleness: Floats, recall: Floats, false: Floats) -> Floats:
    """Compute the index for a staleness with announced changes, in units of weight / rate: 0 to 1.

    ``recall`` is the share of changes that are announced, ``false`` the number of false announcements per change.
    Without announcements it is ``staleness_worth``; a page that has certainly changed has the maximum worth:

    >>> waits, never = np.array([0.1, 1.0]), np.zeros(2)
    >>> bool(np.allclose(announced_worth(waits, never, never + 0.1), staleness_worth(waits)))
    True
    >>> announced_worth(np.array([50.0]), np.array([0.9]), np.array([0.01])).round(6).tolist()
    [1.0]

    Reference: R. Busa-Fekete et al., *Learning to Crawl with Noisy Change-Indicating Signals*, 2025 (GREEDY-NCIS).
    """
    silent, announced = 1.0 - recall, recall + false
    # In units of 1 / rate: from ``first`` on an announcement is followed, by ``last`` an earlier one, and at the end a
    # page that was never announced. An announcement increases staleness by ``jump``, plus all changes before it.
    jump = np.log1p(recall / false)
    first = np.maximum(staleness - jump, 0.0)
    last, end = first / silent, staleness / silent
    followed = recall / announced * -np.expm1(-announced * last)
    cycle = first + followed + np.exp(-announced * last) * -np.expm1(-announced * (end - last)) / announced
    unheard = np.exp(-(1 + false) * last) * -np.expm1(-(1 + false) * (end - last)) / (1 + false)
    fresh = -np.expm1(-first) + np.exp(-first) * followed + unheard
    series = staleness**2 / silent * (1 / 2 - staleness / 3 * (1 + announced / silent / 2))
    worth = np.where((first == 0) & (announced * end < SMALL / 10), series, fresh - np.exp(-staleness) * cycle)
    plain = staleness_worth(staleness)
    return np.where(recall > 0, np.clip(worth, 0.0, 1.0), plain)


def solve_announced(part: Floats, recall: Floats, false: Floats) -> Floats:
    """Solve ``announced_worth(x, recall, false) = part`` for x; infinity if there is no solution.

    >>> recall, false = np.array([0.0, 0.8]), np.full(2, 0.1)
    >>> solve_announced(announced_worth(np.full(2, 0.7), recall, false), recall, false).round(6).tolist()
    [0.7, 0.7]
    """
    changes = solve_staleness(part)
    rows = np.flatnonzero((recall > 0) & (part > 0))
    if not len(rows):  # nothing is announced anywhere, as in most crawls: nothing to halve
        return changes
    part, recall, false = part[rows], recall[rows], false[rows]
    low, high = np.zeros(len(rows)), np.full(len(rows), MAX_STALENESS)
    possible = announced_worth(high, recall, false) > part
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        short = announced_worth(middle, recall, false) < part
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    changes[rows] = np.where(possible, high, np.inf)
    return changes


def index_wait_days(rate_d: Floats, weight: Floats, price: Floats) -> Floats:
    """Compute the days after which a fetch is worth its price; infinity for never and for unchanging pages.

    >>> index_wait_days(np.array([0.5, 2.0]), np.ones(2), np.full(2, 0.5285)).round(2).tolist()
    [2.0, inf]
    """
    never = np.full(len(rate_d), np.inf)
    part = np.divide(price * rate_d, weight, out=never.copy(), where=weight > 0)
    possible = (part < 1) & (rate_d > 0)
    waits = never
    waits[possible] = _solve_changes(part[possible]) / rate_d[possible]
    return waits


def _solve_changes(part: Floats) -> Floats:
    """Solve 1 - exp(-x) (1 + x) = part by Newton's method, for parts from 0 to below 1."""
    level = -np.log1p(-part)
    root = np.sqrt(2 * level)
    series = root * (1 + root * (1 / 3 + root * (1 / 36 - root / 270)))
    # sqrt(2y) + y is above the solution and at most half as much again.
    changes = np.maximum(root + level, SMALL)
    for _ in range(STEPS):
        changes -= (changes - np.log1p(changes) - level) * (1 + changes) / changes
        changes = np.maximum(changes, SMALL)
    solved: Floats = np.where(root < SMALL, series, changes)
    return solved


def to_due_times(batch: KnownPages, days: Floats) -> Floats:
    """Convert waits in days after the last fetches to due times."""
    due: Floats = batch.last_fetch_s + days * DAY_S
    return due


def elapsed_days(batch: KnownPages) -> Floats:
    """Return the days that ``changed`` covers; 0 for a first fetch or a dead page, which say nothing."""
    days = np.fmax(batch.last_fetch_s - batch.before_s, 0.0) / DAY_S
    return np.where(batch.first_fetch | batch.gone | np.isnan(batch.before_s), 0.0, days)


def select_rows(rows: Floats, place: Ints) -> Floats:
    """Select the memory rows at these positions; zeros if there are none yet."""
    found = np.zeros((len(place), rows.shape[1]))
    inside = place < len(rows)
    found[inside] = rows[place[inside]]
    return found


def add_counts(memory: Memory, batch: KnownPages, counts: Floats) -> Memory:
    """Add counts (one row per page) to the memory of pages and of everything; a first fetch resets its row."""
    after = memory.grow_for(batch)
    after.pages[batch.place[batch.first_fetch]] = 0.0
    after.pages[batch.place] += counts
    after.groups[0] += counts.sum(axis=0)
    return after


def mean_rate(memory: Memory) -> float:
    """Compute the mean change rate per day of all pages, from columns 0 (changes) and 1 (days)."""
    changes, days = memory.groups[0, :2].tolist()
    return float((changes + PSEUDO_COUNT) / (days + PSEUDO_COUNT / FIRST_RATE_D))


def shrunk_rates(memory: Memory, batch: KnownPages) -> Floats:
    """Compute the change rate per day of each page, shrunk to the mean of all pages."""
    own = select_rows(memory.pages, batch.place)
    rates: Floats = (own[:, 0] + PSEUDO_COUNT) / (own[:, 1] + PSEUDO_COUNT / mean_rate(memory))
    return rates


def fill_unknown(values: Floats, instead: float) -> Floats:
    """Replace unknown values (NaN) by a number."""
    return np.where(np.isnan(values), instead, values)


def is_significant(batch: KnownPages, threshold: float) -> Bools:
    """Mark page changes of more than this share of the text; a change of unknown size counts."""
    large: Bools = batch.changed & (fill_unknown(batch.share, np.inf) > threshold)
    return large
