"""What ``vedette explain`` tells of fetching a page again; the words are those of the console."""

from collections.abc import Iterator
from typing import Any

from vedette.web.console.explain.decision_text import budget_facts
from vedette.web.console.explain.first_words import first_facts
from vedette.web.console.explain.look_words import look_facts
from vedette.web.console.explain.rank_words import rank_facts
from vedette.web.console.explain.refresh_words import Fact, refresh_facts
from vedette.web.formatting import THIN

__all__ = ["budget_lines", "first_lines", "look_lines", "rank_lines", "refresh_lines"]

# How a fact of the console begins in a line of the terminal.
_BEGINS = {
    "Changed by now": "Changed   by now ",
    "Said to have changed": "Said      to have changed ",
    "Worth of a fetch": "Worth     ",
    "The last fetch": "Brought   the last fetch ",
    "What counts as a change": "Counts    as a change: ",
    "Brings new links": "Brings    new links: ",
    "A look may bring": "A look    may bring ",
    "Looks so far": "Looks     so far: ",
    "Shows the same as": "Alike     shows the same as ",
    "Somebody watches": "Watched   is ",
    "Expected gain": "Expected  gain: ",
    "People search for": "Searched  ",
    "Worth of a first fetch": "Worth     ",
    "The next fetch": "Kind      of the next fetch: ",
    "Cost of it": "Cost      ",
    "Its site got": "Budget    its site got ",
    "Order of results": "Results   ",
}


def refresh_lines(refresh: dict[str, Any] | None) -> Iterator[str]:
    """A line for each fact; nothing where a fixed rule has the page."""
    return _lines(refresh_facts(refresh))


def look_lines(look: dict[str, Any] | None) -> Iterator[str]:
    """The same of a page that is looked at for what it links to; nothing where it is not."""
    return _lines(look_facts(look))


def first_lines(first: dict[str, Any] | None) -> Iterator[str]:
    """The same of a URL that was not fetched yet; nothing where it was."""
    return _lines(first_facts(first))


def budget_lines(budget: dict[str, Any] | None) -> Iterator[str]:
    """What the next fetch of it is for, and what its site got of the budget."""
    return _lines(budget_facts(budget))


def rank_lines(ranking: dict[str, Any] | None) -> Iterator[str]:
    """What orders results, and what readers made of this page."""
    return _lines(rank_facts(ranking))


def _lines(facts: Iterator[Fact]) -> Iterator[str]:
    for fact in facts:
        begins = _BEGINS.get(fact.name) or f"{fact.name:<9} "
        yield f"{begins}{fact.words}".replace(THIN, " ")
