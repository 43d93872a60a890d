"""What a visitor does and sees: the values in which a visit is told."""

from collections.abc import Generator
from typing import NamedTuple

__all__ = ["NOTHING", "Ask", "Deed", "Found", "Hit", "Look", "Open", "Visit"]


class Hit(NamedTuple):
    """A result as it is seen: the page's number, where it leads, and its title."""

    page: int
    url: str
    title: str


class Found(NamedTuple):
    """A page of results: the slate that it shows, what else was perhaps meant, and whether there is a next page."""

    slate: str = ""
    hits: tuple[Hit, ...] = ()
    meant: str = ""
    more: bool = False


NOTHING = Found()


class Ask(NamedTuple):
    """Search, so many wall seconds after the deed before."""

    after_s: float
    query: str
    page: int = 1


class Look(NamedTuple):
    """See a slate."""

    after_s: float
    slate: str


class Open(NamedTuple):
    """Open a result of a slate."""

    after_s: float
    slate: str
    page: int


Deed = Ask | Look | Open
Visit = Generator[Deed, Found, None]
"""A visit in progress: what is done next, given what was found by it; ``NOTHING`` after anything but a search."""
