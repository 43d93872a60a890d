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

from vedette.lab.worlds.synthetic.change_times import PARAGRAPH_GROUPS, ChangeLaw, ChangeProcess
from vedette.lab.worlds.synthetic.hashing import HashArray, mix, mix_all
from vedette.lab.worlds.synthetic.site_kinds import SiteKind
from vedette.lab.worlds.synthetic.sites import Section, Site
from vedette.policy import Floats, Ints
from vedette.timeutil import DAY_S, HOUR_S

_LIFE_SALT = 0xA0761D6478BD642F
_MOVE_DAYS = 250.0
_MIN_LIFE_S = DAY_S
_NORMAL = NormalDist()
_NEVER = ChangeProcess("never")

_LENGTH_QUANTILES = tuple(_NORMAL.inv_cdf((rank + 0.5) / 1024) for rank in range(1024))
_RATE_FACTORS = tuple(math.exp(_NORMAL.inv_cdf((rank + 0.5) / 64)) for rank in range(64))
_WAIT_QUANTILES = tuple(-math.log((rank + 0.5) / 1024) for rank in range(1024))
_WAIT_ARRAY = np.array(_WAIT_QUANTILES)
_RATE_ARRAY = np.array(_RATE_FACTORS)
_LENGTH_ARRAY = np.array(_LENGTH_QUANTILES)

CHANGE_LAWS: tuple[ChangeLaw, ...] = get_args(ChangeLaw)
"""The laws of change, in the order in which arrays number them."""


class ChangeProcesses(NamedTuple):
    """How many pages change: the law of each as its place in ``CHANGE_LAWS``, its key and its rate."""

    law: Ints
    key: HashArray
    per_s: Floats


def page_hash(site: Site, number: int) -> int:
    """The word that settles what a page is called and where it stands."""
    return mix(site.key + number)


def page_hashes(site: Site, numbers: Ints) -> HashArray:
    """``page_hash`` of many pages."""
    return mix_all(np.uint64(site.key) + numbers.astype(np.uint64))


def life_hash(first: int) -> int:
    """The word that settles what becomes of a page."""
    return mix(first ^ _LIFE_SALT)


def section_index(site: Site, first: int) -> int:
    """The section that a page belongs to, as its place in ``site.sections``."""
    return (first & 255) % len(site.sections)


def page_section(site: Site, first: int) -> Section:
    """The section that a page belongs to."""
    return site.sections[(first & 255) % len(site.sections)]


def page_tags(site: Site, first: int) -> tuple[int, int]:
    """The two tags of a page, as places in ``site.tags``; they may be the same one."""
    return (first >> 50 & 127) % len(site.tags), (first >> 57) % len(site.tags)


def paragraph_count(site: Site, first: int) -> int:
    """How many paragraphs a page has: lognormal around the median of its kind, and one for each group at least."""
    return max(
        PARAGRAPH_GROUPS,
        round(site.kind.paragraphs * math.exp(site.kind.spread * _LENGTH_QUANTILES[first >> 40 & 1023])),
    )


@lru_cache
def _pattern_bounds(kind: SiteKind) -> list[float]:
    return list(accumulate(habit.share * 1024 for habit in kind.change_patterns))


def change_process(site: Site, second: int) -> ChangeProcess:
    """How the text of a page changes; a reprint never does."""
    if reprinted_article(site, status_hash(second)) >= 0:
        return _NEVER
    bounds = _pattern_bounds(site.kind)
    habit = site.kind.change_patterns[min(bisect_right(bounds, second & 1023), len(bounds) - 1)]
    if habit.law == "never":
        return _NEVER
    spread = 1.0 if habit.law == "periodic" else _RATE_FACTORS[second >> 10 & 63]
    return ChangeProcess(habit.law, second, habit.per_day * spread / DAY_S)


