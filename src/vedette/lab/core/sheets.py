"""The tables of a report as plain texts: what Markdown and the console both show. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from vedette.lab.core.experiment import Experiment
from vedette.lab.core.registry import metric_of
from vedette.lab.core.rows import Row
from vedette.lab.core.scales import NOTHING, THIN, said
from vedette.lab.core.statistics import Interval
from vedette.lab.core.summary import Comparison, Line, Table, comparisons, tables

__all__ = ["NAMES", "Sheet", "sheets", "spoken"]

MOST_LINES = 60  # on paper
NAMES = ("world", "policy", "against")  # columns that hold names
UNITS = {"hosts": "hosts", "parts": "parts of the time", "seeds": "seeds"}

READING = """\
Each number is a mean; in brackets is its 95 % interval (bootstrap, BCa, widened for few values; over {units}). A number
without brackets has no chance in it, or was measured once. *n* is how many values there are."""

COMPARING = """\
Differences are taken host by host, part by part or run by run: both policies had the same world, budget and seed. *p*
is by random signs, two-sided; *p (Holm)* holds for all lines of this table together. A difference without either is the
same each time."""


class Sheet(NamedTuple):
    """A table: its title, how to read it, what its metrics mean, and its lines, of which paper has room for so many."""

    title: str
    about: str
    meanings: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    most_on_paper: int = MOST_LINES


def sheets(rows: Sequence[Row], experiment: Experiment) -> list[Sheet]:
    """A sheet for each table of the rows, in their order, and one for how the policies compare."""
    return [*(_sheet(table, experiment) for table in tables(rows, experiment)), *_compared(rows, experiment)]


def spoken(name: str) -> str:
    """A name as people say it.

    >>> spoken("changed_per_fetch")
    'changed per fetch'
    """
    return name.replace("_", " ")


def _sheet(table: Table, experiment: Experiment) -> Sheet:
    by = ", ".join(spoken(name) for name in table.coordinates)
    meanings = {name: metric_of(experiment, name) for name in table.metrics}
    units = {name: metric.unit for name, metric in meanings.items()}
    return Sheet(
        f"By {by}" if by else "By host" if table.over == "hosts" else "By world, budget and policy",
        READING.format(units=UNITS[table.over]),
        tuple((spoken(name), metric.words) for name, metric in meanings.items()),
        ("world", "budget", "policy", *(spoken(name) for name in (*table.coordinates, *table.metrics)), "n"),
        tuple(_line(line, table, units) for line in table.lines),
    )


def _line(line: Line, table: Table, units: Mapping[str, str]) -> tuple[str, ...]:
    numbers = [_with_interval(line.told[name], units[name]) if name in line.told else "" for name in table.metrics]
    n = max((each.n for each in line.told.values()), default=0)
    return line.world, said(line.budget, ""), line.policy, *(said(x, "") for x in line.at), *numbers, str(n)


def _with_interval(told: Interval, unit: str) -> str:
    if math.isnan(told.low) or told.low == told.high:
        return said(told.mean, unit)
    low, high = said(told.low, unit), said(told.high, unit)
    return f"{said(told.mean, unit)} [{low.rpartition(THIN)[0] if unit else low}, {high}]"


def _compared(rows: Sequence[Row], experiment: Experiment) -> Iterator[Sheet]:
    if found := comparisons(rows, experiment):
        columns = ("world", "budget", "metric", "policy", "against", "difference", "p", "p (Holm)", "n")
        lines = tuple(_comparison(each, experiment) for each in found)
        yield Sheet("Policies compared", COMPARING, (), columns, lines, len(lines))


def _comparison(each: Comparison, experiment: Experiment) -> tuple[str, ...]:
    unit = metric_of(experiment, each.metric).unit
    mean, low, high, p, n = each.paired
    if unit == "share":
        # Between 60 % and 63 % there are three points, not 3 %.
        mean, low, high, unit = 100 * mean, 100 * low, 100 * high, "points"
    known = [NOTHING if math.isnan(value) else f"{value:.2g}" for value in (p, each.p_holm)]
    difference = _with_interval(Interval(mean, low, high, n), unit)
    where = each.world, said(each.budget, ""), spoken(each.metric)
    return *where, each.policy, each.other, difference, *known, str(n)
