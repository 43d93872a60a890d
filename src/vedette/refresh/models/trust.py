"""Trust weights of several predictions, learned group by group from their accuracy (fixed share).

A group's weights are multiplied by the probability that each prediction gave to what was found (Bayes' rule), and then
a small share of all trust is returned to the weights of the parent group: so a group can switch to another prediction
when the world changes, and one with little data follows the others. The global group returns to even weights.

Reference: M. Herbster and M. Warmuth, *Tracking the Best Expert*, 1998 (fixed share).
"""

import numpy as np

from vedette.policy import Floats
from vedette.refresh.known_pages import Bools, KnownPages
from vedette.refresh.models.rows import group_levels, group_rows

_CLIP = 1e-4
_SHARE = 0.002  # share of all trust that is returned at each fetch


def log_scores(chances: Floats, changed: Bools) -> Floats:
    """Compute the log score of each column of predicted probabilities for what was found."""
    sure = np.clip(chances, _CLIP, 1 - _CLIP)
    scores: Floats = np.log(np.where(changed[:, None], sure, 1 - sure))
    return scores


def get_weights(rows: Floats, batch: KnownPages) -> Floats:
    """Return the trust weights of each page's group, or of the nearest ancestor with data; they sum to 1.

    A group's row is the number of fetches it has seen, and the weights.
    """
    count = rows.shape[1] - 1
    weights = np.full((len(batch), count), 1 / count)
    for numbers, apart in group_levels(batch):
        own = group_rows(rows, numbers)
        weights = np.where((apart & (own[:, 0] > 0))[:, None], own[:, 1:], weights)
    return weights


def update_weights(rows: Floats, batch: KnownPages, scores: Floats, seen: Bools) -> None:
    """Update the trust weights of all groups by the scores of the observed fetches, in place."""
    count = rows.shape[1] - 1
    above = np.full((len(batch), count), 1 / count)
    for numbers, apart in group_levels(batch):
        looks = np.flatnonzero(seen & apart)
        groups, first, place = np.unique(numbers[looks], return_index=True, return_inverse=True)
        sums = np.zeros((len(groups), count))
        np.add.at(sums, place, scores[looks])
        parents = above[looks[first]]
        own = np.where(rows[groups, :1] > 0, rows[groups, 1:], parents)
        seen_by = np.bincount(place, minlength=len(groups))
        rows[groups, 0] += seen_by
        rows[groups, 1:] = _share_with_parent(_multiply_weights(own, sums), parents, seen_by.astype(np.float64))
        has_weights = (apart & (rows[numbers, 0] > 0))[:, None]
        above = np.where(has_weights, rows[numbers, 1:], above)


def _multiply_weights(weights: Floats, scores: Floats) -> Floats:
    turned: Floats = weights * np.exp(scores - scores.max(axis=1, keepdims=True))
    total = turned.sum(axis=1, keepdims=True)
    # If scores are too far apart for the others to count, the best one gets all trust.
    best = scores == scores.max(axis=1, keepdims=True)
    fair: Floats = np.where(total > 0, turned / np.where(total > 0, total, 1.0), best / best.sum(axis=1, keepdims=True))
    return fair


def _share_with_parent(weights: Floats, above: Floats, looks: Floats) -> Floats:
    own_share = ((1 - _SHARE) ** looks)[:, None]
    shared: Floats = own_share * weights + (1 - own_share) * above
    return shared
