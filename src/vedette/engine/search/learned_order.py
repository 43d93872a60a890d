"""The order of a search's results by relevance and by what people taught, and what is said of it.

Pages that the operator pinned are not touched. Nobody unproven is tried where the query names a site: who asks for a
home page wants that one. Without anything learned, or for a reader of the group that others are held against, the
order is that of relevance.
"""

from typing import NamedTuple

import numpy as np

from vedette.engine.search.scoring import Weighed
from vedette.model import fingerprint
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.rank.reputation import Believed, Reputation
from vedette.serve.rank.reranking import UNPROVEN, Chances, reordered
from vedette.serve.slate import Audience, Reason, Result
from vedette.text import words_of

__all__ = ["QUALITY", "Learned", "group_number", "learned_order"]

QUALITY = "quality"
LIKED = "liked by readers who looked at it"
# Less than this many looks is not worth a word.
FEWEST_LOOKS = 3.0


_NOTHING: Floats = np.zeros(0)


class Learned(NamedTuple):
    """Rows in order, and what is said of each, by row; nothing where nothing was learned.

    Of rows that were not put into order here, as they are pinned, ``propensity`` is NaN. ``unproven`` are tried.
    """

    rows: Ints
    propensity: Floats = _NOTHING
    points: Floats = _NOTHING
    unproven: tuple[int, ...] = ()
    believed: Believed | None = None

    def told(self, result: Result, row: int) -> Result:
        """The result with its propensity and what its quality added."""
        if self.believed is None or np.isnan(self.propensity[row]):
            return result
        points = float(self.points[row])
        return result._replace(
            score=result.score + points,
            why=(*result.why, Reason(LIKED, points, 1.0, points)) if points else result.why,
            sentence=f"{result.sentence} {_said(self.believed, row)}".strip(),
            features=(*result.features, (QUALITY, points)),
            propensity=float(self.propensity[row]),
        )

    def notes(self) -> dict[int, str]:
        """What stands beside those that are tried."""
        return dict.fromkeys(self.unproven, UNPROVEN)


def group_number(query: str) -> int:
    """The number of all queries of the same words.

    >>> group_number("Red  KITES") == group_number("red kites")
    True
    """
    return fingerprint(" ".join(words_of(query)))


def learned_order(
    rows: Ints, weighed: Weighed, query: str, reputation: Reputation | None, audience: Audience
) -> Learned:
    """Rows that are in the order of relevance, in that of worth."""
    if reputation is None or not audience.is_learned or not len(rows):
        return Learned(rows)
    number = group_number(query)
    believed = reputation.of(weighed.ids, weighed.signals.host, number)
    most = 0 if weighed.names_a_site else audience.unproven
    chances = Chances(audience.first, most, rng_for(audience.seed, f"rank/{number}"))
    dealt = reordered(rows, weighed.scores, believed, reputation, chances)
    propensity, points = np.full((2, len(weighed.ids)), np.nan)
    propensity[dealt.rows], points[dealt.rows] = dealt.propensities, dealt.points
    return Learned(dealt.rows, propensity, points, tuple(dealt.rows[dealt.is_unproven].tolist()), believed)


def _said(believed: Believed, row: int) -> str:
    looks, likes = float(believed.looks[row]), float(believed.likes[row])
    if looks < FEWEST_LOOKS:
        return "Few readers have seen it."
    return f"Of about {looks:.0f} readers who looked at it lately, {likes:.0f} liked it."
