"""Runs as a document: a page of Markdown for each experiment, with tables, paired comparisons and plots as SVG.

The same is written as JSON, for the console: the lab and what runs live share files, and no code.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.experiment import Experiment
from vedette.lab.core.plots import Dot, Plot, Series, draw
from vedette.lab.core.registry import experiment_named, metric_of
from vedette.lab.core.run_folder import MANIFEST, ROWS, Row, read_rows
from vedette.lab.core.statistics import Interval
from vedette.lab.core.summary import NAMES, Line, Sheet, Table, sheets, spoken, tables

__all__ = ["Run", "read_run", "write_report"]

MARK = "<!-- Written by vedette lab report: run it again instead of editing this. -->"
MOST_PLOTS = 4  # of a table and world: its first metrics
MOST_ROWS = 2000  # of a table in JSON
FORMAT = 1  # of that JSON

OWN_CRAWL = """\
A world `live:` is what a crawl saw. A page is born there when it was first fetched, changes when that was noticed, and
never changes if it was fetched once. So such a world tells which policy does better, not how much the web changes."""


class Run(NamedTuple):
    """A finished run: what its manifest says, and its rows."""

    name: str
    manifest: Mapping[str, Any]
    rows: Sequence[Row]


class _Drawn(NamedTuple):
    """A plot: its file, what it shows, which table has its numbers, and the file's text."""

    file: str
    caption: str
    table: int
    drawing: str


class _Told(NamedTuple):
    """All that is told of an experiment, before it is written in some form; ``slug`` is in the names of its files."""

    slug: str
    name: str
    question: str
    commands: list[str]
    versions: str
    worlds: list[tuple[str, str]]
    sheets: list[Sheet]
    plots: list[_Drawn]


def read_run(folder: Path) -> Run:
    """A run that was finished; one that was not says how to go on."""
    if not (folder / MANIFEST).is_file() or not (folder / ROWS).is_file():
        going = (folder / "command").is_file()
        how = "run its command again to finish it" if going else "name a folder that vedette lab run has made"
        raise UsageError(f"{folder} holds no finished run: {how}")
    try:
        return Run(folder.name, _manifest(folder / MANIFEST), read_rows(folder / ROWS))
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{folder} cannot be read ({_first_line(error)}); remove it and run its command again"
        ) from error


