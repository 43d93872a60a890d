"""Runs as a document: a page of Markdown for each experiment, with tables, paired comparisons and plots as SVG."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import UsageError
from vedette.lab.experiment import Experiment
from vedette.lab.plots import Dot, Plot, Series, draw
from vedette.lab.registry import experiment_named, metric_of
from vedette.lab.rows import Row, read_rows
from vedette.lab.run_folder import MANIFEST, ROWS
from vedette.lab.scales import NOTHING, THIN, said
from vedette.lab.statistics import Interval
from vedette.lab.summary import Comparison, Line, Table, comparisons, tables

__all__ = ["Run", "read_run", "write_report"]

MARK = "<!-- Written by vedette lab report: run it again instead of editing this. -->"
MOST_LINES = 60
MOST_PLOTS = 4  # of a table and world: its first metrics

READING = """\
Each number is a mean; in brackets is its 95 % interval (bootstrap, BCa, widened for few values; over {units}). A number
without brackets has no chance in it, or was measured once. *n* is how many values there are."""

COMPARING = """\
Differences are taken run by run: both policies had the same world, budget and seed. *p* is by random signs, two-sided;
*p (Holm)* holds for all lines of this table together. A difference without either is the same with every seed."""


class Run(NamedTuple):
    """A finished run: what its manifest says, and its rows."""

    name: str
    manifest: Mapping[str, Any]
    rows: Sequence[Row]


def read_run(folder: Path) -> Run:
    """A run that was finished; one that was not says how to go on."""
    if not (folder / MANIFEST).is_file() or not (folder / ROWS).is_file():
        going = (folder / "command").is_file()
        how = "run its command again to finish it" if going else "name a folder that vedette lab run has made"
        raise UsageError(f"{folder} holds no finished run: {how}")
    return Run(folder.name, json.loads((folder / MANIFEST).read_text(encoding="utf-8")), read_rows(folder / ROWS))


def write_report(runs: Sequence[Run], to: Path) -> list[Path]:
    """A page for each experiment of the runs, and its plots; the files that were written. No other file is touched."""
    rows = _together(runs)
    names = list(dict.fromkeys(row.cell.experiment for row in rows))
    written: list[Path] = []
    to.mkdir(parents=True, exist_ok=True)
    for name in names:
        mine = [row for row in rows if row.cell.experiment == name]
        plots = dict(_plots(name, mine))
        page = to / f"lab-{_slug(name)}.md"
        if page.is_file() and MARK not in page.read_text(encoding="utf-8"):
            raise UsageError(f"{page} was written by a person; name another folder with --to")
        page.write_text(_page(name, mine, runs, list(plots)), encoding="utf-8")
        for file, (_, drawing) in plots.items():
            (to / file).write_text(drawing, encoding="utf-8")
        written += [page, *(to / file for file in plots)]
    return written


def _together(runs: Sequence[Run]) -> list[Row]:
    """The rows of all runs; a cell that several have is taken once, and must be the same in all."""
    cells: dict[Any, tuple[str, list[Row]]] = {}
    for run in runs:
        mine: dict[Any, list[Row]] = {}
        for row in run.rows:
            mine.setdefault(row.cell, []).append(row)
        for cell, rows in mine.items():
            other, had = cells.setdefault(cell, (run.name, rows))
            if repr(had) != repr(rows):
                raise UsageError(f"{other} and {run.name} have different rows for the same cell; report them apart")
    return [row for _, rows in cells.values() for row in rows]


def _page(name: str, rows: Sequence[Row], runs: Sequence[Run], plots: Sequence[str]) -> str:
    experiment = experiment_named(name)
    mine = [run for run in runs if any(row.cell.experiment == name for row in run.rows)]
    parts = [MARK, f"# The lab: {experiment.name}", _sentence(experiment.about), *_origin(mine)]
    for table in tables(rows, experiment):
        parts += _section(table, experiment)
    if compared := comparisons(rows, experiment):
        parts += ["## Policies compared", COMPARING, _compared(compared, experiment)]
    if plots:
        parts += ["## Plots", "Bounds are dashed, `default` is thick, bands are 95 % intervals."]
        parts += [f"![{_alt(file)}]({file})" for file in plots]
    return "\n\n".join(parts) + "\n"


def _origin(runs: Sequence[Run]) -> Iterator[str]:
    yield "\n".join(f"    {run.manifest['command']}" for run in runs)
    versions = dict.fromkeys(", ".join(f"{k} {v}" for k, v in run.manifest["versions"].items()) for run in runs)
    yield f"With {'; '.join(versions)}. Worlds (what they are made of):"
    worlds = dict.fromkeys((label, mark) for run in runs for label, mark in run.manifest["worlds"].items())
    yield "\n".join(f"- `{label}` ({mark[:12]})" for label, mark in worlds)


def _section(table: Table, experiment: Experiment) -> Iterator[str]:
    by = ", ".join(_words(name) for name in table.coordinates)
    yield f"## By {by}" if by else "## By host" if table.over_hosts else "## By world, budget and policy"
    yield READING.format(units="hosts" if table.over_hosts else "seeds")
    meanings = [(name, metric_of(experiment, name)) for name in table.metrics]
    yield "\n".join(f"- **{_words(name)}**: {metric.words}" for name, metric in meanings)
    head = ["world", "budget", "policy", *(_words(name) for name in (*table.coordinates, *table.metrics)), "n"]
    units = {name: metric.unit for name, metric in meanings}
    yield _markdown(head, [_cells(line, table, units) for line in table.lines[:MOST_LINES]])
    if len(table.lines) > MOST_LINES:
        yield f"{len(table.lines) - MOST_LINES} more lines are in the rows of the run."


def _cells(line: Line, table: Table, units: Mapping[str, str]) -> list[str]:
    numbers = [_with_interval(line.told[name], units[name]) if name in line.told else "" for name in table.metrics]
    n = max((each.n for each in line.told.values()), default=0)
    return [
        f"`{line.world}`",
        said(line.budget, ""),
        f"`{line.policy}`",
        *(said(x, "") for x in line.at),
        *numbers,
        str(n),
    ]


def _with_interval(told: Interval, unit: str) -> str:
    if math.isnan(told.low) or told.low == told.high:
        return said(told.mean, unit)
    low, high = said(told.low, unit), said(told.high, unit)
    return f"{said(told.mean, unit)} [{low.partition(THIN)[0] if unit else low}, {high}]"


def _compared(found: Sequence[Comparison], experiment: Experiment) -> str:
    head = ["world", "budget", "metric", "policies", "difference", "p", "p (Holm)", "n"]
    return _markdown(head, [_comparison(each, experiment) for each in found])


def _comparison(each: Comparison, experiment: Experiment) -> list[str]:
    unit = metric_of(experiment, each.metric).unit
    mean, low, high, p, n = each.paired
    if unit == "share":
        # Between 60 % and 63 % there are three points, not 3 %.
        mean, low, high, unit = 100 * mean, 100 * low, 100 * high, "points"
    known = [NOTHING if math.isnan(value) else f"{value:.2g}" for value in (p, each.p_holm)]
    who = f"`{each.policy}` - `{each.other}`"
    difference = _with_interval(Interval(mean, low, high, n), unit)
    return [f"`{each.world}`", said(each.budget, ""), _words(each.metric), who, difference, *known, str(n)]


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def _plots(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each plot's file name, with its title and its drawing."""
    experiment = experiment_named(name)
    for table in tables(rows, experiment):
        across = _across(table)
        for world in dict.fromkeys(line.world for line in table.lines):
            for metric in table.metrics[:MOST_PLOTS]:
                for rest, plot in _drawn(table, world, metric, across, experiment):
                    parts = [name, world, metric, "by", across or "policy", *rest]
                    yield f"lab-{_slug('-'.join(parts))}.svg", (plot.title, draw(plot))


