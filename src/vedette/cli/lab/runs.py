"""What ``vedette lab list``, ``run``, ``report`` and the imports do."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import check_format
from vedette.cli.data_folder import folder_of
from vedette.cli.gauge import Gauge
from vedette.cli.lab.lab_progress import RunProgress
from vedette.cli.lab.lab_table import table_lines
from vedette.cli.output import bytes_in_words, counted
from vedette.errors import UsageError
from vedette.lab.core.plan import Plan, Wanted, plan_of, read_span
from vedette.lab.core.registry import BOUND, experiment_named, experiments
from vedette.lab.core.report import read_run, write_report
from vedette.lab.core.rows import plain
from vedette.lab.core.run_folder import ROWS, RunFolder, default_folder
from vedette.lab.core.runner import run_cells
from vedette.lab.worlds.world_names import Place, place_of, worlds_there

__all__ = ["VERBS"]


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
            print(json.dumps(plain(row)))
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
