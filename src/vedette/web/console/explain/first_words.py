"""What a first fetch is expected to bring (``live.first_facts``) in words, for the console and the command line."""

from collections.abc import Iterator
from typing import Any

from vedette.web.console.explain.refresh_words import Fact

__all__ = ["first_facts"]


def first_facts(first: dict[str, Any] | None) -> Iterator[Fact]:
    """The expected gain, where it comes from, and whether it is worth the price; nothing where it was fetched.

    >>> told = {"gain": 0.5, "weighed": True, "usual": 0.25, "why": None, "names": ["Low tide"], "worth": 9.0}
    >>> told |= {"price": 10.0, "by_links": 0.125}
    >>> told |= {"matches": [{"query": "low tide", "share": 0.125, "places": ["links"]}]}
    >>> [fact.words for fact in first_facts(told)]
    ['0.5 of what one search shows, 2 times what is usual where it lies', \
'“low tide”, 12.5 % of all searches, by its links', \
'0.125 of what one search shows', \
'9, below the price of 10: it waits until the price falls or pages like it bring more; \
up to one fetch in ten is for such URLs']
    """
    if first is None:
        return
    yield Fact("Expected gain", _gain(first))
    for one in first["matches"]:
        places = " and ".join(f"its {place}" for place in one["places"])
        yield Fact("People search for", f"“{one['query']}”, {100 * one['share']:.3g} % of all searches, by {places}")
    if first["by_links"] is not None:
        yield Fact("By who links to it alone", f"{first['by_links']:.3g} of what one search shows")
    if first["worth"] is not None:
        yield Fact("Worth of a first fetch", _worth(first))


def _gain(first: dict[str, Any]) -> str:
    if first["gain"] is None:
        return f"not known: {first['why']}; so it comes breadth first, or by what pages like it brought"
    words = f"{first['gain']:.3g} of what one search shows"
    if not first["weighed"]:
        return f"{words}, as is usual where it lies; it was found since that was last worked out"
    return (
        f"{words}, {first['gain'] / first['usual']:.2g} times what is usual where it lies" if first["usual"] else words
    )


def _worth(first: dict[str, Any]) -> str:
    worth, price = first["worth"], first["price"]
    if price is None:
        return f"{worth:.3g}; nothing has a price, as there is no budget"
    if worth >= price:
        return f"{worth:.3g}, at a price of {price:.3g}"
    below = f"{worth:.3g}, below the price of {price:.3g}"
    until = "it waits until the price falls or pages like it bring more; up to one fetch in ten is for such URLs"
    return f"{below}: {until}"
