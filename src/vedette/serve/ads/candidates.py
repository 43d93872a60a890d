"""Ad candidates: the batch of ads with their counts that ad policies choose from, and the ranked choice."""

from dataclasses import dataclass

import numpy as np

from vedette.policy import Floats, Ints, Picks


@dataclass(frozen=True, slots=True)
class AdCandidates:
    """A batch of ads, one row per ad: the eligible ads of one phrase to choose from, or all ads to learn from.

    ``ad``, ``phrase``, ``advertiser`` and ``cluster`` are numbers from 0 on, which a state may use as indices.
    ``asked`` is how often the phrase was searched (n_j of Pandey08), ``shown`` how often the ad was shown (n_ij),
    ``clicked`` how often it was clicked. ``views`` counts an impression lower down for less, by the factor of its slot.
    ``prior_clicked`` and ``prior_shown`` are prior knowledge, as equivalent clicks and impressions (alpha, and alpha +
    beta); 0 for none.

    ``remaining`` is what the advertiser has left of today's ``budget``; both are infinite without a budget. Money is in
    cents. The columns ``..._then`` are the counts when the set of eligible ads of the phrase last changed.

    Rows are only passed in if ``remaining >= bid`` and the bid is no less than the reserve.
    """

    ad: Ints
    phrase: Ints
    advertiser: Ints
    cluster: Ints
    bid: Floats
    asked: Floats
    shown: Floats
    views: Floats
    clicked: Floats
    prior_clicked: Floats
    prior_shown: Floats
    remaining: Floats
    budget: Floats
    asked_then: Floats
    shown_then: Floats
    clicked_then: Floats

    def __len__(self) -> int:
        return len(self.ad)


@dataclass(frozen=True, slots=True)
class RankedPicks(Picks):
    """The chosen ads in slot order with their propensities; ``scores`` are of all candidates, by row.

    The score that ranks is the one that prices, so it represents bid times weight.
    """

    scores: Floats


def rank_top(scores: Floats, k: int, rng: np.random.Generator) -> RankedPicks:
    """Rank the k ads with the highest scores; ties are random, so a propensity below 1 comes from a tie.

    >>> found = rank_top(np.array([1.0, 3.0, 2.0]), 2, np.random.default_rng(1))
    >>> found.rows.tolist(), found.propensities.tolist()
    ([1, 2], [1.0, 1.0])
    """
    if k == 1 and len(scores):
        # The usual case, in as few steps as possible.
        best = (scores == scores.max()).nonzero()[0]
        place = int(best[rng.integers(len(best))]) if len(best) > 1 else int(best[0])
        return RankedPicks(np.array([place]), np.array([1 / len(best)]), scores)
    k = min(max(k, 0), len(scores))
    if not k:
        return RankedPicks(np.zeros(0, np.int64), np.zeros(0), scores)
    best = scores.argpartition(len(scores) - k - 1)[-k - 1 :] if k < len(scores) else np.arange(k)
    order = best[np.argsort(-scores[best], kind="stable")]
    falling = scores[order]
    if (falling[1:] < falling[:-1]).all():  # no tie between the ads shown and the first one that is not
        return RankedPicks(order[:k], np.ones(k), scores)
    rows = np.lexsort((rng.random(len(scores)), -scores))[:k]
    last = scores[rows[-1]]
    above = int(np.count_nonzero(scores > last))
    share = (k - above) / int(np.count_nonzero(scores == last))
    return RankedPicks(rows.astype(np.int64), np.where(scores[rows] > last, 1.0, share), scores)
