"""Which order a reader gets, by lot: what others are held against, and what is known when orders are compared.

The mark of the day decides. Of ten readers one gets the order by relevance alone, one what was learned without anything
that is tried, and eight all of it. So the chance with which each order was shown is known exactly.
"""

from collections.abc import Mapping

__all__ = ["ALL", "CHANCES", "PLAIN", "UNTRIED", "group_of"]

PLAIN, UNTRIED, ALL = "relevance", "learned", "tried"
ONE_IN = 10
CHANCES: Mapping[str, float] = {PLAIN: 1 / ONE_IN, UNTRIED: 1 / ONE_IN, ALL: 1 - 2 / ONE_IN}


def group_of(mark: str) -> str:
    """The order that a reader gets; marks are hexadecimal, and who has no such mark gets what was learned.

    >>> [group_of(mark) for mark in ("0a", "0b", "0c", "")]
    ['relevance', 'learned', 'tried', 'learned']
    """
    try:
        return {0: PLAIN, 1: UNTRIED}.get(int(mark, 16) % ONE_IN, ALL)
    except ValueError:
        return UNTRIED
