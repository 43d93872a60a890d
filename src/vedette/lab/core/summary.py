"""Summary of an experiment's rows: means with confidence intervals, and paired comparisons of policies. Pure.

Columns of a row that are not metrics of its experiment describe it. ``host``, ``part`` and ``step`` are *units*: parts
of a cell that are averaged over. All others are *coordinates*: each of their values has its own lines. Rows with the
same coordinates and units make a table.

An interval is over what varies by chance: hosts, if rows are of hosts (each with its mean over seeds and steps), or
parts of the time, if they are of those, else seeds (each with its mean over steps). If all are equal there is no
chance, and no interval.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vedette.lab.core.experiment import Experiment
from vedette.lab.core.plots import NO_VALUE, THIN_SPACE, format_value
from vedette.lab.core.registry import BOUND_PREFIX, DEFAULT, find_metric
from vedette.lab.core.run_folder import Row
from vedette.lab.core.statistics import Interval, PairedDifference, adjust_holm, bootstrap_interval, compare_paired

HOST_COLUMNS = ("host", "site")
PART_COLUMNS = ("part",)
STEP_COLUMNS = ("step",)

Coordinates = tuple[float, ...]
Values = dict[float, list[float]]


class Line(NamedTuple):
    """A line of a summary table: one policy in one world, with one budget, at some coordinates, and its metrics."""

    world: str
    budget: float
    policy: str
    coordinates: Coordinates
    metrics: Mapping[str, Interval]


class Table(NamedTuple):
    """A summary table of lines with the same coordinates; ``over`` says what their intervals are over."""

    coordinates: tuple[str, ...]
    metrics: tuple[str, ...]
    over: str
    lines: tuple[Line, ...]


class Comparison(NamedTuple):
    """A paired comparison of two policies on a metric: the mean difference, and p adjusted for all comparisons."""

    world: str
    budget: float
    metric: str
    policy: str
    other: str
    paired: PairedDifference
    p_holm: float


def build_tables(rows: Sequence[Row], experiment: Experiment) -> list[Table]:
    """Summarize an experiment's rows as tables of means with intervals, in the order in which the rows come."""
    return [
        _build_table(shape, found, experiment) for shape, found in _group_by_columns(rows, experiment.metrics).items()
    ]


def _group_by_columns(rows: Iterable[Row], metrics: Sequence[str]) -> dict[tuple[str, ...], list[Row]]:
    shapes: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        shapes.setdefault(tuple(name for name in sorted(row.numbers) if name not in metrics), []).append(row)
    return shapes


def _build_table(shape: tuple[str, ...], rows: Sequence[Row], experiment: Experiment) -> Table:
    coordinates = tuple(name for name in shape if name not in (*HOST_COLUMNS, *PART_COLUMNS, *STEP_COLUMNS))
    metrics = tuple(name for name in experiment.metrics if any(name in row.numbers for row in rows))
    groups: dict[tuple[str, float, str, Coordinates], list[Row]] = {}
    for row in rows:
        at = tuple(row.numbers[name] for name in coordinates)
        groups.setdefault((_describe_world(row), row.cell.budget, row.cell.policy, at), []).append(row)
    lines = [
        Line(*key, {name: _compute_interval(values) for name in metrics if (values := _collect_values(found, name))})
        for key, found in groups.items()
    ]
    over = (
        "hosts"
        if any(name in shape for name in HOST_COLUMNS)
        else "parts"
        if any(name in shape for name in PART_COLUMNS)
        else "seeds"
    )
    return Table(coordinates, metrics, over, tuple(lines))


def _describe_world(row: Row) -> str:
    """Describe the world of a row and the time span used, for a summary table."""
    begin, end = row.cell.span
    return " ".join([row.cell.world, *([f"from {begin}"] if begin else []), *([f"to {end}"] if end else [])])


def _collect_values(rows: Iterable[Row], metric: str) -> Values:
    """Collect the values of a metric by the unit that is resampled in a summary: host, part or seed."""
    found: Values = {}
    for row in rows:
        value = row.numbers.get(metric, math.nan)
        if not math.isnan(value):
            found.setdefault(_resampling_unit(row), []).append(value)
    return found


def _resampling_unit(row: Row) -> float:
    return next(
        (row.numbers[name] for name in (*HOST_COLUMNS, *PART_COLUMNS) if name in row.numbers), float(row.cell.seed)
    )


def _unit_means(values: Values) -> list[float]:
    # The mean of equal numbers is that number, to the last bit.
    return [each[0] if min(each) == max(each) else float(np.mean(each)) for each in values.values()]


def _compute_interval(values: Values) -> Interval:
    return bootstrap_interval(_collapse_equal(_unit_means(values)))


def _collapse_equal(values: list[float]) -> list[float]:
    """Collapse values that are all equal to one: seeds without effect are no evidence."""
    return values if any(value != values[0] for value in values) else values[:1]


def compare_policies(rows: Sequence[Row], experiment: Experiment) -> list[Comparison]:
    """Compare ``default`` (or else the first policy) with each other one, by every metric that has a better direction.

    Only rows without coordinates are compared; bounds are not, since no crawler can run them.
    """
    plain = [
        row for row in rows if all(name in (*experiment.metrics, *HOST_COLUMNS, *STEP_COLUMNS) for name in row.numbers)
    ]
    policies = [name for name in dict.fromkeys(row.cell.policy for row in plain) if not name.startswith(BOUND_PREFIX)]
    if len(policies) < 2:
        return []
    policy = DEFAULT if DEFAULT in policies else policies[0]
    judged = [name for name in experiment.metrics if find_metric(experiment, name).more_is_better is not None]
    found = [
        Comparison(world, budget, metric, policy, other, pair, math.nan)
        for world, budget in dict.fromkeys((_describe_world(row), row.cell.budget) for row in plain)
        for metric in judged
        for other in policies
        if other != policy and (pair := _compare_pair(_select_rows(plain, world, budget), metric, policy, other)).n
    ]
    corrected = adjust_holm([each.paired.p for each in found])
    return [each._replace(p_holm=p) for each, p in zip(found, corrected, strict=True)]


