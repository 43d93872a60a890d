"""Habits of simulated visitors: every parameter of their behavior model, and the actions of a visit.

Rhythm, interests and trends run in world time, like the web they are about. Pauses run in wall time: however fast a
synthetic web runs, a person needs a moment to read a title.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import NamedTuple


class Hit(NamedTuple):
    """A search result as a simulated visitor sees it: the page's number, its URL and its title."""

    page: int
    url: str
    title: str


class ResultPage(NamedTuple):
    """A result page as a simulated visitor sees it: slate, hits, "did you mean" suggestion, has a next page."""

    slate: str = ""
    hits: tuple[Hit, ...] = ()
    suggestion: str = ""
    has_next: bool = False


EMPTY_PAGE = ResultPage()


class Search(NamedTuple):
    """Visitor action: submit a search, this many wall seconds after the previous action."""

    after_s: float
    query: str
    page: int = 1


class View(NamedTuple):
    """Visitor action: view a slate of results."""

    after_s: float
    slate: str


class Click(NamedTuple):
    """Visitor action: click a result of a slate."""

    after_s: float
    slate: str
    page: int


Action = Search | View | Click
VisitActions = Generator[Action, ResultPage, None]
"""A visit in progress: the next action, given the last result; ``EMPTY_PAGE`` after anything but a search."""


@dataclass(frozen=True, slots=True)
class Habits:
    """All parameters of simulated visitors' behavior; probabilities unless a unit says otherwise.

    *Who comes when.* ``people`` come again and again, as a Poisson process whose rate is
    ``1 + swing x cos(hours since busiest_hour)`` times its mean. ``robots`` of them are programs.

    *What they want.* Topics, and needs within a topic, are popular by Zipf's law: ``1 / rank ** topic_zipf`` and ``1 /
    rank ** need_zipf``. The logarithm of a topic's popularity swings by ``drift`` within days. A person has
    ``interests`` topics, new ones every ``interest_days``, and stays with them with ``loyalty``. Every ``trend_hours``
    there is a new trend with ``trend_chance``: a need that takes ``trend_share`` of all at once, and half of that after
    each ``trend_half_life_hours``.

    *How they search.* ``misspell_rate`` of the queries have a wrong letter, ``invented_rate`` of them are about
    something that does not exist.

    *How they read*: see ``population``. A title without a word of the need is opened with ``min_attraction``, one with
    all of them with ``max_attraction``. ``perseverance`` leads from one result to the next. An opened page satisfies
    with between ``min_satisfaction`` and ``max_satisfaction``, by its quality.

    *How they continue.* A visitor who is not satisfied follows "did you mean" with ``accept_suggestion``, else turns
    the page with ``turn_page``, else types another query with ``refine_query``. A satisfied one searches for something
    else with ``search_again``, and takes it from a title just seen with ``query_from_title``. After ``max_searches``
    everyone leaves.

    *Pauses*, in wall seconds, exponential around these means: for each title, after opening a page, before typing.
    """

    people: int = 600
    swing: float = 0.4
    busiest_hour: float = 16.0
    robots: float = 0.04

    topic_zipf: float = 0.8
    need_zipf: float = 1.0
    needs: int = 150
    drift: float = 0.8
    interests: int = 3
    interest_days: float = 10.0
    loyalty: float = 0.6
    trend_chance: float = 0.6
    trend_hours: float = 3.0
    trend_share: float = 0.15
    trend_half_life_hours: float = 2.0

    misspell_rate: float = 0.06
    invented_rate: float = 0.05

    min_attraction: float = 0.03
    max_attraction: float = 0.7
    perseverance: float = 0.8
    min_satisfaction: float = 0.3
    max_satisfaction: float = 0.9

    accept_suggestion: float = 0.8
    turn_page: float = 0.15
    refine_query: float = 0.3
    search_again: float = 0.2
    query_from_title: float = 0.5
    max_searches: int = 6

    title_s: float = 0.7
    page_s: float = 4.0
    typing_s: float = 3.0
