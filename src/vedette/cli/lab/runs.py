"""What ``vedette lab list``, ``run``, ``report`` and the imports do."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from vedette.adapters.crawl_store.data_folder import check_format
from vedette.cli.data_folder import folder_of
from vedette.cli.output import bytes_in_words, counted, plain, span
from vedette.cli.progress import Gauge
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment
from vedette.lab.core.plan import Plan, Wanted, plan_of, read_span
from vedette.lab.core.plots import THIN
from vedette.lab.core.registry import BOUND, experiment_named, experiments, metric_of
from vedette.lab.core.report import read_run, write_report
from vedette.lab.core.run_folder import ROWS, Row, RunFolder, default_folder
from vedette.lab.core.run_folder import plain as plain_runs
from vedette.lab.core.runner import run_cells
from vedette.lab.core.summary import sheets, spoken
from vedette.lab.worlds.catalog import Place, place_of, worlds_there

__all__ = ["VERBS", "RunProgress", "table_lines"]

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


EVERY_S = 5.0


class RunProgress:
    """Shows how many cells are done, which was the last, and how long the rest may take; a context manager."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total = total
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began_s = self._said_s = time.monotonic()
        self._first: int | None = None

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            self._start()
        return self

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        # What stands in a cell's name is not markup.
        words = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        self._bar = Progress(
            MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(), words, console=console, transient=True
        )
        self._bar.start()
        self._task = self._bar.add_task("starting", total=self._total)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def look(self, done: int, total: int, cell: Cell) -> None:
        """So many cells are done; this was the last."""
        self._first = done - 1 if self._first is None else self._first
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=plain(f"{cell.world} {cell.policy}", 60))
            return
        now_s = time.monotonic()
        if not self._quiet and (now_s - self._said_s >= EVERY_S or done == total):
            self._said_s = now_s
            print(self._line(done, total, now_s), file=sys.stderr, flush=True)

    def _line(self, done: int, total: int, now_s: float) -> str:
        here = done - (self._first or 0)
        left = f", about {span((now_s - self._began_s) / here * (total - done))} left" if done < total else ""
        return f"{done} of {counted(total, 'cell')} after {span(now_s - self._began_s)}{left}"


# All numbers, comparisons and plots are in a report.


WIDTH = 100
MOST_LINES = 40  # what is longer is for a report
MOST_ROWS = 10_000
NAMED = ("world", "budget", "policy")


def table_lines(rows: Sequence[Row], experiment: Experiment, width: int = WIDTH) -> list[str]:
    """The plain table of one experiment's rows, or nothing where it would be long; as many metrics as there is room."""
    told = {(row.cell.world, row.cell.budget, row.cell.policy) for row in rows}
    if len(told) > MOST_LINES or len(rows) > MOST_ROWS or not _is_plain(rows, experiment):
        return []
    sheet = sheets(rows, experiment)[0]
    columns = [[plain(text.replace(THIN, " "), WIDTH) for text in line] for line in (sheet.columns, *sheet.lines)]
    names = [at for at, name in enumerate(NAMED) if name == "policy" or len({line[at] for line in sheet.lines}) > 1]
    of_metrics = range(len(NAMED), len(sheet.columns) - 1)  # the last one counts values
    widths = [max(len(line[at]) for line in columns) + 2 for at in range(len(sheet.columns))]
    shown = [*names, *_fitting(of_metrics, widths, width - sum(widths[at] for at in names))]
    lines = ["".join(line[at].ljust(widths[at]) for at in shown).rstrip() for line in columns]
    return [*lines, *_meanings(sheet.columns, [at for at in shown if at in of_metrics], experiment)]


def _is_plain(rows: Sequence[Row], experiment: Experiment) -> bool:
    """Whether each row is one cell's: curves and rows of hosts are for a report."""
    return bool(rows) and all(name in experiment.metrics for row in rows for name in row.numbers)


def _fitting(metrics: Sequence[int], widths: Sequence[int], room: int) -> Iterator[int]:
    """At least one, and then as many as there is room for, in their order."""
    for number, at in enumerate(metrics):
        room -= widths[at]
        if number and room < 0:
            return
        yield at


def _meanings(columns: Sequence[str], shown: Sequence[int], experiment: Experiment) -> list[str]:
    words = {spoken(name): metric_of(experiment, name).words for name in experiment.metrics}
    return [*(f"{columns[at]}: {words[columns[at]]}" for at in shown), "In brackets: 95 % intervals over seeds."]


def _list(options: argparse.Namespace) -> int:
    found = experiments()
    if options.json:
        told = {
            name: {"about": each.about, "worlds": each.worlds, "policies": each.policies}
            for name, each in found.items()
        }
        print(json.dumps({"experiments": told, "worlds": worlds_there()}))
        return 0
    for name, each in found.items():
        print(f"{name}: {each.about}")
        print(f"  worlds    {', '.join(each.worlds)}")
        print(f"  policies  {', '.join(policy for policy in each.policies if not policy.startswith(BOUND))}")
        if bounds := [policy for policy in each.policies if policy.startswith(BOUND)]:
            print(f"  bounds    {', '.join(bounds)}")
        print(f"  budgets   {', '.join(f'{budget:g}' for budget in each.budgets)}")
    print(f"\nWorlds here: {', '.join(worlds_there())}")
    return 0


