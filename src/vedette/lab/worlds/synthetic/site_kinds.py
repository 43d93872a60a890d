"""Six kinds of synthetic site, by how large pages are and how often they are born, change and die."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import starmap

from vedette.lab.worlds.synthetic.change_times import ChangeLaw
from vedette.timeutil import DAY_S

_YEAR_S = 365 * DAY_S


@dataclass(frozen=True, slots=True)
class ChangePattern:
    """Change pattern of a kind of synthetic site, and the share of its pages that have it."""

    share: float
    law: ChangeLaw
    per_day: float


@dataclass(frozen=True, slots=True, eq=False)
class SiteKind:
    """A kind of synthetic site: page sizes, and rates of births, changes, moves and deaths.

    ``born_per_day`` is relative to the stock of the site. In ``prefix`` a ``*`` is replaced by the section; pages that
    move go below ``moved_prefix``. ``box_share`` of the pages have a rotating box, and ``reprint_share`` of them
    reprint an agency's article.
    """

    name: str
    weight: int
    born_per_day: float
    rhythm: str
    span_s: float
    growth: float
    paragraphs: int
    spread: float
    death_share: float
    life_days: float
    move_share: float
    box_share: float
    reprint_share: float
    prefix: str
    moved_prefix: bytes
    suffix: bytes
    number_first: bool
    change_patterns: tuple[ChangePattern, ...]


# fmt: off
# weight, born_per_day, rhythm, span_s, growth, paragraphs, spread, death_share, life_days, move_share, box_share,
# reprint_share
_RATES = {
    "news":          (4, 0.03,  "press",    2 * _YEAR_S, 2.0,  8, 0.7, 0.08, 120.0, 0.03, 0.25, 0.06),
    "documentation": (3, 0.002, "office",   6 * _YEAR_S, 1.0, 14, 0.9, 0.05, 900.0, 0.08, 0.0,  0.0),
    "blog":          (6, 0.008, "evening",  5 * _YEAR_S, 1.5,  9, 0.8, 0.06, 700.0, 0.03, 0.08, 0.06),
    "university":    (3, 0.004, "office",  10 * _YEAR_S, 1.5, 10, 0.9, 0.12, 800.0, 0.06, 0.04, 0.0),
    "shop":          (3, 0.01,  "office",   3 * _YEAR_S, 1.5,  5, 0.6, 0.25, 300.0, 0.04, 0.2,  0.0),
    "forum":         (3, 0.02,  "evening",  4 * _YEAR_S, 2.0, 12, 1.0, 0.05, 500.0, 0.02, 0.1,  0.0),
}
# prefix, moved_prefix, suffix, number_first
_PATHS = {
    "news":          ("/*/",       b"/stories/",           b"",      False),
    "documentation": ("/guide/*/", b"/manual/",            b".html", False),
    "blog":          ("/posts/",   b"/notes/",             b"",      False),
    "university":    ("/*/",       b"/people-and-places/", b".html", False),
    "shop":          ("/product/", b"/item/",              b"",      False),
    "forum":         ("/thread/",  b"/topic/",             b"",      True),
}
# fmt: on
# The share of pages, their law of change, and how often a day they change.
_CHANGE_PATTERNS: Mapping[str, tuple[tuple[float, ChangeLaw, float], ...]] = {
    "news": (
        (0.4, "never", 0.0),
        (0.2, "poisson", 0.3),
        (0.25, "working", 0.5),
        (0.1, "periodic", 1.0),
        (0.05, "periodic", 1 / 7),
    ),
    "documentation": (
        (0.35, "never", 0.0),
        (0.4, "poisson", 1 / 30),
        (0.2, "working", 1 / 15),
        (0.05, "periodic", 1 / 7),
    ),
    "blog": ((0.7, "never", 0.0), (0.25, "poisson", 1 / 20), (0.05, "periodic", 1.0)),
    "university": ((0.4, "never", 0.0), (0.25, "poisson", 1 / 50), (0.25, "working", 1 / 10), (0.1, "periodic", 1 / 7)),
    "shop": ((0.2, "never", 0.0), (0.45, "poisson", 1 / 4), (0.25, "periodic", 1.0), (0.1, "working", 0.5)),
    "forum": ((0.35, "never", 0.0), (0.55, "poisson", 0.6), (0.1, "periodic", 1.0)),
}


def _build_kind(name: str) -> SiteKind:
    patterns = tuple(starmap(ChangePattern, _CHANGE_PATTERNS[name]))
    return SiteKind(name, *_RATES[name], *_PATHS[name], patterns)


SITE_KINDS: tuple[SiteKind, ...] = tuple(map(_build_kind, _RATES))


def pick_kind(index: int, word: int) -> SiteKind:
    """Pick the kind of the synthetic site at an index: the first six cover all, later ones are drawn by weight."""
    if index < len(SITE_KINDS):
        return SITE_KINDS[index]
    bag = [kind for kind in SITE_KINDS for _ in range(kind.weight)]
    return bag[word % len(bag)]
