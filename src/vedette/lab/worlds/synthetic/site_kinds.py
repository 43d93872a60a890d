"""The six kinds of site, and what sets them apart: how large pages are, how often they are born, change and die."""

from dataclasses import dataclass

from vedette.lab.worlds.synthetic.change_times import DAY_S, Law

__all__ = ["KINDS", "Habit", "Kind", "kind_for"]

_YEAR_S = 365 * DAY_S


@dataclass(frozen=True, slots=True)
class Habit:
    """One way of changing, and the share of pages that have it."""

    share: float
    law: Law
    per_day: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of site.

    ``born_per_day`` is relative to the stock of the site. In ``prefix`` a ``*`` stands for the section; pages that
    move go below ``moved_prefix``. ``boxed_share`` of the pages carry a box that turns by itself, and
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
    dying_share: float
    life_days: float
    moving_share: float
    boxed_share: float
    reprint_share: float
    prefix: str
    moved_prefix: bytes
    suffix: bytes
    number_first: bool
    habits: tuple[Habit, ...]


KINDS: tuple[Kind, ...] = (
    Kind(
        name="news",
        weight=4,
        born_per_day=0.03,
        rhythm="press",
        span_s=2 * _YEAR_S,
        growth=2.0,
        paragraphs=8,
        spread=0.7,
        dying_share=0.08,
        life_days=120.0,
        moving_share=0.03,
        boxed_share=0.25,
        reprint_share=0.06,
        prefix="/*/",
        moved_prefix=b"/stories/",
        suffix=b"",
        number_first=False,
        habits=(
            Habit(0.4, "never"),
            Habit(0.2, "poisson", 0.3),
            Habit(0.25, "working", 0.5),
            Habit(0.1, "periodic", 1.0),
            Habit(0.05, "periodic", 1 / 7),
        ),
    ),
    Kind(
        name="documentation",
        weight=3,
        born_per_day=0.002,
        rhythm="office",
        span_s=6 * _YEAR_S,
        growth=1.0,
        paragraphs=14,
        spread=0.9,
        dying_share=0.05,
        life_days=900.0,
        moving_share=0.08,
        boxed_share=0.0,
        reprint_share=0.0,
        prefix="/guide/*/",
        moved_prefix=b"/manual/",
        suffix=b".html",
        number_first=False,
        habits=(
            Habit(0.35, "never"),
            Habit(0.4, "poisson", 1 / 30),
            Habit(0.2, "working", 1 / 15),
            Habit(0.05, "periodic", 1 / 7),
        ),
    ),
    Kind(
        name="blog",
        weight=6,
        born_per_day=0.008,
        rhythm="evening",
        span_s=5 * _YEAR_S,
        growth=1.5,
        paragraphs=9,
        spread=0.8,
        dying_share=0.06,
        life_days=700.0,
        moving_share=0.03,
        boxed_share=0.08,
        reprint_share=0.06,
        prefix="/posts/",
        moved_prefix=b"/notes/",
        suffix=b"",
        number_first=False,
        habits=(Habit(0.7, "never"), Habit(0.25, "poisson", 1 / 20), Habit(0.05, "periodic", 1.0)),
    ),
    Kind(
        name="university",
        weight=3,
        born_per_day=0.004,
        rhythm="office",
        span_s=10 * _YEAR_S,
        growth=1.5,
        paragraphs=10,
        spread=0.9,
        dying_share=0.12,
        life_days=800.0,
        moving_share=0.06,
        boxed_share=0.04,
        reprint_share=0.0,
        prefix="/*/",
        moved_prefix=b"/people-and-places/",
        suffix=b".html",
        number_first=False,
        habits=(
            Habit(0.4, "never"),
            Habit(0.25, "poisson", 1 / 50),
            Habit(0.25, "working", 1 / 10),
            Habit(0.1, "periodic", 1 / 7),
        ),
    ),
    Kind(
        name="shop",
        weight=3,
        born_per_day=0.01,
        rhythm="office",
        span_s=3 * _YEAR_S,
        growth=1.5,
        paragraphs=5,
        spread=0.6,
        dying_share=0.25,
        life_days=300.0,
        moving_share=0.04,
        boxed_share=0.2,
        reprint_share=0.0,
        prefix="/product/",
        moved_prefix=b"/item/",
        suffix=b"",
        number_first=False,
        habits=(
            Habit(0.2, "never"),
            Habit(0.45, "poisson", 1 / 4),
            Habit(0.25, "periodic", 1.0),
            Habit(0.1, "working", 0.5),
        ),
    ),
    Kind(
        name="forum",
        weight=3,
        born_per_day=0.02,
        rhythm="evening",
        span_s=4 * _YEAR_S,
        growth=2.0,
        paragraphs=12,
        spread=1.0,
        dying_share=0.05,
        life_days=500.0,
        moving_share=0.02,
        boxed_share=0.1,
        reprint_share=0.0,
        prefix="/thread/",
        moved_prefix=b"/topic/",
        suffix=b"",
        number_first=True,
        habits=(Habit(0.35, "never"), Habit(0.55, "poisson", 0.6), Habit(0.1, "periodic", 1.0)),
    ),
)


def kind_for(index: int, word: int) -> Kind:
    """The kind of the host at an index: the first six cover all kinds, later ones are drawn by weight."""
    if index < len(KINDS):
        return KINDS[index]
    bag = [kind for kind in KINDS for _ in range(kind.weight)]
    return bag[word % len(bag)]
