"""Queries of simulated visitors: what they want, in the words of synthetic titles, with typos and retries."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from vedette.lab.visitors.habits import Habits
from vedette.lab.worlds.synthetic.grammar import pluralize
from vedette.lab.worlds.synthetic.hashing import fraction, hash_key, lcg_stream, mix
from vedette.lab.worlds.synthetic.topics import TOWNS, Topic
from vedette.policy import Floats
from vedette.text import split_words
from vedette.timeutil import DAY_S, HOUR_S

MIN_WORD_LENGTH = 4  # letters; shorter words are neither misspelled nor the subject of a query
MAX_WORDS = 8

_TEMPLATES = (
    "{thing}",
    "{adj} {things}",
    "{doing}",
    "how to {verb} {things}",
    "{thing} {town}",
    "{adj} {thing}",
    "{agent} {thing}",
)
_SYLLABLES = [
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
]


def phrase_need(topic: Topic, key: int) -> str:
    """Phrase a visitor's need within a topic as a query, in the words that synthetic page titles use."""
    numbers = lcg_stream(key)

    def one(words: Sequence[str]) -> str:
        return words[next(numbers) % len(words)]

    shape, thing = one(_TEMPLATES), one(topic.things)
    return shape.format(
        thing=thing,
        things=pluralize(thing),
        adj=one(topic.adjectives),
        doing=one(topic.activities),
        verb=one(topic.verbs),
        agent=one(topic.agents),
        town=one(TOWNS).lower(),
    )


def invent_word(key: int) -> str:
    """Invent a word for a visitor's query that names something nonexistent.

    >>> invent_word(1) == invent_word(1), invent_word(1) == invent_word(2)
    (True, False)
    """
    numbers = lcg_stream(key)
    return "".join(_SYLLABLES[next(numbers) % len(_SYLLABLES)] for _ in range(4))


def misspell(query: str, rng: np.random.Generator) -> str:
    """Misspell a visitor's query: swap, drop, double or replace a letter of its longest word."""
    words = query.split()
    place = max(range(len(words)), key=lambda at: len(words[at]), default=0)
    if not words or len(words[place]) < MIN_WORD_LENGTH:
        return query
    words[place] = _apply_typo(words[place], int(rng.integers(1, len(words[place]) - 1)), int(rng.integers(4)))
    return " ".join(words)


def _apply_typo(word: str, at: int, slip: int) -> str:
    letter, after = word[at], word[at + 1 : at + 2]
    replaced = (after + letter, "", letter * 2, "e" if letter != "e" else "a")[slip]
    rest = word[at + 2 :] if slip == 0 else word[at + 1 :]
    return word[:at] + replaced + rest


def refine_query(query: str, titles: Sequence[str], rng: np.random.Generator) -> str:
    """Refine a visitor's query: add a word from a title that was seen, or drop a word if there were no results."""
    words = split_words(query)[:MAX_WORDS]
    fresh = list(dict.fromkeys(word for title in titles for word in _content_words(title) if word not in words))
    if fresh:
        return " ".join((*words[: MAX_WORDS - 1], fresh[int(rng.integers(len(fresh)))]))
    if len(words) < 2:
        return query
    del words[int(rng.integers(len(words)))]
    return " ".join(words)


def query_from_title(title: str, rng: np.random.Generator) -> str:
    """Build a visitor's next query from a title: two or three of its distinctive words, in order."""
    words = _content_words(title)
    count = int(rng.integers(2, 4))
    start = int(rng.integers(max(1, len(words) - count + 1)))
    return " ".join(words[start : start + count])


def _content_words(title: str) -> list[str]:
    return [word for word in split_words(title) if len(word) >= MIN_WORD_LENGTH]


# Nothing is stored: the need at a moment is a function of seed, world time and the random draws.


TREND_HALF_LIVES = 6  # after this many half-lives it is forgotten
MAX_TREND_SHARE = 0.5
MAX_INVENTED = 20


class Trend(NamedTuple):
    """A trending need of visitors: since when, and its current share of all needs."""

    need: str
    since_s: float
    share: float


@lru_cache
def zipf_shares(count: int, exponent: float) -> Floats:
    """Return the Zipf-law shares of the first ``count`` ranks, for the popularity of visitors' topics and needs.

    >>> zipf_shares(3, 1.0).round(2).tolist()
    [0.55, 0.27, 0.18]
    """
    weights = 1.0 / np.arange(1, count + 1) ** exponent
    shares: Floats = weights / weights.sum()
    return shares


