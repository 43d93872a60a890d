"""What ``vedette demo --days`` does: some weeks of a made web in minutes, kept fresh by several policies side by side.

Each policy has a crawler of its own, as ``vedette up`` runs it but for the search page. All begin with a full crawl,
on which no budget is. Then time counts, and all have the same budget for everything that they fetch.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vedette import __version__
from vedette.adapters.clock import Clock, start_clock
from vedette.cli.demo.crawlers import Contender, Progress, contenders, crawl_fully, holding_of, running, signals, tend
from vedette.cli.output import amount
from vedette.engine.scheduling.refresh_policies import PREFERRED
from vedette.engine.scheduling.schedule import is_good
from vedette.errors import UsageError
from vedette.lab.core.plots import Dot, Plot, Series, draw
from vedette.lab.judge.access_log import Entry, read_log
from vedette.lab.judge.live_quality import Holding, Run, Truth, Watched, measured
from vedette.lab.worlds.synthetic import MadeWorld
from vedette.lab.worlds.synthetic.presets import MONTH_PLACE, month_world

__all__ = ["POLICIES", "Month", "as_json", "as_text", "check_place", "play", "write_report"]

NAME = "lab-refresh-live"
MARK = "<!-- Written by vedette demo --report: run it again instead of editing this. -->"
FORMAT = 1  # of the JSON that the console reads
QUESTION = "Which rule for fetching known pages again keeps a search best, live and with the same budget?"
COLUMNS = (
    *("policy", "freshness", "quality", "without refreshes", "of all pages", "refreshes"),
    *("found changed", "other fetches", "new pages", "gained per 1000 refreshes", "budget used"),
)
MEANINGS = (
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
BEHIND = 0.9


@dataclass(frozen=True, slots=True)
class Month:
    """What was run: the web, for how many of its days, how fast, with how many fetches a day; and what came of it."""

    command: str
    world: str
    days: float
    speed: float
    budget_per_day: int
    pages: int
    runs: Sequence[Run]

    def used(self, run: Run) -> float:
        """The share of the budget that a run used."""
        return run.fetches / (self.budget_per_day * self.days)

    def behind(self) -> list[str]:
        """The policies whose crawlers left much of their budget."""
        return [run.policy for run in self.runs if self.used(run) < BEHIND]


def as_text(month: Month) -> str:
    """The table for a terminal, and what must be said of it."""
    rows = [COLUMNS, *(_cells(month, run) for run in month.runs)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) if not place else cell.rjust(width) for place, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join([_about(month), "", *lines, *_warned(month)])


def as_json(month: Month) -> dict[str, Any]:
    """One object: what was run, and for each policy its numbers and its looks over time."""
    return {
        "world": month.world,
        "days": month.days,
        "speed": month.speed,
        "pages": month.pages,
        "budget_per_day": month.budget_per_day,
        "behind": month.behind(),
        "policies": {run.policy: _numbers(month, run) for run in month.runs},
    }


def check_place(to: Path) -> None:
    """Whether a report can be written to a folder: asked before minutes are spent on it."""
    page = to / f"{NAME}.md"
    with _said_plainly(to):
        to.mkdir(parents=True, exist_ok=True)
        _put(to / f"{NAME}.try", "")
        (to / f"{NAME}.try").unlink()
        if page.is_file() and MARK not in page.read_text(encoding="utf-8", errors="replace"):
            raise UsageError(f"{page} was written by a person: name another folder with --report DIR")


def write_report(month: Month, to: Path) -> list[Path]:
    """A page of Markdown, its plots, and the same as JSON for the console; the JSON comes last."""
    plots = {f"{NAME}-{name}.svg": plot for name, plot in _plots(month).items()}
    texts = {f"{NAME}.md": _page(month, list(plots))}
    texts |= {file: draw(plot) for file, plot in plots.items()}
    texts[f"{NAME}.json"] = _for_console(month, plots)
    with _said_plainly(to):
        for name, text in texts.items():
            _put(to / name, text)
    return [to / name for name in texts]


@contextmanager
def _said_plainly(to: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = error.strerror or "it is no folder"
        raise UsageError(f"{to}: no report can be written there ({why}): name another with --report DIR") from error


def _put(path: Path, text: str) -> None:
    """A file, whole or as it was: the console may look at it meanwhile."""
    aside = path.with_name(f"{path.name}.new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def _numbers(month: Month, run: Run) -> dict[str, Any]:
    return {
        "freshness": run.freshness,
        "quality": run.quality,
        "quality_unrefreshed": run.unrefreshed,
        "quality_of_all": run.of_all,
        "refreshes": run.refreshes,
        "changed": run.changed,
        "other_fetches": dict(run.others),
        "gain_per_refresh": run.gain_per_refresh,
        "budget_used": month.used(run),
        "pages": run.pages,
        "looks": [look._asdict() for look in run.looks],
    }


def _cells(month: Month, run: Run) -> tuple[str, ...]:
    return (
        run.policy,
        f"{run.freshness:.1%}",
        f"{run.quality:.2%}",
        f"{run.unrefreshed:.2%}",
        f"{run.of_all:.2%}",
        amount(run.refreshes),
        f"{run.changed_share:.0%}",
        amount(sum(run.others.values())),
        amount(run.others["first"]),
        f"{100_000 * run.gain_per_refresh:+.2f}",
        f"{month.used(run):.0%}",
    )


def _about(month: Month) -> str:
    return (
        f"{month.world}: {amount(month.pages)} pages were known when time began to count. "
        f"{month.days:g} days, {month.speed:g} times as fast as ours; {amount(month.budget_per_day)} fetches a day for "
        "everything, looked at twice a day."
    )


def _warned(month: Month) -> list[str]:
    behind = month.behind()
    if not behind:
        return []
    share = f"{BEHIND:.0%}"
    return ["", f"Less than {share} of the budget was used by {', '.join(behind)}: try a lower --speed to see why."]


def _plots(month: Month) -> dict[str, Plot]:
    titles = {"quality": "Quality of search", "freshness": "Freshness"}
    return {
        name: Plot(title, "days", name, "share", [_series(run, name) for run in month.runs])
        for name, title in titles.items()
    }


def _series(run: Run, name: str) -> Series:
    return Series(run.policy, [Dot(look.day, getattr(look, name)) for look in run.looks])


def _page(month: Month, plots: Sequence[str]) -> str:
    rows = [COLUMNS, ["---", *["---:"] * (len(COLUMNS) - 1)], *(_cells(month, run) for run in month.runs)]
    parts = [
        *(MARK, "# Refreshing, live", QUESTION, f"    {month.command}", f"With vedette {__version__}. {_about(month)}"),
        "\n".join(f"- **{name}**: {words}" for name, words in MEANINGS),
        "\n".join(f"| {' | '.join(row)} |" for row in rows),
        *_warned(month)[1:],
        *(f"![{Path(file).stem}]({file})" for file in plots),
    ]
    return "\n\n".join(parts) + "\n"


def _for_console(month: Month, plots: dict[str, Plot]) -> str:
    table = {
        "title": "By policy",
        "about": " ".join([_about(month), *_warned(month)[1:]]),
        "meanings": MEANINGS,
        "columns": COLUMNS,
        "rows": [_cells(month, run) for run in month.runs],
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


DAY_S = 86_400.0
LOOKS_A_DAY = 2
POLICIES = (PREFERRED, "uniform", "nutch")
SPEED = 5_000.0
# Of the pages that are known; robots.txt, feeds and new pages take about half of it.
BUDGET_SHARE = 0.1
BEAT_S = 0.05


def play(options: argparse.Namespace, folder: Path) -> int:
    """Crawl, let time go by, measure, tell."""
    world, speed = month_world(options.seed), options.speed or SPEED
    quiet = options.quiet or options.json
    if options.report:
        check_place(Path(options.report))
    with Progress(options.days * LOOKS_A_DAY, quiet=quiet) as progress:
        month = _played(options, folder, world, speed, progress)
    if options.json:
        print(json.dumps(as_json(month)))
    else:
        print(as_text(month))
    written = write_report(month, Path(options.report)) if options.report else []
    if written and not options.json:
        print(f"\nWritten: {', '.join(map(str, written))}")
    return 0


def _played(options: argparse.Namespace, folder: Path, world: MadeWorld, speed: float, progress: Progress) -> Month:
    clock = start_clock(world.start_s, speed)
    with signals() as heed, ExitStack() as stack:
        some = contenders(POLICIES, MONTH_PLACE, options.seed, list(world.sites), clock, folder, stack)
        with closing(crawl_fully(some)) as beats:
            for _ in beats:
                heed()
                progress.say("the first crawl")
        pages = _pages(holding_of(some[0].settings.folder))
        budget = max(1, round(BUDGET_SHARE * pages))
        begin_s, looks_s, holdings = _watch(some, f"{budget}/d", clock, options.days, progress, heed)
    progress.say("measuring")
    runs = _measured(world, some, begin_s, looks_s, holdings, options.seed)
    command = f"vedette demo --days {options.days} --seed {options.seed} --speed {speed:g} --report"
    return Month(command, world.name, options.days, speed, budget, pages, runs)


def _watch(
    some: Sequence[Contender],
    budget: str,
    clock: Clock,
    days: int,
    progress: Progress,
    heed: Callable[[], None],
) -> tuple[float, list[float], list[list[Holding]]]:
    """Let time go by; when it began to count, the moments of looking, and what each crawler held at each."""
    looks_s: list[float] = []
    holdings: list[list[Holding]] = []
    with running(some, budget, forever=True) as trees:
        begin_s = clock.now()
        for turn in range(1, days * LOOKS_A_DAY + 1):
            at_s = begin_s + turn * DAY_S / LOOKS_A_DAY
            while clock.now() < at_s:
                heed()
                tend(trees)
                time.sleep(BEAT_S)  # how often we look; crawlers run in other processes
            looks_s.append(at_s)
            holdings.append([holding_of(one.settings.folder) for one in some])
            progress.look(turn, f"day {turn / LOOKS_A_DAY:g} of {days}, {_standing(some, holdings[-1], begin_s)}")
    return begin_s, looks_s, holdings


def _measured(
    world: MadeWorld,
    some: Sequence[Contender],
    begin_s: float,
    looks_s: Sequence[float],
    holdings: Sequence[Sequence[Holding]],
    seed: int,
) -> list[Run]:
    watched = [
        Watched(one.policy, [each[place] for each in holdings], _entries(one, looks_s[-1]))
        for place, one in enumerate(some)
    ]
    born = [url for at_s in (begin_s, *looks_s) for host in world.sites for url in world.live_pages(host, at_s)]
    return measured(Truth(world), looks_s, begin_s, seed, watched, list(dict.fromkeys(born)))


def _entries(one: Contender, until_s: float) -> list[Entry]:
    return [entry for entry in read_log(one.log)[1] if entry.start_s <= until_s]


def _pages(holding: Holding) -> int:
    return sum(is_good(held.status) and held.kind == "page" for held in holding.values())


def _standing(some: Sequence[Contender], holdings: Sequence[Holding], begin_s: float) -> str:
    """How many pages each has fetched at least once since time began to count."""
    fresh = [sum(held.fetched_s >= begin_s for held in holding.values()) for holding in holdings]
    told = (f"{one.policy} {amount(count)}" for one, count in zip(some, fresh, strict=True))
    return f"looked at since: {', '.join(told)}"
