"""Base classes of published baselines: policies without memory, crawl orders, rankings, ad scores.

They stand beside the folders of policies, since every class in those folders is run by its name.
"""

from typing import Any, ClassVar

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, create_model, train_model
from vedette.frontier.impact.url_features import TrainingPages
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.baselines.ads.estimates import click_rates, msvv_discount
from vedette.policy import Floats, Picks
from vedette.serve.ads.by_score import AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import RandomizedList


class Stateless:
    """A policy that learns nothing: every batch tells it all that it needs."""

    __slots__ = ()

    def start(self, config: None) -> tuple[()]:
        """Return the empty state."""
        return ()

    def observe(self, state: tuple[()], batch: Any, now: float) -> tuple[()]:  # noqa: ANN401 - any batch
        """Return the state as it is."""
        return state


class ImpactOrder:
    """A crawl order whose state is an impact model, trained on what first fetches brought."""

    __slots__ = ()

    def start(self, config: ImpactSettings | None) -> ImpactModel:
        """Return a model that has seen no fetch."""
        return create_model(config)

    def observe(self, state: ImpactModel, batch: UnseenUrls, now: float) -> ImpactModel:
        """Train on first fetches; a batch that does not say what they brought teaches nothing."""
        return train_model(state, batch) if isinstance(batch, TrainingPages) else state


class RandomizedRanking:
    """A ranking that plans a randomized list for a batch, and draws from it for each visitor."""

    __slots__ = ()

    def plan(self, state: Any, batch: Candidates, now: float) -> RandomizedList:  # noqa: ANN401 - each has its own state
        """Return the list to draw from."""
        raise NotImplementedError

    def choose(self, state: Any, options: Candidates, k: int, now: float, rng: np.random.Generator) -> Picks:  # noqa: ANN401 - as above
        """Draw the first k places of a list."""
        return self.plan(state, options, now).draw(k, rng)


class CountScore(ScorePolicy):
    """A score by counts alone: (click rate + bonus) bid; where ``discounted``, the bid counts times the discount."""

    __slots__ = ()
    discounted: ClassVar[bool] = False

    @staticmethod
    def bonus(options: AdCandidates, rate: Floats) -> Floats:  # noqa: ARG004 - the shape that bonuses have
        """Return what exploring adds to each rate: nothing, unless a policy says otherwise."""
        return np.zeros_like(rate)

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Return the priority of each ad."""
        rate = click_rates(options)
        factor = msvv_discount(options.remaining, options.budget) if self.discounted else 1.0
        return (rate + self.bonus(options, rate)) * (factor * options.bid)
