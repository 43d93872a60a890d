"""The default, with a rest for whoever has spent more of the day's budget than the plan of traffic has brought."""

from dataclasses import dataclass

from vedette.serve.ads.pacing import allowance
from vedette.serve.ads.policies.bayes_greedy import Believed, Memory

__all__ = ["Paced"]


@dataclass(frozen=True, slots=True)
class Paced(Believed):
    """Ours, as it is at work on the page: ``believed``, and no bunching at midnight.

    A bid that counts less keeps an ad from being shown where there are others. Where it is alone, its budget would be
    gone in the first hours of a day. So whoever was charged a larger share of the budget than the share of a usual
    day's queries that has come, and ``ahead`` more, rests until more have come. The first day has no plan, and no rest.

    Useful for: budgets that are to last through the day. Not useful for: a day that ends before its usual time.
    """

    name: str = "paced"
    ahead: float = 0.1

    def allowed(self, state: Memory, now: float) -> float:
        """By the plan."""
        return allowance(state.traffic, now, self.ahead)