@dataclass(frozen=True, slots=True)
class Interests:
    """Interests of a population of visitors: which needs they have among these topics, drifting over time."""

    seed: int
    habits: Habits
    topics: tuple[Topic, ...]

    def draw_need(self, person: int, at_s: float, rng: np.random.Generator) -> str:
        """Draw what a visitor wants to search for now."""
        lot = rng.random()
        for fashion in self.active_trends(at_s):
            if lot < fashion.share:
                return fashion.need
            lot -= fashion.share
        if rng.random() < self.habits.invented_rate:
            return invent_word(
                hash_key(self.seed, "vain", draw_index(zipf_shares(MAX_INVENTED, self.habits.need_zipf), rng))
            )
        topic = self._draw_topic(person, at_s, rng)
        return self.topic_need(topic, draw_index(zipf_shares(self.habits.needs, self.habits.need_zipf), rng))

    def topic_need(self, topic: int, rank: int) -> str:
        """Return the visitors' need of a rank within a topic."""
        return phrase_need(self.topics[topic], hash_key(self.seed, "wish", topic, rank))

    def popularity(self, at_s: float) -> Floats:
        """Return the popularity of each topic among visitors at a time, without trends."""
        days = at_s / DAY_S
        swings = [self._topic_drift(topic, days) for topic in range(len(self.topics))]
        ranks = np.argsort(rank_topics(self.seed, len(self.topics)))
        shares = zipf_shares(len(self.topics), self.habits.topic_zipf)[ranks] * np.exp(swings)
        popular: Floats = shares / shares.sum()
        return popular

    def active_trends(self, at_s: float) -> list[Trend]:
        """Return the visitors' trends active at a time, latest first; together they take at most half of all needs."""
        found, left = [], MAX_TREND_SHARE
        for fashion in self._iter_trends(at_s):
            share = min(fashion.share, left)
            left -= share
            found.append(fashion._replace(share=share))
        return found

    def person_topics(self, person: int, at_s: float) -> tuple[int, ...]:
        """Return the topics that a visitor is interested in at a time; each person moves on at a different moment."""
        key = hash_key(self.seed, "person", person)
        era = math.floor(at_s / DAY_S / self.habits.interest_days + fraction(key))
        lots = (fraction(mix(key + era * self.habits.interests + turn)) for turn in range(self.habits.interests))
        shares = zipf_shares(len(self.topics), self.habits.topic_zipf)
        return tuple(rank_topics(self.seed, len(self.topics))[index_at(shares, lot)] for lot in lots)

    def _draw_topic(self, person: int, at_s: float, rng: np.random.Generator) -> int:
        shares = self.popularity(at_s)
        if rng.random() >= self.habits.loyalty:
            return draw_index(shares, rng)
        # Among their own topics, too, people care most about what everyone cares about now.
        own = self.person_topics(person, at_s)
        theirs = shares[list(own)]
        return own[draw_index(theirs / theirs.sum(), rng)]

    def _topic_drift(self, topic: int, days: float) -> float:
        key = hash_key(self.seed, "drift", topic)
        period_days = 2.0 + 6.0 * fraction(key)
        return self.habits.drift * math.sin(2 * math.pi * (days / period_days + fraction(mix(key))))

    def _iter_trends(self, at_s: float) -> Iterator[Trend]:
        habits = self.habits
        every_s, half_s = habits.trend_hours * HOUR_S, habits.trend_half_life_hours * HOUR_S
        latest = math.floor(at_s / every_s)
        for window in range(latest, latest - math.ceil(TREND_HALF_LIVES * half_s / every_s) - 1, -1):
            key = hash_key(self.seed, "fashion", window)
            since_s = (window + fraction(mix(key))) * every_s
            age_s = at_s - since_s
            if 0 <= age_s < TREND_HALF_LIVES * half_s and fraction(key) < habits.trend_chance:
                topic = self.topics[mix(key + 1) % len(self.topics)]
                yield Trend(phrase_need(topic, mix(key + 2)), since_s, habits.trend_share * 0.5 ** (age_s / half_s))


@lru_cache
def rank_topics(seed: int, count: int) -> tuple[int, ...]:
    """Rank the topics by long-run popularity among the visitors of this seed."""
    return tuple(sorted(range(count), key=lambda topic: hash_key(seed, "topic", topic)))


def draw_index(shares: Floats, rng: np.random.Generator) -> int:
    """Draw an index at random by the shares of topics or needs."""
    return index_at(shares, rng.random())


def index_at(shares: Floats, lot: float) -> int:
    """Return the index of topic or need shares that a number between 0 and 1 falls on.

    >>> [index_at(np.array([0.5, 0.3, 0.2]), lot) for lot in (0.0, 0.6, 1.0)]
    [0, 1, 2]
    """
    return min(int(np.searchsorted(np.cumsum(shares), lot, side="right")), len(shares) - 1)
