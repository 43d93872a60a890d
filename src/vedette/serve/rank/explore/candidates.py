"""Candidates of exploration policies: results with relevance and user feedback, but never their true quality.

A *counted* person is one whose views are reported to the engine. Awareness is how many of them saw a page, each once,
and likes how many of these liked it; so a person counts once per page, however often they come.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats


class UserPopulation(NamedTuple):
    """The user population: counted people, their result views a day, and the expected life of a page.

    ``delay_days`` is the time until feedback changes the order: until then a page keeps its position.
    """

    people: float
    views_per_day: float
    life_days: float
    delay_days: float = 0.0


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidate results in columns. ``relevance`` is above 0 and multiplies quality; 1 if all are equal.

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
    """Create candidates of equal relevance that no one has seen."""
    return Candidates(np.ones(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows), np.zeros(rows), crowd)
