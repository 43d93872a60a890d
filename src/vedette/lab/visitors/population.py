"""A population of simulated visitors: who comes when, and each visit from its first search to its last.

It uses no clock and no server. A visit is a generator: it yields the next action and receives the resulting page, so
the same seed and the same results give the same population.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vedette.lab.visitors.habits import Action, Click, Habits, Hit, ResultPage, Search, View, VisitActions
from vedette.lab.visitors.queries import Interests, misspell, query_from_title, refine_query
from vedette.lab.worlds.synthetic.hashing import fraction, hash_key
from vedette.lab.worlds.synthetic.topics import TOPICS, Topic
from vedette.policy import rng_for
from vedette.text import split_words

# The model is the dynamic Bayesian network of Chapelle and Zhang (Chapelle09): - the first result is examined; - an
# examined result is opened with its *lure* a, which grows with the share of the need's words in its title; - an opened
# page satisfies its reader with s, which depends only on the page: its *quality* is drawn once for each URL, and no
# feature of ranking knows it; - an unsatisfied visitor examines the next one with *perseverance* g. So position k is
# examined with P(k + 1) = P(k) g (1 - a s), which falls with the rank. If no one is ever satisfied (s = 0) this is the
# position-based model with P(k) = g ** (k - 1). Useful for: testing click models, and policies that learn from clicks,
# against known truth. Not useful for: claims about real people.


STEM_LENGTH = 4  # letters; words that begin with the same ones count as forms of one word, whatever ending they have


class Appeal(NamedTuple):
    """Probability that a simulated visitor opens a result once examined, and is satisfied once it is opened."""

    attraction: float
    satisfaction: float


class PageReading(NamedTuple):
    """Outcome of a visitor reading a result page: results examined, positions clicked (from 0), satisfied or not."""

    examined: int
    opened: tuple[int, ...]
    satisfied: bool


def word_overlap(wish: str, title: str) -> float:
    """Return the share of the words of a visitor's need that a result's title contains, in any word form.

    >>> word_overlap("mooring ropes", "The tarred mooring rope in May")
    1.0
    >>> word_overlap("tarred buoy", "Barnacled buoys")
    0.5
    """
    wanted = _stems(wish)
    return len(wanted & _stems(title)) / len(wanted) if wanted else 0.0


def _stems(text: str) -> set[str]:
    return {word.removesuffix("s")[:STEM_LENGTH] for word in split_words(text)}


def page_quality(seed: int, url: str) -> float:
    """Return the hidden quality of a page for simulated visitors, from 0 to 1, which no title shows."""
    return fraction(hash_key(seed, "quality", url))


def estimate_appeal(habits: Habits, seed: int, wish: str, hit: Hit) -> Appeal:
    """Estimate the appeal (attraction and satisfaction) of a search hit for a simulated visitor with this need."""
    lure = habits.min_attraction + (habits.max_attraction - habits.min_attraction) * word_overlap(wish, hit.title)
    content = habits.min_satisfaction + (habits.max_satisfaction - habits.min_satisfaction) * page_quality(
        seed, hit.url
    )
    return Appeal(lure, content)


def examination_probabilities(appeals: Sequence[Appeal], perseverance: float) -> list[float]:
    """Return the probability that a simulated visitor examines each position of a result page, by its appeals.

    >>> examination_probabilities([Appeal(0.5, 1.0), Appeal(0.5, 0.0), Appeal(0.5, 0.0)], 0.5)
    [1.0, 0.25, 0.125]
    """
    chances, chance = [], 1.0
    for each in appeals:
        chances.append(chance)
        chance *= perseverance * (1.0 - each.attraction * each.satisfaction)
    return chances


def simulate_reading(appeals: Sequence[Appeal], perseverance: float, rng: np.random.Generator) -> PageReading:
    """Simulate how a visitor reads a result page once: examine, click, and stop when satisfied or tired."""
    opened: list[int] = []
    for place, each in enumerate(appeals):
        if rng.random() < each.attraction:
            opened.append(place)
            if rng.random() < each.satisfaction:
                return PageReading(place + 1, tuple(opened), satisfied=True)
        if rng.random() >= perseverance:
            return PageReading(place + 1, tuple(opened), satisfied=False)
    return PageReading(len(appeals), tuple(opened), satisfied=False)


SEARCHES_PER_VISIT = 1.45  # as counted with the usual habits; it converts searches per second to visits per second
HOUR_S, DAY_HOURS = 3600.0, 24.0
VIEW_DELAY_S = 0.4  # until a page is drawn and its script reports it
ROBOT_PAUSE_S = 1.0
ROBOT_SEARCHES = 4
ROBOT_OPENS = 3

BROWSERS = (
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:141.0) Gecko/20100101 Firefox/141.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Safari/605.1.15",
    "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/138.0.0.0 Mobile Safari/537.36",
)
ROBOT_AGENT = "Mozilla/5.0 (compatible; DemoTallyBot/1.0; a robot of the made public)"


class Person(NamedTuple):
    """A returning simulated visitor: number, loopback address, browser user agent, and if it is a robot."""

    number: int
    address: str
    agent: str
    is_robot: bool


class Arrival(NamedTuple):
    """Arrival of a simulated visitor: the number of the visit, and the world time."""

    number: int
    at_s: float


class _SearchIntent(NamedTuple):
    """What a simulated visitor types as a query, and the need behind it by which results are judged."""

    need: str
    query: str
    page: int = 1


@dataclass(frozen=True, slots=True)
class VisitorPopulation:
    """The population of simulated visitors of a seed: their arrivals, and what each does during a visit.

    >>> public = VisitorPopulation(1)
    >>> next(public.simulate_visit(Arrival(7, 0.0))) == next(VisitorPopulation(1).simulate_visit(Arrival(7, 0.0)))
    True
    """

    seed: int
    habits: Habits = field(default_factory=Habits)
    topics: tuple[Topic, ...] = TOPICS

    @property
    def interests(self) -> Interests:
        """Return the interests of this population of visitors: their topics and needs."""
        return Interests(self.seed, self.habits, self.topics)

    def activity(self, at_s: float) -> float:
        """Return how busy the visitors are at a world time, relative to a daily mean of 1."""
        hours = at_s / HOUR_S - self.habits.busiest_hour
        return 1.0 + self.habits.swing * math.cos(2 * math.pi * hours / DAY_HOURS)

    def arrivals(self, from_s: float, per_s: float) -> Iterator[Arrival]:
        """Generate visitor arrivals without end, ``per_s`` on a daily average: a Poisson process, thinned (Lewis79)."""
        rng = rng_for(self.seed, "visitors/arrivals")
        busiest = 1.0 + self.habits.swing
        at_s, number = from_s, 0
        while True:
            at_s += rng.exponential(1.0 / (per_s * busiest))
            if rng.random() * busiest < self.activity(at_s):
                yield Arrival(number, at_s)
                number += 1

    def person_for(self, arrival: Arrival) -> Person:
        """Return which person of the visitor population arrives."""
        number = hash_key(self.seed, "visit", arrival.number) % self.habits.people
        key = hash_key(self.seed, "somebody", number)
        robot = fraction(key) < self.habits.robots
        return Person(number, person_address(number), ROBOT_AGENT if robot else BROWSERS[key % len(BROWSERS)], robot)

    def simulate_visit(self, arrival: Arrival) -> VisitActions:
        """Simulate the actions of one visit, step by step; see ``habits.VisitActions``."""
        rng = rng_for(self.seed, f"visitors/visit/{arrival.number}")
        person = self.person_for(arrival)
        visit = _VisitSimulator(self, person, arrival.at_s, rng)
        return visit.robot_actions() if person.is_robot else visit.person_actions()


@dataclass(frozen=True, slots=True)
class _VisitSimulator:
    """Simulator of one visit of one person: yields its actions and receives result pages."""

    public: VisitorPopulation
    person: Person
    at_s: float
    rng: np.random.Generator

    def person_actions(self) -> VisitActions:
        """Generate a human visitor's actions: search, read, and continue while something is still wanted."""
        habits, pause_s = self.public.habits, 0.0
        search: _SearchIntent | None = self._first_search()
        for _ in range(habits.max_searches):
            if search is None:
                return
            found = yield Search(pause_s, search.query, search.page)
            content = yield from self._read_results(found, search.need)
            search = self._new_search(found) if content else self._retry_search(search, found)
            pause_s = self._pause_s(habits.typing_s)

    def robot_actions(self) -> VisitActions:
        """Generate a robot visitor's actions: one need after another, first results clicked at once, no views."""
        for _ in range(ROBOT_SEARCHES):
            found = yield Search(ROBOT_PAUSE_S, self._draw_need())
            for hit in found.hits[:ROBOT_OPENS] if found.slate else ():
                yield Click(0.0, found.slate, hit.page)

    def _read_results(self, found: ResultPage, wish: str) -> Generator[Action, ResultPage, bool]:
        """Simulate a visitor reading a result page, with its views and clicks; return whether that was enough."""
        if not found.slate:
            return False
        public, habits = self.public, self.public.habits
        yield View(VIEW_DELAY_S, found.slate)
        appeals = [estimate_appeal(habits, public.seed, wish, hit) for hit in found.hits]
        reading = simulate_reading(appeals, habits.perseverance, self.rng)
        reached, rest_s = 0, 0.0
        for place in reading.opened:
            after_s = rest_s + sum(self._pause_s(habits.title_s) for _ in range(reached, place + 1))
            yield Click(after_s, found.slate, found.hits[place].page)
            reached, rest_s = place + 1, self._pause_s(habits.page_s)
        return reading.satisfied

    def _new_search(self, found: ResultPage) -> _SearchIntent | None:
        if not self._happens(self.public.habits.search_again):
            return None
        title = found.hits[int(self.rng.integers(len(found.hits)))].title if found.hits else ""
        query = query_from_title(title, self.rng) if self._happens(self.public.habits.query_from_title) else ""
        return _SearchIntent(query, query) if query else self._first_search()

    def _retry_search(self, search: _SearchIntent, found: ResultPage) -> _SearchIntent | None:
        habits = self.public.habits
        if found.suggestion and self._happens(habits.accept_suggestion):
            return search._replace(query=found.suggestion, page=1)
        if found.has_next and self._happens(habits.turn_page):
            return search._replace(page=search.page + 1)
        if not self._happens(habits.refine_query):
            return None
        query = refine_query(search.query, [hit.title for hit in found.hits], self.rng)
        return None if query == search.query else search._replace(query=query, page=1)

    def _first_search(self) -> _SearchIntent:
        wish = self._draw_need()
        slips = self._happens(self.public.habits.misspell_rate)
        return _SearchIntent(wish, misspell(wish, self.rng) if slips else wish)

    def _draw_need(self) -> str:
        return self.public.interests.draw_need(self.person.number, self.at_s, self.rng)

    def _happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def _pause_s(self, mean_s: float) -> float:
        return float(self.rng.exponential(mean_s))


def person_address(person: int) -> str:
    """Return the loopback address of a simulated visitor, outside the range of the synthetic web's hosts.

    >>> person_address(0), person_address(1000)
    ('127.251.0.1', '127.251.4.1')
    """
    return f"127.{251 + person // 62_500 % 4}.{person // 250 % 250}.{1 + person % 250}"
