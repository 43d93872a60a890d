"""What the console's page on finding new pages is told: the pages that were found, and the sources that name them."""

from typing import NamedTuple

__all__ = ["Discovery", "FoundPage", "SourceLine"]


class FoundPage(NamedTuple):
    """A page that was news: when it was found, and when it was born; None where nobody states that."""

    found_s: float
    born_s: float | None = None


class SourceLine(NamedTuple):
    """A page that is looked at for what it links to.

    Rates are new links a day, with the ends of what is probable. ``looks``, what they ``found`` and those that were
    ``wasted`` count from the second fetch on. ``due_s`` is None where it waits to be fetched already.
    """

    url: str
    rate_d: float
    low_d: float
    high_d: float
    expected: float
    looks: int
    found: int
    wasted: int
    due_s: float | None
    why: str


class Discovery(NamedTuple):
    """How finding new pages goes: those of the last month, the latest first; and the sources, the richest first.

    ``looks``, what they ``found`` and those that were ``wasted`` are sums that fade: of about the last day.
    """

    pages: tuple[FoundPage, ...] = ()
    sources: tuple[SourceLine, ...] = ()
    looks: float = 0.0
    found: float = 0.0
    wasted: float = 0.0
