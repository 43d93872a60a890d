"""What ``vedette demo --days`` does: some weeks of a made web in minutes, kept fresh by several policies side by side.

Each policy has a crawler of its own, as ``vedette up`` runs it but for the search page. All begin with a full crawl,
on which no budget is. Then time counts, and all have the same budget for everything that they fetch.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from vedette.adapters.clock import Clock, start_clock
from vedette.cli.demo.crawlers import Contender, contenders, crawl_fully, holding_of, running, tend
from vedette.cli.demo.demo_progress import Progress, signals
from vedette.cli.demo.demo_report import Month, as_json, as_text, check_place, write_report
from vedette.cli.output import amount
from vedette.engine.scheduling.refresh_policies import PREFERRED
from vedette.engine.scheduling.schedule import is_good
from vedette.lab.judge.access_log import Entry, read_log
from vedette.lab.judge.live_quality import Holding, Run, Watched, measured
from vedette.lab.judge.live_truth import Truth
from vedette.lab.worlds.synthetic import MadeWorld
from vedette.lab.worlds.synthetic.presets import PLACE, month_world

__all__ = ["POLICIES", "play"]

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
        some = contenders(POLICIES, PLACE, options.seed, list(world.sites), clock, folder, stack)
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
