"""Two-stage model of change: a page waits before it can change, or changes fast for a while and then slowly."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, average_beliefs, to_chance
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import (
    announced_delay_d,
    days_between,
    days_since_fetch,
    is_informative,
    page_rows,
    slice_memory,
)
from vedette.refresh.models.trust import get_weights, log_scores, update_weights
from vedette.timeutil import DAY_S


class _Shape(NamedTuple):
    """Shape of a two-stage model, in units of the page's rate: first change, leaving, second change rate."""

    first: float
    leaves: float
    second: float

    def log_survival(self, age: Floats) -> Floats:
        """Return the log probability that a page in two stages is unchanged at an age."""
        fast = self.first + self.leaves
        second = self.leaves / (fast - self.second)
        still: Floats = np.log(second + (1 - second) * np.exp(-(fast - self.second) * age)) - self.second * age
        return still

    def hazard(self, age: Floats) -> Floats:
        """Return the change rate of a page in two stages that is unchanged at an age."""
        fast = self.first + self.leaves
        second = self.leaves / (fast - self.second)
        left = (1 - second) * np.exp(-(fast - self.second) * age)
        rate: Floats = self.second + (fast - self.second) * left / (second + left)
        return rate


# All have one change per unit of time on average. Two wait before they change, as in Observe99 (a motive arises, then
# someone acts on it: equal stages, and one four times the other); one is memoryless; the others change again soon with
# probability 1/2, at 4, 16 and 64 times the later rate.
SHAPES = (
    _Shape(0.0, 2.02, 2 / 1.01),
    _Shape(0.0, 5.0, 1.25),
    _Shape(1.0, 0.5, 1.0),
    _Shape(2.5, 2.5, 2.5 / 4),
    _Shape(8.5, 8.5, 8.5 / 16),
    _Shape(32.5, 32.5, 32.5 / 64),
)
# Three rates represent all possible rates of a page: Gauss-Hermite nodes and weights.
NODES = ((-1.7320508, 1 / 6), (0.0, 2 / 3), (1.7320508, 1 / 6))
NODE_WEIGHTS = np.tile([weight for _, weight in NODES], len(SHAPES))
_CHANGED_AT = PAGE_WIDTH
_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class TwoStage:
    """Two-stage model of change: after a change a page has one change rate, and in a later stage another.

        S(t) = e^(-(h1 + s) t) + s integral over u of e^(-(h1 + s) u) e^(-h2 (t - u))

    With h1 = 0 it is Observe99's sum of two memoryless times, eq. 3: at an age of ln(s / h2) / (s - h2) a change is
    likeliest (its eq. 4 is misprinted). With h1 > h2 a page changes fast for a while, then slowly. Six shapes are tried
    on every group, in units of a page's own mean rate (that of ``pooled``), and trusted by their accuracy.

    Useful to see whether and how the next change depends on the last. Not useful to find the rates of a single page.

    Reference: Observe99, section 2.1; D. Cox, *A Use of Complex Probabilities*, 1955, for the general form.

    >>> model = TwoStage()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> bool(0 < model.chance(memory, daily, np.array([2 * 86400.0]))[0] < 1)
    True
    """

    name: str = "two-stage"
    page_width: int = PAGE_WIDTH + 1
    group_width: int = GROUP_WIDTH + 1 + len(SHAPES)
    rate: Pooled = _RATE

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Score the two-stage shapes by their predictions, and learn each page's rate and age."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows = page_rows(memory, batch)
        beliefs = self._beliefs(memory, batch, np.nan_to_num(_age_d(rows, batch.before_s)), days_between(batch))
        chances = (
            (-np.expm1(-beliefs.staleness) * NODE_WEIGHTS).reshape(len(batch), len(SHAPES), len(NODES)).sum(axis=2)
        )
        update_weights(after.groups[:, GROUP_WIDTH:], batch, log_scores(chances, batch.changed), seen)
        learned = self.rate.learn(self._rate_memory(memory), batch)
        after.groups[:, :GROUP_WIDTH], after.pages[:, :_CHANGED_AT] = learned.groups, learned.pages
        last_d = batch.last_fetch_s / DAY_S
        known_d = batch.before_s / DAY_S + announced_delay_d(batch)
        found_d = np.where(np.isfinite(known_d), known_d, last_d - days_between(batch) / 2)
        changed_d = np.where(seen & batch.changed, found_d, rows[:, _CHANGED_AT])
        after.pages[batch.place, _CHANGED_AT] = np.where(batch.first_fetch, last_d, changed_d)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability averaged over the two-stage shapes by their trust weights."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief about each page, averaged over shapes by their trust weights and over rates."""
        age_d = _age_d(page_rows(memory, batch), batch.last_fetch_s)
        parts = self._beliefs(memory, batch, age_d, days_since_fetch(batch, at_s))
        trust = get_weights(memory.groups[:, GROUP_WIDTH:], batch)
        return average_beliefs(np.repeat(trust, len(NODES), axis=1) * NODE_WEIGHTS, parts)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return each page's change rate over both stages."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _beliefs(self, memory: Memory, batch: KnownPages, age_d: Floats, wait_d: Floats) -> Belief:
        """Return the belief of each shape at each of a page's possible rates, a column each."""
        distribution = self.rate.distribution(self._rate_memory(memory), batch)
        rates = [distribution.quantile(z) for z, _ in NODES]
        parts = [_believe(shape, rate, age_d, wait_d) for shape in SHAPES for rate in rates]
        staleness, hazard = (np.stack(columns, axis=1) for columns in zip(*parts, strict=True))
        return Belief(staleness, hazard)


def _believe(shape: _Shape, rate: Floats, age_d: Floats, wait_d: Floats) -> tuple[Floats, Floats]:
    """Return the staleness after a wait, and the hazard by then, of pages with a shape, a rate and an age."""
    young, old = rate * age_d, rate * (age_d + wait_d)
    return np.maximum(shape.log_survival(young) - shape.log_survival(old), 0.0), rate * shape.hazard(old)


def _age_d(rows: Floats, since_s: Floats) -> Floats:
    """Return the days since each page's last known change; 0 for an unknown page."""
    age_d: Floats = np.where(rows[:, _CHANGED_AT] != 0, since_s / DAY_S - rows[:, _CHANGED_AT], 0.0)
    return np.fmax(age_d, 0.0)
