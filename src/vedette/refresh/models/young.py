"""Young pages with little history: predict their change rate from features, learned from all other pages."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages, Memory
from vedette.refresh.models.base import Belief, Rates, to_chance
from vedette.refresh.models.gamma import (
    GROUP_WIDTH,
    PAGE_WIDTH,
    Gamma,
    add_observations,
    expected_time,
    pooled_prior,
    subtract_sums,
)
from vedette.refresh.models.rows import (
    add_to_groups,
    announced_delay_d,
    days_between,
    days_since_fetch,
    is_informative,
    page_rows,
)
from vedette.timeutil import DAY_S

FEATURES = 6
FIRST_RATE = 1 / 30
_PRIOR = 5.0  # how many expected changes anchor a weight
_STEP = 0.3  # no batch moves a weight further
_TURNS = (1e-6, 50.0)


@dataclass(frozen=True, slots=True)
class Young:
    """Model of young pages: their features give a change rate e^(w x), times a page's own Gamma factor.

    The features are logarithms of its words, of the pages that link to it and of its age, the age also squared, and
    whether it is empty; unknown values are set to the middle. The weights are global (one row). They are learned by one
    step per batch along the gradient of the likelihood of "changed or not", each divided by the information on that
    weight from all fetches so far: an online regression. The factor is that of ``gamma``, with the changes expected
    from the features in place of time: a page that was fetched often is judged by its own history.

    Useful for pages of new sections, and for new pages. Not useful if all pages are alike.

    Reference: P. McCullagh and J. Nelder, *Generalized Linear Models*, 1989, section 4 (complementary log-log).

    >>> model = Young()
    >>> daily = KnownPages(np.arange(1), np.array([86400.0]), np.array([True]), np.array([False]), np.array([np.nan]),
    ...               before_s=np.zeros(1))
    >>> memory = model.learn(Memory.empty(model.page_width, model.group_width), daily)
    >>> bool(0 < model.chance(memory, daily, np.array([2 * 86400.0]))[0] < 1)
    True
    """

    name: str = "young"
    page_width: int = PAGE_WIDTH
    group_width: int = GROUP_WIDTH + 2 * FEATURES

    def learn(self, memory: Memory, batch: KnownPages) -> Memory:
        """Count found and expected changes per page, and update the feature weights."""
        after, seen = memory.grow_for(batch), is_informative(batch)
        rows, features = page_rows(after, batch), _features(batch, batch.before_s)
        expected = self._rate(memory, features) * days_between(batch)
        guessed = expected_time(self._factor(memory, batch).mean, expected, batch.changed)
        announced = self._rate(memory, features) * announced_delay_d(batch)
        exposed = np.where(np.isfinite(announced), announced, guessed)
        fresh = add_observations(rows, exposed, batch.changed, seen)
        add_to_groups(after.groups[:, :GROUP_WIDTH], batch, subtract_sums(rows, fresh), seen)
        after.pages[batch.place] = fresh
        turns = expected * pooled_prior(memory.groups[:, :GROUP_WIDTH], batch, 1.0).mean
        after.groups[0, GROUP_WIDTH:] = _update_weights(
            memory.groups[0, GROUP_WIDTH:], features[seen], turns[seen], batch.changed[seen]
        )
        return after

    def chance(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Floats:
        """Return the change probability of each page, averaged over its possible rate factors."""
        return to_chance(self.belief(memory, batch, at_s))

    def belief(self, memory: Memory, batch: KnownPages, at_s: Floats) -> Belief:
        """Return the belief about each page, averaged over its possible rate factors."""
        rate = self._rate(memory, _features(batch, batch.last_fetch_s))
        return self._factor(memory, batch).belief(rate * days_since_fetch(batch, at_s), rate)

    def rates(self, memory: Memory, batch: KnownPages) -> Rates:
        """Return the feature-based change rate of each page times its own factor."""
        rate = self._rate(memory, _features(batch, batch.last_fetch_s))
        return Rates(*(rate * factor for factor in self._factor(memory, batch).rates()))

    def _rate(self, memory: Memory, features: Floats) -> Floats:
        weights = memory.groups[0, GROUP_WIDTH : GROUP_WIDTH + FEATURES]
        rate: Floats = FIRST_RATE * np.exp(np.clip(features @ weights, -10.0, 10.0))
        return rate

    def _factor(self, memory: Memory, batch: KnownPages) -> Gamma:
        changes, expected = page_rows(memory, batch).T
        return pooled_prior(memory.groups[:, :GROUP_WIDTH], batch, 1.0).update(changes, expected)


def _features(batch: KnownPages, since_s: Floats) -> Floats:
    """Compute the features of young pages, one row per page, scaled to about -1 to 1; 0 if unknown."""
    age_d = np.fmax(since_s - batch.born_s, 0.0) / DAY_S
    age = _scale(age_d, 4.0, 2.0)
    words, links = _scale(batch.words, 6.0, 1.5), _scale(batch.links, 1.5, 1.5)
    empty = (batch.words < 1).astype(np.float64)
    return np.stack([np.ones(len(batch)), words, links, age, age**2, empty], axis=1)


def _scale(values: Floats, middle: float, spread: float) -> Floats:
    scaled = (np.log1p(np.fmax(values, 0.0)) - middle) / spread
    return np.clip(np.where(np.isfinite(values), scaled, 0.0), -3.0, 3.0)


def _update_weights(state: Floats, features: Floats, turns: Floats, changed: npt.NDArray[np.bool_]) -> Floats:
    """Update feature weights and information after some fetches, given the changes that were expected."""
    weights, information = np.split(state, 2)
    turns = np.clip(turns, *_TURNS)
    pull = np.where(changed, turns / np.expm1(turns), -turns)
    sure = turns**2 / np.expm1(turns)  # the expected square of the gradient
    information = information + sure @ features**2
    step = (pull @ features) / (information + _PRIOR)
    return np.concatenate([weights + np.clip(step, -_STEP, _STEP), information])
