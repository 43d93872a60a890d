"""N-day refresh planning: fetch a page when its cheapest plan of the next n days begins with a fetch."""

from dataclasses import dataclass

import numpy as np

from vedette.errors import ConfigError
from vedette.policy import Floats
from vedette.refresh.known_pages import Bools, KnownPages, Memory
from vedette.refresh.models.hazards import LifeCurves, empty_memory, get_life_curves, learn
from vedette.refresh.outlook import Outlook, plan_costs, plan_matrix
from vedette.timeutil import DAY_S

# Pages at a time, so that the costs of all their plans fit into the cache; and the precision of a wait.
CHUNK = 2_048
BISECTION_STEPS = 20


@dataclass(frozen=True, slots=True)
class NDay:
    """Refresh a page when, at the price, its cheapest plan of n days has a fetch on the first day.

        cost of a plan = sum of discount^t (chance to be out of date on day t)  +  price * cost * (number of fetches)
        due            = last_fetch + the first wait at which the best plan begins with O, ``bound_d`` at the latest

    Plans interact only through the budgets, and the price represents those (``lab.baselines.plans.lagrange``), so each
    page can be planned by itself. With one day ahead this is ``greedy-c1`` with the bound. With more, a fetch also
    counts for what it saves tomorrow: of two pages that are equally likely to be out of date, the slower is fetched
    first, as it stays current for longer (Table 1 of the paper).

    The age after a fetch is assumed to continue without a change, and to be half of the wait with one;
    ``refresh.outlook`` has the whole distribution.

    For its memory, see ``refresh.models.hazards``.

    Useful if fast and slow pages compete and the budget is short. Not useful at budgets that reach every page daily.

    Reference: B. Brewington, *Optimal observation with WWW applications*, 1999, section 2.3.3.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> no = np.zeros(2, dtype=bool)
    >>> batch = KnownPages(np.arange(2), np.zeros(2), no, ~no, np.full(2, np.nan), cost=np.array([1.0, 4.0]))
    >>> policy = NDay()
    >>> state = policy.observe(policy.start(None), batch, now=0.0)
    >>> (policy.due(state, batch, now=0.0, price=0.3, rng=rng_for(1, "refresh")) / 86400).round().tolist()
    [3.0, 16.0]
    """

    name: str = "n-day"
    days: int = 3
    discount: float = 1.0
    bound_d: float = 180.0
    priced: bool = True

    def __post_init__(self) -> None:
        if not (1 <= self.days <= 5 and 0 <= self.discount <= 1 and 1 < self.bound_d < np.inf):
            raise ConfigError("n-day: expected 1 to 5 days, a discount from 0 to 1, and a bound longer than a day")

    def start(self, config: None) -> Memory:
        """Return an empty n-day memory: nothing was fetched yet."""
        return empty_memory()

    def observe(self, state: Memory, batch: KnownPages, now: float) -> Memory:
        """Learn the hazard by age from what the fetches found."""
        return learn(state, batch)

    def due(self, state: Memory, batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:
        """Return the first time at which the best n-day plan begins with a fetch."""
        lives, toll = get_life_curves(state, batch), np.maximum(price, 0.0) * batch.cost
        wait_d = np.full(len(batch), self.bound_d)
        for start in range(0, len(batch), CHUNK):
            rows = slice(start, start + CHUNK)
            wait_d[rows] = self._wait_d(LifeCurves(lives.age_d[rows], lives.rate[rows]), toll[rows])
        due: Floats = batch.last_fetch_s + wait_d * (1 - rng.random(len(batch)) / 1000) * DAY_S
        return due

    def reason(self, state: Memory, batch: KnownPages, row: int, now: float) -> str:
        """Describe the current probability that the page is out of date."""
        past_d = np.maximum(now - batch.last_fetch_s, 0.0) / DAY_S
        chance = 1 - get_life_curves(state, batch).survival(past_d)[row]
        return f"n-day: changed by now with probability {chance:.0%}, planned {self.days} days ahead"

    def _wait_d(self, lives: LifeCurves, toll: Floats) -> Floats:
        """Find by bisection the wait after which the best n-day plan begins with a fetch."""
        low_d, high_d = np.zeros(len(toll)), np.full(len(toll), self.bound_d)
        for _ in range(BISECTION_STEPS):
            middle_d = (low_d + high_d) / 2
            later = ~self._begins_with_look(lives, middle_d, toll)
            low_d, high_d = np.where(later, middle_d, low_d), np.where(later, high_d, middle_d)
        return high_d

    def _begins_with_look(self, lives: LifeCurves, wait_d: Floats, toll: Floats) -> Bools:
        costs = plan_costs(self._outlook(lives, wait_d), self.discount)
        costs += plan_matrix(self.days).sum(axis=1)[:, None] * toll
        # Plans are numbered by their fetches: the odd ones fetch on the first day.
        begins: Bools = costs[1::2].min(axis=0) <= costs[0::2].min(axis=0)
        return begins

    def _outlook(self, lives: LifeCurves, wait_d: Floats) -> Outlook:
        ahead_d = np.arange(self.days, dtype=np.float64)
        past_d = wait_d + ahead_d[:, None]
        # Cumulative rates: unchanged, and restarted (from half of the wait on), on each day and days after it.
        old = lives.cumulative_hazard(lives.age_d + past_d)
        new = lives.cumulative_hazard(past_d[:, None] / 2 + ahead_d[None, :, None])
        stayed = np.exp(lives.cumulative_hazard(lives.age_d) - old)
        seen = np.zeros((self.days, self.days, len(wait_d)))
        for day in range(self.days):
            still, other = stayed[day], 1 - stayed[day]
            later = self.days - day
            seen[day, day:] = 1 - still * np.exp(old[day] - old[day:]) - other * np.exp(new[day, 0] - new[day, :later])
        return Outlook(1 - stayed, seen)
