"""Traits of a synthetic page, all by its number: path, title, length, and how it changes, moves and dies.

Facts are taken from three 64-bit hash words. Quantile tables replace logarithms, so that a fact computed for one page
and the same fact computed for an array of pages agree to the last bit.

    first word    section 8 | title 16 + 16 | length 10 | tags 7 + 7
    second word   habit 10 | rate 6 | dies 10 | life 10 | moves 10 | move age 8 | box 7 | box period 1
    third word    indexed 7 | reprint 7 + 4

A path that is not exactly what the page's number gives belongs to no page.
"""

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple, get_args

import numpy as np

from vedette.lab.worlds.synthetic.change_times import PARAGRAPH_GROUPS, ChangeLaw, ChangeProcess, edit_state
from vedette.lab.worlds.synthetic.grammar import Phrase
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
_NUMBER_PATTERNS = {
    False: re.compile(r"-([0-9]{1,9})(?:\.html)?\Z"),
    True: re.compile(r"/([0-9]{1,9})-[a-z0-9-]*\Z"),
}

_LENGTH_QUANTILES = tuple(_NORMAL.inv_cdf((rank + 0.5) / 1024) for rank in range(1024))
_RATE_FACTORS = tuple(math.exp(_NORMAL.inv_cdf((rank + 0.5) / 64)) for rank in range(64))
_WAIT_QUANTILES = tuple(-math.log((rank + 0.5) / 1024) for rank in range(1024))
_WAIT_ARRAY = np.array(_WAIT_QUANTILES)
_RATE_ARRAY = np.array(_RATE_FACTORS)
_LENGTH_ARRAY = np.array(_LENGTH_QUANTILES)

CHANGE_LAWS: tuple[ChangeLaw, ...] = get_args(ChangeLaw)
"""The laws of change, in the order in which arrays number them."""


class ChangeProcesses(NamedTuple):
    """Change processes of many synthetic pages: each one's law (index in ``CHANGE_LAWS``), key and rate."""

    law: Ints
    key: HashArray
    per_s: Floats


def page_hash(site: Site, number: int) -> int:
    """Return the first hash word of a synthetic page's traits, which determines its name and section."""
    return mix(site.key + number)


def page_hashes(site: Site, numbers: Ints) -> HashArray:
    """Return the first trait hash words of many synthetic pages: ``page_hash`` for arrays."""
    return mix_all(np.uint64(site.key) + numbers.astype(np.uint64))


def life_hash(first: int) -> int:
    """Return the second hash word of a synthetic page's traits, which determines its changes, moves and death."""
    return mix(first ^ _LIFE_SALT)


def section_index(site: Site, first: int) -> int:
    """Return the section of a synthetic page, as an index into ``site.sections``."""
    return (first & 255) % len(site.sections)


def page_section(site: Site, first: int) -> Section:
    """Return the section that a synthetic page belongs to."""
    return site.sections[section_index(site, first)]


def page_tags(site: Site, first: int) -> tuple[int, int]:
    """Return the two tags of a synthetic page, as indices into ``site.tags``; they may be equal."""
    return (first >> 50 & 127) % len(site.tags), (first >> 57) % len(site.tags)


def paragraph_count(site: Site, first: int) -> int:
    """Return a synthetic page's number of paragraphs: lognormal around its kind's median, at least one per group."""
    return max(
        PARAGRAPH_GROUPS,
        round(site.kind.paragraphs * math.exp(site.kind.spread * _LENGTH_QUANTILES[first >> 40 & 1023])),
    )


@lru_cache
def _pattern_bounds(kind: SiteKind) -> list[float]:
    return list(accumulate(habit.share * 1024 for habit in kind.change_patterns))


def change_process(site: Site, second: int) -> ChangeProcess:
    """Return how the text of a synthetic page changes; a reprint never does."""
    if reprinted_article(site, status_hash(second)) >= 0:
        return _NEVER
    bounds = _pattern_bounds(site.kind)
    habit = site.kind.change_patterns[min(bisect_right(bounds, second & 1023), len(bounds) - 1)]
    if habit.law == "never":
        return _NEVER
    spread = 1.0 if habit.law == "periodic" else _RATE_FACTORS[second >> 10 & 63]
    return ChangeProcess(habit.law, second, habit.per_day * spread / DAY_S)


def death_s(site: Site, second: int, birth_s: float) -> float:
    """Return when a synthetic page dies; infinity for most."""
    if (second >> 16 & 1023) >= site.kind.death_share * 1024:
        return math.inf
    return birth_s + math.floor(_MIN_LIFE_S + _WAIT_QUANTILES[second >> 26 & 1023] * site.kind.life_days * DAY_S)


def move_s(site: Site, second: int, birth_s: float) -> float:
    """Return when a synthetic page moves to another URL; infinity for most."""
    if (second >> 36 & 1023) >= site.kind.move_share * 1024:
        return math.inf
    return birth_s + math.floor(_MIN_LIFE_S + _WAIT_QUANTILES[(second >> 46 & 255) * 4] * _MOVE_DAYS * DAY_S)