def _run(options: argparse.Namespace) -> int:
    plan = plan_of(_wanted(options))
    jobs = _whole("--jobs", options.jobs) if options.jobs else 0
    for line in plan.skipped:
        print(f"vedette: skipped: {line}", file=sys.stderr)
    folder = RunFolder(options.out or default_folder(plan), plan)
    with _how_to_go_on(folder), RunProgress(len(plan.cells), quiet=options.quiet or options.json) as progress:
        run_cells(folder, len(plan.cells), progress.look, jobs)
    folder.close()
    if options.json:
        for row in folder.rows():
            print(json.dumps(plain_runs(row)))
    elif not options.quiet:
        _say_done(plan, folder)
    return 0


def _say_done(plan: Plan, folder: RunFolder) -> None:
    rows = folder.rows()
    for name in plan.experiments:
        lines = table_lines([row for row in rows if row.cell.experiment == name], experiment_named(name))
        print("".join(f"{line}\n" for line in [*lines, ""] if lines), end="")
    print(f"{counted(len(plan.cells), 'cell')}, {counted(len(rows), 'row')}: {folder.path / ROWS}")
    print(f"Next: vedette lab report {folder.path} --to DIR")


@contextmanager
def _how_to_go_on(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        left = counted(len(folder.undone()), "cell")
        print(f"vedette: stopped; {left} left. The same command goes on.", file=sys.stderr)
        raise


def _wanted(options: argparse.Namespace) -> Wanted:
    # What is asked of each host is an experiment of its own, by a name that follows from the other's.
    each = "-per-host" if options.per_host else ""
    return Wanted(
        [f"{name}{each}" for name in _listed(options.experiments)],
        _listed(options.world),
        _listed(options.policies),
        [_budget(text) for text in _listed(options.budget)],
        _whole("--seeds", options.seeds),
        read_span(options.begin, options.end),
    )


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _budget(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f'"{text}" is no budget: write numbers above 0, such as 10,100') from error


def _whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise UsageError(f"{option} {text}: write a whole number above 0")
    return int(text)


def _report(options: argparse.Namespace) -> int:
    places = _report_places(options)
    folders = options.runs or sorted(path.parent for path in Path("lab-runs").glob("*/manifest.json"))
    if not folders:
        raise UsageError("there is no finished run in lab-runs; name one, or make one: vedette lab run --help")
    runs = [read_run(folder) for folder in folders]
    for place in places:
        for path in write_report(runs, place):
            print(path)
    return 0


def _report_places(options: argparse.Namespace) -> list[Path]:
    """Where a report is written: where ``--to`` says, and where the console of a data folder finds it."""
    places = [options.to] if options.to is not None else []
    if options.data is not None:
        folder = folder_of(argparse.Namespace(data=options.data or None, config=options.config))
        if check_format(folder) is None:
            raise UsageError(f"{folder} is no data folder: name the one of your vedette up after --data")
        places.append(folder / "lab")
    if not places:
        raise UsageError("say where the report goes: --to DIR, --data DIR for the console, or both")
    return places


def _import_git(options: argparse.Namespace) -> int:
    from vedette.lab.worlds.catalog import import_into

    place = _git_place(options.repo)
    _refuse_there(options.out)
    with Gauge("read", quiet=options.quiet) as gauge:
        found = import_into(place, options.out, gauge.look)
    words = f"{counted(found.pages, 'page')}, {counted(found.versions, 'version')}, {counted(found.links, 'link')}"
    print(f"{words}{_missing(found.missing)}: {options.out} ({bytes_in_words(found.size_bytes)})")
    return 0


def _import_frontpages(options: argparse.Namespace) -> int:
    from vedette.lab.worlds.frontpages.recording import import_frontpages

    place = _git_place(options.clone)
    _refuse_there(options.out)
    with Gauge("read", quiet=options.quiet) as gauge:
        found = import_frontpages(f"{place.path}#{place.part}", options.out, gauge.look)
    words = f"{counted(found.snapshots, 'snapshot')} of {counted(found.sources, 'source')}"
    shown = f"{counted(found.targets, 'target')}, shown {counted(found.rows, 'time')}"
    failed = f"{counted(found.failed, 'scrape')} failed"
    print(f"{words}, {shown}; {failed}{_missing(found.missing)}: {options.out} ({bytes_in_words(found.size_bytes)})")
    return 0


def _git_place(typed: str) -> Place:
    return place_of(typed if typed.startswith("git:") else f"git:{typed}")


def _missing(objects: int) -> str:
    return f"; {counted(objects, 'object')} not in the repository" if objects else ""


def _refuse_there(out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} is there already; name a file that is not")


VERBS: Mapping[str, Callable[[argparse.Namespace], int]] = {
    "list": _list,
    "run": _run,
    "report": _report,
    "import-git": _import_git,
    "import-frontpages": _import_frontpages,
}
