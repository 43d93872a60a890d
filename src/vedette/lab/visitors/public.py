"""The public: who comes when, and each visit from its first search to its last.

It knows no clock and no server. A visit is a generator: it says what is done next and is told what was found, so the
same seed and the same answers are the same public.
"""

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vedette.lab.visitors.habits import Ask, Deed, Found, Habits, Hit, Look, Open, Visit
from vedette.lab.visitors.queries import Interests, from_title, misspelt, refined
from vedette.lab.worlds.synthetic.hashing import fraction, key_of
from vedette.lab.worlds.synthetic.topics import TOPICS, Topic
from vedette.policy import rng_for
from vedette.text import words_of

__all__ = [
    "SEARCHES_A_VISIT",
    "Appeal",
    "Arrival",
    "Person",
    "Public",
    "Reading",
    "appeal",
    "looked_at",
    "overlap",
    "quality",
    "read",
]

# The model is the dynamic Bayesian network of Chapelle and Zhang (Chapelle09):
# - the first result is looked at;
# - a result that is looked at is opened with its *lure* a, which grows with the share of the wish's words in its title;
# - a page that was opened leaves its reader content with s, which is a matter of the page alone: its *quality* is drawn
# once for each URL, and no feature of ranking knows it;
# - who is not content looks at the next one with *perseverance* g.
# So the place k is looked at with P(k + 1) = P(k) g (1 - a s), which falls with the rank. Where nobody is ever content
# (s = 0) this is the position-based model with P(k) = g ** (k - 1).
# Useful for: testing models of clicks, and policies that learn from clicks, against what is known to be true.
# Not useful for: claims about real people, who were never asked.


ROOT = 4  # letters; words that begin with the same ones count as forms of one word, whatever ending they have


class Appeal(NamedTuple):
    """With what probability a result is opened once looked at, and leaves its reader content once opened."""

    lure: float
    content: float


class Reading(NamedTuple):
    """What came of it: how many results were looked at, which places were opened (from 0), and whether it sufficed."""

    looked: int
    opened: tuple[int, ...]
    content: bool


def overlap(wish: str, title: str) -> float:
    """The share of the wish's words that a title has, in whatever form.

    >>> overlap("mooring ropes", "The tarred mooring rope in May")
    1.0
    >>> overlap("tarred buoy", "Barnacled buoys")
    0.5
    """
    wanted = _roots(wish)
    return len(wanted & _roots(title)) / len(wanted) if wanted else 0.0


def _roots(text: str) -> set[str]:
    return {word.removesuffix("s")[:ROOT] for word in words_of(text)}


def quality(seed: int, url: str) -> float:
    """How good a page is, from 0 to 1: what no title tells."""
    return fraction(key_of(seed, "quality", url))


def appeal(habits: Habits, seed: int, wish: str, hit: Hit) -> Appeal:
    """What a result is to somebody with this wish."""
    lure = habits.lure_least + (habits.lure_most - habits.lure_least) * overlap(wish, hit.title)
    content = habits.content_least + (habits.content_most - habits.content_least) * quality(seed, hit.url)
    return Appeal(lure, content)


def looked_at(appeals: Sequence[Appeal], perseverance: float) -> list[float]:
    """With what probability each place is looked at.

    >>> looked_at([Appeal(0.5, 1.0), Appeal(0.5, 0.0), Appeal(0.5, 0.0)], 0.5)
    [1.0, 0.25, 0.125]
    """
    chances, chance = [], 1.0
    for each in appeals:
        chances.append(chance)
        chance *= perseverance * (1.0 - each.lure * each.content)
    return chances


def read(appeals: Sequence[Appeal], perseverance: float, rng: np.random.Generator) -> Reading:
    """Read a page of results once."""
    opened: list[int] = []
    for place, each in enumerate(appeals):
        if rng.random() < each.lure:
            opened.append(place)
            if rng.random() < each.content:
                return Reading(place + 1, tuple(opened), content=True)
        if rng.random() >= perseverance:
            return Reading(place + 1, tuple(opened), content=False)
    return Reading(len(appeals), tuple(opened), content=False)


SEARCHES_A_VISIT = 1.45  # as counted with the usual habits; it turns searches a second into visits a second
HOUR_S, DAY_HOURS = 3600.0, 24.0
SEEN_S = 0.4  # until a page is drawn and its script tells so
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
ROBOT = "Mozilla/5.0 (compatible; DemoTallyBot/1.0; a robot of the made public)"


class Person(NamedTuple):
    """Somebody who comes again: by number, from one loopback address, with one browser; perhaps a program."""

    number: int
    address: str
    agent: str
    robot: bool


class Arrival(NamedTuple):
    """That somebody comes: the number of the visit, and the world time."""

    number: int
    at_s: float


class _Search(NamedTuple):
    """What is asked, and the wish behind it, by which results are judged."""

    wish: str
    query: str
    page: int = 1


