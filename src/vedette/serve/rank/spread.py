"""No site fills the first page: what it has beyond its share moves down, and is not dropped."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from vedette.policy import Ints

__all__ = ["NOTE", "Spread", "spread"]

FIRST = 10
SHARE = 3
FEWEST_SITES = 5
NOTE = "moved down: more results of this site above"


class Spread(NamedTuple):
    """Rows in their new order, and those that moved down."""

    rows: Ints
    moved: frozenset[int]


def spread(rows: Ints, hosts: Ints) -> Spread:
    """At most three of a site among the first ten; ``hosts`` is by row.

    With few sites there is nothing to choose between, and the order stays.
    """
    if len(np.unique(hosts[rows])) < FEWEST_SITES:
        return Spread(rows, frozenset())
    shown: Counter[int] = Counter()
    first: list[int] = []
    held: list[int] = []
    rest = rows.tolist()
    for at, row in enumerate(rest):
        if len(first) == FIRST:
            return Spread(np.array(first + held + rest[at:], np.int64), frozenset(held))
        host = int(hosts[row])
        (held if shown[host] >= SHARE else first).append(row)
        shown[host] += 1
    return Spread(np.array(first + held, np.int64), frozenset(held))
