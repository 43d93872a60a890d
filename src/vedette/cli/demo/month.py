"""``vedette demo --days``: keep weeks of a synthetic web fresh by several refresh policies, in minutes.

Each policy has a crawler of its own, as ``vedette up`` runs it but for the search page. All begin with a full crawl
without a budget. Then time counts, and all have the same budget for everything that they fetch.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette.adapters.clock import start_clock
from vedette.cli.demo.crawlers import (
    Contender,
    DemoProgress,
    catch_interrupts,
    observe,
    read_holding,
    run_first_crawl,
    start_contenders,
)
from vedette.cli.output import format_number, format_table
from vedette.engine.scheduling.refresh_policies import DEFAULT_POLICY
from vedette.errors import UsageError
from vedette.lab.core.plots import Plot, Point, Series, draw_svg
from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.judge.live_quality import CrawlerLog, CrawlQuality, GroundTruth, Snapshot, measure_runs
from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.presets import MONTH_PLACE, month_world
from vedette.timeutil import DAY_S
from vedette.version import __version__

REPORT_NAME = "lab-refresh-live"
GENERATED_MARK = "<!-- Written by vedette demo --report: run it again instead of editing this. -->"
FORMAT = 1  # of the JSON that the console reads
QUESTION = "Which rule for fetching known pages again keeps a search best, live and with the same budget?"
COLUMNS = (
    *("policy", "freshness", "quality", "without refreshes", "of all pages", "refreshes"),
    *("found changed", "other fetches", "new pages", "gained per 1000 refreshes", "budget used"),
)
COLUMN_MEANINGS = (
    ("freshness", "the share of known, living pages whose copy says what the page says"),
    ("quality", "what people find, as a share of what current copies of the same pages would give (Pandey08, eq. 4.5)"),
    ("without refreshes", "the same, had each page been fetched once and never again"),
    ("of all pages", "as quality, with pages in the ideal that the crawler had not found yet"),
    ("found changed", "the share of refreshes that found another text, or the page gone"),
    ("other fetches", "robots.txt, feeds, sitemaps, home pages, new pages, and whether what had gone is back"),
    (
        "new pages",
        "those of the other fetches that were the first of a page; they wait for the same budget as refreshes",
    ),
    ("gained per 1000 refreshes", "what refreshes added to the quality, in points of a hundred"),
    ("budget used", "all fetches, as a share of what the budget allowed"),
)
# Below this, a crawler has not kept up with its time, or had nothing to do.
MIN_BUDGET_USED = 0.9


@dataclass(frozen=True, slots=True)
class MonthReport:
    """The report of ``vedette demo --days``: the web, its days, speed and budget, and the quality of each policy."""

    command: str
    world: str
    days: float
    speed: float
    budget_per_day: int
    pages: int
    runs: Sequence[CrawlQuality]

    def budget_used(self, run: CrawlQuality) -> float:
        """Return the share of the fetch budget that a policy's crawler used in the month demo."""
        return run.fetches / (self.budget_per_day * self.days)

    def underused_policies(self) -> list[str]:
        """Return the policies whose crawlers left much of their fetch budget in the month demo."""
        return [run.policy for run in self.runs if self.budget_used(run) < MIN_BUDGET_USED]


def format_text(month: MonthReport) -> str:
    """Format the report of the month demo as a table for the terminal, with its caveats."""
    lines = format_table([COLUMNS, *(_table_row(month, run) for run in month.runs)])
    return "\n".join([_describe_setup(month), "", *lines, *_format_warnings(month)])


def to_dict(month: MonthReport) -> dict[str, Any]:
    """Return the report of the month demo as JSON values: each policy's numbers and samples over time."""
    return {
        "world": month.world,
        "days": month.days,
        "speed": month.speed,
        "pages": month.pages,
        "budget_per_day": month.budget_per_day,
        "behind": month.underused_policies(),
        "policies": {run.policy: _run_to_dict(month, run) for run in month.runs},
    }


def check_report_folder(to: Path) -> None:
    """Refuse a folder that the month demo's report cannot be written to, before minutes are spent."""
    page = to / f"{REPORT_NAME}.md"
    with _report_os_errors(to):
        to.mkdir(parents=True, exist_ok=True)
        _write_atomically(to / f"{REPORT_NAME}.try", "")
        (to / f"{REPORT_NAME}.try").unlink()
        if page.is_file() and GENERATED_MARK not in page.read_text(encoding="utf-8", errors="replace"):
            raise UsageError(f"{page} was written by a person: name another folder with --report DIR")


