"""Estimates for another order: close to the truth if enough visitors got it at random, and missing otherwise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.sample_events import DAY_S

from vedette.learn.clicks.impressions import Impressions, build_impressions
from vedette.learn.clicks.off_policy import (
    GROUP_SHARES,
    LEARNED_ONLY,
    NOT_ENOUGH_DATA,
    RELEVANCE_ONLY,
    WITH_TRIALS,
    OrderEstimate,
    assign_group,
    estimate_orders,
)
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

EXAMINED = np.array([0.7**place for place in range(5)])
LIKED = np.array([0.1, 0.1, 0.2, 0.3, 0.8])  # of pages 0 to 4, which relevance puts in this order
TRIED = 0  # the page that trials put second
ORDERS = {RELEVANCE_ONLY: [0, 1, 2, 3, 4], LEARNED_ONLY: [4, 3, 2, 0, 1], WITH_TRIALS: [4, TRIED, 3, 2, 1]}


def truth(group: str) -> float:
    """Return the share of searches that succeed with an order."""
    return float(1 - np.prod(1 - EXAMINED * LIKED[ORDERS[group]]))


def recorded(readers: int, seed: int = 1, searches: int = 2) -> Impressions:
    """Return searches of visitors who got a random order; those who like a page stay there."""
    rng = np.random.default_rng(seed)
    marks = [f"{number:016x}" for number in rng.integers(1 << 62, size=readers).tolist()]
    slates, events = [], []
    for number in range(readers * searches):
        mark = marks[number // searches]
        group = assign_group(mark)
        id_, at_s = f"{number:032x}", DAY_S + 600.0 * number
        shown = tuple(
            ShownResult(page + 1, place, 5.0, reason="tried" if place == 2 and group == WITH_TRIALS else "")
            for place, page in enumerate(ORDERS[group], 1)
        )
        slates.append(SearchEvent(id_, at_s, "red kites", "red kites", 5, mark, policy=group, results=shown))
        events.append(ClickEvent(id_, "view", 0, at_s, 0.5, mark))
        likes = rng.random(5) < EXAMINED * LIKED[ORDERS[group]]
        events += [
            ClickEvent(id_, "click", ORDERS[group][place] + 1, at_s + 2.0, 2.0 + 60.0 * place, mark)
            for place in np.flatnonzero(likes)
        ]
    return build_impressions(slates, events)


def told(seen: Impressions) -> dict[str, OrderEstimate]:
    """Return estimates by the name of the order."""
    is_tried = np.array([reason == "tried" for reason in seen.reason])
    return {each.name: each for each in estimate_orders(seen, np.ones(len(seen.page), bool), is_tried)}


def test_estimates_hold_what_each_order_brings() -> None:
    """This is true for all three estimators and orders; the model narrows intervals if there is little data."""
    found = told(recorded(3000))
    assert list(found) == [RELEVANCE_ONLY, LEARNED_ONLY, WITH_TRIALS]
    for name, order in found.items():
        for estimate in (order.ips, order.snips, order.robust):
            assert not estimate.caveat
            assert estimate.low <= truth(name) <= estimate.high
    narrow, wide = (each.high - each.low for each in (found[RELEVANCE_ONLY].robust, found[RELEVANCE_ONLY].ips))
    assert narrow < 0.9 * wide
    assert sum(order.readers for order in found.values()) == found[RELEVANCE_ONLY].of_readers == 3000


def test_few_readers_are_no_evidence() -> None:
    """An order with too few visitors has no estimate; the most frequent one may have one."""
    found = told(recorded(300))
    assert [found[name].robust.caveat for name in (RELEVANCE_ONLY, LEARNED_ONLY)] == [NOT_ENOUGH_DATA, NOT_ENOUGH_DATA]
    assert found[WITH_TRIALS].robust.caveat == ""
    assert found[RELEVANCE_ONLY].robust.effective == pytest.approx(found[RELEVANCE_ONLY].readers)


def test_where_nothing_was_tried_there_are_two_orders() -> None:
    """Without trials, visitors who may and may not get them saw the same order, and are counted together."""
    seen = recorded(1200)
    found = estimate_orders(seen, np.ones(len(seen.page), bool), np.zeros(len(seen.page), bool))
    plain = sum(assign_group(mark) == RELEVANCE_ONLY for mark in seen.visitor_hashes)
    assert [(each.name, each.readers) for each in found] == [(RELEVANCE_ONLY, plain), (WITH_TRIALS, 1200 - plain)]


def test_nothing_recorded_is_nothing_told() -> None:
    """The same is true if no row counts."""
    seen = recorded(3)
    nothing = np.zeros(len(seen.page), bool)
    assert estimate_orders(seen, nothing, nothing) == ()
    assert estimate_orders(build_impressions([], []), np.zeros(0, bool), np.zeros(0, bool)) == ()


@given(st.text(max_size=20))
def test_every_mark_has_a_group(mark: str) -> None:
    """Any visitor hash belongs to a group."""
    assert assign_group(mark) in GROUP_SHARES


def test_lots_fall_as_their_chances_say() -> None:
    """Among many visitor hashes, each group has its share."""
    groups = [assign_group(f"{number * 2654435761:016x}") for number in range(5000)]
    assert all(abs(groups.count(name) / 5000 - chance) < 0.02 for name, chance in GROUP_SHARES.items())
