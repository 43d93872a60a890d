"""What a rank policy is told of results: how they answer the query, and what people made of them. Never their quality.

A *counted* person is one whose views the engine hears of. Awareness is how many of them saw a page, each once, and
likes how many of these liked it; so a person counts once for a page, however often they come.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats


class UserPopulation(NamedTuple):
    """Who looks at results: counted people, their views of results a day, and how long a page is expected to live.

    ``delay_days`` is the time until what people do changes the order: until then a page is shown as it is.
    """

    people: float
    views_per_day: float
    life_days: float
    delay_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Results in columns. ``relevance`` is above 0 and multiplies quality; where all is alike it is 1.

    >>> len(unseen_candidates(3, UserPopulation(100.0, 100.0, 500.0)))
    3
    """

    relevance: Floats
    likes: Floats
    aware: Floats
    views: Floats
    age_days: Floats
    crowd: UserPopulation

    def __len__(self) -> int:
        return len(self.likes)


def unseen_candidates(rows: int, crowd: UserPopulation) -> Candidates:
    """Results of equal relevance that nobody has seen."""
    return Candidates(np.ones(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows), crowd)
