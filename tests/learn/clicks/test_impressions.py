"""Shown results, joined with user actions, however late they are reported."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vedette.learn.clicks.impressions import build_impressions
from vedette.learn.events import ClickEvent, SearchEvent, ShownResult

MARK, OTHER = "00000001aaaaaaaa", "00000001bbbbbbbb"
TWO = (ShownResult(7, 1, 3.0), ShownResult(8, 2, 2.0, reason="tried"))


def slate(id_: str, at_s: float = 100.0, visitor: str = MARK, **about: object) -> SearchEvent:
    """Return a search with two results."""
    report = {
        "id": id_,
        "at_s": at_s,
        "query": "Kites",
        "words": "kites",
        "total": 2,
        "visitor": visitor,
        "results": TWO,
    }
    return SearchEvent(**{**report, **about})  # type: ignore[arg-type]


def click(id_: str, page: int, after_s: float = 5.0, at_s: float = 105.0, visitor: str = MARK) -> ClickEvent:
    """Record a click on a result."""
    return ClickEvent(id_, "click", page, at_s, after_s, visitor)


def test_a_late_click_finds_its_slate() -> None:
    """Clicks are joined by the search's token, in either order."""
    seen = build_impressions([slate("a"), slate("b", 200.0, OTHER)], [click("b", 8, 9000.0, 9200.0), click("a", 7)])
    assert seen.page.tolist() == [7, 8, 7, 8]
    assert seen.clicked.tolist() == [True, False, False, True]


def test_what_nobody_saw_or_is_doubted_teaches_nothing() -> None:
    """A search without view or click, an excluded search and an excluded click add no row or no click."""
    doubted = click("c", 7)._replace(filter_reason="too quick")
    view = ClickEvent("c", "view", 0, 101.0, 1.0, MARK)
    seen = build_impressions(
        [slate("a"), slate("b", filter_reason="says it is a program"), slate("c")], [click("b", 7), view, doubted]
    )
    assert len(np.unique(seen.slate)) == 1
    assert not seen.clicked.any()


def test_who_is_back_at_once_did_not_like_it() -> None:
    """A click counts less the sooner its user clicks or searches again, and fully if they don't return."""
    quick = build_impressions([slate("a"), slate("b", 107.0)], [click("a", 7, 5.0, 105.0)])
    again = build_impressions([slate("a")], [click("a", 7, 5.0), click("a", 8, 6.0, 106.0)])
    stayed = build_impressions([slate("a")], [click("a", 7)])
    assert quick.liked[0] == 0.0
    assert again.liked.tolist() == [0.0, 1.0]
    assert stayed.liked[0] == 1.0


def test_fast_worlds_are_told_by_the_wall() -> None:
    """In a world that runs a thousand times as fast, a user who returns after two real seconds returned immediately."""
    report = [slate("a"), slate("b", 2105.0)], [click("a", 7, 5.0, 105.0)]
    assert build_impressions(*report).liked[0] == 1.0
    assert build_impressions(*report, speed=1000.0).liked[0] == 0.0


def test_browsers_of_one_address_are_known_as_such() -> None:
    """Two visitor hashes of an address are two visitors at one address."""
    seen = build_impressions([slate("a"), slate("b", visitor=OTHER)], [click("a", 7), click("b", 7)])
    assert len(np.unique(seen.visitor)) == 2
    assert len(np.unique(seen.address)) == 1


def test_programs_are_in_no_group() -> None:
    """Responses of the API are learned from, but not compared."""
    seen = build_impressions([slate("a", via="api", policy="linear/1")], [click("a", 7)])
    assert seen.by_policy == ("", "")


@given(
    st.lists(st.builds(slate, st.text(max_size=2), st.floats(0, 1e9), st.text(max_size=9)), max_size=6),
    st.lists(st.builds(click, st.text(max_size=2), st.integers(-1, 9), st.floats(0, 1e6), st.floats(0, 1e9))),
)
def test_anything_is_joined(slates: list[SearchEvent], events: list[ClickEvent]) -> None:
    """For any record, columns have the same length and likes are between 0 and 1."""
    seen = build_impressions(slates, events)
    assert {len(column) for column in seen[:11]} == {len(seen.page)}
    assert ((seen.liked >= 0) & (seen.liked <= 1)).all()
    assert (seen.liked[~seen.clicked] == 0).all()
