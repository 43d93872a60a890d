"""Two-stage model of change: a page waits before it can change, or changes fast for a while and then slowly."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Rates
from vedette.refresh.models.gamma import GROUP_WIDTH, PAGE_WIDTH
from vedette.refresh.models.pooled import Pooled
from vedette.refresh.models.rows import days_between, days_since_fetch, is_informative, page_rows, slice_memory
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


# All have one change in a unit of time on average. Two wait before they change, as Observe99 has it (a motive comes,
# then somebody acts on it: equal stages, and one four times the other); one is memoryless; the others change again soon
# with probability 1/2, at 4, 16 and 64 times the later rate.
SHAPES = (
    _Shape(0.0, 2.02, 2 / 1.01),
    _Shape(0.0, 5.0, 1.25),
    _Shape(1.0, 0.5, 1.0),
    _Shape(2.5, 2.5, 2.5 / 4),
    _Shape(8.5, 8.5, 8.5 / 16),
    _Shape(32.5, 32.5, 32.5 / 64),
)
# Three rates stand for all that a page may have: the nodes and weights of Gauss and Hermite.
NODES = ((-1.7320508, 1 / 6), (0.0, 2 / 3), (1.7320508, 1 / 6))
_CHANGED_AT = PAGE_WIDTH
_RATE = Pooled()


@dataclass(frozen=True, slots=True)
class TwoStage:
    """Two-stage model of change: after a change a page has one change rate, and in a later stage another.

        S(t) = e^(-(h1 + s) t) + s integral over u of e^(-(h1 + s) u) e^(-h2 (t - u))

    With h1 = 0 it is Observe99's sum of two memoryless times, eq. 3: at an age of ln(s / h2) / (s - h2) a change is
    likeliest (its eq. 4 is misprinted). With h1 > h2 a page changes fast for a while, then slowly. Six shapes are tried
    on every group, in units of a page's own mean rate (that of ``pooled``), and trusted as they prove right.

    Useful to see whether pages remember their last change, and how. Not useful to find out the rates of a single page.

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
        said = self._chances(memory, batch, np.nan_to_num(_age_d(rows, batch.before_s)), days_between(batch))
        update_weights(after.groups[:, GROUP_WIDTH:], batch, log_scores(said, batch.changed), seen)
        learned = self.rate.learn(self._rate_memory(memory), batch)
        after.groups[:, :GROUP_WIDTH], after.pages[:, :_CHANGED_AT] = learned.groups, learned.pages
        last_d = batch.last_fetch_s / DAY_S
        changed_d = np.where(seen & batch.changed, last_d - days_between(batch) / 2, rows[:, _CHANGED_AT])
        after.pages[batch.place, _CHANGED_AT] = np.where(batch.first_fetch, last_d, changed_d)
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability averaged over the two-stage shapes by their trust weights."""
        age_d = _age_d(page_rows(memory, batch), batch.last_fetch_s)
        said = self._chances(memory, batch, age_d, days_since_fetch(batch, at_s))
        chance: Floats = (get_weights(memory.groups[:, GROUP_WIDTH:], batch) * said).sum(axis=1)
        return chance

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return each page's change rate over both stages."""
        return self.rate.rates(self._rate_memory(memory), batch)

    def _rate_memory(self, memory: Memory) -> Memory:
        return slice_memory(memory, 0, self.rate.page_width, 0, self.rate.group_width)

    def _chances(self, memory: Memory, batch: KnownPages, age_d: Floats, wait_d: Floats) -> Floats:
        """Return the chance that each shape predicts, a column each, averaged over the page's possible rates."""
        belief = self.rate.belief(self._rate_memory(memory), batch)
        said = np.zeros((len(batch), len(SHAPES)))
        for z, weight in NODES:
            rate = belief.quantile(z)
            young, old = rate * age_d, rate * (age_d + wait_d)
            for place, shape in enumerate(SHAPES):
                said[:, place] += weight * -np.expm1(shape.log_survival(old) - shape.log_survival(young))
        return said


def _age_d(rows: Floats, since_s: Floats) -> Floats:
    """Return the days since each page's last known change; 0 for an unknown page."""
    age_d: Floats = np.where(rows[:, _CHANGED_AT] != 0, since_s / DAY_S - rows[:, _CHANGED_AT], 0.0)
    return np.fmax(age_d, 0.0)
