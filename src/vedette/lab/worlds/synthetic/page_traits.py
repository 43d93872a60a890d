"""What is settled about a page by its number alone: its words, its size, and how it will change, move and die.

Facts are cut out of three hashed words of 64 bits. Quantile tables stand in for logarithms, so that a fact computed for
one page and the same fact computed for an array of pages agree to the last bit.

    first word    section 8 | title 16 + 16 | length 10 | tags 7 + 7
    second word   habit 10 | rate 6 | dies 10 | life 10 | moves 10 | move age 8 | box 7 | box period 1
    third word    indexed 7 | reprint 7 + 4
"""

import math
from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple, get_args

import numpy as np

from vedette.lab.worlds.synthetic.change_times import DAY_S, GROUPS, HOUR_S, Law, Process
from vedette.lab.worlds.synthetic.hashing import Words, mix, mix_all
from vedette.lab.worlds.synthetic.site_kinds import Kind
from vedette.lab.worlds.synthetic.sites import Section, Site
from vedette.policy import Floats, Ints

__all__ = [
    "LAWS",
    "Processes",
    "agency_article",
    "box_period_s",
    "death_s",
    "first_word",
    "first_words",
    "indexable",
    "lengths",
    "lifetimes",
    "move_s",
    "paragraphs",
    "process",
    "processes",
    "second_word",
    "section",
    "section_index",
    "tags",
    "third_word",
]

_SECOND = 0xA0761D6478BD642F
_MOVE_DAYS = 250.0
_SHORTEST_LIFE_S = DAY_S
_NORMAL = NormalDist()
_NEVER = Process("never")

_LENGTHS = tuple(_NORMAL.inv_cdf((rank + 0.5) / 1024) for rank in range(1024))
_RATES = tuple(math.exp(_NORMAL.inv_cdf((rank + 0.5) / 64)) for rank in range(64))
_WAITS = tuple(-math.log((rank + 0.5) / 1024) for rank in range(1024))
_WAIT_ARRAY = np.array(_WAITS)
_RATE_ARRAY = np.array(_RATES)
_LENGTH_ARRAY = np.array(_LENGTHS)

LAWS: tuple[Law, ...] = get_args(Law)
"""The laws of change, in the order in which arrays number them."""


class Processes(NamedTuple):
    """How many pages change: the law of each as its place in ``LAWS``, its key and its rate."""

    law: Ints
    key: Words
    per_s: Floats


def first_word(site: Site, number: int) -> int:
    """The word that settles what a page is called and where it stands."""
    return mix(site.key + number)


def first_words(site: Site, numbers: Ints) -> Words:
    """``first_word`` of many pages."""
    return mix_all(np.uint64(site.key) + numbers.astype(np.uint64))


def second_word(first: int) -> int:
    """The word that settles what becomes of a page."""
    return mix(first ^ _SECOND)


def section_index(site: Site, first: int) -> int:
    """The section that a page belongs to, as its place in ``site.sections``."""
    return (first & 255) % len(site.sections)


def section(site: Site, first: int) -> Section:
    """The section that a page belongs to."""
    return site.sections[(first & 255) % len(site.sections)]


def tags(site: Site, first: int) -> tuple[int, int]:
    """The two tags of a page, as places in ``site.tags``; they may be the same one."""
    return (first >> 50 & 127) % len(site.tags), (first >> 57) % len(site.tags)


def paragraphs(site: Site, first: int) -> int:
    """How many paragraphs a page has: lognormal around the median of its kind, and one for each group at least."""
    return max(GROUPS, round(site.kind.paragraphs * math.exp(site.kind.spread * _LENGTHS[first >> 40 & 1023])))


@lru_cache
def _habit_bounds(kind: Kind) -> list[float]:
    return list(accumulate(habit.share * 1024 for habit in kind.habits))


def process(site: Site, second: int) -> Process:
    """How the text of a page changes; a reprint never does."""
    if agency_article(site, third_word(second)) >= 0:
        return _NEVER
    bounds = _habit_bounds(site.kind)
    habit = site.kind.habits[min(bisect_right(bounds, second & 1023), len(bounds) - 1)]
    if habit.law == "never":
        return _NEVER
    spread = 1.0 if habit.law == "periodic" else _RATES[second >> 10 & 63]
    return Process(habit.law, second, habit.per_day * spread / DAY_S)