def write_report(month: MonthReport, to: Path) -> list[Path]:
    """Write the month demo's report: a Markdown page, its plots, and last the JSON for the console."""
    plots = {f"{REPORT_NAME}-{name}.svg": plot for name, plot in _plots(month).items()}
    texts = {f"{REPORT_NAME}.md": _format_markdown(month, list(plots))}
    texts |= {file: draw_svg(plot) for file, plot in plots.items()}
    texts[f"{REPORT_NAME}.json"] = _format_console_json(month, plots)
    with _report_os_errors(to):
        for name, text in texts.items():
            _write_atomically(to / name, text)
    return [to / name for name in texts]


@contextmanager
def _report_os_errors(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or "it is no folder"
        raise UsageError(f"{to}: no report can be written there ({why}): name another with --report DIR") from error


def _write_atomically(path: Path, text: str) -> None:
    """Write a file of the month demo's report atomically: the console may read it meanwhile."""
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _run_to_dict(month: MonthReport, run: CrawlQuality) -> dict[str, Any]:
    return {
        "freshness": run.freshness,
        "quality": run.quality,
        "quality_unrefreshed": run.unrefreshed,
        "quality_of_all": run.of_all,
        "refreshes": run.refreshes,
        "changed": run.changed,
        "other_fetches": dict(run.others),
        "gain_per_refresh": run.gain_per_refresh,
        "budget_used": month.budget_used(run),
        "pages": run.pages,
        "looks": [look._asdict() for look in run.samples],
    }


def _table_row(month: MonthReport, run: CrawlQuality) -> tuple[str, ...]:
    return (
        run.policy,
        f"{run.freshness:.1%}",
        f"{run.quality:.2%}",
        f"{run.unrefreshed:.2%}",
        f"{run.of_all:.2%}",
        format_number(run.refreshes),
        f"{run.changed_share:.0%}",
        format_number(sum(run.others.values())),
        format_number(run.others["first"]),
        f"{100_000 * run.gain_per_refresh:+.2f}",
        f"{month.budget_used(run):.0%}",
    )


def _describe_setup(month: MonthReport) -> str:
    return (
        f"{month.world}: {format_number(month.pages)} pages were known when time began to count. "
        f"{month.days:g} days, {month.speed:g} times as fast as ours; {format_number(month.budget_per_day)} fetches "
        "a day for everything, looked at twice a day."
    )


def _format_warnings(month: MonthReport) -> list[str]:
    behind = month.underused_policies()
    if not behind:
        return []
    share = f"{MIN_BUDGET_USED:.0%}"
    return ["", f"Less than {share} of the budget was used by {', '.join(behind)}: try a lower --speed to see why."]


def _plots(month: MonthReport) -> dict[str, Plot]:
    titles = {"quality": "Quality of search", "freshness": "Freshness"}
    return {
        name: Plot(title, "days", name, "share", [_series(run, name) for run in month.runs])
        for name, title in titles.items()
    }


def _series(run: CrawlQuality, name: str) -> Series:
    return Series(run.policy, [Point(look.day, getattr(look, name)) for look in run.samples])


def _format_markdown(month: MonthReport, plots: Sequence[str]) -> str:
    rows = [COLUMNS, ["---", *["---:"] * (len(COLUMNS) - 1)], *(_table_row(month, run) for run in month.runs)]
    parts = [
        *(GENERATED_MARK, "# Refreshing, live", QUESTION, f"    {month.command}"),
        f"With vedette {__version__}. {_describe_setup(month)}",
        "\n".join(f"- **{name}**: {words}" for name, words in COLUMN_MEANINGS),
        "\n".join(f"| {' | '.join(row)} |" for row in rows),
        *_format_warnings(month)[1:],
        *(f"![{Path(file).stem}]({file})" for file in plots),
    ]
    return "\n\n".join(parts) + "\n"


def _format_console_json(month: MonthReport, plots: dict[str, Plot]) -> str:
    table = {
        "title": "By policy",
        "about": " ".join([_describe_setup(month), *_format_warnings(month)[1:]]),
        "meanings": COLUMN_MEANINGS,
        "columns": COLUMNS,
        "rows": [_table_row(month, run) for run in month.runs],
        "left_out": 0,
    }
    values = {
        "format": FORMAT,
        "title": "refresh live",
        "question": QUESTION,
        "commands": [month.command],
        "versions": f"vedette {__version__}",
        "worlds": [month.world],
        "tables": [table],
        "plots": [{"file": file, "caption": f"{plot.title} over time", "table": 0} for file, plot in plots.items()],
    }
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


SAMPLES_PER_DAY = 2
POLICIES = (DEFAULT_POLICY, "uniform", "nutch")
SPEED = 5_000.0
# Of the pages that are known; robots.txt, feeds and new pages take about half of it.
BUDGET_SHARE = 0.1


def run_month_demo(options: argparse.Namespace, folder: Path) -> int:
    """Run ``vedette demo --days``: crawl, let time pass, measure freshness by policy, print the report."""
    world, speed = month_world(options.seed), options.speed or SPEED
    quiet = options.quiet or options.json
    if options.report:
        check_report_folder(Path(options.report))
    with DemoProgress(options.days * SAMPLES_PER_DAY, quiet=quiet) as progress:
        month = _run_demo(options, folder, world, speed, progress)
    print(json.dumps(to_dict(month)) if options.json else format_text(month))
    written = write_report(month, Path(options.report)) if options.report else []
    if written and not options.json:
        print(f"\nWritten: {', '.join(map(str, written))}")
    return 0


def _run_demo(
    options: argparse.Namespace, folder: Path, world: SyntheticWorld, speed: float, progress: DemoProgress
) -> MonthReport:
    clock = start_clock(world.start_s, speed)
    looks_s: list[float] = []
    holdings: list[list[Snapshot]] = []

    def look(turn: int, at_s: float) -> None:
        looks_s.append(at_s)
        holdings.append([read_holding(one.settings.folder) for one in some])
        done = _describe_progress(some, holdings[-1], at_s - moments[turn - 1])
        progress.update(f"day {turn / SAMPLES_PER_DAY:g} of {options.days}, {done}", turn)

    with catch_interrupts() as check, ExitStack() as stack:
        some = start_contenders(POLICIES, MONTH_PLACE, options.seed, list(world.sites), clock, folder, stack)
        _, pages = run_first_crawl(some, progress, check)
        budget = max(1, round(BUDGET_SHARE * pages))
        moments = [turn * DAY_S / SAMPLES_PER_DAY for turn in range(1, options.days * SAMPLES_PER_DAY + 1)]
        begin_s, _ = observe(some, budget, moments, check, look)
    progress.update("measuring")
    runs = _measure(world, some, begin_s, looks_s, holdings, options.seed)
    command = f"vedette demo --days {options.days} --seed {options.seed} --speed {speed:g} --report"
    return MonthReport(command, world.name, options.days, speed, budget, pages, runs)


def _measure(
    world: SyntheticWorld,
    some: Sequence[Contender],
    begin_s: float,
    looks_s: Sequence[float],
    holdings: Sequence[Sequence[Snapshot]],
    seed: int,
) -> list[CrawlQuality]:
    watched = [
        CrawlerLog(one.policy, [each[place] for each in holdings], _read_entries(one, looks_s[-1]))
        for place, one in enumerate(some)
    ]
    born = [url for at_s in (begin_s, *looks_s) for host in world.sites for url in world.live_pages(host, at_s)]
    return measure_runs(GroundTruth(world), looks_s, begin_s, seed, watched, list(dict.fromkeys(born)))


def _read_entries(one: Contender, until_s: float) -> list[AccessEntry]:
    return [entry for entry in read_log(one.log)[1] if entry.start_s <= until_s]


def _describe_progress(some: Sequence[Contender], holdings: Sequence[Snapshot], begin_s: float) -> str:
    """Describe how many pages each policy's crawler has fetched since the month demo began to measure."""
    fresh = [sum(held.fetched_s >= begin_s for held in holding.values()) for holding in holdings]
    told = (f"{one.policy} {format_number(count)}" for one, count in zip(some, fresh, strict=True))
    return f"looked at since: {', '.join(told)}"
