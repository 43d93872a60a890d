"""What a fetch of a URL would be for (``live.budget_facts``) in words, for both faces."""

from collections.abc import Iterator
from typing import Any

from vedette.web.console.explain.refresh_text import per_cent, worth
from vedette.web.console.explain.refresh_words import Fact
from vedette.web.formatting import number

__all__ = ["budget_facts"]

_KINDS = {
    "first": "a first fetch",
    "refresh": "a refresh, for what has changed",
    "look": "a look for new links",
    "gone": "one more try, since it was gone or had moved",
}


def budget_facts(budget: dict[str, Any] | None) -> Iterator[Fact]:
    """Which kind of fetch it would be, its cost, and what its site got today; its worth stands with what it may bring.

    >>> told = {"kind": "first", "cost": None}
    >>> told |= {"site_today": 12, "all_today": 48, "site_share": 0.2}
    >>> [fact.words.replace("\N{NARROW NO-BREAK SPACE}", " ") for fact in budget_facts(told)]
    ['a first fetch', '12 of 48 fetches today, 25 %; its share is 20 %']
    """
    if budget is None:
        return
    yield Fact("The next fetch", _KINDS[budget["kind"]])
    if budget["cost"] is not None:
        yield Fact(
            "Cost of it", f"{worth(budget['cost'])} times an ordinary fetch, by its size and how long its host takes"
        )
    yield Fact("Its site got", _site(budget))


def _site(budget: dict[str, Any]) -> str:
    own, everything, share = budget["site_today"], budget["all_today"], budget["site_share"]
    part = f", {per_cent(own / everything)}" if everything else ""
    limit = f"; its share is {per_cent(share)}" if share is not None else ""
    return f"{number(own)} of {number(everything)} fetches today{part}{limit}"
