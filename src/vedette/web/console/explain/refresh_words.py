"""What is known of fetching a page again (``live.refresh_facts``) in words, for the console and the command line."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from vedette.web.console.explain.refresh_text import every, per_cent, worth

__all__ = ["Fact", "refresh_facts"]


class Fact(NamedTuple):
    """A line of a section; ``url`` is a URL that it names, ``at_s`` the time that it tells."""

    name: str
    words: str
    url: str = ""
    at_s: float | None = None


def refresh_facts(refresh: dict[str, Any] | None) -> Iterator[Fact]:
    """How often it changes, whether it has, what a fetch is worth and last brought; nothing where a fixed rule has it.

    >>> told = {"rate_d": 1.0, "rate_low_d": 0.5, "rate_high_d": 2.0, "chance": 0.4, "worth": 0.7, "price": 0.8}
    >>> told |= {"refetched": True, "changed": False, "gain": None, "counts": "another main text"}
    >>> [fact.words for fact in refresh_facts(told)][2:]
    ['0.7 now; it is fetched when that reaches the price, 0.8', 'found nothing new', 'another main text']
    """
    if refresh is None:
        return
    if refresh["rate_d"] is not None:
        rates = (refresh["rate_d"], refresh["rate_low_d"], refresh["rate_high_d"])
        yield Fact("Changes", every(*rates))
    if refresh["chance"] is not None:
        yield Fact("Changed by now", f"with a chance of {per_cent(refresh['chance'])}")
    if refresh.get("signal"):
        yield Fact("Said to have changed", f"by a {refresh['signal']}", at_s=refresh["signal_s"])
    if refresh["worth"] is not None:
        yield Fact("Worth of a fetch", _worth(refresh))
    yield Fact("The last fetch", _brought(refresh))
    if refresh["counts"]:
        yield Fact("What counts as a change", refresh["counts"])


def _worth(refresh: dict[str, Any]) -> str:
    now = f"{worth(refresh['worth'])} now"
    if refresh["price"] is None:
        return f"{now}; there is no price yet"
    reached = refresh["worth"] >= refresh["price"]
    when = "which is above the price" if reached else "it is fetched when that reaches the price"
    return f"{now}{', ' if reached else '; '}{when}, {worth(refresh['price'])}"


def _brought(refresh: dict[str, Any]) -> str:
    """What was measured may be nothing: a change that nobody who searches would notice."""
    if not refresh["refetched"]:
        return "was the first, so there is nothing to compare with"
    if not refresh["changed"]:
        return "found nothing new"
    if refresh["gain"] is None:
        return "found a change; what it brought to search is not measured yet"
    return f"found a change, which brought {worth(refresh['gain'])} to the quality of search"
