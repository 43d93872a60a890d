"""Report on finished lab runs: a Markdown page for each experiment, with tables, paired comparisons and SVG plots.

The same is written as JSON, for the console: the lab and the live system share files, but no code.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from vedette.errors import UsageError
from vedette.lab.core.experiment import Experiment
from vedette.lab.core.plots import Plot, Point, Series, draw_svg
from vedette.lab.core.registry import find_experiment, find_metric
from vedette.lab.core.run_folder import MANIFEST_FILE, ROWS_FILE, Row, read_rows, write_atomic
from vedette.lab.core.statistics import Interval
from vedette.lab.core.summary import NAME_COLUMNS, Line, Sheet, Table, build_sheets, build_tables, humanize

GENERATED_MARK = "<!-- Written by vedette lab report: run it again instead of editing this. -->"
MAX_PLOTS = 4  # of a table and world: its first metrics
MAX_ROWS = 2000  # of a table in JSON
FORMAT_VERSION = 1  # of that JSON

LIVE_WORLD_NOTE = """\
A `live:` world is what a crawl saw: a page is born when it is first fetched, changes when the crawl notices it, and
never changes if it was fetched once. Such a world shows which policy does better, not how much the web changes."""


class FinishedRun(NamedTuple):
    """A finished lab run to report on: its manifest and its rows."""

    name: str
    manifest: Mapping[str, Any]
    rows: Sequence[Row]


class _PlotFile(NamedTuple):
    """A plot file of a report: its name, its caption, the table with its numbers, and the SVG text."""

    file: str
    caption: str
    table: int
    svg: str


class _ReportContent(NamedTuple):
    """The content of an experiment's report, before it is formatted; ``slug`` is in the names of its files."""

    slug: str
    name: str
    question: str
    commands: list[str]
    versions: str
    worlds: list[tuple[str, str]]
    sheets: list[Sheet]
    plots: list[_PlotFile]


def read_run(folder: Path) -> FinishedRun:
    """Read a finished lab run for its report; the error for an unfinished one says how to resume it."""
    if not (folder / MANIFEST_FILE).is_file() or not (folder / ROWS_FILE).is_file():
        going = (folder / "command").is_file()
        how = (
            "run the command that started it again to complete it"
            if going
            else "choose a folder that vedette lab run created"
        )
        raise UsageError(f"{folder} has no finished run: {how}")
    try:
        return FinishedRun(folder.name, _read_manifest(folder / MANIFEST_FILE), read_rows(folder / ROWS_FILE))
    except (ValueError, OSError) as error:
        raise UsageError(
            f"{folder} cannot be read ({_first_line(error)}); delete it and run the command that created it again"
        ) from error


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a run's manifest and check that it is complete enough for a report."""
    manifest = json.loads(path.read_text(encoding="utf-8"))
    kinds = {"command": str, "versions": dict, "worlds": dict}
    if not isinstance(manifest, dict) or not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{MANIFEST_FILE} lacks {', '.join(kinds)}")
    return manifest


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0][:160]


def write_report(runs: Sequence[FinishedRun], to: Path) -> list[Path]:
    """Write the reports on lab runs: a Markdown page for each experiment, its plots, and JSON; return the paths.

    No other file is touched. Each is written atomically; the JSON comes last, so its readers find the plots.
    """
    rows = _merge_rows(runs)
    written: list[Path] = []
    _create_folder(to)
    for name in dict.fromkeys(row.cell.experiment for row in rows):
        written += _write_files(_collect_content(name, [row for row in rows if row.cell.experiment == name], runs), to)
    return written


def _create_folder(to: Path) -> None:
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write a report to {to} ({error.strerror}); choose another folder") from error


