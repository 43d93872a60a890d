"""The six kinds of site, and what sets them apart: how large pages are, how often they are born, change and die."""

from dataclasses import dataclass

from vedette.lab.worlds.synthetic.change_times import ChangeLaw
from vedette.timeutil import DAY_S

_YEAR_S = 365 * DAY_S


@dataclass(frozen=True, slots=True)
class ChangePattern:
    """One way of changing, and the share of pages that have it."""

    share: float
    law: ChangeLaw
    per_day: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SiteKind:
    """A kind of site.

    ``born_per_day`` is relative to the stock of the site. In ``prefix`` a ``*`` stands for the section; pages that
    move go below ``moved_prefix``. ``box_share`` of the pages carry a box that turns by itself, and
    ``reprint_share`` of them reprint an agency's article.
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


SITE_KINDS: tuple[SiteKind, ...] = (
    SiteKind(
        name="news",
        weight=4,
        born_per_day=0.03,
        rhythm="press",
        span_s=2 * _YEAR_S,
        growth=2.0,
        paragraphs=8,
        spread=0.7,
        death_share=0.08,
        life_days=120.0,
        move_share=0.03,
        box_share=0.25,
        reprint_share=0.06,
        prefix="/*/",
        moved_prefix=b"/stories/",
        suffix=b"",
        number_first=False,
        change_patterns=(
            ChangePattern(0.4, "never"),
            ChangePattern(0.2, "poisson", 0.3),
            ChangePattern(0.25, "working", 0.5),
            ChangePattern(0.1, "periodic", 1.0),
            ChangePattern(0.05, "periodic", 1 / 7),
        ),
    ),
    SiteKind(
        name="documentation",
        weight=3,
        born_per_day=0.002,
        rhythm="office",
        span_s=6 * _YEAR_S,
        growth=1.0,
        paragraphs=14,
        spread=0.9,
        death_share=0.05,
        life_days=900.0,
        move_share=0.08,
        box_share=0.0,
        reprint_share=0.0,
        prefix="/guide/*/",
        moved_prefix=b"/manual/",
        suffix=b".html",
        number_first=False,
        change_patterns=(
            ChangePattern(0.35, "never"),
            ChangePattern(0.4, "poisson", 1 / 30),
            ChangePattern(0.2, "working", 1 / 15),
            ChangePattern(0.05, "periodic", 1 / 7),
        ),
    ),
    SiteKind(
        name="blog",
        weight=6,
        born_per_day=0.008,
        rhythm="evening",
        span_s=5 * _YEAR_S,
        growth=1.5,
        paragraphs=9,
        spread=0.8,
        death_share=0.06,
        life_days=700.0,
        move_share=0.03,
        box_share=0.08,
        reprint_share=0.06,
        prefix="/posts/",
        moved_prefix=b"/notes/",
        suffix=b"",
        number_first=False,
        change_patterns=(
            ChangePattern(0.7, "never"),
            ChangePattern(0.25, "poisson", 1 / 20),
            ChangePattern(0.05, "periodic", 1.0),
        ),
    ),
    SiteKind(
        name="university",
        weight=3,
        born_per_day=0.004,
        rhythm="office",
        span_s=10 * _YEAR_S,
        growth=1.5,
        paragraphs=10,
        spread=0.9,
        death_share=0.12,
        life_days=800.0,
        move_share=0.06,
        box_share=0.04,
        reprint_share=0.0,
        prefix="/*/",
        moved_prefix=b"/people-and-places/",
        suffix=b".html",
        number_first=False,
        change_patterns=(
            ChangePattern(0.4, "never"),
            ChangePattern(0.25, "poisson", 1 / 50),
            ChangePattern(0.25, "working", 1 / 10),
            ChangePattern(0.1, "periodic", 1 / 7),
        ),
    ),
    SiteKind(
        name="shop",
        weight=3,
        born_per_day=0.01,
        rhythm="office",
        span_s=3 * _YEAR_S,
        growth=1.5,
        paragraphs=5,
        spread=0.6,
        death_share=0.25,
        life_days=300.0,
        move_share=0.04,
        box_share=0.2,
        reprint_share=0.0,
        prefix="/product/",
        moved_prefix=b"/item/",
        suffix=b"",
        number_first=False,
        change_patterns=(
            ChangePattern(0.2, "never"),
            ChangePattern(0.45, "poisson", 1 / 4),
            ChangePattern(0.25, "periodic", 1.0),
            ChangePattern(0.1, "working", 0.5),
        ),
    ),
    SiteKind(
        name="forum",
        weight=3,
        born_per_day=0.02,
        rhythm="evening",
        span_s=4 * _YEAR_S,
        growth=2.0,
        paragraphs=12,
        spread=1.0,
        death_share=0.05,
        life_days=500.0,
        move_share=0.02,
        box_share=0.1,
        reprint_share=0.0,
        prefix="/thread/",
        moved_prefix=b"/topic/",
        suffix=b"",
        number_first=True,
        change_patterns=(
            ChangePattern(0.35, "never"),
            ChangePattern(0.55, "poisson", 0.6),
            ChangePattern(0.1, "periodic", 1.0),
        ),
    ),
)


def pick_kind(index: int, word: int) -> SiteKind:
    """The kind of the host at an index: the first six cover all kinds, later ones are drawn by weight."""
    if index < len(SITE_KINDS):
        return SITE_KINDS[index]
    bag = [kind for kind in SITE_KINDS for _ in range(kind.weight)]
    return bag[word % len(bag)]
