"""What ``vedette demo --births`` does: how soon a watcher's webhook hears of new pages, by three ways to look for them.

    default    as ``vedette up`` looks, by what sources bring, refreshes at the same price
    uniform    every known URL in turn
    sitemaps   sitemaps alone, as often as the budget lets them; what no sitemap names is not found

Each has a crawler, a data folder and a server of its own over the same web, and the same budget for all that it
fetches. All begin with a full crawl, on which no budget is; then a quarter of a day passes, in which they learn; then
births count. What is told is what a receiver of webhooks noted, and when pages were born is the web's own truth.
"""

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.clock import Clock, start_clock
from vedette.cli.demo.crawlers import Contender, Progress, crawl_fully, holding_of, running, settings_of, signals, tend
from vedette.cli.output import amount
from vedette.config import override
from vedette.engine.scheduling.refresh_policies import PREFERRED
from vedette.engine.scheduling.schedule import is_good
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.birth_delays import Delays, delays_of, told_first
from vedette.lab.judge.live_quality import Holding
from vedette.lab.judge.webhook_receiver import HookReceiver, Received, received, start_receiver
from vedette.lab.worlds.synthetic import MadeWorld
from vedette.lab.worlds.synthetic.presets import BIRTHS_PLACE, births_world
from vedette.lab.worlds.synthetic.server import start_server
from vedette.model import Site
from vedette.runtime.commands.executor import carry_out
from vedette.runtime.commands.offline import written
from vedette.runtime.processes.settings import LiveSettings
from vedette.timeutil import parse_feed_date
from vedette.web.commands.alert_text import watch_of
from vedette.web.commands.commands import AddWatch, Order, SetSite

__all__ = ["Births", "Way", "as_json", "as_text", "play_births"]

MINUTE_S, DAY_S = 60.0, 86_400.0
COLUMNS = ("looks by", "told", "median to the webhook", "95 %", "quarters", "median to discovery", "fetches a day")


class Way(NamedTuple):
    """One way to look for new pages: how soon births reached the webhook, how soon they were found, all its fetches."""

    name: str
    told: Delays
    found: Delays
    fetches: int


@dataclass(frozen=True, slots=True)
class Births:
    """What was run: the web, for how many of its days, how fast, with how many fetches a day; and what came of it."""

    command: str
    world: str
    days: float
    speed: float
    budget_per_day: int
    pages: int
    ways: list[Way]


def as_text(run: Births) -> str:
    """A table, with what it means."""
    rows = [COLUMNS, *(_cells(run, way) for way in run.ways)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(COLUMNS))]
    table = ["   ".join(_padded(row, widths)) for row in rows]
    births = run.ways[0].told.births if run.ways else 0
    about = (
        f"{run.world}: {amount(run.pages)} pages were known at the start, {amount(births)} births counted in "
        f"{run.days:g} days. {run.speed:g} times as fast as ours, so a second of work here is "
        f"{run.speed / MINUTE_S:.1f} minutes there. {amount(run.budget_per_day)} fetches a day for everything."
    )
    meaning = "Minutes from birth; a page that was not told counts as later than all. Intervals by the bootstrap."
    return "\n".join([about, "", *table, "", meaning])


def as_json(run: Births) -> dict[str, Any]:
    """All numbers; what is infinite is null."""
    return {
        "command": run.command,
        "world": run.world,
        "days": run.days,
        "speed": run.speed,
        "budget_per_day": run.budget_per_day,
        "pages": run.pages,
        "ways": {
            way.name: {"told": _numbers(way.told), "found": _numbers(way.found), "fetches": way.fetches}
            for way in run.ways
        },
    }


def _numbers(delays: Delays) -> dict[str, float | None]:
    told = {**delays._asdict(), "share": delays.share}
    return {name: value if math.isfinite(value) else None for name, value in told.items()}


def _cells(run: Births, way: Way) -> tuple[str, ...]:
    told = way.told
    return (
        way.name,
        f"{told.told} of {told.births}",
        minutes(told.median_s),
        f"{minutes(told.low_s)} to {minutes(told.high_s)}",
        f"{minutes(told.quarter_s)} to {minutes(told.three_quarters_s)}",
        minutes(way.found.median_s),
        amount(round(way.fetches / run.days)),
    )


def minutes(seconds: float) -> str:
    """Whole minutes; ``never`` for what was not told.

    >>> minutes(90.0), minutes(3600.0), minutes(math.inf), minutes(math.nan)
    ('2', '60', 'never', '-')
    """
    if math.isnan(seconds):
        return "-"
    return "never" if math.isinf(seconds) else f"{seconds / MINUTE_S:.0f}"


def _padded(row: tuple[str, ...], widths: list[int]) -> list[str]:
    return [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]


DAY_S = 86_400.0
SPEED = 200.0
LEARNING_D = 0.25
# Births of the last hours are not counted: they had no time to be found.
LAST_S = 4 * 3_600.0
# Fetches a day, as a part of the pages known at the start; and of these what looks at sitemaps may take, so that new
# pages and robots.txt have room.
BUDGET_SHARE, SITEMAPS_SHARE = 1.0, 0.6
BEAT_S = 0.05
STEPS_A_DAY = 24
NEVER_S = 30 * DAY_S
# The refresh policy of each; the last has none that would be due within a day.
WAYS = {"default": PREFERRED, "uniform": "uniform", "sitemaps": "nutch"}


