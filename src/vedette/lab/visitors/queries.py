"""How a wish becomes a query: phrases in the words of the made web's titles, slips of the finger, second attempts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.lab.visitors.habits import Habits
from vedette.lab.worlds.synthetic.grammar import plural
from vedette.lab.worlds.synthetic.hashing import draws, fraction, key_of, mix
from vedette.lab.worlds.synthetic.topics import TOWNS, Topic
from vedette.policy import Floats
from vedette.text import words_of

__all__ = ["SHORT", "Fashion", "Interests", "from_title", "invented", "misspelt", "refined", "wished", "zipf"]

SHORT = 4  # letters; shorter words are neither misspelt nor what a query is about
MOST_WORDS = 8

_SHAPES = (
    "{thing}",
    "{adj} {things}",
    "{doing}",
    "how to {verb} {things}",
    "{thing} {town}",
    "{adj} {thing}",
    "{agent} {thing}",
)
_SOUNDS = (
    "blo",
    "dra",
    "fex",
    "gri",
    "jum",
    "klo",
    "mib",
    "nax",
    "plu",
    "quo",
    "sko",
    "tri",
    "vep",
    "wug",
    "yor",
    "zal",
)


def wished(topic: Topic, key: int) -> str:
    """A wish within a topic, as somebody types it who knows what such pages are called."""
    numbers = draws(key)

    def one(words: Sequence[str]) -> str:
        return words[next(numbers) % len(words)]

    shape, thing = one(_SHAPES), one(topic.things)
    return shape.format(
        thing=thing,
        things=plural(thing),
        adj=one(topic.adjectives),
        doing=one(topic.doings),
        verb=one(topic.verbs),
        agent=one(topic.agents),
        town=one(TOWNS).lower(),
    )


def invented(key: int) -> str:
    """The name of a thing that does not exist.

    >>> invented(1) == invented(1), invented(1) == invented(2)
    (True, False)
    """
    numbers = draws(key)
    return "".join(_SOUNDS[next(numbers) % len(_SOUNDS)] for _ in range(4))


def misspelt(query: str, rng: np.random.Generator) -> str:
    """The query with two letters of its longest word swapped, or one left out, doubled or replaced."""
    words = query.split()
    place = max(range(len(words)), key=lambda at: len(words[at]), default=0)
    if not words or len(words[place]) < SHORT:
        return query
    words[place] = _slipped(words[place], int(rng.integers(1, len(words[place]) - 1)), int(rng.integers(4)))
    return " ".join(words)


def _slipped(word: str, at: int, slip: int) -> str:
    letter, after = word[at], word[at + 1 : at + 2]
    replaced = (after + letter, "", letter * 2, "e" if letter != "e" else "a")[slip]
    rest = word[at + 2 :] if slip == 0 else word[at + 1 :]
    return word[:at] + replaced + rest


def refined(query: str, titles: Sequence[str], rng: np.random.Generator) -> str:
    """A second attempt: with one more word from a title that was seen, or one word less where there was none."""
    words = words_of(query)[:MOST_WORDS]
    fresh = list(dict.fromkeys(word for title in titles for word in _telling(title) if word not in words))
    if fresh:
        return " ".join((*words[: MOST_WORDS - 1], fresh[int(rng.integers(len(fresh)))]))
    if len(words) < 2:
        return query
    del words[int(rng.integers(len(words)))]
    return " ".join(words)


def from_title(title: str, rng: np.random.Generator) -> str:
    """A query about something that a title named: two or three of its telling words, in their order."""
    words = _telling(title)
    count = int(rng.integers(2, 4))
    start = int(rng.integers(max(1, len(words) - count + 1)))
    return " ".join(words[start : start + count])


def _telling(title: str) -> list[str]:
    return [word for word in words_of(title) if len(word) >= SHORT]


# Nothing is stored: what is wanted at a moment is a function of seed and world time, and of the numbers that are drawn.


HOUR_S, DAY_S = 3600.0, 86_400.0
FADED = 6  # after so many half-lives nobody speaks of it
MOST_FASHIONABLE = 0.5
MOST_VAIN = 20


class Fashion(NamedTuple):
    """A wish that many have for a while: since when, and the share of all wishes that it takes now."""

    wish: str
    since_s: float
    share: float


@lru_cache
def zipf(count: int, exponent: float) -> Floats:
    """The shares of the first ``count`` ranks by Zipf's law.

    >>> zipf(3, 1.0).round(2).tolist()
    [0.55, 0.27, 0.18]
    """
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    shares: Floats = weights / weights.sum()
    return shares


@dataclass(frozen=True, slots=True)
class Interests:
    """The wishes of a public that knows these topics."""

    seed: int
    habits: Habits
    topics: tuple[Topic, ...]

    def wish(self, person: int, at_s: float, rng: np.random.Generator) -> str:
        """What a person wants to know now."""
        lot = rng.random()
        for fashion in self.fashions(at_s):
            if lot < fashion.share:
                return fashion.wish
            lot -= fashion.share
        if rng.random() < self.habits.vain:
            return invented(key_of(self.seed, "vain", drawn(zipf(MOST_VAIN, self.habits.wish_zipf), rng)))
        topic = self._topic(person, at_s, rng)
        return self.known_wish(topic, drawn(zipf(self.habits.wishes, self.habits.wish_zipf), rng))

    def known_wish(self, topic: int, rank: int) -> str:
        """The wish of a rank within a topic."""
        return wished(self.topics[topic], key_of(self.seed, "wish", topic, rank))

    def popularity(self, at_s: float) -> Floats:
        """The share of each topic at a time, fashions apart."""
        days = at_s / DAY_S
        swings = [self._swing(topic, days) for topic in range(len(self.topics))]
        ranks = np.argsort(liked(self.seed, len(self.topics)))
        shares = zipf(len(self.topics), self.habits.topic_zipf)[ranks] * np.exp(swings)
        popular: Floats = shares / shares.sum()
        return popular

    def fashions(self, at_s: float) -> list[Fashion]:
        """What is in fashion, the latest first; together they never take more than half of all wishes."""
        found, left = [], MOST_FASHIONABLE
        for fashion in self._fashions(at_s):
            share = min(fashion.share, left)
            left -= share
            found.append(fashion._replace(share=share))
        return found

    def own(self, person: int, at_s: float) -> tuple[int, ...]:
        """The topics that a person keeps to at a time; each person moves on at another moment."""
        key = key_of(self.seed, "person", person)
        era = math.floor(at_s / DAY_S / self.habits.interest_days + fraction(key))
        lots = (fraction(mix(key + era * self.habits.interests + turn)) for turn in range(self.habits.interests))
        shares = zipf(len(self.topics), self.habits.topic_zipf)
        return tuple(liked(self.seed, len(self.topics))[placed(shares, lot)] for lot in lots)

    def _topic(self, person: int, at_s: float, rng: np.random.Generator) -> int:
        shares = self.popularity(at_s)
        if rng.random() >= self.habits.loyal:
            return drawn(shares, rng)
        # Also among their own topics people care most for what everybody cares for now.
        own = self.own(person, at_s)
        theirs = shares[list(own)]
        return own[drawn(theirs / theirs.sum(), rng)]

    def _swing(self, topic: int, days: float) -> float:
        key = key_of(self.seed, "drift", topic)
        period_days = 2.0 + 6.0 * fraction(key)
        return self.habits.drift * math.sin(2 * math.pi * (days / period_days + fraction(mix(key))))

    def _fashions(self, at_s: float) -> Iterator[Fashion]:
        habits = self.habits
        every_s, half_s = habits.fashion_hours * HOUR_S, habits.fashion_half_life_hours * HOUR_S
        latest = math.floor(at_s / every_s)
        for window in range(latest, latest - math.ceil(FADED * half_s / every_s) - 1, -1):
            key = key_of(self.seed, "fashion", window)
            since_s = (window + fraction(mix(key))) * every_s
            age_s = at_s - since_s
            if 0 <= age_s < FADED * half_s and fraction(key) < habits.fashions:
                topic = self.topics[mix(key + 1) % len(self.topics)]
                yield Fashion(wished(topic, mix(key + 2)), since_s, habits.fashion_share * 0.5 ** (age_s / half_s))


@lru_cache
def liked(seed: int, count: int) -> tuple[int, ...]:
    """The topics by their popularity in the long run; another seed likes others."""
    return tuple(sorted(range(count), key=lambda topic: key_of(seed, "topic", topic)))


def drawn(shares: Floats, rng: np.random.Generator) -> int:
    """A place, drawn by the shares of all places."""
    return placed(shares, rng.random())


def placed(shares: Floats, lot: float) -> int:
    """The place on which a lot between 0 and 1 falls.

    >>> [placed(np.array([0.5, 0.3, 0.2]), lot) for lot in (0.0, 0.6, 1.0)]
    [0, 1, 2]
    """
    return min(int(np.searchsorted(np.cumsum(shares), lot, side="right")), len(shares) - 1)
