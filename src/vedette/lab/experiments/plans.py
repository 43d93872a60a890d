"""Plans experiment: does planning several days ahead pay off, and does it pay off to consider costs? Observe99, 2.

The setting of the paper: a fixed set of pages, one turn a day, and a daily budget of fetching time. Pages exist through
the whole span. In its first half their changes are observed and age chains are estimated, one for each class of pages
that changed about equally often; the second half is played, ``PLAYED_DAYS`` at most. A fetch shows a page as it is at
the end of the day, and how long ago it changed. At the end of each day a page costs 1 if its copy is out of date:
``stale`` is the mean of that (C of the paper), ``stale_weighted`` weights pages by their worth.

Fetches take time T: half of it the same for all, half in proportion to the page's words. A page is worth B: 1, plus 1
for each link to it. A budget is the share of all pages' T that a day has. Policies:

- ``oldest``: the longest wait first, whatever is known.
- ``c1``, ``c1-from-ages``: by the probability of a change, P, whatever the cost; chains from lifetimes (eq. 7) or ages
(eq. 8).
- ``p-over-t``, ``bp-over-t``, ``c2-over-t``: by P/T and B P/T (eq. 36, 38), and by expected days out of date over T.
- ``plan-1``, ``plan-2``, ``plan-3``, ``plan-5``: the first day of the best plan of that many days, recomputed each day.

All but plans have liveness: a page that waited for ``BOUND_ROUNDS`` goes before all others. A round is the time in
which the budget would let every page have its turn, so at most about a quarter of the budget is spent on that.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from vedette.errors import UsageError
from vedette.lab.baselines.models.age_chain import (
    AgeChain,
    chain_from_ages,
    chain_from_lifetimes,
    compute_outlook,
    memoryless_chain,
)
from vedette.lab.baselines.plans.exact import MAX_STEPS, best_plans
from vedette.lab.baselines.plans.lagrange import solve_certified
from vedette.lab.baselines.plans.two_days import best_two_days
from vedette.lab.core.experiment import Cell, Experiment, Measurements, Metric, Span, resolve_span
from vedette.lab.worlds.catalog import open_history
from vedette.lab.worlds.history import PAGE, History
from vedette.policy import Floats, Ints, rng_for
from vedette.refresh.known_pages import Bools
from vedette.refresh.outlook import plan_costs
from vedette.timeutil import DAY_S

MAX_PAGES = 1_000
MIN_DAYS, PLAYED_DAYS = 20, 90
LAST_AGE = 30
BOUND_ROUNDS = 4
FLOOR = 1e-4  # minimum change rate per day, so that every probability tends to 1
CLASS_ENDS = (0, 1, 2, 4, 8, 16, 32)
OWN_METRICS: Mapping[str, Metric] = {
    "stale": Metric("share of pages that are out of date at the end of a day", "share", False),
    "stale_weighted": Metric("the same, weighted by worth", "share", False),
    "to_first": Metric("time until a day's first changed page is found, as a share of the day's budget", "", False),
    "longest_wait": Metric("the longest wait of a page", "d", False),
    "gap": Metric("mean certified gap of the day's plans", "share", False),
    "played": Metric("pages in the experiment", "pages"),
}


class PagesInDays(NamedTuple):
    """Pages as in the paper: ``changed`` has one row per page and one column per day; half of the days are observed."""

    changed: Bools
    time: Floats
    worth: Floats
    watched: int


class Chains(NamedTuple):
    """The class of each page, and the age chain of each class."""

    of_page: Ints
    chains: tuple[AgeChain, ...]

    def evaluate(self, ask: Callable[[AgeChain, Ints], Floats]) -> Floats:
        """Query each chain about its pages (rows); the last axis of the results is the pages."""
        rows = [np.flatnonzero(self.of_page == number) for number in range(len(self.chains))]
        parts = [ask(chain, some) for chain, some in zip(self.chains, rows, strict=True) if len(some)]
        order = np.argsort(np.concatenate([some for some in rows if len(some)]), kind="stable")
        return np.concatenate(parts, axis=-1)[..., order]


class Turn(NamedTuple):
    """The information at a turn: each page's age when it was seen, the days since, the day's budget, and the chains.

    ``bound`` is how many days a page may wait before it goes before all others.
    """

    age: Ints
    waited: Ints
    budget: float
    chains: Chains
    bound: float = np.inf


def read_days(history: History, begin_s: float, end_s: float, seed: int) -> PagesInDays:
    """Convert a history to days; of more than ``MAX_PAGES`` pages some are sampled."""
    days = int((end_s - begin_s) // DAY_S)
    lives = (history.born_s <= begin_s) & (history.died_s >= end_s) & (history.kind == PAGE)
    pages = np.flatnonzero(lives)
    if days < MIN_DAYS or len(pages) < 2:
        raise UsageError(f"{history.name}: no page existed for at least {MIN_DAYS} days; change --from and --to")
    if len(pages) > MAX_PAGES:
        pages = np.sort(rng_for(seed, "lab/plans/pages").choice(pages, MAX_PAGES, replace=False))
    place = np.full(history.pages, -1)
    place[pages] = np.arange(len(pages))
    day = np.floor((history.version_at_s - begin_s) / DAY_S).astype(np.int64)
    row = place[history.version_page]
    inside = (row >= 0) & (day >= 0) & (day < days)
    changed = np.zeros((len(pages), days), np.bool_)
    changed[row[inside], day[inside]] = True
    words = history.words[history.version_at(pages, begin_s)].astype(np.float64)
    time = 0.5 + 0.5 * words / max(float(words.mean()), 1.0)
    watched = days // 2
    return PagesInDays(changed[:, : watched + PLAYED_DAYS], time, _count_links(history, begin_s)[pages] + 1.0, watched)


def _count_links(history: History, now_s: float) -> Floats:
    """Count the links to each page from pages as they are at a time."""
    current = history.version_at(history.live_pages_at(now_s), now_s)
    ends = np.zeros(len(history.version_page) + 1, np.int64)
    ends[current] = 1
    shown = np.repeat(ends[:-1].astype(np.bool_), np.diff(history.link_start))
    return np.bincount(history.link_to[shown], minlength=history.pages).astype(np.float64)


def fit_chains(pages: PagesInDays, *, from_ages: bool = False) -> Chains:
    """Estimate the age chain of each class of pages from the observed days."""
    seen = pages.changed[:, : pages.watched]
    of_page = np.searchsorted(CLASS_ENDS, seen.sum(axis=1)).astype(np.int64)
    fit = _chain_by_ages if from_ages else _chain_by_lives
    numbers = np.unique(of_page)
    chains = [fit(seen[of_page == number]).with_floor(FLOOR) for number in numbers.tolist()]
    return Chains(np.searchsorted(numbers, of_page), tuple(chains))


def _chain_by_lives(seen: Bools) -> AgeChain:
    """Estimate by lifetimes between changes (eq. 7); the time before the first change is unknown and does not count."""
    ended, open_ = [], []
    for row in seen:
        at = np.flatnonzero(row)
        ended.append(np.diff(at))
        open_.append(len(row) - 1 - at[-1:])
    lives, rest = np.concatenate(ended), np.concatenate(open_)
    return chain_from_lifetimes(lives, LAST_AGE, rest) if len(lives) + len(rest) else memoryless_chain(0.0, LAST_AGE)


def _chain_by_ages(seen: Bools) -> AgeChain:
    """Estimate by the observed ages of pages, day by day (eq. 8); before its first change a page has none."""
    ages = np.concatenate([_ages(row)[np.argmax(row) :] for row in seen if row.any()] or [np.zeros(0, np.int64)])
    if not len(ages):
        return memoryless_chain(0.0, LAST_AGE)
    return chain_from_ages(np.bincount(np.minimum(ages, LAST_AGE), minlength=LAST_AGE + 1).astype(np.float64))


def _ages(row: Bools) -> Ints:
    """Return the days since the last change, for each day; from the first day on if there was none."""
    days = np.arange(len(row))
    return days - np.maximum.accumulate(np.where(row, days, 0))


class Choice(NamedTuple):
    """The pages that are fetched on a day, in order, and the certified gap of the plan behind it."""

    rows: Ints
    gap: float = np.nan


def choose_by_rate(rate: Floats, time: Floats, turn: Turn, rng: np.random.Generator) -> Choice:
    """Choose pages until the budget is spent: those that waited for ``turn.bound`` days, then by falling ``rate``.

    Ties are broken at random. The first fetch is always made: otherwise a page that takes more than a day's budget
    would never be fetched. By P/T alone a page that takes long, or seems never to change, is forgotten: the paper
    argues that probabilities reach 1 (2.3.2), but they only tend to it. With the bound, among pages that waited that
    long the longest wait goes first, and a fetched page waits from 0 again: of d pages none waits for more than
    ``bound`` + d turns.
    """
    overdue = np.where(turn.waited >= turn.bound, turn.waited, 0)
    order = np.lexsort([rng.random(len(time)), -rate, -overdue])
    within = int(np.searchsorted(np.cumsum(time[order]), turn.budget, side="right"))
    return Choice(order[: max(within, 1)])


def choose_by_plan(days: int, turn: Turn, time: Floats) -> Choice:
    """Choose the pages that the best plan of ``days`` days fetches on its first day."""
    costs = turn.chains.evaluate(
        lambda chain, rows: plan_costs(compute_outlook(chain, turn.age[rows], turn.waited[rows], days))
    )
    plans, gap = solve_plans(costs, np.full(days, turn.budget), time)
    rows = np.flatnonzero(plans & 1)
    return Choice(rows[np.argsort(-costs[0][rows] / time[rows], kind="stable")], gap)


def solve_plans(costs: Floats, budgets: Floats, time: Floats) -> tuple[Ints, float]:
    """Find the best plans by the solver that fits, and their certified gap: 0 if it is exact.

    >>> table_1 = np.array([[1.80, 1.61], [0.25, 0.05], [0.85, 0.80], [0.0, 0.0]])
    >>> solve_plans(table_1, np.ones(2), np.ones(2))[0].tolist()
    [2, 1]
    """
    whole = tuple(int(budget + 1e-9) for budget in budgets)
    if np.all(time == 1.0) and len(budgets) == 2:
        return best_two_days(costs, (whole[0], whole[1])), 0.0
    if np.all(time == 1.0) and costs.size * prod(budget + 1 for budget in whole) <= MAX_STEPS / 100:
        return best_plans(costs, whole), 0.0
    found = solve_certified(costs, budgets, time)
    return found.plans, found.gap


def _choose(policy: str, pages: PagesInDays, turn: Turn, rng: np.random.Generator) -> Choice:
    kind, _, days = policy.partition("-")
    if kind == "plan":
        return choose_by_plan(int(days), turn, pages.time)
    if policy == "oldest":
        return choose_by_rate(turn.waited.astype(np.float64), pages.time, turn, rng)
    if policy == "c2-over-t":
        late = turn.chains.evaluate(lambda chain, rows: chain.expected_staleness(turn.age[rows], turn.waited[rows]))
        return choose_by_rate(late / pages.time, pages.time, turn, rng)
    chance = turn.chains.evaluate(lambda chain, rows: chain.change_chance(turn.age[rows], turn.waited[rows]))
    rates = {"p-over-t": chance / pages.time, "bp-over-t": pages.worth * chance / pages.time}
    return choose_by_rate(rates.get(policy, chance), pages.time, turn, rng)


class Played(NamedTuple):
    """Outcome of a day: which pages are out of date at its end, the time to the first find, and the plan's gap."""

    stale: Bools
    to_first: float
    gap: float


