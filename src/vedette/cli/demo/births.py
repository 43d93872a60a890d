"""``vedette demo --births``: measure how soon an alert's webhook gets new pages, by three discovery strategies.

    default    as ``vedette up`` polls: sources by what they bring, refreshes at the same price
    uniform    every known URL in turn
    sitemaps   sitemaps alone, as often as the budget lets them; what no sitemap names is not found

Each has its own crawler, data folder and server over the same web, and the same budget for everything it fetches. All
begin with a full crawl without a budget; then they learn for a quarter of a day; then new pages count. A webhook
receiver records what is reported; the synthetic web knows when pages were published.
"""

import argparse
import json
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.clock import Clock, start_clock
from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.cli.demo.crawlers import (
    OTHER_SPELLINGS,
    Contender,
    DemoProgress,
    build_settings,
    catch_interrupts,
    observe,
    run_first_crawl,
)
from vedette.cli.output import format_number, format_table
from vedette.config import override
from vedette.engine.scheduling.refresh_policies import DEFAULT_POLICY
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.alert_delays import (
    AlertDelays,
    ReceivedItem,
    WebhookReceiver,
    earliest_times,
    measure_delays,
    read_received,
    start_receiver,
)
from vedette.lab.judge.live_quality import Snapshot
from vedette.lab.worlds.synthetic import SyntheticWorld
from vedette.lab.worlds.synthetic.presets import BIRTHS_PLACE, births_world
from vedette.lab.worlds.synthetic.server import start_server
from vedette.model import Site
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.timeutil import DAY_S, MINUTE_S, parse_date
from vedette.web.commands.alert_text import parse_alert
from vedette.web.commands.commands import AddAlert, Command, SetSite

COLUMNS = ("polls by", "reported", "median to webhook", "95%", "quartiles", "median to discovery", "fetches/day")


class StrategyResult(NamedTuple):
    """The result of a discovery strategy in the births demo: delays to webhook and discovery, and its fetches."""

    name: str
    delivered: AlertDelays
    discovered: AlertDelays
    fetches: int


@dataclass(frozen=True, slots=True)
class BirthsReport:
    """The report of the births demo: the web, its days, speed and budget, and the result of each strategy."""

    command: str
    world: str
    days: float
    speed: float
    budget_per_day: int
    pages: int
    results: list[StrategyResult]


def format_text(run: BirthsReport) -> str:
    """Format the report of the births demo as a table for the terminal, with what it means."""
    table = format_table([COLUMNS, *(_table_row(run, way) for way in run.results)], gap="   ")
    births = run.results[0].delivered.births if run.results else 0
    about = (
        f"{run.world}: {format_number(run.pages)} pages known at the start, {format_number(births)} new pages counted "
        f"in {run.days:g} days. The clock runs {run.speed:g} times as fast as real time, so a second of work here is "
        f"{run.speed / MINUTE_S:.1f} minutes there. Budget: {format_number(run.budget_per_day)} fetches per day."
    )
    meaning = "Delays are minutes since publication; unreported pages count as the latest. Bootstrap intervals."
    return "\n".join([about, "", *table, "", meaning])


def to_dict(run: BirthsReport) -> dict[str, Any]:
    """Return the report of the births demo as JSON values; infinite numbers become null."""
    return {
        "command": run.command,
        "world": run.world,
        "days": run.days,
        "speed": run.speed,
        "budget_per_day": run.budget_per_day,
        "pages": run.pages,
        "ways": {
            way.name: {
                "told": _delays_to_dict(way.delivered),
                "found": _delays_to_dict(way.discovered),
                "fetches": way.fetches,
            }
            for way in run.results
        },
    }


def _delays_to_dict(delays: AlertDelays) -> dict[str, float | None]:
    values = {**delays._asdict(), "share": delays.share}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _table_row(run: BirthsReport, way: StrategyResult) -> tuple[str, ...]:
    delays = way.delivered
    return (
        way.name,
        f"{delays.told} of {delays.births}",
        format_minutes(delays.median_s),
        f"{format_minutes(delays.low_s)} to {format_minutes(delays.high_s)}",
        f"{format_minutes(delays.quarter_s)} to {format_minutes(delays.three_quarters_s)}",
        format_minutes(way.discovered.median_s),
        format_number(round(way.fetches / run.days)),
    )


def format_minutes(seconds: float) -> str:
    """Format a delay of the births demo in whole minutes; ``never`` for a page that was not reported.

    >>> format_minutes(90.0), format_minutes(3600.0), format_minutes(math.inf), format_minutes(math.nan)
    ('2', '60', 'never', '-')
    """
    if math.isnan(seconds):
        return "-"
    return "never" if math.isinf(seconds) else f"{seconds / MINUTE_S:.0f}"


SPEED = 200.0
LEARNING_DAYS = 0.25
# Pages of the last hours are not counted: there was no time to find them.
IGNORED_TAIL_S = 4 * 3_600.0
# Fetches per day, as a share of the pages known at the start; and the share of these for polls of sitemaps, leaving the
# rest for new pages and robots.txt.
BUDGET_SHARE, SITEMAPS_SHARE = 1.0, 0.6
STEPS_PER_DAY = 24
NEVER_S = 30 * DAY_S
# The refresh policy of each; the last has none that would be due within a day.
STRATEGIES = {"default": DEFAULT_POLICY, "uniform": "uniform", "sitemaps": "nutch"}


