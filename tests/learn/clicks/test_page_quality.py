"""Page quality: shrunk to site and topic, decaying, and out of reach of one actor."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.learn.clicks.page_quality import ResultViews, cap_weights, estimate_quality
from vedette.policy import rng_for


def views(page: list[int], visitor: list[int], liked: list[float], *, address: list[int] | None = None) -> ResultViews:
    """Return today's views, all certainly examined."""
    count = len(page)
    return ResultViews(
        np.array(page),
        np.array(visitor),
        np.array(address or visitor),
        np.ones(count),
        np.array(liked),
        np.zeros(count),
    )


def test_a_page_without_views_is_as_its_site_is() -> None:
    """Of two unseen pages, the one on the better-liked site is expected to be better."""
    seen = views([0] * 30 + [1] * 30, list(range(60)), [1.0] * 30 + [0.0] * 30)
    found = estimate_quality(seen, np.array([0, 1, 0, 1]), np.zeros(4, np.int64), 0.0)
    assert found.mean[2] > found.mean[3]
    assert found.mean[0] > found.mean[2]
    assert found.mean[1] < found.mean[3]


def test_evidence_fades() -> None:
    """Likes from a year ago affect a page less than today's."""
    seen = views([0] * 10 + [1] * 10, list(range(20)), [1.0] * 10 + [0.0] * 10)
    one = np.zeros(2, np.int64)
    today, later = estimate_quality(seen, one, one, 0.0), estimate_quality(seen, one, one, 365.0)
    assert today.mean[0] - today.mean[1] > later.mean[0] - later.mean[1] > 0


@given(st.integers(1, 500), st.booleans())
def test_one_actor_cannot_move_a_page(times: int, many_browsers: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    """Repeated clicks of a visitor count once, and all browsers of an address count as three."""
    visitor = list(range(times)) if many_browsers else [0] * times
    found = cap_weights(views([0] * times, visitor, [1.0] * times, address=[0] * times))
    limit = 3.0 if many_browsers else 1.0
    assert found.weight.sum() <= limit + 1e-9
    assert abs(found.weight.sum() + sum(found.taken_off.values()) - times) < 1e-6


def test_people_of_their_own_count_in_full() -> None:
    """If each visitor comes once, nothing is deducted."""
    visitor = rng_for(1, "test").permutation(50).tolist()
    assert cap_weights(views([0] * 50, visitor, [1.0] * 50)).weight.tolist() == [1.0] * 50