def lifetimes(site: Site, numbers: Ints) -> tuple[Floats, Floats, Floats]:
    """Return birth, death and move times of many synthetic pages: the same traits as one by one."""
    births = site.births.births_s(numbers)
    words = mix_all(page_hashes(site, numbers) ^ np.uint64(_LIFE_SALT))
    lives = np.floor(_MIN_LIFE_S + _WAIT_ARRAY[_bits(words, 26, 1023)] * site.kind.life_days * DAY_S)
    moves = np.floor(_MIN_LIFE_S + _WAIT_ARRAY[_bits(words, 46, 255) * 4] * _MOVE_DAYS * DAY_S)
    mortal = _bits(words, 16, 1023) < site.kind.death_share * 1024
    moving = _bits(words, 36, 1023) < site.kind.move_share * 1024
    return births, np.where(mortal, births + lives, np.inf), np.where(moving, births + moves, np.inf)


def change_processes(site: Site, numbers: Ints) -> ChangeProcesses:
    """Return how the texts of many synthetic pages change: ``change_process`` for arrays."""
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
    """Return the numbers of paragraphs of many synthetic pages: ``paragraph_count`` for arrays."""
    ranks = _LENGTH_ARRAY[_bits(page_hashes(site, numbers), 40, 1023)]
    counts = np.rint(site.kind.paragraphs * np.exp(site.kind.spread * ranks)).astype(np.int64)
    return np.where(counts > PARAGRAPH_GROUPS, counts, PARAGRAPH_GROUPS)


def _bits(words: HashArray, shift: int, width: int) -> Ints:
    return (words >> np.uint64(shift) & np.uint64(width)).astype(np.int64)


def box_period_s(site: Site, second: int) -> float:
    """Return how often the box beside a synthetic page's text rotates; 0 for a page without one."""
    if (second >> 54 & 127) >= site.kind.box_share * 128:
        return 0.0
    return 60.0 if second >> 62 & 1 else HOUR_S


def status_hash(second: int) -> int:
    """Return the third hash word of a synthetic page's traits: whether it is indexable, and whether a reprint."""
    return mix(second)


def is_indexable(third: int) -> bool:
    """Check whether a synthetic page allows indexing; about one in a hundred does not."""
    return third & 127 != 0


def reprinted_article(site: Site, third: int) -> int:
    """Return which agency article on its topic a synthetic page reprints, or -1 if the text is its own."""
    if (third >> 7 & 127) >= site.kind.reprint_share * 128:
        return -1
    return third >> 14 & 15


def parse_number(site: Site, target: str) -> int | None:
    """Parse the page number from a synthetic page's path, unchecked."""
    match = _NUMBER_PATTERNS[site.kind.number_first].search(target)
    return int(match[1]) if match else None


def page_path(site: Site, number: int, first: int) -> bytes:
    """Return the path at which a synthetic page is born."""
    return page_section(site, first).prefix + _file_name(site, number, first)


def moved_path(site: Site, number: int, first: int) -> bytes:
    """Return the path of a synthetic page after it has moved."""
    return site.kind.moved_prefix + _file_name(site, number, first)


def _file_name(site: Site, number: int, first: int) -> bytes:
    head, tail = _title_phrases(site, first)
    if site.kind.number_first:
        return b"%d-%b-%b" % (number, head.slug, tail.slug)
    return b"%b-%b-%d%b" % (head.slug, tail.slug, number, site.kind.suffix)


def _title_phrases(site: Site, first: int) -> tuple[Phrase, Phrase]:
    prose = page_section(site, first).prose
    return prose.heads[(first >> 8 & 65535) % len(prose.heads)], prose.tails[(first >> 24 & 65535) % len(prose.tails)]


def page_title(site: Site, first: int) -> bytes:
    """Return the title of a synthetic page, escaped."""
    head, tail = _title_phrases(site, first)
    return head.text + b" " + tail.text


def page_link(site: Site, number: int, origin: bytes = b"") -> bytes:
    """Return an HTML link with title to a synthetic page's first path; ``origin`` is set in links from other hosts."""
    first = page_hash(site, number)
    return b'<a href="%b%b">%b</a>' % (origin, page_path(site, number, first), page_title(site, first))


@dataclass(frozen=True, slots=True)
class PageTruth:
    """All fixed traits of a synthetic page; infinity means never.

    ``url`` is where it is born, ``moved_url`` where it is from ``moved_s`` on.
    """

    url: str
    moved_url: str
    number: int
    born_s: float
    moved_s: float
    died_s: float
    indexable: bool
    law: ChangeLaw


def page_truth(site: Site, number: int) -> PageTruth:
    """Return the true traits of the synthetic page of this number."""
    first = page_hash(site, number)
    second, born_s = life_hash(first), site.births.birth_s(number)
    origin = f"http://{site.name}"
    return PageTruth(
        url=origin + page_path(site, number, first).decode(),
        moved_url=origin + moved_path(site, number, first).decode(),
        number=number,
        born_s=born_s,
        moved_s=move_s(site, second, born_s),
        died_s=death_s(site, second, born_s),
        indexable=is_indexable(status_hash(second)) and site.robots != "closed",
        law=change_process(site, second).law,
    )


def last_text_change_s(site: Site, number: int, now_s: float) -> float:
    """Return when a synthetic page's text last changed, or its birth; boxes and rebuilds do not count."""
    process = change_process(site, life_hash(page_hash(site, number)))
    return edit_state(process, site.births.birth_s(number), now_s).last_s