def death_s(site: Site, second: int, birth_s: float) -> float:
    """When a page dies; infinity for most."""
    if (second >> 16 & 1023) >= site.kind.dying_share * 1024:
        return math.inf
    return birth_s + math.floor(_SHORTEST_LIFE_S + _WAITS[second >> 26 & 1023] * site.kind.life_days * DAY_S)


def move_s(site: Site, second: int, birth_s: float) -> float:
    """When a page gets another address; infinity for most."""
    if (second >> 36 & 1023) >= site.kind.moving_share * 1024:
        return math.inf
    return birth_s + math.floor(_SHORTEST_LIFE_S + _WAITS[(second >> 46 & 255) * 4] * _MOVE_DAYS * DAY_S)


def lifetimes(site: Site, numbers: Ints) -> tuple[Floats, Floats, Floats]:
    """Birth, death and move times of many pages: the same as asked one by one."""
    births = site.births.births_s(numbers)
    words = mix_all(first_words(site, numbers) ^ np.uint64(_SECOND))
    lives = np.floor(_SHORTEST_LIFE_S + _WAIT_ARRAY[_bits(words, 26, 1023)] * site.kind.life_days * DAY_S)
    moves = np.floor(_SHORTEST_LIFE_S + _WAIT_ARRAY[_bits(words, 46, 255) * 4] * _MOVE_DAYS * DAY_S)
    mortal = _bits(words, 16, 1023) < site.kind.dying_share * 1024
    moving = _bits(words, 36, 1023) < site.kind.moving_share * 1024
    return births, np.where(mortal, births + lives, np.inf), np.where(moving, births + moves, np.inf)


def processes(site: Site, numbers: Ints) -> Processes:
    """``process`` of many pages."""
    seconds = mix_all(first_words(site, numbers) ^ np.uint64(_SECOND))
    habits, bounds = site.kind.habits, _habit_bounds(site.kind)
    chosen = np.minimum(np.searchsorted(bounds, _bits(seconds, 0, 1023), side="right"), len(habits) - 1)
    law = np.array([LAWS.index(habit.law) for habit in habits])[chosen]
    spread = np.where(law == LAWS.index("periodic"), 1.0, _RATE_ARRAY[_bits(seconds, 10, 63)])
    per_s = np.array([habit.per_day for habit in habits])[chosen] * spread / DAY_S
    reprinted = _bits(mix_all(seconds), 7, 127) < site.kind.reprint_share * 128
    return Processes(np.where(reprinted, LAWS.index("never"), law), seconds, np.where(reprinted, 0.0, per_s))


def lengths(site: Site, numbers: Ints) -> Ints:
    """``paragraphs`` of many pages."""
    ranks = _LENGTH_ARRAY[_bits(first_words(site, numbers), 40, 1023)]
    counts = np.rint(site.kind.paragraphs * np.exp(site.kind.spread * ranks)).astype(np.int64)
    return np.where(counts > GROUPS, counts, GROUPS)


def _bits(words: Words, shift: int, width: int) -> Ints:
    return (words >> np.uint64(shift) & np.uint64(width)).astype(np.int64)


def box_period_s(site: Site, second: int) -> float:
    """How often the box beside the text turns; 0 for a page without one."""
    if (second >> 54 & 127) >= site.kind.boxed_share * 128:
        return 0.0
    return 60.0 if second >> 62 & 1 else HOUR_S


def third_word(second: int) -> int:
    """The word that settles a page's standing: whether it may be indexed, and whether it is a reprint."""
    return mix(second)


def indexable(third: int) -> bool:
    """Whether a page allows to be indexed; about one in a hundred does not."""
    return third & 127 != 0


def agency_article(site: Site, third: int) -> int:
    """Which of an agency's articles on its topic this page reprints, or -1 where the text is its own."""
    if (third >> 7 & 127) >= site.kind.reprint_share * 128:
        return -1
    return third >> 14 & 15
