"""``vedette lab list``, ``run`` and ``report``, and the imports of recorded webs."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import check_format
from vedette.cli.data_folder import data_folder
from vedette.cli.output import format_bytes, format_count, format_duration, sanitize
from vedette.cli.progress import ProgressBar, ProgressLine
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Experiment
from vedette.lab.core.plan import RunPlan, RunRequest, build_plan, parse_span
from vedette.lab.core.plots import THIN_SPACE
from vedette.lab.core.registry import BOUND_PREFIX, find_experiment, find_metric, list_experiments
from vedette.lab.core.report import read_run, write_report
from vedette.lab.core.run_folder import ROWS_FILE, Row, RunFolder, default_folder
from vedette.lab.core.run_folder import to_dict as plain_runs
from vedette.lab.core.runner import run_cells
from vedette.lab.core.statistics import Interval
from vedette.lab.core.summary import build_sheets, humanize
from vedette.lab.runs.discovery.headlines import compute_headlines
from vedette.lab.worlds.catalog import WorldLocation, list_worlds, locate_world, split_worlds

PRINT_INTERVAL_S = 5.0
# What --as-live means: a separate experiment, the server's charges, or nothing new since every run is as live.
AS_LIVE = {
    "discovery": "",
    "sponsor": "",
    "order-joined": "default is the crawler's own impact estimator in every run",
    "ranking": "default and live-… are the server's own modules in every run",
    "refresh": "every run uses the crawler's own policy runner and price controller",
}


class RunProgress(ProgressBar):
    """Progress of ``vedette lab run``: the cells that are done, the last one, and the time left."""

    _first: int | None = None

    def __init__(self, total: int, *, quiet: bool) -> None:
        super().__init__(total, quiet=quiet, interval_s=PRINT_INTERVAL_S)

    def update(self, done: int, total: int, cell: Cell) -> None:
        """Show the number of experiment cells that are done, and the last one."""
        first = self._first = done - 1 if self._first is None else self._first

        def format_line(elapsed_s: float) -> str:
            left_s = elapsed_s / (done - first) * (total - done)
            left = f", about {format_duration(left_s)} left" if done < total else ""
            return f"{done} of {format_count(total, 'cell')} after {format_duration(elapsed_s)}{left}"

        self.draw(done, sanitize(f"{cell.world} {cell.policy}", 60), format_line, soon=done == total)


# All numbers, comparisons and plots are in a report.


WIDTH = 100
MAX_LINES = 40  # longer ones are for a report
MAX_ROWS = 10_000
NAME_COLUMNS = ("world", "budget", "policy")


def format_table(rows: Sequence[Row], experiment: Experiment, width: int = WIDTH) -> list[str]:
    """Format an experiment's rows as a plain table with the metrics that fit; nothing if it would be long.

    Curves and rows by host are for a report.
    """
    rows = [row for row in rows if all(name in experiment.metrics for name in row.numbers)]
    cells = {(row.cell.world, row.cell.budget, row.cell.policy) for row in rows}
    if not rows or len(cells) > MAX_LINES or len(rows) > MAX_ROWS:
        return []
    sheet = build_sheets(rows, experiment)[0]
    columns = [
        [sanitize(text.replace(THIN_SPACE, " "), WIDTH) for text in line] for line in (sheet.columns, *sheet.lines)
    ]
    names = [
        at for at, name in enumerate(NAME_COLUMNS) if name == "policy" or len({line[at] for line in sheet.lines}) > 1
    ]
    of_metrics = range(len(NAME_COLUMNS), len(sheet.columns) - 1)  # the last one counts values
    widths = [max(len(line[at]) for line in columns) + 2 for at in range(len(sheet.columns))]
    shown = [*names, *_columns_that_fit(of_metrics, widths, width - sum(widths[at] for at in names))]
    lines = ["".join(line[at].ljust(widths[at]) for at in shown).rstrip() for line in columns]
    return [*lines, *_column_meanings(sheet.columns, [at for at in shown if at in of_metrics], experiment)]


def _columns_that_fit(metrics: Sequence[int], widths: Sequence[int], room: int) -> Iterator[int]:
    """Yield the metric columns that fit the width of an experiment's table, at least one, in their order."""
    for number, at in enumerate(metrics):
        room -= widths[at]
        if number and room < 0:
            return
        yield at


