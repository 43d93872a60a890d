"""The console's page on finding new pages: how soon they are found, which sources name them, which looks are wasted."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.console.crawl.refresh import Counts, counts_of, step_of
from vedette.web.console.explain.page import explained_at
from vedette.web.console.explain.refresh_text import per_cent
from vedette.web.console.ports.monitoring import Discovery, FoundPage, SourceLine, Watch
from vedette.web.console.ui.charts import FEWEST, Line, Other, Point, bars, line_chart
from vedette.web.console.ui.layout import Shell
from vedette.web.console.ui.scales import said
from vedette.web.console.ui.tables import Column, Table, csv_answer
from vedette.web.console.ui.time_series import Over, over_of, ways
from vedette.web.formatting import THIN, stamp

__all__ = ["DAY_S", "Spread", "a_day", "by_delay", "delays_of", "discovering_routes", "medians", "said_of", "spread_of"]

# A birth is the date that a page states, or the feed or sitemap that named it. Nobody knows others, and a date
# without a time of day says nothing of minutes: such pages are counted, and left out of all times.


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


HERE: Final = "/console/discovery"
LOOKS: Final = ("looks", "looks_wasted_share")

SOURCES: Table[SourceLine] = Table(
    (
        Column("source", "Source", lambda row: row.url),
        Column("rate", "New links a day", lambda row: row.rate_d, is_number=True),
        Column("looks", "Looks", lambda row: row.looks, is_number=True),
        Column("found", "Found", lambda row: row.found, is_number=True),
        Column("wasted", "In vain", lambda row: row.wasted, is_number=True),
        Column("due", "Next look", lambda row: row.due_s, is_number=True),
        Column("why", "Why then", lambda row: row.why),
    ),
    by="-rate",
    key="sources",
)


def a_day(rate_d: float) -> str:
    """A rate in a table, with two digits that count.

    >>> a_day(0.0347), a_day(12.3), a_day(0.0), a_day(4.0)
    ('0.035', '12', '0', '4')
    """
    return said(rate_d, "n") if rate_d >= 0.001 else "0"


def between(row: SourceLine) -> str:
    """The ends of what its rate may be.

    >>> between(SourceLine("", 2.0, 1.0, 4.0, 0.0, 0, 0, 0, None, ""))
    '1 to 4'
    """
    return f"{a_day(row.low_d)} to {a_day(row.high_d)}"


def discovering_routes(shell: Shell, watch: Watch) -> list[Route]:
    """The page; its tables and charts are files, too."""
    return [Route("/discovery", _Discovering(shell, watch).shown)]


@dataclass(frozen=True, slots=True)
class _Discovering:
    """The handler, with what it needs."""

    shell: Shell
    watch: Watch

    async def shown(self, request: Request) -> Response:
        """How it goes over the time that was chosen."""
        found, over = await run_in_threadpool(self.watch.discovery), over_of(request)
        file = await run_in_threadpool(self._file, request, found, over)
        if file is not None:
            return file
        told = await run_in_threadpool(self._told, found, over)
        told |= {"seen": SOURCES.seen(request, found.sources), "ways": ways(request)}
        return self.shell.page("discovery.html", request, here="discovery", title="New pages", **told)

    def _file(self, request: Request, found: Discovery, over: Over) -> Response | None:
        """The table or chart that is asked for as a file; None where none is."""
        if SOURCES.wants_csv(request):
            return SOURCES.csv(request, found.sources, "sources")
        asked, now_s = request.query_params.get("csv"), self.shell.now_s()
        if asked == "births":
            rows = by_delay(_lately(found, over, now_s))
            return csv_answer("births", ["found after its birth", "pages"], rows)
        if asked == "delays":
            points = _delays(found, over, now_s)
            return csv_answer("delays", ["when", "median s from birth"], [(stamp(at_s), each) for at_s, each in points])
        if asked == "looks":
            return _looks_file(counts_of(self.watch, over, now_s, LOOKS), over)
        return None

    def _told(self, found: Discovery, over: Over) -> dict[str, Any]:
        now_s = self.shell.now_s()
        pages = _lately(found, over, now_s)
        spread, counts = spread_of(pages), counts_of(self.watch, over, now_s, LOOKS)
        return {
            "found": found,
            "crawl": self.watch.crawl(),
            "over": over,
            "pages": pages,
            "spread": spread,
            "about_dates": said_of(spread),
            "bars": bars(by_delay(pages), "n", ("Found after its birth", "Pages")) if pages else Markup(),
            "counts": counts,
            "charts": _charts(found, counts, over, now_s),
            "here_address": HERE,
            "explained_at": explained_at,
            "a_day": a_day,
            "between": between,
            "per_cent": per_cent,
            "said": said,
        }


def _charts(found: Discovery, counts: Counts, over: Over, now_s: float) -> list[Markup]:
    """Delays where there are enough for a line, and looks with those of them that were in vain."""
    words, other = step_of(over)[1], Other("of these found nothing new", counts.wasted)
    looks = _line(("looks", f"Looks at sources {words}", "n"), counts.all, over, now_s, other)
    delays = _delays(found, over, now_s)
    if len(delays) < FEWEST:
        return [looks]
    return [_line(("delays", "Median from birth to discovery", "s"), delays, over, now_s), looks]


def _lately(found: Discovery, over: Over, now_s: float) -> list[FoundPage]:
    return [page for page in found.pages if page.found_s >= now_s - over.span_s]


def _delays(found: Discovery, over: Over, now_s: float) -> list[Point]:
    return medians(found.pages, now_s - over.span_s, now_s, step_of(over)[0])


def _line(
    what: tuple[str, str, str], points: list[Point], over: Over, now_s: float, other: Other | None = None
) -> Markup:
    """A chart of amounts in stretches of time."""
    name, title, unit = what
    begun_s = points[0][0] if points else now_s - over.span_s
    csv = f"{HERE}?csv={name}&over={over.name}"
    return line_chart(Line(name, title, title, unit, points, min(begun_s, now_s - 1.0), now_s, csv, other))


def _looks_file(counts: Counts, over: Over) -> Response:
    pairs = zip(counts.all, counts.wasted, strict=True)
    rows = [(stamp(at_s), round(count, 1), round(wasted, 1)) for (at_s, count), (_, wasted) in pairs]
    return csv_answer("looks", ["when", f"looks {step_of(over)[1]}".replace(THIN, " "), "found nothing new"], rows)
