"""What an experiment is: a question that is put to worlds, policies, budgets and seeds, and answered in numbers.

A *cell* is one world, policy, budget and seed. It is worked out on its own, from its description alone, so cells can be
spread over cores, interrupted and gone on with, and always come out the same.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from vedette.errors import UsageError


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
    """The part of a world that is looked at, as given on the command line: an ISO date or an index; empty for all."""

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
    """One question. ``worlds`` are the kinds that it takes ("git", "frontpages", "made", "live")."""

    @property
    def name(self) -> str:
        """How it is called on the command line."""

    @property
    def about(self) -> str:
        """The question, in one line."""

    @property
    def worlds(self) -> tuple[str, ...]:
        """The kinds of worlds that it can be put to."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """The numbers of its rows, of ``METRICS`` or its own (then described in ``own``)."""

    @property
    def own(self) -> Mapping[str, Metric]:
        """Numbers that only this experiment has."""

    @property
    def policies(self) -> tuple[str, ...]:
        """The names that it knows, bounds among them; the first ones are run where nobody says which."""

    @property
    def of_texts(self) -> tuple[str, ...]:
        """Those that ask what pages say: where nobody names policies, they are not put to made worlds."""

    @property
    def figures(self) -> tuple[tuple[str, str], ...]:
        """Which numbers a report draws over which coordinate; empty for the first few of each table."""

    @property
    def budgets(self) -> tuple[float, ...]:
        """Those that are run where nobody says which; a budget is fetches a day unless ``about`` says otherwise."""

    def run(self, cell: Cell) -> list[Measurements]:
        """The rows of a cell; a row may have further columns (``step``, ``host``, ``k``), which are numbers, too."""


DAY_S = 86400.0


def resolve_span(span: Span, begin_s: float, end_s: float) -> tuple[float, float]:
    """From when to when, within a world's own begin and end. A number counts days from its begin; dates are UTC.

    >>> resolve_span(Span("1970-01-02", "3"), 0.0, 1e6)
    (86400.0, 259200.0)
    """
    first = _parse_time(span.begin, begin_s, begin_s)
    last = _parse_time(span.end, begin_s, end_s)
    first, last = max(first, begin_s), min(last, end_s)
    if first >= last:
        raise UsageError(
            f"nothing lies from {span.begin or 'the begin'} to {span.end or 'the end'}; {_describe_range(begin_s, end_s)}"
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


def _describe_range(begin_s: float, end_s: float) -> str:
    first, last = (datetime.fromtimestamp(at_s, UTC).date().isoformat() for at_s in (begin_s, end_s))
    return f"the world goes from {first} to {last}"