def _collect_content(name: str, rows: Sequence[Row], runs: Sequence[FinishedRun]) -> _ReportContent:
    experiment = find_experiment(name)
    mine = [run for run in runs if any(row.cell.experiment == name for row in run.rows)]
    versions = dict.fromkeys(", ".join(f"{k} {v}" for k, v in run.manifest["versions"].items()) for run in mine)
    worlds = dict.fromkeys((label, mark[:12]) for run in mine for label, mark in run.manifest["worlds"].items())
    return _ReportContent(
        _slugify(name),
        experiment.name,
        _to_sentence(experiment.about),
        list(dict.fromkeys(str(run.manifest["command"]) for run in mine)),
        "; ".join(versions),
        list(worlds),
        build_sheets(rows, experiment),
        list(_draw_plots(name, rows)),
    )


def _write_files(content: _ReportContent, to: Path) -> list[Path]:
    page, data = (to / f"lab-{content.slug}.{kind}" for kind in ("md", "json"))
    if page.is_file() and GENERATED_MARK not in page.read_text(encoding="utf-8"):
        raise UsageError(f"{page} was not generated by this command; choose another folder with --to")
    write_atomic(page, _format_page(content).encode())
    for plot in content.plots:
        write_atomic(to / plot.file, plot.svg.encode())
    write_atomic(data, _format_json(content).encode())
    return [page, *(to / plot.file for plot in content.plots), data]


def _format_json(content: _ReportContent) -> str:
    """Format a lab report as JSON, for the console."""
    values = {
        "format": FORMAT_VERSION,
        "title": content.name,
        "question": content.question,
        "commands": content.commands,
        "versions": content.versions,
        "worlds": [f"{label} ({mark})" for label, mark in content.worlds],
        "tables": [_table_to_dict(sheet) for sheet in content.sheets],
        "plots": [{"file": plot.file, "caption": plot.caption, "table": plot.table} for plot in content.plots],
    }
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


def _table_to_dict(sheet: Sheet) -> dict[str, Any]:
    return {
        "title": sheet.title,
        "about": " ".join(sheet.about.replace("*", "").split()),
        "meanings": sheet.meanings,
        "columns": sheet.columns,
        "rows": sheet.lines[:MAX_ROWS],
        "left_out": max(len(sheet.lines) - MAX_ROWS, 0),
    }


def _merge_rows(runs: Sequence[FinishedRun]) -> list[Row]:
    """Merge the rows of all runs of a report; a cell in several runs counts once, and must agree in all."""
    cells: dict[Any, tuple[str, list[Row]]] = {}
    for run in runs:
        mine: dict[Any, list[Row]] = {}
        for row in run.rows:
            mine.setdefault(row.cell, []).append(row)
        for cell, rows in mine.items():
            other, had = cells.setdefault(cell, (run.name, rows))
            if repr(had) != repr(rows):
                raise UsageError(
                    f"{other} and {run.name} have different rows for the same cell; report them separately"
                )
    return [row for _, rows in cells.values() for row in rows]


def _format_page(content: _ReportContent) -> str:
    parts = [GENERATED_MARK, f"# The lab: {content.name}", content.question, *_format_origin(content)]
    for sheet in content.sheets:
        parts += _format_section(sheet)
    if content.plots:
        parts += ["## Plots", "Bounds are dashed, `default` is thick, bands are 95% confidence intervals."]
        parts += [f"![{_alt_text(plot.file)}]({plot.file})" for plot in content.plots]
    return "\n\n".join(parts) + "\n"


def _format_origin(content: _ReportContent) -> Iterator[str]:
    yield "\n".join(f"    {command}" for command in content.commands)
    yield f"With {content.versions}. Worlds, with a hash of their contents:"
    yield "\n".join(f"- `{label}` ({mark})" for label, mark in content.worlds)
    if any(label.startswith("live:") for label, _ in content.worlds):
        yield LIVE_WORLD_NOTE


def _format_section(sheet: Sheet) -> Iterator[str]:
    yield f"## {sheet.title}"
    yield sheet.about
    if sheet.meanings:
        yield "\n".join(f"- **{name}**: {words}" for name, words in sheet.meanings)
    yield _format_table(sheet.columns, [_format_cells(sheet, line) for line in sheet.lines[: sheet.max_printed]])
    if len(sheet.lines) > sheet.max_printed:
        yield f"{len(sheet.lines) - sheet.max_printed} more lines are in the raw results of the run."


