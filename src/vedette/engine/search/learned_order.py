"""The order of a search's results by relevance and by what people taught, and what is said of it.

Pages that the operator pinned are not touched. Nobody unproven is tried where the query names a site: who asks for a
home page wants that one. Without anything learned, or for a reader of the group that others are held against, the
order is that of relevance.
"""

from typing import NamedTuple

import numpy as np

from vedette.engine.search.scoring import ScoredCandidates
from vedette.model import fingerprint
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.rank.reputation import PageBeliefs, Reputation
from vedette.serve.rank.reranking import UNPROVEN, TrialLimits, reorder
from vedette.serve.slate import Audience, Reason, SearchResult
from vedette.text import split_words

QUALITY = "quality"
LIKED_REASON = "liked by readers who looked at it"
# Less than this many looks is not worth a word.
MIN_LOOKS = 3.0


_NOTHING: Floats = np.zeros(0)


class LearnedOrder(NamedTuple):
    """Rows in order, and what is said of each, by row; nothing where nothing was learned.

    Of rows that were not put into order here, as they are pinned, ``propensity`` is NaN. ``unproven`` are tried.
    """

    rows: Ints
    propensity: Floats = _NOTHING
    points: Floats = _NOTHING
    unproven: tuple[int, ...] = ()
    believed: PageBeliefs | None = None

    def annotate(self, result: SearchResult, row: int) -> SearchResult:
        """The result with its propensity and what its quality added."""
        if self.believed is None or np.isnan(self.propensity[row]):
            return result
        points = float(self.points[row])
        return result._replace(
            score=result.score + points,
            why=(*result.why, Reason(LIKED_REASON, points, 1.0, points)) if points else result.why,
            sentence=f"{result.sentence} {_describe_likes(self.believed, row)}".strip(),
            features=(*result.features, (QUALITY, points)),
            propensity=float(self.propensity[row]),
        )

    def list_notes(self) -> dict[int, str]:
        """What stands beside those that are tried."""
        return dict.fromkeys(self.unproven, UNPROVEN)


def hash_query(query: str) -> int:
    """The number of all queries of the same words.

    >>> hash_query("Red  KITES") == hash_query("red kites")
    True
    """
    return fingerprint(" ".join(split_words(query)))


def order_by_learning(
    rows: Ints, weighed: ScoredCandidates, query: str, reputation: Reputation | None, audience: Audience
) -> LearnedOrder:
    """Rows that are in the order of relevance, in that of worth."""
    if reputation is None or not audience.is_learned or not len(rows):
        return LearnedOrder(rows)
    number = hash_query(query)
    believed = reputation.look_up(weighed.ids, weighed.signals.host, number)
    most = 0 if weighed.is_navigational else audience.unproven
    chances = TrialLimits(audience.first, most, rng_for(audience.seed, f"rank/{number}"))
    dealt = reorder(rows, weighed.scores, believed, reputation, chances)
    propensity, points = np.full((2, len(weighed.ids)), np.nan)
    propensity[dealt.rows], points[dealt.rows] = dealt.propensities, dealt.points
    return LearnedOrder(dealt.rows, propensity, points, tuple(dealt.rows[dealt.is_unproven].tolist()), believed)


def _describe_likes(believed: PageBeliefs, row: int) -> str:
    looks, likes = float(believed.looks[row]), float(believed.likes[row])
    if looks < MIN_LOOKS:
        return "Few readers have seen it."
    return f"Of about {looks:.0f} readers who looked at it lately, {likes:.0f} liked it."
