"""What is believed of a source (``live.look_facts``) in words, for the console and the command line."""

from collections.abc import Iterator
from typing import Any

from vedette.engine.scheduling.alert_interest import WATCHED_WORTH
from vedette.web.console.explain.refresh_words import Fact
from vedette.web.formatting import counted, number

__all__ = ["look_facts"]


def look_facts(look: dict[str, Any] | None) -> Iterator[Fact]:
    """What it brings, when, what a look would bring now, and who shows the same; nothing where it is no source.

    >>> told = {"an_hour": 0.5, "low": 0.25, "high": 1.0, "expected": 2.04, "looks": 9, "found": 1, "wasted": 8}
    >>> told |= {"busiest_hours": (8, 9), "alike": ["https://a.example/feed"], "alike_share": [0.62], "watched": 0.5}
    >>> for fact in look_facts(told):
    ...     print(fact.words)
    about 12 a day (6 to 24), most of them at 8 and 9 h UTC
    about 2.0 new pages now
    9 looks found 1 new page, 8 of them nothing
    https://a.example/feed (62 % of what is new here)
    50 % of what it links to: its new pages count 2.5 times as much
    """
    if look is None:
        return
    yield Fact("Brings new links", _pace(look))
    yield Fact("A look may bring", f"about {look['expected']:.1f} new pages now")
    yield Fact("Looks so far", _looks(look))
    if look["alike"]:
        pairs = zip(look["alike"], look["alike_share"], strict=True)
        said = ", ".join(f"{url} ({100 * share:.0f} % of what is new here)" for url, share in pairs)
        yield Fact("Shows the same as", said, url=look["alike"][0])
    if look["watched"]:
        times = 1.0 + (WATCHED_WORTH - 1.0) * look["watched"]
        part = "all" if look["watched"] == 1 else f"{100 * look['watched']:.0f} %"
        yield Fact("Somebody watches", f"{part} of what it links to: its new pages count {times:.2g} times as much")


def _pace(look: dict[str, Any]) -> str:
    mean, low, high = (_number(24 * look[name]) for name in ("an_hour", "low", "high"))
    hours = " and ".join(str(hour) for hour in sorted(look["busiest_hours"]))
    return f"about {mean} a day ({low} to {high})" + (f", most of them at {hours} h UTC" if hours else "")


def _looks(look: dict[str, Any]) -> str:
    if not look["looks"]:
        return "none since its first fetch"
    found = f"{counted(look['looks'], 'look')} found {counted(look['found'], 'new page')}"
    return f"{found}, {number(look['wasted'])} of them nothing"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
