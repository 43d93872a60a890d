"""The order of a search's results by relevance and by what people taught, and what is said of it.

Pages that the operator pinned are not touched. Nobody unproven is tried where the query names a site: who asks for a
home page wants that one. Without anything learned, or for a reader of the group that others are held against, the
order is that of relevance.
"""

from typing import NamedTuple

import numpy as np

from vedette.decide import Ints, rng_for
from vedette.facts import fingerprint
from vedette.ring.weighing import Weighed
from vedette.serve.rank.reordering import UNPROVEN, Chances, reordered
from vedette.serve.rank.reputation import Believed, Reputation
from vedette.serve.slate import Reason, Result
from vedette.words import words_of

__all__ = ["ANYBODY", "QUALITY", "Asker", "Learned", "group_number", "learned_order"]

QUALITY = "quality"
LIKED = "liked by readers who looked at it"
# Less than this many looks is not worth a word.
FEWEST_LOOKS = 3.0


class Asker(NamedTuple):
    """For whom results are ordered.

    ``is_learned`` says whether by what was learned. At most ``unproven`` of the first ten are there to be tried, none
    of them before place ``first``. ``seed`` is the reader's: the same query shows the same list again.
    """

    is_learned: bool = True
    unproven: int = 0
    first: int = 2
    seed: int = 0


ANYBODY = Asker()


class Learned(NamedTuple):
    """Rows in order, and what is said of each, by row; nothing where nothing was learned."""

    rows: Ints
    propensity: dict[int, float]
    points: dict[int, float]
    unproven: frozenset[int]
    believed: Believed | None = None

    def told(self, result: Result, row: int) -> Result:
        """The result with its propensity and what its quality added."""
        if self.believed is None or row not in self.points:
            return result
        points = self.points[row]
        return result._replace(
            score=result.score + points,
            why=(*result.why, Reason(LIKED, points, 1.0, points)) if points else result.why,
            sentence=f"{result.sentence} {_said(self.believed, row)}".strip(),
            features=(*result.features, (QUALITY, points)),
            propensity=self.propensity[row],
        )

    def notes(self) -> dict[int, str]:
        """What stands beside those that are tried."""
        return dict.fromkeys(sorted(self.unproven), UNPROVEN)


def group_number(query: str) -> int:
    """The number of all queries of the same words.

    >>> group_number("Red  KITES") == group_number("red kites")
    True
    """
    return fingerprint(" ".join(words_of(query)))


def learned_order(rows: Ints, weighed: Weighed, query: str, reputation: Reputation | None, asker: Asker) -> Learned:
    """Rows that are in the order of relevance, in that of worth."""
    if reputation is None or not asker.is_learned or not len(rows):
        return Learned(rows, {}, {}, frozenset())
    number = group_number(query)
    believed = reputation.of(weighed.ids, weighed.signals.host, number)
    most = 0 if weighed.names_a_site else asker.unproven
    chances = Chances(asker.first, most, rng_for(asker.seed, f"rank/{number}"))
    dealt = reordered(rows, weighed.scores, believed, reputation, chances)
    listed = dealt.rows.tolist()
    # Only who was moved up by being tried is said to be: the others stand where their words put them.
    raised = frozenset(_raised(rows, dealt.rows, dealt.is_unproven))
    propensity = dict(zip(listed, dealt.propensities.tolist(), strict=True))
    return Learned(dealt.rows, propensity, dict(zip(listed, dealt.points.tolist(), strict=True)), raised, believed)


def _raised(before: Ints, after: Ints, is_unproven: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> list[int]:
    places = {row: place for place, row in enumerate(before.tolist())}
    return [
        row
        for place, (row, tried) in enumerate(zip(after.tolist(), is_unproven.tolist(), strict=True))
        if tried and place < places[row]
    ]


def _said(believed: Believed, row: int) -> str:
    looks, likes = float(believed.looks[row]), float(believed.likes[row])
    if looks < FEWEST_LOOKS:
        return "Few readers have seen it."
    return f"Of about {looks:.0f} readers who looked at it lately, {likes:.0f} liked it."
