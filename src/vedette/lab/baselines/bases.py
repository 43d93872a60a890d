"""Base classes of published baselines: crawl orders, rankings.

They are outside the folders of policies, since every class in those folders is a policy that runs by its name.
"""

from typing import Any

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, create_model, train_model
from vedette.frontier.impact.url_features import TrainingPages
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Picks
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import RandomizedList


class ImpactOrder:
    """Base class of crawl-order baselines whose state is an impact model, trained on the gains of first fetches."""

    __slots__ = ()

    def start(self, config: ImpactSettings | None) -> ImpactModel:
        """Return an impact model that has seen no fetch, as a crawl-order baseline starts."""
        return create_model(config)

    def observe(self, state: ImpactModel, batch: UnseenUrls, now: float) -> ImpactModel:
        """Train a crawl-order baseline's impact model on first fetches; a batch without gains changes nothing."""
        return train_model(state, batch) if isinstance(batch, TrainingPages) else state


class RandomizedRanking:
    """Base class of ranking baselines that plan a randomized list for a batch, and draw from it for each visitor."""

    __slots__ = ()

    def plan(self, state: Any, batch: Candidates, now: float) -> RandomizedList:  # noqa: ANN401 - each has its own state
        """Return the randomized list that a ranking baseline draws from."""
        raise NotImplementedError

    def choose(self, state: Any, options: Candidates, k: int, now: float, rng: np.random.Generator) -> Picks:  # noqa: ANN401 - as above
        """Draw the first k places of a ranking baseline's randomized list."""
        return self.plan(state, options, now).draw(k, rng)
