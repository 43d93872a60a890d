"""The live ranking as a policy of the lab: the same modules that answer searches decide here.

    likes and views  ->  ``learn.clicks.reputations``   expected quality
                     ->  ``engine.search.scoring``      the reputation that searches look up, with exploration tables
                     ->  ``serve.rank.reranking``       the order, and which unproven pages get a trial slot

The lab leaves out how views are inferred from impressions (examination) and how evidence decays: a visit is a click
here, every visitor has seen the page, and nothing decays. A test drives both through one history and compares
decisions.
"""

from dataclasses import dataclass

import numpy as np

from vedette.config.sections import Serve
from vedette.engine.search.scoring import build_reputation, hash_query
from vedette.learn.clicks.reputations import learn_from_counts
from vedette.policy import Picks
from vedette.serve.rank.explore.candidates import Candidates
from vedette.serve.rank.explore.randomized_lists import best_first
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.reranking import DEFAULT_PROMOTION, POINTS, plan_order
from vedette.serve.rank.trial_slots import TrialPlan
from vedette.serve.slate import Audience

QUERY = "community"


@dataclass(frozen=True, slots=True)
class LiveRanking:
    """Rank as the live search does, for one query that all pages answer: by learned quality, with a few trial slots.

    ``first`` and ``most`` are the positions open to unproven pages; by default those of ``serve.first_place`` and
    ``serve.unproven``. ``promotion`` is as ``serve.promotion``.
    """

    first: int = Audience().first
    most: int = Serve().unproven
    promotion: str = DEFAULT_PROMOTION
    name: str = "default"

    def start(self, config: None) -> Reputation | None:  # noqa: ARG002 - the shape that all policies of its kind have
        """Return the state before anything was learned: no reputation, so the order is that of relevance."""
        return None

    def observe(self, state: Reputation | None, batch: Candidates, now: float) -> Reputation | None:  # noqa: ARG002 - the shape that all policies of its kind have
        """Learn the exploration tables from all pages; the data of each page is in every batch anyway."""
        return _learn(batch) if len(batch) else state

    def plan(self, state: Reputation | None, batch: Candidates, now: float) -> TrialPlan:  # noqa: ARG002 - the shape that all policies of its kind have
        """Plan the order of the candidates as a search would, with the tables of the last learning."""
        rows, scores = np.arange(len(batch)), np.asarray(POINTS * np.log(batch.relevance))
        estimates = _learn(batch, state)
        if estimates is None:
            return TrialPlan(best_first(scores), [])
        believed = estimates.look_up(rows, np.zeros(len(rows), np.int64), hash_query(QUERY))
        return plan_order(rows, scores, believed, estimates, self.first, self.most, self.promotion)[0]

    def choose(
        self, state: Reputation | None, options: Candidates, k: int, now: float, rng: np.random.Generator
    ) -> Picks:
        """Draw one list of results as a search would."""
        found = self.plan(state, options, now).draw(rng)
        return Picks(found.rows[:k], found.propensities[:k])

    def reason(self, state: Reputation | None, batch: Candidates, row: int, now: float) -> str:  # noqa: ARG002 - the shape that all policies of its kind have
        """Describe how many of those who saw a result liked it."""
        return f"as live: liked by {batch.likes[row]:.0f} of {batch.aware[row]:.0f} who saw it"


def _learn(batch: Candidates, before: Reputation | None = None) -> Reputation | None:
    """Learn reputations from counts, None from too few; exploration tables are those of ``before``, if given."""
    taught = learn_from_counts(batch.likes, batch.aware, batch.crowd.views_per_day, batch.crowd.people)
    if taught is None:
        return None
    return build_reputation(taught, [QUERY], (before.teaching, before.ahead) if before is not None else None)
