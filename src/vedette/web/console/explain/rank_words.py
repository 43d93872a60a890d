"""What readers made of a page (``live.rank_facts``) in words, for the console and the command line."""

from collections.abc import Iterator
from typing import Any

from vedette.web.console.explain.refresh_text import per_cent
from vedette.web.console.explain.refresh_words import Fact
from vedette.web.formatting import counted

__all__ = ["rank_facts"]


def rank_facts(ranking: dict[str, Any] | None) -> Iterator[Fact]:
    """What orders results now, what is known of this one, and how often it was tried; nothing before anybody searched.

    >>> told = {"order": "by relevance: 3 clicks are too few to learn from", "guard_until_s": None, "general": None}
    >>> [fact.words for fact in rank_facts(told | {"likes": None, "looks": None, "expected": None, "tried": None})]
    ['by relevance: 3 clicks are too few to learn from']
    """
    if ranking is None:
        return
    yield Fact("Order of results", ranking["order"], at_s=ranking["guard_until_s"])
    if ranking["looks"] is not None:
        yield Fact("Readers", _readers(ranking))
    if ranking["tried"] is not None:
        shown, clicks = counted(ranking["tried"]["shown"], "time"), counted(ranking["tried"]["clicks"], "time")
        yield Fact("Tried", f"shown {shown} to be tried, opened {clicks} then", at_s=ranking["tried"]["first_s"])


def _readers(ranking: dict[str, Any]) -> str:
    looks, likes, expected = ranking["looks"], ranking["likes"], per_cent(ranking["expected"])
    words = f"of about {looks:.0f} looks lately, {likes:.0f} liked it; {expected} expected"
    return f"{words}, {per_cent(ranking['general'])} of any page" if ranking["general"] else words
