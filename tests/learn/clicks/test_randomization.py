"""Randomized positions show how positions are examined, whatever a model assumes."""

import numpy as np

from vedette.learn.clicks.examination import correct_examination
from vedette.learn.clicks.impressions import Impressions
from vedette.policy import Floats

TRUE: Floats = np.power(0.8, np.arange(10.0))
# A misled model: it assumes that low positions are hardly examined, because poor pages are there.
MISLED: Floats = np.power(0.5, np.arange(10.0))


def draw_positions(queries: int, searches: int, chance: float = 0.5) -> Impressions:
    """Each query has two pages of different quality for positions 3 and 8 (from 1), assigned at random."""
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(queries), searches)
    is_swapped = rng.random(len(group)) < 0.5
    group, swapped = np.tile(group, 2), np.tile(is_swapped, 2)
    page = np.repeat([0, 1], len(is_swapped))
    place = np.where((page == 0) ^ swapped, 2, 7)
    quality = np.where(page == 0, 0.6, 0.2)
    clicked = rng.random(len(group)) < quality * TRUE[place]
    none = np.zeros(len(group), np.int64)
    return Impressions(
        page,
        group,
        none,
        none,
        none,
        place,
        clicked,
        np.zeros(len(group)),
        np.zeros(len(group)),
        propensity=np.full(len(group), chance),
    )


def ratio(examined: Floats) -> float:
    """Return how much less the lower one of the two positions is examined."""
    return float(examined[7] / examined[2])


def test_lots_correct_a_model_that_was_misled() -> None:
    """With many randomized results, both positions get their true relative probability of examination."""
    found = correct_examination(draw_positions(30, 300), MISLED)
    assert abs(np.log(ratio(found) / ratio(TRUE))) < 0.25 < abs(np.log(ratio(MISLED) / ratio(TRUE)))
    others = np.delete(np.arange(10), [2, 7])
    assert np.allclose(found[others], MISLED[others]), "of other places lots say nothing"


def test_few_showings_by_lot_correct_little() -> None:
    """A few randomized clicks hardly affect the evidence of thousands."""
    few = correct_examination(draw_positions(1, 12), MISLED)
    assert abs(np.log(ratio(few) / ratio(MISLED))) < abs(np.log(ratio(TRUE) / ratio(MISLED))) / 2


def test_what_relevance_put_there_says_nothing() -> None:
    """Without randomization, or if each page was only in one position, the model is unchanged."""
    by_lot = draw_positions(30, 300)
    certain = by_lot._replace(propensity=np.ones(len(by_lot.page)))
    assert np.array_equal(correct_examination(certain, MISLED), MISLED)
    fixed = by_lot._replace(place=np.where(by_lot.page == 0, 2, 7))
    assert np.array_equal(correct_examination(fixed, MISLED), MISLED)
