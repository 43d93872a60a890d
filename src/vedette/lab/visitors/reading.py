"""How a page of results is read: from the top, title by title, until content or tired. This is the truth about clicks.

The model is the dynamic Bayesian network of Chapelle and Zhang (Chapelle09):

- the first result is looked at;
- a result that is looked at is opened with its *lure* a, which grows with the share of the wish's words in its title;
- a page that was opened leaves its reader content with s, which is a matter of the page alone: its *quality* is drawn
  once for each URL, and no feature of ranking knows it;
- who is not content looks at the next one with *perseverance* g.

So the place k is looked at with P(k + 1) = P(k) g (1 - a s), which falls with the rank. Where nobody is ever content
(s = 0) this is the position-based model with P(k) = g ** (k - 1).

Useful for: testing models of clicks, and policies that learn from clicks, against what is known to be true.
Not useful for: claims about real people, who were never asked.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vedette.lab.visitors.deeds import Hit
from vedette.lab.visitors.habits import Habits
from vedette.lab.worlds.synthetic.hashing import fraction, key_of
from vedette.text import words_of

__all__ = ["Appeal", "Reading", "appeal", "looked_at", "overlap", "quality", "read"]

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
