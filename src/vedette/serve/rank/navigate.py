"""Queries that name a site want its home page: "kafka" is kafka.apache.org, "prism break" prism-break.org."""

import numpy as np

from vedette.policy import Floats, Ints

__all__ = ["MOST_WORDS", "is_home"]

# Who types more words than these asks for more than a site.
MOST_WORDS = 4
ALL = 1 - 1e-9


def is_home(in_address: Floats, in_title: Floats, title_share: Floats, depth: Ints, words: int) -> Floats:
    """1 for a home page whose address has all words of the query; less where only its title has, with others.

    ``in_address`` and ``in_title`` are shares of the query's words, ``title_share`` is how much of the title they are.

    >>> is_home(np.array([1.0, 1.0]), np.zeros(2), np.zeros(2), np.array([0, 3]), 2).tolist()
    [1.0, 0.0]
    """
    if not 0 < words <= MOST_WORDS:
        return np.zeros(len(depth))
    named = np.where(in_address >= ALL, 1.0, np.where(in_title >= ALL, title_share, 0.0))
    return np.where(depth == 0, named, 0.0)