def run_births_demo(options: argparse.Namespace, folder: Path) -> int:
    """Run ``vedette demo --births``: crawl, let time pass, measure webhook delays, print the report."""
    world, speed = births_world(options.seed), options.speed or SPEED
    steps = round((options.days + LEARNING_DAYS) * STEPS_PER_DAY)
    with DemoProgress(steps, quiet=options.quiet or options.json) as progress:
        found = _run_demo(options, folder, world, speed, progress)
    print(json.dumps(to_dict(found)) if options.json else format_text(found))
    return 0


def _run_demo(
    options: argparse.Namespace, folder: Path, world: SyntheticWorld, speed: float, progress: DemoProgress
) -> BirthsReport:
    clock = start_clock(world.start_s, speed)
    steps = round((options.days + LEARNING_DAYS) * STEPS_PER_DAY)
    with catch_interrupts() as check, ExitStack() as stack:
        receiver = stack.enter_context(start_receiver(clock, folder / "told.log"))
        some = [_start_contender(name, world, options.seed, clock, folder, stack) for name in STRATEGIES]
        held, pages = run_first_crawl(some, progress, check)
        budget = max(1, round(BUDGET_SHARE * pages))
        ready = [_configure_contender(one, held, budget, receiver, clock) for one in some]
        moments = [step * DAY_S / STEPS_PER_DAY for step in range(1, steps + 1)]
        begin_s, end_s = observe(
            ready, budget, moments, check, lambda step, _: progress.update(f"hour {step} of {steps}", step)
        )
    progress.update("measuring")
    window = (begin_s + LEARNING_DAYS * DAY_S, end_s)
    received = list(read_received(folder / "told.log"))
    ways = [_measure(one, world, window, received, options.seed) for one in ready]
    command = f"vedette demo --births --days {options.days} --seed {options.seed} --speed {speed:g}"
    return BirthsReport(command, world.name, options.days, speed, budget, pages, ways)


def _start_contender(
    name: str, world: SyntheticWorld, seed: int, clock: Clock, folder: Path, stack: ExitStack
) -> Contender:
    log = folder / f"{name}-access.log"
    server = stack.enter_context(start_server(BIRTHS_PLACE, seed, clock=clock, log_path=log))
    typed = {"refresh.policy": STRATEGIES[name]}
    settings = build_settings(server, world.sites, folder / name, typed, exclude=OTHER_SPELLINGS)
    return Contender(name, settings, server)


def _configure_contender(
    one: Contender, held: Snapshot, budget: int, receiver: WebhookReceiver, clock: Clock
) -> Contender:
    """Configure a crawler of the births demo: an alert on everything, and polls of sources by its strategy."""
    watch = parse_alert("all", "*", webhook=receiver.url_for(one.policy))
    sitemaps = [url for url, row in held.items() if row.kind == "sitemap"] if one.policy == "sitemaps" else []
    every_s = len(sitemaps) * DAY_S / (SITEMAPS_SHARE * budget)
    promises = [_promise_command(site, sitemaps, every_s) for site in one.settings.sites]
    orders: list[Command] = [AddAlert(watch), *(each for each in promises if each.changes["promise"])]
    with open_for_write(one.settings.folder, time.time()) as state:
        for order in orders:
            execute_command(order, state, clock.now(), "the demo")
        state.db.execute("COMMIT")
    # All lists are polled once after the first crawl; then at this pace, if there is no price.
    turn_s = {"uniform": len(held) / budget * DAY_S, "sitemaps": NEVER_S}.get(one.policy)
    return one if turn_s is None else replace(one, settings=_set_source_interval(one.settings, turn_s))


def _promise_command(site: Site, sitemaps: Sequence[str], every_s: float) -> SetSite:
    """Return the command that makes the births demo poll the sitemaps of a site at a fixed interval."""
    promised = tuple(f"{every_s:.0f} {url}" for url in sitemaps if url.startswith(site.start))
    return SetSite(site.start, {"promise": promised}, "promise")


def _set_source_interval(settings: RuntimeSettings, turn_s: float) -> RuntimeSettings:
    return replace(settings, config=override(settings.config, {"crawl.source_interval": f"{turn_s:.0f}s"}))


def _measure(
    one: Contender, world: SyntheticWorld, window: tuple[float, float], received: Sequence[ReceivedItem], seed: int
) -> StrategyResult:
    begin_s, end_s = window
    own = [each for each in received if each.name == one.policy and each.at_s <= end_s]
    births = _true_births(world, begin_s, end_s - IGNORED_TAIL_S)
    seen = [(each.url, at_s) for each in own if (at_s := parse_date(each.seen_at)) is not None]
    fetches = sum(begin_s <= entry.start_s <= end_s for entry in read_log(one.log)[1])
    found = measure_delays(births, earliest_times(seen), seed)
    reported = measure_delays(births, earliest_times([(each.url, each.at_s) for each in own]), seed)
    return StrategyResult(one.policy, reported, found, fetches)


def _true_births(world: SyntheticWorld, begin_s: float, end_s: float) -> dict[str, float]:
    """Return the synthetic pages published in a period that crawlers may find, with their true times."""
    urls = [url for host in world.sites for url in world.live_pages(host, end_s)]
    truths = [(url, truth) for url in urls if (truth := world.truth(url)) is not None]
    return {url: truth.born_s for url, truth in truths if truth.indexable and begin_s <= truth.born_s < end_s}
