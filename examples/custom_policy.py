"""Try your own refresh policy in the lab, and compare it with a well-known one.

    python examples/custom_policy.py

The policy halves the interval of a page that has changed, and doubles that of one that has not.
"""

from collections import defaultdict
from dataclasses import dataclass
from statistics import mean

import numpy as np

import vedette
from vedette.policy import Floats
from vedette.refresh.known_pages import KnownPages

SHORTEST_S, FIRST_S, LONGEST_S = 3_600.0, 86_400.0, 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class HalveOrDouble:
    """Fetch a page again after half of its last interval if it had changed, else after twice that.

    due = last_fetch + clip(interval * (0.5 if changed else 2), 1 h, 30 d)
    """

    name: str = "halve-or-double"

    def start(self, config: None) -> tuple[()]:  # noqa: ARG002 - the shape that all policies of its kind have
        """Learn nothing: a batch of pages says all that it needs."""
        return ()

    def observe(self, state: tuple[()], batch: KnownPages, now: float) -> tuple[()]:  # noqa: ARG002 - as above
        """Learn nothing from a fetch."""
        return state

    def due(self, state: tuple[()], batch: KnownPages, now: float, price: float, rng: np.random.Generator) -> Floats:  # noqa: ARG002 - as above
        """Return the due time of each page; one that was fetched once is due after a day."""
        interval_s = (batch.last_fetch_s - batch.before_s) * np.where(batch.changed, 0.5, 2.0)
        return batch.last_fetch_s + np.clip(np.nan_to_num(interval_s, nan=FIRST_S), SHORTEST_S, LONGEST_S)

    def reason(self, state: tuple[()], batch: KnownPages, row: int, now: float) -> str:  # noqa: ARG002 - as above
        """Say why, for ``vedette explain``."""
        return f"halve or double: it had {'' if batch.changed[row] else 'not '}changed at its last fetch"


def compare() -> None:
    """Run both policies on a synthetic web; print how fresh they keep its pages, and with how many fetches."""
    mine = "custom_policy:HalveOrDouble"  # python puts the folder of a script on its path
    print(f"{vedette.load_policy(mine).name} passes the conformance suite")
    rows = vedette.run_experiment("refresh", worlds=["made:tiny"], policies=["uniform", mine], budgets=[200], seeds=1)
    periods = defaultdict(list)
    for row in rows:
        periods[row.cell.policy].append(row.numbers)
    for policy, numbers in periods.items():
        freshness, fetches = (mean(each[name] for each in numbers) for name in ("freshness", "fetches_a_day"))
        print(f"{policy:<32} freshness {freshness:.3f} with {fetches:.0f} fetches a day")


if __name__ == "__main__":
    compare()
