"""What the importance of a page says about its impact, whatever people ask (Impact08, section 5.4)."""

from dataclasses import dataclass

import numpy as np

from vedette.frontier.impact.estimator import ImpactModel, create_model, train_model
from vedette.frontier.impact.url_features import TrainingPages, complete_batch
from vedette.frontier.unseen import UnseenUrls
from vedette.policy import Floats


@dataclass(frozen=True, slots=True)
class QueryIndependent:
    """Fetch in the order of the impact that pages of this importance had: worth = a + b x + c x^2, fitted to what came.

    Useful where nothing is known of queries, and as one half of ``hybrid``. Not useful for what many ask and few link
    to. Before anything was fetched all are worth the same.

    >>> import numpy as np
    >>> from vedette.policy import rng_for
    >>> batch = UnseenUrls(depth=np.zeros(2, int), found=np.arange(2), inlinks=np.array([1, 9]))
    >>> policy = QueryIndependent()
    >>> policy.worth(policy.start(None), batch, now=0.0, rng=rng_for(1, "order")).tolist()
    [0.0, 0.0]
    """

    name: str = "query-independent"

    def start(self, config: None) -> ImpactModel:  # noqa: ARG002 - the shape that all policies of its kind have
        """Nothing was fetched yet."""
        return create_model(None)

    def observe(self, state: ImpactModel, batch: UnseenUrls, now: float) -> ImpactModel:  # noqa: ARG002 - the shape that all policies of its kind have
        """What first fetches teach; of a batch that does not say what came, nothing is learned."""
        return train_model(state, batch) if isinstance(batch, TrainingPages) else state

    def worth(self, state: ImpactModel, batch: UnseenUrls, now: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - the shape that all policies of its kind have
        """The impact that is usual at this importance."""
        return state.estimate_by_importance(complete_batch(batch))

    def reason(self, state: ImpactModel, batch: UnseenUrls, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """The importance and what follows, in words."""
        full = complete_batch(batch)
        return f"by importance alone: {full.importance[row]:.3g} usually brings {state.estimate_by_importance(full)[row]:.3g}"
