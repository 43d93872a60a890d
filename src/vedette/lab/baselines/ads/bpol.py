"""BPOL: a budget for any bandit. Drop ads that cannot pay, and restart the bandit when one drops out."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vedette.policy import Choice
from vedette.serve.ads.candidates import AdCandidates, RankedPicks
from vedette.serve.ads.policies.bmix import Mix


@dataclass(frozen=True, slots=True)
class Bpol:
    """BPOL: one bandit per phrase, which resets its counts when its eligible ads change.

    Ads that run out of budget are dropped before (``ad_statistics``). The reset is what the proof needs; with ``keeps``
    the counts stay as a prior, which Pandey08 does in its experiments, and BPOL of MIX is then BMIX.

        bpol >= opt / 2 - (types r_max + r_max sum over phrases of (batches) f(N)) / 2

    where f(N) are the mistakes of the bandit, and the batches of a phrase are no more than its ads (appendix 9.3).

    Useful for: a guarantee with any bandit. Not useful for: earning much, as each restart learns from nothing.

    Reference: Pandey08, section 6.6.1.
    """

    name: str = "bpol"
    bandit: Choice[None, Any, AdCandidates, AdCandidates] = field(default_factory=Mix)
    keeps: bool = False

    def start(self, config: None) -> Any:  # noqa: ANN401 - the bandit's own
        """Return the starting state of BPOL's bandit."""
        return self.bandit.start(config)

    def observe(self, state: Any, batch: AdCandidates, now: float) -> Any:  # noqa: ANN401 - as above
        """Let BPOL's bandit learn from ad statistics."""
        return self.bandit.observe(state, self._counts_since_start(batch), now)

    def choose(self, state: Any, options: AdCandidates, k: int, now: float, rng: np.random.Generator) -> RankedPicks:  # noqa: ANN401 - as above
        """Choose the ads that BPOL's bandit shows, by the counts since its last restart."""
        picks = self.bandit.choose(state, self._counts_since_start(options), k, now, rng)
        assert isinstance(picks, RankedPicks), "a bandit of ads gives scores"
        return picks

    def reason(self, state: Any, batch: AdCandidates, row: int, now: float) -> str:  # noqa: ANN401 - as above
        """Return the reason of BPOL's bandit for showing an ad."""
        return f"bpol of {self.bandit.reason(state, self._counts_since_start(batch), row, now)}"

    def _counts_since_start(self, options: AdCandidates) -> AdCandidates:
        if self.keeps:
            return options
        return replace(
            options,
            asked=options.asked - options.asked_then,
            shown=options.shown - options.shown_then,
            clicked=options.clicked - options.clicked_then,
        )
