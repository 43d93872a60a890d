"""A score is the sum of its features' contributions."""

import numpy as np

from vedette.engine.search.scoring import ALL_FEATURES
from vedette.serve.rank.scoring import score_features
from vedette.serve.rank.weights import WEIGHTS


def test_contributions_add_up() -> None:
    """The contributions of all features add up to the score; a feature without a weight adds nothing."""
    features = np.random.default_rng(1).random((5, 3))
    result = score_features(features, ("a", "b", "c"), {"a": 2.0, "c": -1.0})
    assert np.allclose(result.scores, 2 * features[:, 0] - features[:, 2])
    assert np.allclose(result.contributions.sum(axis=1), result.scores)
    assert not result.contributions[:, 1].any()


def test_every_weight_is_of_a_feature() -> None:
    """A weight for a misspelled feature would silently have no effect."""
    assert set(WEIGHTS) <= {feature.key for feature in ALL_FEATURES}


def test_only_spam_speaks_against_a_page() -> None:
    """No match of words ever lowers a page."""
    assert {key for key, weight in WEIGHTS.items() if weight < 0} == {"spam"}