def _column_meanings(columns: Sequence[str], shown: Sequence[int], experiment: Experiment) -> list[str]:
    words = {humanize(name): find_metric(experiment, name).description for name in experiment.metrics}
    return [
        *(f"{columns[at]}: {words[columns[at]]}" for at in shown),
        "In brackets: 95% confidence intervals over seeds.",
    ]


def list_lab(options: argparse.Namespace) -> int:
    """Run ``vedette lab list``: print experiments, policies, bounds, and the worlds that are available."""
    found = list_experiments()
    if options.json:
        experiments = {
            name: {"about": each.about, "worlds": each.worlds, "policies": each.policies}
            for name, each in found.items()
        }
        print(json.dumps({"experiments": experiments, "worlds": list_worlds()}))
        return 0
    for name, each in found.items():
        print(f"{name}: {each.about}")
        print(f"  worlds    {', '.join(each.worlds)}")
        print(f"  policies  {', '.join(policy for policy in each.policies if not policy.startswith(BOUND_PREFIX))}")
        if bounds := [policy for policy in each.policies if policy.startswith(BOUND_PREFIX)]:
            print(f"  bounds    {', '.join(bounds)}")
        print(f"  budgets   {', '.join(f'{budget:g}' for budget in each.budgets)}")
    print(f"\nAvailable worlds: {', '.join(list_worlds())}")
    return 0


def run_experiments(options: argparse.Namespace) -> int:
    """Run ``vedette lab run``: run the named experiments; the same command resumes an interrupted run."""
    wanted = _parse_wanted(options)
    plan = build_plan(wanted)
    for name in wanted.experiments:
        if options.as_live and AS_LIVE.get(name):
            print(f"vedette: {name}: {AS_LIVE[name]}", file=sys.stderr)
    jobs = _parse_whole("--jobs", options.jobs) if options.jobs else 0
    for line in plan.skipped:
        print(f"vedette: skipped: {line}", file=sys.stderr)
    folder = RunFolder(options.out or default_folder(plan), plan)
    with _print_how_to_resume(folder), RunProgress(len(plan.cells), quiet=options.quiet or options.json) as progress:
        run_cells(folder, len(plan.cells), progress.update, jobs)
    folder.finish()
    if options.json:
        for row in folder.load_rows():
            print(json.dumps(plain_runs(row)))
    elif not options.quiet:
        _print_done(plan, folder)
    return 0


def _print_done(plan: RunPlan, folder: RunFolder) -> None:
    rows = folder.load_rows()
    for name in plan.experiments:
        lines = format_table([row for row in rows if row.cell.experiment == name], find_experiment(name))
        print("".join(f"{line}\n" for line in [*lines, ""] if lines), end="")
    print(f"{format_count(len(plan.cells), 'cell')}, {format_count(len(rows), 'row')}: {folder.path / ROWS_FILE}")
    print(f"Next: vedette lab report {folder.path} --to DIR")


@contextmanager
def _print_how_to_resume(folder: RunFolder) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        left = format_count(len(folder.list_pending()), "cell")
        print(f"vedette: stopped; {left} left. Run the same command to continue.", file=sys.stderr)
        raise


def _parse_wanted(options: argparse.Namespace) -> RunRequest:
    # Runs by host, or with the crawler's poller, are separate experiments, named after the other.
    names, charge = _split_list(options.experiments), options.charge
    if options.per_host:
        names = [f"{name}-per-host" for name in names]
    elif options.as_live:
        _check_as_live(names)
        charge = "live"
        names = [f"{name}-as-live" if name == "discovery" else name for name in names]
    return RunRequest(
        names,
        split_worlds(options.world),
        _split_list(options.policies),
        [_parse_budget(text) for text in _split_list(options.budget)],
        _parse_whole("--seeds", options.seeds),
        parse_span(options.begin, options.end),
        charge,
    )


def _check_as_live(names: Sequence[str]) -> None:
    if wrong := [name for name in names if name not in AS_LIVE]:
        raise UsageError(f"{wrong[0]} can't run --as-live; choose from {', '.join(AS_LIVE)}")


