"""The impact order policy: the expected gain of a first fetch, from everything known before it; our own."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, ImpactSettings, create_model, train_model
from vedette.frontier.impact.url_features import TrainingPages, complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class Impact:
    """Order unseen URLs by the expected gain of a first fetch, as the impact model learns it.

    worth = a forest's prediction from the search gain of each word in the URL and its link texts, importance, the gains
    of pages of the same folder, branch and words, the probability to be among the first K of each query, and the
    published estimates. It learns from first fetches how to combine these, while ``hybrid`` has two fixed weights;
    worth has the unit of the measured gains.

    Useful wherever some pages were fetched and measured. Not useful before: then all are worth the same, and the
    caller falls back to breadth first. Reference: Impact08, for sketches, needy queries, matching and S'.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = Impact()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "impact"

    def start(self, config: ImpactSettings | None) -> ImpactModel:
        """Return the impact policy's model before anything was fetched."""
        return create_model(config)

    def observe(self, state: ImpactModel, batch: UnseenUrls, now: float) -> ImpactModel:
        """Train the impact model on first fetches; a batch without outcomes teaches nothing."""
        return train_model(state, batch) if isinstance(batch, TrainingPages) else state

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:
        """Return the expected gain of a first fetch of each unseen URL, by the impact model."""
        return state.estimate_gain(complete_batch(batch))

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:
        """Describe the expected gain of an unseen URL, by the impact model, in words."""
        full = complete_batch(batch)
        usual = state.estimate_by_importance(full)[row]
        return f"expected gain {state.estimate_gain(full)[row]:.3g}; by its importance alone it would be {usual:.3g}"
