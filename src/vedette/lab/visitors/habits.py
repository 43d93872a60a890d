"""How the made public behaves: every number of its model, in one place.

Rhythm, interests and fashions run in world time, as the web does that they are about. Pauses run in wall time: however
fast a made world turns, somebody needs a moment to read a title.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["NOTHING", "Ask", "Deed", "Found", "Habits", "Hit", "Look", "Open", "Visit"]


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


@dataclass(frozen=True, slots=True)
class Habits:
    """The parameters of a public; probabilities unless a unit says otherwise.

    *Who comes when.* ``people`` come again and again, as a Poisson process whose rate is
    ``1 + swing x cos(hours since busiest_hour)`` times its mean. ``robots`` of them are programs.

    *What they want.* Topics, and wishes within a topic, are popular by Zipf's law: ``1 / rank ** topic_zipf`` and
    ``1 / rank ** wish_zipf``. The logarithm of a topic's popularity swings by ``drift`` within days. A person has
    ``interests`` topics, new ones every ``interest_days``, and keeps to them with ``loyal``. Every ``fashion_hours``
    there is a new fashion with ``fashions``: a wish that takes ``fashion_share`` of all at once, and half of that after
    each ``fashion_half_life_hours``.

    *How they ask.* ``misspelt`` of the queries have a wrong letter, ``vain`` of them ask for what does not exist.

    *How they read*: see ``reading``. A title without a word of the wish is opened with ``lure_least``, one with all of
    them with ``lure_most``. ``perseverance`` leads from one result to the next. A page that was opened satisfies with
    between ``content_least`` and ``content_most``, by its quality.

    *How they go on.* Who is not content follows "did you mean" with ``corrected``, else turns the page with
    ``turning``, else asks anew with ``refining``. Who is content asks for something else with ``another``, and takes it
    from a title just seen with ``inspired``. After ``most_searches`` everybody leaves.

    *Pauses*, in wall seconds, exponential around these means: for each title, after opening a page, before typing.
    """

    people: int = 600
    swing: float = 0.4
    busiest_hour: float = 16.0
    robots: float = 0.04

    topic_zipf: float = 0.8
    wish_zipf: float = 1.0
    wishes: int = 150
    drift: float = 0.8
    interests: int = 3
    interest_days: float = 10.0
    loyal: float = 0.6
    fashions: float = 0.6
    fashion_hours: float = 3.0
    fashion_share: float = 0.15
    fashion_half_life_hours: float = 2.0

    misspelt: float = 0.06
    vain: float = 0.05

    lure_least: float = 0.03
    lure_most: float = 0.7
    perseverance: float = 0.8
    content_least: float = 0.3
    content_most: float = 0.9

    corrected: float = 0.8
    turning: float = 0.15
    refining: float = 0.3
    another: float = 0.2
    inspired: float = 0.5
    most_searches: int = 6

    title_s: float = 0.7
    page_s: float = 4.0
    typing_s: float = 3.0
