"""What another order would have brought: near the truth where lots dealt it to enough readers, and silent elsewhere."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.learn.sample_events import DAY_S

from vedette.learn.clicks.experiment_groups import ALL, CHANCES, PLAIN, UNTRIED, group_of
from vedette.learn.clicks.impressions import Impressions, joined
from vedette.learn.clicks.off_policy import NOT_ENOUGH, OtherOrder, other_orders
from vedette.learn.events import Event, Shown, SlateRecord

EXAMINED = np.array([0.7**place for place in range(5)])
LIKED = np.array([0.1, 0.1, 0.2, 0.3, 0.8])  # of pages 0 to 4, which relevance puts in this order
TRIED = 0  # the page that trials put second
ORDERS = {PLAIN: [0, 1, 2, 3, 4], UNTRIED: [4, 3, 2, 0, 1], ALL: [4, TRIED, 3, 2, 1]}


def truth(group: str) -> float:
    """The share of searches that succeed with an order."""
    return float(1 - np.prod(1 - EXAMINED * LIKED[ORDERS[group]]))


def recorded(readers: int, seed: int = 1, searches: int = 2) -> Impressions:
    """Searches of readers who got their order by lot; who likes a page stays there."""
    rng = np.random.default_rng(seed)
    marks = [f"{number:016x}" for number in rng.integers(1 << 62, size=readers).tolist()]
    slates, events = [], []
    for number in range(readers * searches):
        mark = marks[number // searches]
        group = group_of(mark)
        id_, at_s = f"{number:032x}", DAY_S + 600.0 * number
        shown = tuple(
            Shown(page + 1, place, 5.0, reason="tried" if place == 2 and group == ALL else "")
            for place, page in enumerate(ORDERS[group], 1)
        )
        slates.append(SlateRecord(id_, at_s, "red kites", "red kites", 5, mark, policy=group, results=shown))
        events.append(Event(id_, "view", 0, at_s, 0.5, mark))
        likes = rng.random(5) < EXAMINED * LIKED[ORDERS[group]]
        events += [
            Event(id_, "click", ORDERS[group][place] + 1, at_s + 2.0, 2.0 + 60.0 * place, mark)
            for place in np.flatnonzero(likes)
        ]
    return joined(slates, events)


def told(seen: Impressions) -> dict[str, OtherOrder]:
    """By the name of the order."""
    is_tried = np.array([reason == "tried" for reason in seen.reason])
    return {each.name: each for each in other_orders(seen, np.ones(len(seen.page), bool), is_tried)}


def test_estimates_hold_what_each_order_brings() -> None:
    """All three ways, for all three orders; the model makes what few readers got narrower."""
    found = told(recorded(3000))
    assert list(found) == [PLAIN, UNTRIED, ALL]
    for name, order in found.items():
        for estimate in (order.ips, order.snips, order.robust):
            assert not estimate.said
            assert estimate.low <= truth(name) <= estimate.high
    narrow, wide = (each.high - each.low for each in (found[PLAIN].robust, found[PLAIN].ips))
    assert narrow < 0.9 * wide
    assert sum(order.readers for order in found.values()) == found[PLAIN].of_readers == 3000


def test_few_readers_are_no_evidence() -> None:
    """What too few got is not told; what most got may be."""
    found = told(recorded(300))
    assert [found[name].robust.said for name in (PLAIN, UNTRIED)] == [NOT_ENOUGH, NOT_ENOUGH]
    assert found[ALL].robust.said == ""
    assert found[PLAIN].robust.effective == pytest.approx(found[PLAIN].readers)


def test_where_nothing_was_tried_there_are_two_orders() -> None:
    """Who might have been shown such pages and who might not had the same order, and count together."""
    seen = recorded(1200)
    found = other_orders(seen, np.ones(len(seen.page), bool), np.zeros(len(seen.page), bool))
    plain = sum(group_of(mark) == PLAIN for mark in seen.marks)
    assert [(each.name, each.readers) for each in found] == [(PLAIN, plain), (ALL, 1200 - plain)]


def test_nothing_recorded_is_nothing_told() -> None:
    """Nor where no row counts."""
    seen = recorded(3)
    nothing = np.zeros(len(seen.page), bool)
    assert other_orders(seen, nothing, nothing) == ()
    assert other_orders(joined([], []), np.zeros(0, bool), np.zeros(0, bool)) == ()


@given(st.text(max_size=20))
def test_every_mark_has_a_group(mark: str) -> None:
    """Whatever stands in a record."""
    assert group_of(mark) in CHANCES


def test_lots_fall_as_their_chances_say() -> None:
    """Of many marks each group has its share."""
    groups = [group_of(f"{number * 2654435761:016x}") for number in range(5000)]
    assert all(abs(groups.count(name) / 5000 - chance) < 0.02 for name, chance in CHANCES.items())