def death_s(site: Site, second: int, birth_s: float) -> float:
    """When a page dies; infinity for most."""
    if (second >> 16 & 1023) >= site.kind.death_share * 1024:
        return math.inf
    return birth_s + math.floor(_MIN_LIFE_S + _WAIT_QUANTILES[second >> 26 & 1023] * site.kind.life_days * DAY_S)


def move_s(site: Site, second: int, birth_s: float) -> float:
    """When a page gets another address; infinity for most."""
    if (second >> 36 & 1023) >= site.kind.move_share * 1024:
        return math.inf
    return birth_s + math.floor(_MIN_LIFE_S + _WAIT_QUANTILES[(second >> 46 & 255) * 4] * _MOVE_DAYS * DAY_S)


def lifetimes(site: Site, numbers: Ints) -> tuple[Floats, Floats, Floats]:
    """Birth, death and move times of many pages: the same as asked one by one."""
    births = site.births.births_s(numbers)
    words = mix_all(page_hashes(site, numbers) ^ np.uint64(_LIFE_SALT))
    lives = np.floor(_MIN_LIFE_S + _WAIT_ARRAY[_bits(words, 26, 1023)] * site.kind.life_days * DAY_S)
    moves = np.floor(_MIN_LIFE_S + _WAIT_ARRAY[_bits(words, 46, 255) * 4] * _MOVE_DAYS * DAY_S)
    mortal = _bits(words, 16, 1023) < site.kind.death_share * 1024
    moving = _bits(words, 36, 1023) < site.kind.move_share * 1024
    return births, np.where(mortal, births + lives, np.inf), np.where(moving, births + moves, np.inf)


def change_processes(site: Site, numbers: Ints) -> ChangeProcesses:
    """``change_process`` of many pages."""
    seconds = mix_all(page_hashes(site, numbers) ^ np.uint64(_LIFE_SALT))
    habits, bounds = site.kind.change_patterns, _pattern_bounds(site.kind)
    chosen = np.minimum(np.searchsorted(bounds, _bits(seconds, 0, 1023), side="right"), len(habits) - 1)
    law = np.array([CHANGE_LAWS.index(habit.law) for habit in habits])[chosen]
    spread = np.where(law == CHANGE_LAWS.index("periodic"), 1.0, _RATE_ARRAY[_bits(seconds, 10, 63)])
    per_s = np.array([habit.per_day for habit in habits])[chosen] * spread / DAY_S
    reprinted = _bits(mix_all(seconds), 7, 127) < site.kind.reprint_share * 128
    return ChangeProcesses(
        np.where(reprinted, CHANGE_LAWS.index("never"), law), seconds, np.where(reprinted, 0.0, per_s)
    )


def paragraph_counts(site: Site, numbers: Ints) -> Ints:
    """``paragraph_count`` of many pages."""
    ranks = _LENGTH_ARRAY[_bits(page_hashes(site, numbers), 40, 1023)]
    counts = np.rint(site.kind.paragraphs * np.exp(site.kind.spread * ranks)).astype(np.int64)
    return np.where(counts > PARAGRAPH_GROUPS, counts, PARAGRAPH_GROUPS)


def _bits(words: HashArray, shift: int, width: int) -> Ints:
    return (words >> np.uint64(shift) & np.uint64(width)).astype(np.int64)


def box_period_s(site: Site, second: int) -> float:
    """How often the box beside the text turns; 0 for a page without one."""
    if (second >> 54 & 127) >= site.kind.box_share * 128:
        return 0.0
    return 60.0 if second >> 62 & 1 else HOUR_S


def status_hash(second: int) -> int:
    """The word that settles a page's standing: whether it may be indexed, and whether it is a reprint."""
    return mix(second)


def is_indexable(third: int) -> bool:
    """Whether a page allows to be indexed; about one in a hundred does not."""
    return third & 127 != 0


def reprinted_article(site: Site, third: int) -> int:
    """Which of an agency's articles on its topic this page reprints, or -1 where the text is its own."""
    if (third >> 7 & 127) >= site.kind.reprint_share * 128:
        return -1
    return third >> 14 & 15