def _format_cells(sheet: Sheet, line: Sequence[str]) -> list[str]:
    return [f"`{text}`" if name in NAME_COLUMNS else text for name, text in zip(sheet.columns, line, strict=True)]


def _format_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows)


def _draw_plots(name: str, rows: Sequence[Row]) -> Iterator[_PlotFile]:
    experiment = find_experiment(name)
    for number, table in enumerate(build_tables(rows, experiment)):
        across = _choose_x(table)
        metrics = _choose_metrics(experiment, table, across)
        for world in dict.fromkeys(line.world for line in table.lines):
            for metric in metrics:
                for rest, plot in _build_plots(table, world, metric, across, experiment):
                    parts = [name, world, metric, "by", across or "policy", *rest]
                    yield _PlotFile(f"lab-{_slugify('-'.join(parts))}.svg", plot.title, number, draw_svg(plot))


def _choose_metrics(experiment: Experiment, table: Table, across: str) -> Sequence[str]:
    """Choose the metrics of a table that the report plots: the experiment's choice, or the first few."""
    if not experiment.figures:
        return table.metrics[:MAX_PLOTS]
    return [metric for metric, over in experiment.figures if over == across and metric in table.metrics]


def _choose_x(table: Table) -> str:
    """Choose the x axis of a report's plots: the coordinate with most values, else the budget, else none."""
    counts = {
        name: len(dict.fromkeys(line.coordinates[place] for line in table.lines))
        for place, name in enumerate(table.coordinates)
    }
    widest = max(counts, key=lambda name: counts[name], default="")
    if widest and counts[widest] > 2:
        return widest
    return "budget" if len(dict.fromkeys(line.budget for line in table.lines)) > 1 else ""


def _build_plots(
    table: Table, world: str, metric: str, across: str, experiment: Experiment
) -> Iterator[tuple[list[str], Plot]]:
    """Build a report's plots of a metric: one for each combination of the remaining coordinates."""
    meaning = find_metric(experiment, metric)
    groups: dict[tuple[str, ...], dict[str, list[Point]]] = {}
    for line in table.lines:
        if line.world == world and metric in line.metrics:
            x, rest = _find_x(line, table, across)
            groups.setdefault(rest, {}).setdefault(line.policy, []).append(_build_point(x, line.metrics, metric))
    for rest, found in groups.items():
        if not _is_informative([dot for dots in found.values() for dot in dots]):
            continue
        title = ", ".join([f"{humanize(metric)} in {world}", *rest])
        series = [Series(policy, dots) for policy, dots in found.items()]
        yield list(rest), Plot(title, humanize(across or "policy"), meaning.description, meaning.unit, series)


def _is_informative(dots: Sequence[Point]) -> bool:
    """Check whether a report's plot is worth drawing: its values differ, or some have intervals."""
    return any(dot.y != dots[0].y or not math.isnan(dot.low) for dot in dots)


def _build_point(x: float, intervals: Mapping[str, Interval], metric: str) -> Point:
    """Build a point of a report's plot, with its interval over hosts or seeds, or the experiment's own."""
    mean, low, high, _ = intervals[metric]
    if math.isnan(low) and f"{metric}_low" in intervals and f"{metric}_high" in intervals:
        low, high = intervals[f"{metric}_low"].mean, intervals[f"{metric}_high"].mean
    return Point(x, mean, low, high)


def _find_x(line: Line, table: Table, across: str) -> tuple[float, tuple[str, ...]]:
    coordinates = {"budget": line.budget, **dict(zip(table.coordinates, line.coordinates, strict=True))}
    several = len(dict.fromkeys(each.budget for each in table.lines)) > 1
    rest = [
        f"{humanize(name)} = {value:g}"
        for name, value in coordinates.items()
        if name != across and (name != "budget" or several)
    ]
    return coordinates.get(across, 0.0), tuple(rest)


def _slugify(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _alt_text(file: str) -> str:
    return file.removesuffix(".svg").removeprefix("lab-").replace("-", " ")


def _to_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', ')')) else '.'}"
