"""A refresh policy to compare with that only the lab can set up: every page equally often, at random times."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import Known
from vedette.refresh.policies.uniform import Uniform

__all__ = ["AtRandom", "Uniform"]


@dataclass(frozen=True, slots=True)
class AtRandom:
    """Every page equally often, at times that nobody can foresee: waits are exponential with one mean for all.

        due = last_fetch + wait,    wait ~ Exp(mean_s)

    The mean is the time in which the budget lets every page have its turn, so no page waits for others for long.

    Useful as the baseline that uses no knowledge at all. Not useful for anything else: fetches in turn are fresher.

    Reference: the random-order policy of J. Cho, H. Garcia-Molina, *Synchronizing a Database to Improve Freshness*,
    SIGMOD 2000.
    """

    mean_s: float = 86_400.0
    name: str = "random"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Nothing is learned, so the state is empty."""
        return ()

    def observe(self, state: tuple[()], batch: Known, now: float) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """What a fetch found changes nothing."""
        return state

    def due(self, state: tuple[()], batch: Known, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - the shape that all policies of its kind have
        """After a wait that is drawn."""
        due: Floats = batch.last_fetch_s + rng.exponential(self.mean_s, len(batch))
        return due

    def reason(self, state: tuple[()], batch: Known, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """The mean wait, in words."""
        return f"random: after {self.mean_s / 3600:.1f} h on average"
