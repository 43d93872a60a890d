"""From rows to what can be said: means with intervals, policies compared in pairs. Pure.

Columns of a row that are no numbers of its experiment say what it is about. ``host``, ``part`` and ``step`` are
*units*: parts of a cell, over which is averaged. All others are *coordinates*: each of their values is told on its own.
Rows with the same coordinates and units make a table.

An interval is over what differs by chance: hosts, where rows are of hosts (each with its mean over seeds and steps), or
parts of the time, where they are of those, else seeds (each with its mean over steps). Where all give the same there is
no chance in it, and no interval.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.lab.core.experiment import Experiment
from vedette.lab.core.plots import NOTHING, THIN, said
from vedette.lab.core.registry import BOUND, DEFAULT, metric_of
from vedette.lab.core.run_folder import Row
from vedette.lab.core.statistics import Interval, Paired, holm, interval, paired

__all__ = ["NAMES", "Comparison", "Line", "Sheet", "Table", "comparisons", "sheets", "spoken", "tables"]

HOSTS = ("host", "site")
PARTS = ("part",)
STEPS = ("step",)

Coordinates = tuple[float, ...]
Values = dict[float, list[float]]


class Line(NamedTuple):
    """What one policy reached in one world, with one budget, at some coordinates: each metric with its interval."""

    world: str
    budget: float
    policy: str
    at: Coordinates
    told: Mapping[str, Interval]


class Table(NamedTuple):
    """Lines with the same coordinates; ``over`` says what their intervals are over."""

    coordinates: tuple[str, ...]
    metrics: tuple[str, ...]
    over: str
    lines: tuple[Line, ...]


class Comparison(NamedTuple):
    """How much more a policy reached than another, run for run, and p after all questions that were asked."""

    world: str
    budget: float
    metric: str
    policy: str
    other: str
    paired: Paired
    p_holm: float


def tables(rows: Sequence[Row], experiment: Experiment) -> list[Table]:
    """Every table of an experiment's rows, in the order in which the rows come."""
    return [_table(shape, found, experiment) for shape, found in _by_shape(rows, experiment.metrics).items()]


def _by_shape(rows: Iterable[Row], metrics: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    shapes: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        shapes.setdefault(tuple(name for name in sorted(row.numbers) if name not in metrics), []).append(row)
    return shapes


def _table(shape: tuple[str, ...], rows: Sequence[Row], experiment: Experiment) -> Table:
    coordinates = tuple(name for name in shape if name not in (*HOSTS, *PARTS, *STEPS))
    metrics = tuple(name for name in experiment.metrics if any(name in row.numbers for row in rows))
    groups: dict[tuple[str, float, str, Coordinates], list[Row]] = {}
    for row in rows:
        at = tuple(row.numbers[name] for name in coordinates)
        groups.setdefault((_where(row), row.cell.budget, row.cell.policy, at), []).append(row)
    lines = [
        Line(*key, {name: _interval(values) for name in metrics if (values := _values(found, name))})
        for key, found in groups.items()
    ]
    over = (
        "hosts"
        if any(name in shape for name in HOSTS)
        else "parts"
        if any(name in shape for name in PARTS)
        else "seeds"
    )
    return Table(coordinates, metrics, over, tuple(lines))


def _where(row: Row) -> str:
    """The world, and the part of it that was looked at."""
    begin, end = row.cell.span
    return " ".join([row.cell.world, *([f"from {begin}"] if begin else []), *([f"to {end}"] if end else [])])


def _values(rows: Iterable[Row], metric: str) -> Values:
    """The numbers of a metric by what is resampled: host or seed."""
    found: Values = {}
    for row in rows:
        value = row.numbers.get(metric, math.nan)
        if not math.isnan(value):
            found.setdefault(_unit(row), []).append(value)
    return found


def _unit(row: Row) -> float:
    return next((row.numbers[name] for name in (*HOSTS, *PARTS) if name in row.numbers), float(row.cell.seed))


def _means(values: Values) -> list[float]:
    # Equal numbers have that number as their mean, to the last bit.
    return [each[0] if min(each) == max(each) else float(np.mean(each)) for each in values.values()]


def _interval(values: Values) -> Interval:
    return interval(_distinct(_means(values)))


def _distinct(values: list[float]) -> list[float]:
    """Seeds that change nothing are no evidence: many equal numbers count as one."""
    return values if any(value != values[0] for value in values) else values[:1]


def comparisons(rows: Sequence[Row], experiment: Experiment) -> list[Comparison]:
    """``default`` (or else the first policy) against each other one, by every metric of which more or less is better.

    Only rows without coordinates are compared; bounds are not, since nobody can run them.
    """
    plain = [row for row in rows if all(name in (*experiment.metrics, *HOSTS, *STEPS) for name in row.numbers)]
    policies = [name for name in dict.fromkeys(row.cell.policy for row in plain) if not name.startswith(BOUND)]
    if len(policies) < 2:
        return []
    policy = DEFAULT if DEFAULT in policies else policies[0]
    judged = [name for name in experiment.metrics if metric_of(experiment, name).more_is_better is not None]
    found = [
        Comparison(world, budget, metric, policy, other, pair, math.nan)
        for world, budget in dict.fromkeys((_where(row), row.cell.budget) for row in plain)
        for metric in judged
        for other in policies
        if other != policy and (pair := _pair(_of(plain, world, budget), metric, policy, other)).n
    ]
    corrected = holm([each.paired.p for each in found])
    return [each._replace(p_holm=p) for each, p in zip(found, corrected, strict=True)]


def _of(rows: Iterable[Row], world: str, budget: float) -> list[Row]:
    return [row for row in rows if (_where(row), row.cell.budget) == (world, budget)]


def _pair(rows: Sequence[Row], metric: str, policy: str, other: str) -> Paired:
    one, two = (_values([row for row in rows if row.cell.policy == name], metric) for name in (policy, other))
    shared = [unit for unit in one if unit in two]
    means = [_means({unit: values[unit] for unit in shared}) for values in (one, two)]
    differences = _distinct([first - second for first, second in zip(*means, strict=True)]) if shared else []
    found = paired(differences, [0.0] * len(differences))
    # One difference, or the same one with every seed, says nothing of chance.
    return found if found.n > 1 else found._replace(p=math.nan)


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
