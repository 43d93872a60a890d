"""Experiments of the lab: the base class, cells, rows of measurements, metrics, and spans of time.

An experiment is a question that is put to worlds, policies, budgets and seeds. A *cell* is one of each. It is computed
from its description alone, so cells can be spread over cores, interrupted and resumed, and always come out the same.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import floor
from typing import NamedTuple, Protocol

from vedette.errors import UsageError
from vedette.timeutil import DAY_S


class Metric(NamedTuple):
    """What a number says, in words; its unit; and whether more of it is better (None: neither)."""

    description: str
    unit: str = ""
    more_is_better: bool | None = None


METRICS: Mapping[str, Metric] = {
    "coverage": Metric("share of new pages found", "share", True),
    "overhead": Metric("fetches of known pages for each new page found: sum of fetches / sum of finds", "", False),
    "overhead_mean": Metric("the same as a mean of ratios, over sites and times with finds", "", False),
    "htd_p90": Metric("90th percentile of hours to discovery; never found counts with its visible life", "h", False),
    "htd_p90_found": Metric("the same over found pages only", "h", False),
    "regret": Metric("1 - found / found by the bound; may be negative", "share", False),
    "freshness": Metric("share of live known pages whose copy is current, averaged over time", "share", True),
    "age": Metric("days that copies are out of date, averaged over live known pages and time", "d", False),
    "quality": Metric("quality of the repository (eq. 4.5), as a share of that of a current one", "share", True),
    "impact": Metric("expected impact of what was fetched", "", True),
    "qpc": Metric("quality per click", "", True),
    "tbp": Metric("time until a page of high quality is popular", "d", False),
    "revenue": Metric("what was charged", "", True),
    "overspend": Metric("what was charged beyond a budget", "", False),
    "changed_per_fetch": Metric("share of fetches that found a change", "share", None),
    "fetches": Metric("fetches made", "", None),
}


class Span(NamedTuple):
    """The part of a world that is used, as given on the command line: ISO dates or indices; empty for all of it."""

    begin: str = ""
    end: str = ""


class Cell(NamedTuple):
    """One world, policy, budget and seed. The world is named as the user writes it, without any local path."""

    experiment: str
    world: str
    policy: str
    budget: float
    seed: int
    span: Span = Span()


Measurements = Mapping[str, float]


class Experiment(Protocol):
    """One question; subclasses set these names as class attributes and define ``run``.

    ``worlds`` are the kinds of worlds that it takes ("git", "frontpages", "made", "live"). An experiment may also name
    ``usual_worlds``: the worlds to run where the command line names none.
    """

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def about(self) -> str:
        """The question, in one line."""

    @property
    def worlds(self) -> tuple[str, ...]:
        """The kinds of worlds that it takes."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The numbers of its rows, from ``METRICS`` or its own (then described in ``own``)."""

    @property
    def own(self) -> Mapping[str, Metric]:
        """Metrics that only this experiment has."""
        return {}

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies and bounds that it can run; all of them run where the command line names none."""

    @property
    def of_texts(self) -> tuple[str, ...]:
        """Policies that need the texts of pages; they run on made worlds only where the command line names them."""
        return ()

    @property
    def figures(self) -> tuple[tuple[str, str], ...]:
        """Which metrics a report draws over which coordinate; empty for the first few of each table."""
        return ()

    @property
    def budgets(self) -> tuple[float, ...]:
        """The default budgets, in fetches a day unless ``about`` says otherwise."""

    def run(self, cell: Cell) -> list[Measurements]:
        """Return the rows of a cell; a row may have further columns (``step``, ``host``, ``k``), also numbers."""


def resolve_span(span: Span, begin_s: float, end_s: float) -> tuple[float, float]:
    """Return the ends of a span as times within a world's own. A number counts days from its begin; dates are UTC.

    >>> resolve_span(Span("1970-01-02", "3"), 0.0, 1e6)
    (86400.0, 259200.0)
    """
    first = _parse_time(span.begin, begin_s, begin_s)
    last = _parse_time(span.end, begin_s, end_s)
    first, last = max(first, begin_s), min(last, end_s)
    if first >= last:
        days = [datetime.fromtimestamp(at_s, UTC).date().isoformat() for at_s in (begin_s, end_s)]
        raise UsageError(
            f"nothing lies from {span.begin or 'the begin'} to {span.end or 'the end'}; "
            f"the world goes from {days[0]} to {days[1]}"
        )
    return first, last


def _parse_time(typed: str, begin_s: float, default_s: float) -> float:
    if not typed:
        return default_s
    if typed.isascii() and typed.isdecimal():
        return begin_s + int(typed[:9]) * DAY_S
    try:
        read = datetime.fromisoformat(typed)
    except ValueError:
        raise UsageError(f'"{typed}" is no date and no number of days; write 2023-05-01, say, or 30') from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def step_times(begin_s: float, end_s: float, step_s: float) -> Iterator[float]:
    """Yield the end of each whole step of a span.

    >>> list(step_times(0.0, 25.0, 10.0))
    [10.0, 20.0]
    """
    for number in range(1, floor((end_s - begin_s) / step_s) + 1):
        yield begin_s + number * step_s
