"""Which order a reader gets, by lot: what others are held against, and what is known when orders are compared.

The mark of the day decides. Of ten readers one gets the order by relevance alone, one what was learned without anything
that is tried, and eight all of it. So the chance with which each order was shown is known exactly.
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
    """The order that a reader gets; marks are hexadecimal, and who has no such mark gets what was learned.

    >>> [assign_group(mark) for mark in ("0a", "0b", "0c", "")]
    ['relevance', 'learned', 'tried', 'learned']
    """
    try:
        return {0: RELEVANCE_ONLY, 1: LEARNED_ONLY}.get(int(mark, 16) % GROUP_COUNT, WITH_TRIALS)
    except ValueError:
        return LEARNED_ONLY
