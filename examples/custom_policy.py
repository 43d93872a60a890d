"""Try a refresh policy of your own in the lab, beside one that everybody knows.

    python examples/custom_policy.py

The policy is the heuristic of web caches (RFC 9111, section 4.2.2): a page that has not changed for long is unlikely
to change soon, so it is fetched again after a share of the time for which it has stood still.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean

import numpy as np

import vedette
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages

SHORTEST_S = 3_600.0


@dataclass(frozen=True, slots=True)
class HeuristicFreshness:
    """Fetch a page again after a share of the time for which it has not changed.

    due = last_fetch + max(share * (last_fetch - modified), 1 h)
    """

    share: float = 0.5
    name: str = "heuristic-freshness"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Learn nothing: a batch of pages says all that it needs."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:  # noqa: ARG002 - as above
        """Learn nothing from a fetch."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - as above
        """Return the due time of each page; one of unknown age is due after the shortest time."""
        still_s = np.nan_to_num(batch.last_fetch_s - batch.modified_s)
        return batch.last_fetch_s + np.maximum(self.share * still_s, SHORTEST_S)

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:  # noqa: ARG002 - as above
        """Say why, for ``vedette explain``."""
        return f"heuristic freshness: {self.share:.0%} of the time since its last change"


def compare() -> None:
    """Run both policies on a synthetic web and print the mean freshness of its pages."""
    mine = "custom_policy:HeuristicFreshness"  # python puts the folder of a script on its path
    print(f"{vedette.load_policy(mine).name} passes the conformance suite")
    rows = vedette.run_experiment("refresh", worlds=["made:tiny"], policies=["uniform", mine], budgets=[10], seeds=1)
    freshness = defaultdict(list)
    for row in rows:
        freshness[row.cell.policy].append(row.numbers["freshness"])
    for policy, values in freshness.items():
        print(f"{policy:<36} freshness {mean(values):.3f}")


if __name__ == "__main__":
    compare()