def _select_rows(rows: Iterable[Row], world: str, budget: float) -> list[Row]:
    return [row for row in rows if (_describe_world(row), row.cell.budget) == (world, budget)]


def _compare_pair(rows: Sequence[Row], metric: str, policy: str, other: str) -> PairedDifference:
    one, two = (_collect_values([row for row in rows if row.cell.policy == name], metric) for name in (policy, other))
    shared = [unit for unit in one if unit in two]
    means = [_unit_means({unit: values[unit] for unit in shared}) for values in (one, two)]
    differences = _collapse_equal([first - second for first, second in zip(*means, strict=True)]) if shared else []
    found = compare_paired(differences, [0.0] * len(differences))
    # One difference, or the same one with every seed, says nothing about chance.
    return found if found.n > 1 else found._replace(p=math.nan)


MAX_PRINTED_LINES = 60  # on paper
NAME_COLUMNS = ("world", "policy", "against")  # columns with names
UNIT_NAMES = {"hosts": "hosts", "parts": "parts of the time", "seeds": "seeds"}

READING_NOTE = """\
Each number is a mean with its 95% confidence interval in brackets (BCa bootstrap, widened for few values; over
{units}). A number without brackets is deterministic or was measured once. *n* is the number of values."""

COMPARISON_NOTE = """\
Differences are paired by host, part or run: both policies had the same world, budget and seed. *p* is from a two-sided
sign-flip test; *p (Holm)* is corrected for all lines of this table. A difference without either never varies."""


class Sheet(NamedTuple):
    """A summary table to print: its title, how to read it, what its metrics mean, its lines, and how many to show."""

    title: str
    about: str
    meanings: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    max_printed: int = MAX_PRINTED_LINES


def build_sheets(rows: Sequence[Row], experiment: Experiment) -> list[Sheet]:
    """Build a printable sheet for each summary table of an experiment's rows, and one that compares the policies."""
    return [
        *(_build_sheet(table, experiment) for table in build_tables(rows, experiment)),
        *_build_comparison_sheet(rows, experiment),
    ]


def humanize(name: str) -> str:
    """Return the name of a metric with spaces instead of underscores.

    >>> humanize("changed_per_fetch")
    'changed per fetch'
    """
    return name.replace("_", " ")


def _build_sheet(table: Table, experiment: Experiment) -> Sheet:
    by = ", ".join(humanize(name) for name in table.coordinates)
    meanings = {name: find_metric(experiment, name) for name in table.metrics}
    units = {name: metric.unit for name, metric in meanings.items()}
    return Sheet(
        f"By {by}" if by else "By host" if table.over == "hosts" else "By world, budget and policy",
        READING_NOTE.format(units=UNIT_NAMES[table.over]),
        tuple((humanize(name), metric.description) for name, metric in meanings.items()),
        ("world", "budget", "policy", *(humanize(name) for name in (*table.coordinates, *table.metrics)), "n"),
        tuple(_format_line(line, table, units) for line in table.lines),
    )


def _format_line(line: Line, table: Table, units: Mapping[str, str]) -> tuple[str, ...]:
    numbers = [
        _format_interval(line.metrics[name], units[name]) if name in line.metrics else "" for name in table.metrics
    ]
    n = max((each.n for each in line.metrics.values()), default=0)
    return (
        line.world,
        format_value(line.budget, ""),
        line.policy,
        *(format_value(x, "") for x in line.coordinates),
        *numbers,
        str(n),
    )


def _format_interval(interval: Interval, unit: str) -> str:
    if math.isnan(interval.low) or interval.low == interval.high:
        return format_value(interval.mean, unit)
    low, high = format_value(interval.low, unit), format_value(interval.high, unit)
    return f"{format_value(interval.mean, unit)} [{low.rpartition(THIN_SPACE)[0] if unit else low}, {high}]"


def _build_comparison_sheet(rows: Sequence[Row], experiment: Experiment) -> Iterator[Sheet]:
    if found := compare_policies(rows, experiment):
        columns = ("world", "budget", "metric", "policy", "against", "difference", "p", "p (Holm)", "n")
        lines = tuple(_format_comparison(each, experiment) for each in found)
        yield Sheet("Policies compared", COMPARISON_NOTE, (), columns, lines, len(lines))


def _format_comparison(each: Comparison, experiment: Experiment) -> tuple[str, ...]:
    unit = find_metric(experiment, each.metric).unit
    mean, low, high, p, n = each.paired
    if unit == "share":
        # Between 60% and 63% there are three points, not 3%.
        mean, low, high, unit = 100 * mean, 100 * low, 100 * high, "points"
    p_values = [NO_VALUE if math.isnan(value) else f"{value:.2g}" for value in (p, each.p_holm)]
    difference = _format_interval(Interval(mean, low, high, n), unit)
    where = each.world, format_value(each.budget, ""), humanize(each.metric)
    return *where, each.policy, each.other, difference, *p_values, str(n)