@dataclass(frozen=True, slots=True)
class Public:
    """Everybody who searches, by a seed.

    >>> public = Public(1)
    >>> next(public.visit(Arrival(7, 0.0))) == next(Public(1).visit(Arrival(7, 0.0)))
    True
    """

    seed: int
    habits: Habits = field(default_factory=Habits)
    topics: tuple[Topic, ...] = TOPICS

    @property
    def interests(self) -> Interests:
        """What they want."""
        return Interests(self.seed, self.habits, self.topics)

    def rhythm(self, at_s: float) -> float:
        """How busy a moment is, against 1 on average of a day."""
        hours = at_s / HOUR_S - self.habits.busiest_hour
        return 1.0 + self.habits.swing * math.cos(2 * math.pi * hours / DAY_HOURS)

    def arrivals(self, from_s: float, per_s: float) -> Iterator[Arrival]:
        """Visits without end, ``per_s`` on average of a day: a Poisson process, thinned by its rhythm (Lewis79)."""
        rng = rng_for(self.seed, "visitors/arrivals")
        busiest = 1.0 + self.habits.swing
        at_s, number = from_s, 0
        while True:
            at_s += rng.exponential(1.0 / (per_s * busiest))
            if rng.random() * busiest < self.rhythm(at_s):
                yield Arrival(number, at_s)
                number += 1

    def person(self, arrival: Arrival) -> Person:
        """Who it is that comes."""
        number = key_of(self.seed, "visit", arrival.number) % self.habits.people
        key = key_of(self.seed, "somebody", number)
        robot = fraction(key) < self.habits.robots
        return Person(number, address_of(number), ROBOT if robot else BROWSERS[key % len(BROWSERS)], robot)

    def visit(self, arrival: Arrival) -> Visit:
        """What somebody does, step by step; see ``deeds.Visit``."""
        rng = rng_for(self.seed, f"visitors/visit/{arrival.number}")
        person = self.person(arrival)
        visit = _Visit(self, person, arrival.at_s, rng)
        return visit.trawled() if person.robot else visit.made()


@dataclass(frozen=True, slots=True)
class _Visit:
    """One visit of one person."""

    public: Public
    person: Person
    at_s: float
    rng: np.random.Generator

    def made(self) -> Visit:
        """As people do it: ask, read, and go on while something is still wanted."""
        habits, pause_s = self.public.habits, 0.0
        search: _Search | None = self._fresh()
        for _ in range(habits.most_searches):
            if search is None:
                return
            found = yield Ask(pause_s, search.query, search.page)
            content = yield from self._read(found, search.wish)
            search = self._next(search, found, content=content)
            pause_s = self._pause_s(habits.typing_s)

    def trawled(self) -> Visit:
        """As a program does it: one wish after the other, the first results opened at once, and no page ever seen."""
        for _ in range(ROBOT_SEARCHES):
            found = yield Ask(ROBOT_PAUSE_S, self._wish())
            for hit in found.hits[:ROBOT_OPENS] if found.slate else ():
                yield Open(0.0, found.slate, hit.page)

    def _read(self, found: Found, wish: str) -> Generator[Deed, Found, bool]:
        """Look at the results and open some; whether that was enough."""
        if not found.slate:
            return False
        public, habits = self.public, self.public.habits
        yield Look(SEEN_S, found.slate)
        appeals = [appeal(habits, public.seed, wish, hit) for hit in found.hits]
        reading = read(appeals, habits.perseverance, self.rng)
        reached, rest_s = 0, 0.0
        for place in reading.opened:
            after_s = rest_s + sum(self._pause_s(habits.title_s) for _ in range(reached, place + 1))
            yield Open(after_s, found.slate, found.hits[place].page)
            reached, rest_s = place + 1, self._pause_s(habits.page_s)
        return reading.content

    def _next(self, search: _Search, found: Found, *, content: bool) -> _Search | None:
        """The search after this one; None for somebody who leaves."""
        return self._something_else(found) if content else self._again(search, found)

    def _something_else(self, found: Found) -> _Search | None:
        if not self._happens(self.public.habits.another):
            return None
        title = found.hits[int(self.rng.integers(len(found.hits)))].title if found.hits else ""
        query = from_title(title, self.rng) if self._happens(self.public.habits.inspired) else ""
        return _Search(query, query) if query else self._fresh()

    def _again(self, search: _Search, found: Found) -> _Search | None:
        habits = self.public.habits
        if found.meant and self._happens(habits.corrected):
            return search._replace(query=found.meant, page=1)
        if found.more and self._happens(habits.turning):
            return search._replace(page=search.page + 1)
        if not self._happens(habits.refining):
            return None
        query = refined(search.query, [hit.title for hit in found.hits], self.rng)
        return None if query == search.query else search._replace(query=query, page=1)

    def _fresh(self) -> _Search:
        wish = self._wish()
        slips = self._happens(self.public.habits.misspelt)
        return _Search(wish, misspelt(wish, self.rng) if slips else wish)

    def _wish(self) -> str:
        return self.public.interests.wish(self.person.number, self.at_s, self.rng)

    def _happens(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def _pause_s(self, mean_s: float) -> float:
        return float(self.rng.exponential(mean_s))


def address_of(person: int) -> str:
    """A loopback address of a person's own, beyond those of the made web's hosts.

    >>> address_of(0), address_of(1000)
    ('127.251.0.1', '127.251.4.1')
    """
    return f"127.{251 + person // 62_500 % 4}.{person // 250 % 250}.{1 + person % 250}"