def _manifest(path: Path) -> dict[str, Any]:
    """What a manifest says, if it says what a report needs."""
    said = json.loads(path.read_text(encoding="utf-8"))
    kinds = {"command": str, "versions": dict, "worlds": dict}
    if not isinstance(said, dict) or not all(isinstance(said.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{MANIFEST} does not say {', '.join(kinds)}")
    return said


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:160]


def write_report(runs: Sequence[Run], to: Path) -> list[Path]:
    """A page for each experiment of the runs, its plots, and all of it as JSON; the files that were written.

    No other file is touched. Each is there whole or as it was; the JSON comes last, so who reads it finds its plots.
    """
    rows = _together(runs)
    written: list[Path] = []
    _make_folder(to)
    for name in dict.fromkeys(row.cell.experiment for row in rows):
        written += _write(_told(name, [row for row in rows if row.cell.experiment == name], runs), to)
    return written


def _make_folder(to: Path) -> None:
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{to}: no report can be written there ({error.strerror}); name another folder") from error


def _told(name: str, rows: Sequence[Row], runs: Sequence[Run]) -> _Told:
    experiment = experiment_named(name)
    mine = [run for run in runs if any(row.cell.experiment == name for row in run.rows)]
    versions = dict.fromkeys(", ".join(f"{k} {v}" for k, v in run.manifest["versions"].items()) for run in mine)
    worlds = dict.fromkeys((label, mark[:12]) for run in mine for label, mark in run.manifest["worlds"].items())
    return _Told(
        _slug(name),
        experiment.name,
        _sentence(experiment.about),
        list(dict.fromkeys(str(run.manifest["command"]) for run in mine)),
        "; ".join(versions),
        list(worlds),
        sheets(rows, experiment),
        list(_plots(name, rows)),
    )


def _write(told: _Told, to: Path) -> list[Path]:
    page, data = (to / f"lab-{told.slug}.{kind}" for kind in ("md", "json"))
    if page.is_file() and MARK not in page.read_text(encoding="utf-8"):
        raise UsageError(f"{page} was written by a person; name another folder with --to")
    _put(page, _page(told))
    for plot in told.plots:
        _put(to / plot.file, plot.drawing)
    _put(data, _data(told))
    return [page, *(to / plot.file for plot in told.plots), data]


def _put(path: Path, text: str) -> None:
    """A file, whole or as it was: somebody may look at it, or copy it, meanwhile."""
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _data(told: _Told) -> str:
    """The same as plain values, for whoever shows it elsewhere."""
    values = {
        "format": FORMAT,
        "title": told.name,
        "question": told.question,
        "commands": told.commands,
        "versions": told.versions,
        "worlds": [f"{label} ({mark})" for label, mark in told.worlds],
        "tables": [_plain(sheet) for sheet in told.sheets],
        "plots": [{"file": plot.file, "caption": plot.caption, "table": plot.table} for plot in told.plots],
    }
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


def _plain(sheet: Sheet) -> dict[str, Any]:
    return {
        "title": sheet.title,
        "about": " ".join(sheet.about.replace("*", "").split()),
        "meanings": sheet.meanings,
        "columns": sheet.columns,
        "rows": sheet.lines[:MOST_ROWS],
        "left_out": max(len(sheet.lines) - MOST_ROWS, 0),
    }


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


def _page(told: _Told) -> str:
    parts = [MARK, f"# The lab: {told.name}", told.question, *_origin(told)]
    for sheet in told.sheets:
        parts += _section(sheet)
    if told.plots:
        parts += ["## Plots", "Bounds are dashed, `default` is thick, bands are 95 % intervals."]
        parts += [f"![{_alt(plot.file)}]({plot.file})" for plot in told.plots]
    return "\n\n".join(parts) + "\n"


def _origin(told: _Told) -> Iterator[str]:
    yield "\n".join(f"    {command}" for command in told.commands)
    yield f"With {told.versions}. Worlds (what they are made of):"
    yield "\n".join(f"- `{label}` ({mark})" for label, mark in told.worlds)
    if any(label.startswith("live:") for label, _ in told.worlds):
        yield OWN_CRAWL


def _section(sheet: Sheet) -> Iterator[str]:
    yield f"## {sheet.title}"
    yield sheet.about
    if sheet.meanings:
        yield "\n".join(f"- **{name}**: {words}" for name, words in sheet.meanings)
    yield _markdown(sheet.columns, [_marked(sheet, line) for line in sheet.lines[: sheet.most_on_paper]])
    if len(sheet.lines) > sheet.most_on_paper:
        yield f"{len(sheet.lines) - sheet.most_on_paper} more lines are in the rows of the run."


def _marked(sheet: Sheet, line: Sequence[str]) -> list[str]:
    return [f"`{text}`" if name in NAMES else text for name, text in zip(sheet.columns, line, strict=True)]


def _markdown(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def _plots(name: str, rows: Sequence[Row]) -> Iterator[_Drawn]:
    experiment = experiment_named(name)
    for number, table in enumerate(tables(rows, experiment)):
        across = _across(table)
        metrics = _figures(experiment, table, across)
        for world in dict.fromkeys(line.world for line in table.lines):
            for metric in metrics:
                for rest, plot in _drawn(table, world, metric, across, experiment):
                    parts = [name, world, metric, "by", across or "policy", *rest]
                    yield _Drawn(f"lab-{_slug('-'.join(parts))}.svg", plot.title, number, draw(plot))


def _figures(experiment: Experiment, table: Table, across: str) -> Sequence[str]:
    """The numbers of a table that are drawn: those that the experiment chose, if it did, else the first few."""
    if not experiment.figures:
        return table.metrics[:MOST_PLOTS]
    return [metric for metric, over in experiment.figures if over == across and metric in table.metrics]


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
            groups.setdefault(rest, {}).setdefault(line.policy, []).append(_dot(x, line.told, metric))
    for rest, found in groups.items():
        if not _is_worth_a_look([dot for dots in found.values() for dot in dots]):
            continue
        title = ", ".join([f"{spoken(metric)} in {world}", *rest])
        series = [Series(policy, dots) for policy, dots in found.items()]
        yield list(rest), Plot(title, spoken(across or "policy"), meaning.words, meaning.unit, series)


def _is_worth_a_look(dots: Sequence[Dot]) -> bool:
    """One number is no figure, nor is the same one everywhere, unless it has an interval; tables have them."""
    return any(dot.y != dots[0].y or not math.isnan(dot.low) for dot in dots)


def _dot(x: float, told: Mapping[str, Interval], metric: str) -> Dot:
    """A value with its interval: over hosts or seeds, or else the one that the experiment itself has told."""
    mean, low, high, _ = told[metric]
    if math.isnan(low) and f"{metric}_low" in told and f"{metric}_high" in told:
        low, high = told[f"{metric}_low"].mean, told[f"{metric}_high"].mean
    return Dot(x, mean, low, high)


def _place(line: Line, table: Table, across: str) -> tuple[float, tuple[str, ...]]:
    known = {"budget": line.budget, **dict(zip(table.coordinates, line.at, strict=True))}
    several = len(dict.fromkeys(each.budget for each in table.lines)) > 1
    rest = [
        f"{spoken(name)} = {value:g}"
        for name, value in known.items()
        if name != across and (name != "budget" or several)
    ]
    return known.get(across, 0.0), tuple(rest)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _alt(file: str) -> str:
    return file.removesuffix(".svg").removeprefix("lab-").replace("-", " ")


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', ')')) else '.'}"
