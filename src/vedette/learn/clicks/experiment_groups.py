"""Experiment groups: which result order a user gets at random, so that orders can be compared.

The visitor hash of the day decides. Of ten users one gets the order by relevance alone, one the learned order without
trials, and eight all of it. So the probability of each order is known exactly.
"""

from collections.abc import Mapping

RELEVANCE_ONLY, LEARNED_ONLY, WITH_TRIALS = "relevance", "learned", "tried"
GROUP_COUNT = 10
GROUP_SHARES: Mapping[str, float] = {
    RELEVANCE_ONLY: 1 / GROUP_COUNT,
    LEARNED_ONLY: 1 / GROUP_COUNT,
    WITH_TRIALS: 1 - 2 / GROUP_COUNT,
}


def assign_group(mark: str) -> str:
    """Assign a user to an experiment group by hexadecimal visitor hash; the learned order without one.

    >>> [assign_group(mark) for mark in ("0a", "0b", "0c", "")]
    ['relevance', 'learned', 'tried', 'learned']
    """
    try:
        return {0: RELEVANCE_ONLY, 1: LEARNED_ONLY}.get(int(mark, 16) % GROUP_COUNT, WITH_TRIALS)
    except ValueError:
        return LEARNED_ONLY