def play_births(options: argparse.Namespace, folder: Path) -> int:
    """Crawl, let time go by, see what is told."""
    world, speed = births_world(options.seed), options.speed or SPEED
    steps = round((options.days + LEARNING_D) * STEPS_A_DAY)
    with Progress(steps, quiet=options.quiet or options.json) as progress:
        found = _played(options, folder, world, speed, progress)
    print(json.dumps(as_json(found)) if options.json else as_text(found))
    return 0


def _played(options: argparse.Namespace, folder: Path, world: MadeWorld, speed: float, progress: Progress) -> Births:
    clock = start_clock(world.start_s, speed)
    with signals() as heed, ExitStack() as stack:
        receiver = stack.enter_context(start_receiver(clock, folder / "told.log"))
        some = [_contender(name, world, options.seed, clock, folder, stack) for name in WAYS]
        with closing(crawl_fully(some)) as beats:
            for _ in beats:
                heed()
                progress.say("the first crawl")
        held = holding_of(some[0].settings.folder)
        pages = sum(is_good(row.status) and row.kind == "page" for row in held.values())
        budget = max(1, round(BUDGET_SHARE * pages))
        ready = [_settled(one, held, budget, receiver, clock) for one in some]
        begin_s, end_s = _watch(ready, budget, clock, options.days, progress, heed)
    progress.say("measuring")
    window = (begin_s + LEARNING_D * DAY_S, end_s)
    told = list(received(folder / "told.log"))
    ways = [_measured(one, world, window, told, options.seed) for one in ready]
    command = f"vedette demo --births --days {options.days} --seed {options.seed} --speed {speed:g}"
    return Births(command, world.name, options.days, speed, budget, pages, ways)


def _contender(name: str, world: MadeWorld, seed: int, clock: Clock, folder: Path, stack: ExitStack) -> Contender:
    log = folder / f"{name}-access.log"
    server = stack.enter_context(start_server(BIRTHS_PLACE, seed, clock=clock, log_path=log))
    settings = settings_of({"refresh.policy": WAYS[name]}, server, list(world.sites), folder / name)
    return Contender(name, settings, server)


def _settled(one: Contender, held: Holding, budget: int, receiver: HookReceiver, clock: Clock) -> Contender:
    """With a watch for everything, and looks at sources as its way has them."""
    watch = watch_of("all", "*", webhook=receiver.address(one.policy))
    sitemaps = [url for url, row in held.items() if row.kind == "sitemap"] if one.policy == "sitemaps" else []
    every_s = len(sitemaps) * DAY_S / (SITEMAPS_SHARE * budget)
    promises = [_promise(site, sitemaps, every_s) for site in one.settings.sites]
    orders: list[Order] = [AddWatch(watch), *(each for each in promises if each.changes["promise"])]
    with written(one.settings.folder, time.time()) as state:
        for order in orders:
            carry_out(order, state, clock.now(), "the demo")
        state.db.execute("COMMIT")
    # All lists are looked at once as the first crawl left them; then at this pace, where no price is asked.
    turn_s = {"uniform": len(held) / budget * DAY_S, "sitemaps": NEVER_S}.get(one.policy)
    return one if turn_s is None else replace(one, settings=_paced(one.settings, turn_s))


def _promise(site: Site, sitemaps: Sequence[str], every_s: float) -> SetSite:
    """The sitemaps of a site are looked at so often."""
    promised = tuple(f"{every_s:.0f} {url}" for url in sitemaps if url.startswith(site.start))
    return SetSite(site.start, {"promise": promised}, "promise")


def _paced(settings: LiveSettings, turn_s: float) -> LiveSettings:
    return replace(settings, config=override(settings.config, {"crawl.source_interval": f"{turn_s:.0f}s"}))


def _watch(
    some: Sequence[Contender], budget: int, clock: Clock, days: int, progress: Progress, heed: Callable[[], None]
) -> tuple[float, float]:
    """Let time go by; when it began and when it ended."""
    with running(some, f"{budget}/d", forever=True) as trees:
        begin_s, steps = clock.now(), round((days + LEARNING_D) * STEPS_A_DAY)
        for step in range(1, steps + 1):
            while clock.now() < begin_s + step * DAY_S / STEPS_A_DAY:
                heed()
                tend(trees)
                time.sleep(BEAT_S)  # how often we look; crawlers run in other processes
            progress.look(step, f"hour {step} of {steps}")
        return begin_s, clock.now()


def _measured(
    one: Contender, world: MadeWorld, window: tuple[float, float], told: Sequence[Received], seed: int
) -> Way:
    begin_s, end_s = window
    own = [each for each in told if each.name == one.policy and each.at_s <= end_s]
    births = _births(world, begin_s, end_s - LAST_S)
    seen = [(each.url, at_s) for each in own if (at_s := parse_feed_date(each.seen_at)) is not None]
    fetches = sum(begin_s <= entry.start_s <= end_s for entry in read_log(one.log)[1])
    found = delays_of(births, told_first(seen), seed)
    return Way(one.policy, delays_of(births, told_first([(each.url, each.at_s) for each in own]), seed), found, fetches)


def _births(world: MadeWorld, begin_s: float, end_s: float) -> dict[str, float]:
    """The pages that were born then and may be found, with their true births."""
    urls = [url for host in world.sites for url in world.live_pages(host, end_s)]
    truths = [(url, truth) for url in urls if (truth := world.truth(url)) is not None]
    return {url: truth.born_s for url, truth in truths if truth.indexable and begin_s <= truth.born_s < end_s}
