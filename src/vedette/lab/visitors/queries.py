"""How a wish becomes a query: phrases in the words of the made web's titles, slips of the finger, second attempts."""

from collections.abc import Sequence

import numpy as np

from vedette.lab.worlds.synthetic.grammar import plural
from vedette.lab.worlds.synthetic.hashing import draws
from vedette.lab.worlds.synthetic.topics import TOWNS, Topic
from vedette.text import words_of

__all__ = ["SHORT", "from_title", "invented", "misspelt", "refined", "wished"]

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