def _across(table: Table) -> str:
    """What goes to the right: the coordinate of most values, else the budget if there are several, else nothing."""
    counts = {
        name: len(dict.fromkeys(line.at[place] for line in table.lines)) for place, name in enumerate(table.coordinates)
    }
    widest = max(counts, key=lambda name: counts[name], default="")
    if widest and counts[widest] > 2:
        return widest
    return "budget" if len(dict.fromkeys(line.budget for line in table.lines)) > 1 else ""


def _drawn(
    table: Table, world: str, metric: str, across: str, experiment: Experiment
) -> Iterator[tuple[list[str], Plot]]:
    """A plot for each combination of what is neither drawn to the right nor as lines."""
    meaning = metric_of(experiment, metric)
    groups: dict[tuple[str, ...], dict[str, list[Dot]]] = {}
    for line in table.lines:
        if line.world == world and metric in line.told:
            x, rest = _place(line, table, across)
            told = line.told[metric]
            groups.setdefault(rest, {}).setdefault(line.policy, []).append(Dot(x, told.mean, told.low, told.high))
    for rest, found in groups.items():
        title = ", ".join([f"{_words(metric)} in {world}", *rest])
        series = [Series(policy, dots) for policy, dots in found.items()]
        yield list(rest), Plot(title, _words(across or "policy"), meaning.words, meaning.unit, series)


def _place(line: Line, table: Table, across: str) -> tuple[float, tuple[str, ...]]:
    known = {"budget": line.budget, **dict(zip(table.coordinates, line.at, strict=True))}
    several = len(dict.fromkeys(each.budget for each in table.lines)) > 1
    rest = [
        f"{_words(name)} {value:g}" for name, value in known.items() if name != across and (name != "budget" or several)
    ]
    return known.get(across, 0.0), tuple(rest)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _alt(file: str) -> str:
    return file.removesuffix(".svg").removeprefix("lab-").replace("-", " ")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', ')')) else '.'}"
