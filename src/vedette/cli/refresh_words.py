"""What ``vedette explain`` tells of fetching a page again; the words are those of the console."""

from collections.abc import Iterator
from typing import Any

from vedette.web.console.refresh_words import refresh_facts
from vedette.web.words import THIN

__all__ = ["refresh_lines"]

# How a fact of the console begins in a line of the terminal.
_BEGINS = {
    "Changed by now": "Changed   by now ",
    "Worth of a fetch": "Worth     ",
    "The last fetch": "Brought   the last fetch ",
    "What counts as a change": "Counts    as a change: ",
}


def refresh_lines(refresh: dict[str, Any] | None) -> Iterator[str]:
    """A line for each fact; nothing where a fixed rule has the page."""
    for fact in refresh_facts(refresh):
        begins = _BEGINS.get(fact.name) or f"{fact.name:<9} "
        yield f"{begins}{fact.words}".replace(THIN, " ")