def _split_list(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def _parse_budget(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise UsageError(f'"{text}" is not a budget: use comma-separated numbers above 0, such as 10,50,200') from error


def _parse_whole(option: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) <= 9 and int(text) > 0):
        raise UsageError(f"{option} {text}: expected a whole number above 0")
    return int(text)


def write_reports(options: argparse.Namespace) -> int:
    """Run ``vedette lab report``: write tables, comparisons and plots of finished experiment runs."""
    places = _report_folders(options)
    folders = options.runs or sorted(path.parent for path in Path("lab-runs").glob("*/manifest.json"))
    if not folders:
        raise UsageError(
            "there is no finished run in lab-runs: pass a run folder, or start a run (see vedette lab run --help)"
        )
    runs = [read_run(folder) for folder in folders]
    for place in places:
        for path in write_report(runs, place):
            print(path)
    return 0


def _report_folders(options: argparse.Namespace) -> list[Path]:
    """Return the folders for a lab report: that of ``--to``, and the data folder's for the console."""
    places = [options.to] if options.to is not None else []
    if options.data is not None:
        folder = data_folder(argparse.Namespace(data=options.data or None, config=options.config))
        if check_format(folder) is None:
            raise UsageError(f"{folder} is not a data folder: use --data with the folder that vedette up uses")
        places.append(folder / "lab")
    if not places:
        raise UsageError("missing target: use --to DIR, --data DIR for the console, or both")
    return places


def print_headlines(options: argparse.Namespace) -> int:
    """Run ``vedette lab headlines``: compare one discovery policy with another, both ways of averaging."""
    rows = [row for run in options.runs for row in read_run(run).rows]
    found = compute_headlines(rows, options.policy, options.rival)
    if not found:
        raise UsageError(f"none of these discovery-per-host runs has both {options.policy} and {options.rival}")
    if options.json:
        for each in found:
            print(json.dumps(each._asdict()))
        return 0
    means = f"{'coverage':>22} {'overhead':>22} {'HTD-P90, h':>22}"
    print(f"{'world':40} {'budget':>6} {means} {'new pages':>9} {'all pages':>9}")
    for each in found:
        means = " ".join(map(_format_interval, (each.coverage_ratio, each.overhead_ratio, each.htd_difference_h)))
        print(f"{each.world:40} {each.budget:6g} {means} {each.pages_pooled:9.3f} {each.pages_by_regret:9.3f}")
    return 0


def _format_interval(each: Interval) -> str:
    return f"{each.mean:.3f} [{each.low:.3f}, {each.high:.3f}]".rjust(22)


def import_git(options: argparse.Namespace) -> int:
    """Run the lab's git import: convert the git history of a web site into a recorded web in one file."""
    from vedette.lab.worlds.catalog import import_repository

    place = _parse_git_place(options.repo)
    _refuse_existing(options.out)
    with ProgressLine("read", quiet=options.quiet) as progress:
        found = import_repository(place, options.out, progress.update)
    words = f"{format_count(found.pages, 'page')}, {format_count(found.versions, 'version')}"
    links = format_count(found.links, "link")
    print(f"{words}, {links}{_describe_missing(found.missing)}: {options.out} ({format_bytes(found.size_bytes)})")
    return 0


def import_frontpages(options: argparse.Namespace) -> int:
    """Run the lab's front page import: convert a public recording of front pages into one file."""
    from vedette.lab.worlds.frontpages import recording

    place = _parse_git_place(options.clone)
    _refuse_existing(options.out)
    with ProgressLine("read", quiet=options.quiet) as progress:
        found = recording.import_frontpages(f"{place.path}#{place.part}", options.out, progress.update)
    words = f"{format_count(found.snapshots, 'snapshot')} of {format_count(found.sources, 'source')}"
    shown = f"{format_count(found.targets, 'target')}, shown {format_count(found.rows, 'time')}"
    failed = f"{format_count(found.failed, 'scrape')} failed{_describe_missing(found.missing)}"
    print(f"{words}, {shown}; {failed}: {options.out} ({format_bytes(found.size_bytes)})")
    return 0


def _parse_git_place(typed: str) -> WorldLocation:
    return locate_world(typed if typed.startswith("git:") else f"git:{typed}")


def _describe_missing(objects: int) -> str:
    return f"; {format_count(objects, 'object')} missing from the repository" if objects else ""


def _refuse_existing(out: Path) -> None:
    if out.exists():
        raise UsageError(f"{out} already exists: choose another file")
