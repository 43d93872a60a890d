"""What policies share that rank by a score of counts: they remember nothing, and show the highest."""

from typing import Any, NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.candidates import AdCandidates, RankedPicks, rank_top


class AdPriors(NamedTuple):
    """What a policy has worked out of each ad, by its number, beyond what the book counts.

    Its rate is believed as after ``clicks`` of ``views``, and its bid counts times ``keep``. Empty where nothing was.
    """

    clicks: Floats
    views: Floats
    keep: Floats


NO_PRIORS = AdPriors(*np.zeros((3, 0)))


class ScorePolicy:
    """A policy whose ``score`` follows from the batch and from what was told of each ad: the book counts.

    A score is worked out by elements, so that it can be asked of many phrases at once, in arrays of any shape.
    """

    __slots__ = ()
    name: str

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """What ranks, and prices, each row."""
        raise NotImplementedError

    def get_ad_priors(self, state: Any) -> AdPriors:  # noqa: ANN401 - whatever a policy remembers
        """What is known of each ad: nothing, unless a policy says otherwise."""
        return NO_PRIORS

    def get_spend_limit(self, state: Any, now: float) -> float:  # noqa: ANN401 - as above
        """The share of a day's budget that may be charged by now: whoever is past it rests. No limit, unless said."""
        return np.inf

    def start(self, config: None) -> Any:  # noqa: ANN401 - the shape that all policies have
        """Nothing is remembered."""
        return ()

    def observe(self, state: Any, batch: AdCandidates, now: float) -> Any:  # noqa: ANN401 - as above
        """Nothing to learn beyond the counts."""
        return state

    def choose(self, state: Any, options: AdCandidates, k: int, now: float, rng: np.random.Generator) -> RankedPicks:  # noqa: ANN401 - as above
        """The k of the highest score."""
        return rank_top(self.score(self.get_ad_priors(state), options), k, rng)

    def reason(self, state: Any, batch: AdCandidates, row: int, now: float) -> str:  # noqa: ANN401 - as above
        """What the score is made of, in words."""
        counted = (
            f"{batch.clicked[row]:.0f} clicks of {batch.shown[row]:.0f} showings in {batch.asked[row]:.0f} queries"
        )
        cents, budget = batch.remaining[row], batch.budget[row]
        left = f", {cents / 100:.2f} of {budget / 100:.2f} left" if np.isfinite(budget) else ""
        return f"{self.name}: {counted}, bid {batch.bid[row] / 100:.2f}{left}"
