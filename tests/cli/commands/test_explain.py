"""What ``vedette explain`` says about refreshing a page."""

from typing import Any

from vedette.cli.commands.explain import refresh_lines


def describe(**changed: Any) -> dict[str, Any]:
    """Return what ``runtime.explain.decisions`` reports about a page that was fetched twice."""
    rates = {"rate_d": 1 / 3, "rate_low_d": 1 / 9, "rate_high_d": 1.0}
    facts = {"policy": "expected-gain", "reason": "", **rates, "chance": 0.4, "worth": 0.25, "price": 0.5}
    results = {"refetched": True, "changed": True, "gain": 0.03, "views": 1.0, "counts": "changed main text"}
    return {**facts, **results, **changed}


def test_a_page_that_changes_now_and_then() -> None:
    """It shows the rate with its interval, probability, worth, price, the last gain, and what counts as a change."""
    lines = list(refresh_lines(describe()))
    assert [line[:10].strip() for line in lines] == ["Changes", "Changed", "Worth", "Last", "Counts"]
    assert "about every 3 days (between 1 and 9)" in lines[0]
    assert "40%" in lines[1]
    assert "0.25" in lines[2]
    assert "0.5" in lines[2]
    assert "0.03" in lines[3]
    assert "changed main text" in lines[4]


def test_unknown_values_are_left_out() -> None:
    """This includes a policy without rate or worth, and a page with another rule."""
    assert list(refresh_lines(None)) == []
    silent = describe(rate_d=None, chance=None, worth=None, counts=None)
    assert [line[:10].strip() for line in refresh_lines(silent)] == ["Last"]