def play(pages: PagesInDays, policy: str, budget: float, seed: int) -> tuple[list[Played], int]:
    """Play the days after the observed ones; return the outcome of each, and the longest wait of any page."""
    chains = fit_chains(pages, from_ages=policy == "c1-from-ages")
    ages = np.array([_ages(row) for row in pages.changed])
    age, waited = ages[:, pages.watched - 1].copy(), np.ones(len(ages), np.int64)
    stale, longest, played = np.zeros(len(ages), np.bool_), 0, []
    for day in range(pages.watched, pages.changed.shape[1]):
        stale |= pages.changed[:, day]
        longest = max(longest, int(waited.max()))
        rng = rng_for(seed, f"lab/plans/{day}")
        turn = Turn(age, waited, budget * float(pages.time.sum()), chains, BOUND_ROUNDS / budget)
        rows, gap = _choose(policy, pages, turn, rng)
        found = np.flatnonzero(stale[rows])
        spent = float(pages.time[rows[: found[0] + 1]].sum()) if len(found) else float(pages.time[rows].sum())
        stale[rows], age[rows], waited[rows] = False, ages[rows, day], 0
        waited += 1
        played.append(Played(stale.copy(), spent / (budget * float(pages.time.sum())), gap))
    return played, longest


class Plans(Experiment):
    """The plans experiment: one row with times that differ (``unequal`` 1), one where every fetch takes 1 (0)."""

    name = "plans"
    about = "Does it pay to plan days ahead, and to count what a fetch costs? (budget: share of all pages per day)"
    worlds = ("git", "made", "live")
    own = OWN_METRICS
    metrics = tuple(OWN_METRICS)
    policies = (
        *("oldest", "c1", "c1-from-ages", "p-over-t", "bp-over-t", "c2-over-t"),
        *("plan-1", "plan-2", "plan-3", "plan-5"),
    )
    budgets = (0.01, 0.05, 0.2)
    figures = (("stale", "budget"),)

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the plans experiment on a cell: a row for times that differ, and one for equal times."""
        if not 0 < cell.budget <= 1:
            raise UsageError(
                f"the budget for {cell.experiment} must be the share of pages to fetch per day: above 0, at most 1"
            )
        pages = _load_pages(cell.world, cell.span, cell.seed)
        equal = pages._replace(time=np.ones(len(pages.time)))
        cases = ((0.0, equal), (1.0, pages))
        return [{"unequal": unequal, **_measure(case, cell)} for unequal, case in cases]


def _measure(pages: PagesInDays, cell: Cell) -> dict[str, float]:
    days, longest = play(pages, cell.policy, cell.budget, cell.seed)
    stale = np.array([day.stale for day in days])
    gaps = np.array([day.gap for day in days])
    metrics = {
        "stale": float(stale.mean()),
        "stale_weighted": float((stale @ pages.worth).mean() / pages.worth.sum()),
        "to_first": float(np.mean([day.to_first for day in days])),
        "longest_wait": float(longest),
        "played": float(len(pages.time)),
    }
    return metrics if np.isnan(gaps).all() else metrics | {"gap": float(np.nanmean(gaps))}


@lru_cache(maxsize=2)  # cells of one world come one after the other
def _load_pages(world: str, span: Span, seed: int) -> PagesInDays:
    history = open_history(world)
    return read_days(history, *resolve_span(span, history.begin_s, history.end_s), seed)


EXPERIMENT = Plans()
