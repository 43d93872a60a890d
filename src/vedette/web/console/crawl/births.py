"""From birth to discovery: how long pages had been there when they were found, in words, bars and over time.

A birth is the date that a page states, or the feed or sitemap that named it. Nobody knows others, and a date without a
time of day says nothing of minutes: such pages are counted, and left out of all times.
"""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from vedette.web.console.ports.discovery_ports import FoundPage
from vedette.web.console.ui.charts import Point
from vedette.web.formatting import THIN

__all__ = ["DAY_S", "Spread", "by_delay", "delays_of", "medians", "said_of", "spread_of"]

MINUTE_S, HOUR_S, DAY_S = 60.0, 3_600.0, 86_400.0
_STEPS = (
    (MINUTE_S, f"within 1{THIN}min"),
    (5 * MINUTE_S, f"1 to 5{THIN}min"),
    (15 * MINUTE_S, f"5 to 15{THIN}min"),
    (HOUR_S, f"15 to 60{THIN}min"),
    (6 * HOUR_S, f"1 to 6{THIN}hours"),
    (DAY_S, f"6 to 24{THIN}hours"),
)
LATER = "more than a day"
BY_DAY, UNKNOWN = "only the day is stated", "no date is stated"


class Spread(NamedTuple):
    """How many pages were found, of how many the time of birth is known, and how those delays lie.

    Quarters are None where no birth is known.
    """

    pages: int
    known: int
    by_day: int
    low_s: float | None = None
    median_s: float | None = None
    high_s: float | None = None

    @property
    def undated(self) -> int:
        """Pages of which nobody states a date."""
        return self.pages - self.known - self.by_day


def delay_of(page: FoundPage) -> float | None:
    """From its birth to its discovery; None where that is not known to the minute.

    >>> delay_of(FoundPage(90_090.0, 90_000.0)), delay_of(FoundPage(90_090.0, 86_400.0)), delay_of(FoundPage(9.0))
    (90.0, None, None)
    """
    return None if page.born_s is None or _is_day(page.born_s) else max(page.found_s - page.born_s, 0.0)


def _is_day(born_s: float) -> bool:
    """Whether a date has no time of day; one born at midnight to the second is taken for such."""
    return born_s % DAY_S == 0


def delays_of(pages: Sequence[FoundPage]) -> list[float]:
    """Those that are known, in order of size."""
    return sorted(delay for page in pages if (delay := delay_of(page)) is not None)


def spread_of(pages: Sequence[FoundPage]) -> Spread:
    """The middle and the quarters.

    >>> spread = spread_of([FoundPage(100.0 + each, 100.0) for each in (60, 120, 600)] + [FoundPage(7.0)])
    >>> spread.median_s, spread.low_s, spread.high_s, spread.undated
    (120.0, 90.0, 360.0, 1)
    """
    delays = delays_of(pages)
    by_day = sum(page.born_s is not None and _is_day(page.born_s) for page in pages)
    if not delays:
        return Spread(len(pages), 0, by_day)
    low_s, high_s = (_quantile(delays, part) for part in (0.25, 0.75))
    return Spread(len(pages), len(delays), by_day, low_s, median(delays), high_s)


def _quantile(values: Sequence[float], part: float) -> float:
    """Of sorted values, straight between neighbours."""
    at = part * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def by_delay(pages: Sequence[FoundPage]) -> list[tuple[str, float]]:
    """How many pages were found how soon; those of unknown birth at the end, where there are any.

    >>> [count for _, count in by_delay([FoundPage(130.0, 100.0), FoundPage(1e9, 100.0), FoundPage(1.0)])]
    [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    """
    counts = dict.fromkeys((*(words for _, words in _STEPS), LATER), 0.0)
    for delay_s in delays_of(pages):
        counts[next((words for most_s, words in _STEPS if delay_s <= most_s), LATER)] += 1
    spread = spread_of(pages)
    unknown = {BY_DAY: float(spread.by_day), UNKNOWN: float(spread.undated)}
    return [*counts.items(), *((words, count) for words, count in unknown.items() if count)]


def medians(pages: Sequence[FoundPage], since_s: float, now_s: float, step_s: float) -> list[Point]:
    """The middle delay of the pages that were found in each stretch of time, at its end; none where none was."""
    found: dict[int, list[float]] = {}
    for page in pages:
        delay_s = delay_of(page)
        if delay_s is not None and since_s <= page.found_s <= now_s:
            found.setdefault(int((now_s - page.found_s) / step_s), []).append(delay_s)
    return [(now_s - back * step_s, median(found[back])) for back in sorted(found, reverse=True)]


def said_of(spread: Spread) -> str:
    """Of how many pages times are told, and why not of all.

    >>> said_of(Spread(5, 2, 1)), said_of(Spread(1, 1, 0, 1.0, 1.0, 1.0))
    ('Of 5 new pages 2 state when they were made, 1 only the day, 2 nothing.', '')
    """
    if spread.known == spread.pages:
        return ""
    rest = ((spread.by_day, "only the day"), (spread.undated, "nothing"))
    told = ", ".join(f"{count} {words}" for count, words in rest if count)
    pages = "1 new page" if spread.pages == 1 else f"{spread.pages} new pages"
    return f"Of {pages} {spread.known} state when they were made, {told}."
