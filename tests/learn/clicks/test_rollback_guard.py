"""The rollback guard: quiet if nothing is worse, and back to the safe order otherwise."""

import numpy as np
from tests.learn.sample_events import made_record

from vedette.learn.clicks.impressions import Bools, Impressions, build_impressions
from vedette.learn.clicks.rollback_guard import (
    FALLBACK_S,
    Arm,
    GroupComparison,
    RollbackGuard,
    compare_groups,
    update_guard,
)


def draw_clicks(share: float) -> tuple[Impressions, Bools]:
    """Return clicks of two groups; users of the second one return with this probability."""
    slates, events = made_record({1: 0.5, 2: 0.5}, 600, seed=1)
    others, theirs = made_record({1: 0.5, 2: 0.5}, 600, seed=2, policy="prospect/1")
    seen = build_impressions(slates + others, events + theirs)
    is_learned = np.array([name == "prospect/1" for name in seen.by_policy])
    rng = np.random.default_rng(5)
    spoilt = is_learned & seen.clicked & (rng.random(len(seen.page)) < share)
    return seen._replace(liked=np.where(spoilt, 0.0, seen.liked)), is_learned


def verdict(share: float) -> RollbackGuard:
    """Return the guard's verdict on such groups."""
    seen, is_learned = draw_clicks(share)
    return update_guard(RollbackGuard(), compare_groups(seen, is_learned, np.ones(len(seen.page), bool)), 50.0)


def test_equal_groups_are_left_alone() -> None:
    """Nothing is reported if nothing differs."""
    assert verdict(0.0) == RollbackGuard()


def test_harm_is_seen_and_said() -> None:
    """If clicks are worth a third less, learning stops for a week, and the reason is given."""
    found = verdict(0.35)
    assert found.is_active(50.0)
    assert not found.is_active(50.0 + FALLBACK_S)
    assert "quality per click fell" in found.why


def test_it_tries_again_with_new_evidence() -> None:
    """After a week, only new data is compared."""
    held = RollbackGuard(100.0, 0.0, "quality per click fell")
    bad = GroupComparison(Arm(500, 900, 0.1, 0.01), Arm(500, 900, 0.9, 0.01), -0.8, 0.01)
    assert update_guard(held, bad, 50.0) == held
    assert update_guard(held, bad, 101.0) == RollbackGuard(since_s=100.0)


def test_few_people_say_nothing() -> None:
    """Even if the difference is large, a few people are not enough evidence."""
    few = GroupComparison(Arm(5, 90, 0.1, 0.01), Arm(500, 900, 0.9, 0.01), -0.8, 0.01)
    assert not few.is_enough
    assert update_guard(RollbackGuard(), few, 5.0) == RollbackGuard()


def test_intervals_are_over_people() -> None:
    """A hundred clicks by one person don't count as a hundred people, so the interval is unbounded."""
    seen, is_learned = draw_clicks(0.0)
    alone = seen._replace(visitor=np.zeros(len(seen.page), np.int64))
    found = compare_groups(alone, is_learned, np.ones(len(seen.page), bool))
    assert found.learned.half_width == float("inf")
