"""Experiments of the lab: the base class, cells, rows of measurements, metrics, and time spans.

An experiment is a question about worlds, policies, budgets and seeds. A *cell* is one of each. It is computed from its
description alone, so cells can be spread over cores, interrupted and resumed, and always give the same result.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from math import floor
from typing import NamedTuple, Protocol

from vedette.errors import UsageError
from vedette.timeutil import DAY_S


class Metric(NamedTuple):
    """A metric of an experiment: its description, its unit, and whether more of it is better (None: neither)."""

    description: str
    unit: str = ""
    more_is_better: bool | None = None


METRICS: Mapping[str, Metric] = {
    "coverage": Metric("share of new pages found", "share", True),
    "overhead": Metric("fetches of known pages per new page found: sum of fetches / sum of new pages", "", False),
    "overhead_mean": Metric("the same as a mean of ratios, over sites and times with new pages", "", False),
    "htd_p90": Metric("90th percentile of hours to discovery; if never found, the visible lifetime", "h", False),
    "htd_p90_found": Metric("the same over found pages only", "h", False),
    "regret": Metric("1 - found / found by the bound; may be negative", "share", False),
    "freshness": Metric("share of live known pages whose copy is current, averaged over time", "share", True),
    "age": Metric("days that copies are out of date, averaged over live known pages and time", "d", False),
    "quality": Metric("repository quality (eq. 4.5), as a share of that with current copies", "share", True),
    "impact": Metric("expected impact of what was fetched", "", True),
    "qpc": Metric("quality per click", "", True),
    "tbp": Metric("time until a page of high quality is popular", "d", False),
    "revenue": Metric("what was charged", "", True),
    "overspend": Metric("amount charged beyond a budget", "", False),
    "changed_per_fetch": Metric("share of fetches that found a change", "share", None),
    "fetches": Metric("fetches made", "", None),
}


class Span(NamedTuple):
    """The part of a world that an experiment uses, as on the command line: ISO dates or indices; empty for all."""

    begin: str = ""
    end: str = ""


class Cell(NamedTuple):
    """A cell of an experiment: one world (as the user writes it, without local paths), policy, budget and seed."""

    experiment: str
    world: str
    policy: str
    budget: float
    seed: int
    span: Span = Span()


Measurements = Mapping[str, float]


class Experiment(Protocol):
    """Base class of the lab's experiments; subclasses set these names as class attributes and define ``run``.

    ``worlds`` are the kinds of worlds it accepts ("git", "frontpages", "made", "live"). An experiment may also define
    ``usual_worlds``: the worlds to run if the command line names none.
    """

    @property
    def name(self) -> str:
        """Return the experiment's name on the command line."""

    @property
    def about(self) -> str:
        """Return the experiment's question, in one line."""

    @property
    def worlds(self) -> tuple[str, ...]:
        """Return the kinds of worlds that the experiment accepts."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the metrics of the experiment's rows, from ``METRICS`` or its own (described in ``own``)."""

    @property
    def own(self) -> Mapping[str, Metric]:
        """Return the metrics that only this experiment has."""
        return {}

    @property
    def policies(self) -> tuple[str, ...]:
        """Return the policies and bounds that the experiment can run; by default it runs all of them."""

    @property
    def of_texts(self) -> tuple[str, ...]:
        """Return the policies that need page texts; on synthetic worlds they run only if the user names them."""
        return ()

    @property
    def figures(self) -> tuple[tuple[str, str], ...]:
        """Return which metrics a report plots over which coordinate; empty for the first few of each table."""
        return ()

    @property
    def budgets(self) -> tuple[float, ...]:
        """Return the experiment's default budgets, in fetches per day unless ``about`` says otherwise."""

    def run(self, cell: Cell) -> list[Measurements]:
        """Run the experiment on a cell and return its rows; a row may have further columns (``step``, ``host``)."""


def resolve_span(span: Span, begin_s: float, end_s: float) -> tuple[float, float]:
    """Resolve a span to begin and end times within a world. A number counts days from its begin; dates are UTC.

    >>> resolve_span(Span("1970-01-02", "3"), 0.0, 1e6)
    (86400.0, 259200.0)
    """
    first = _parse_time(span.begin, begin_s, begin_s)
    last = _parse_time(span.end, begin_s, end_s)
    first, last = max(first, begin_s), min(last, end_s)
    if first >= last:
        days = [datetime.fromtimestamp(at_s, UTC).date().isoformat() for at_s in (begin_s, end_s)]
        raise UsageError(
            f"there is no data from {span.begin or 'the start'} to {span.end or 'the end'}; "
            f"the world covers {days[0]} to {days[1]}"
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
        raise UsageError(f'"{typed}" is not a date or a number of days; use, for example, 2023-05-01 or 30') from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def step_times(begin_s: float, end_s: float, step_s: float) -> Iterator[float]:
    """Yield the end time of each whole step of a time span.

    >>> list(step_times(0.0, 25.0, 10.0))
    [10.0, 20.0]
    """
    for number in range(1, floor((end_s - begin_s) / step_s) + 1):
        yield begin_s + number * step_s
