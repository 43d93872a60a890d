"""A query with the name of a site should find its home page."""

import numpy as np

from vedette.serve.rank.scoring import score_home

DEPTHS = np.array([0, 0, 1])


def test_the_address_says_the_query() -> None:
    """Only home pages count, and only if the address has all words."""
    assert score_home(np.array([1.0, 0.5, 1.0]), np.zeros(3), np.zeros(3), DEPTHS, 2).tolist() == [1.0, 0.0, 0.0]


def test_the_title_says_the_query() -> None:
    """The name of a site may only be in its title; other words there make it less certain."""
    found = score_home(np.zeros(3), np.array([1.0, 1.0, 1.0]), np.array([1.0, 0.5, 1.0]), DEPTHS, 2)
    assert found.tolist() == [1.0, 0.5, 0.0]


def test_long_queries_name_no_site() -> None:
    """A whole sentence asks for more than a home page, and an empty query asks for nothing."""
    for words in (0, 7):
        assert not score_home(np.ones(3), np.ones(3), np.ones(3), DEPTHS, words).any()
