"""``vedette demo``: serve a synthetic web, crawl it, let visitors search it, and judge the crawl by its log."""

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from vedette.cli.commands.crawl import format_summary
from vedette.cli.commands.token import ensure_token
from vedette.cli.commands.up import search_address
from vedette.cli.data_folder import print_note
from vedette.cli.demo.births import run_births_demo
from vedette.cli.demo.crawlers import build_settings
from vedette.cli.demo.month import run_month_demo
from vedette.cli.options import LOOPBACK, add_listen_options, parse_speed
from vedette.cli.output import format_count, format_duration, format_number
from vedette.cli.progress import Screen
from vedette.config import parse_duration
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.fetch.connect_to import parse_override
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import Verdict, judge_log
from vedette.lab.visitors.traffic import VisitorsHandle, start_visitors
from vedette.lab.worlds import docs_site
from vedette.lab.worlds.docs_site import DOCS_HOST, find_docs, open_docs_site
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.runtime.processes.run import run_to_end
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.server import bind

SPEED = 60.0
LISTEN = f"{LOOPBACK}:8080"
VISITED = (LOOPBACK, "0.0.0.0", "::")  # noqa: S104 - nothing is bound: simulated visitors reach these
DOCS_LOG = "docs-access.log"
MAX_VISITORS = 5.0
MAX_DAYS = 365

DESCRIPTION = """\
Generate a web of a few dozen sites, serve it on loopback addresses, crawl it,
and search it in your browser. Its clock runs faster than real time, new pages
keep appearing, and the home page lists the latest ones. Vedette's own
documentation is crawled too, as a small real site. Simulated visitors search
and click, so the console has something to show. Nothing leaves the machine.

  vedette demo --for 2min

With --days, compare refresh policies instead: each crawls the same web for that
many simulated days with the same budget.

  vedette demo --days 30 --report

With --births, measure how quickly new pages are reported to a webhook,
compared with polling all pages in turn and polling only sitemaps on the same
budget.

  vedette demo --births
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette demo``."""
    parser.add_argument(
        "--for", dest="duration", metavar="TIME", help="stop after this time, such as 120s (default: run until Ctrl-C)"
    )
    parser.add_argument(
        "--world",
        metavar="made:SIZE",
        default="made:small",
        help="made:tiny, made:small, made:medium or made:large (default: made:small)",
    )
    add_listen_options(parser, f"address of the search page and console (default: {LISTEN})")
    parser.add_argument("--seed", type=int, default=1, help="seed of the synthetic web (default: 1)")
    parser.add_argument(
        "--speed",
        metavar="X",
        type=parse_speed,
        help="speed of the web's clock, as a multiple of real time (default: 60; with --days 5000; with --births 200)",
    )
    parser.add_argument(
        "--visitors",
        metavar="N",
        type=parse_visitors,
        default=2.0,
        help="searches per second by simulated visitors, at most 5; 0 for none (default: 2)",
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep the data in this new folder (default: delete it at the end)"
    )
    parser.add_argument(
        "--days",
        metavar="N",
        type=parse_days,
        help="compare refresh policies over N simulated days on a small generated web",
    )
    parser.add_argument(
        "--births",
        action="store_true",
        help="instead, compare ways to find new pages over N days (default: 1), after a few hours of warm-up",
    )
    parser.add_argument(
        "--report",
        metavar="DIR",
        nargs="?",
        const=".",
        help="with --days: write a report to this folder (default: the current one)",
    )
    parser.add_argument(
        "--json", action="store_true", help="with --days or --births: print one JSON object and nothing else"
    )
    parser.add_argument("--quiet", action="store_true", help="do not show progress")
    parser.add_argument("--debug", action="store_true", help="show the full traceback of an error")


def parse_visitors(text: str) -> float:
    """Parse ``--visitors`` of ``vedette demo``: searches per second of wall time."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MAX_VISITORS:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of searches per second: use 0 to {MAX_VISITORS:g}')
    return number


def parse_days(text: str) -> int:
    """Parse ``--days`` of ``vedette demo``."""
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and 1 <= int(text) <= MAX_DAYS):
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of days: use 1 to {MAX_DAYS}, such as 30')
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Check the options of ``vedette demo``, then run it."""
    if options.births:
        options.days = options.days or 1
        if options.report:
            raise UsageError("--report does not work with --births: drop it, or use --json")
    if options.days is None and (options.report or options.json):
        wanted = "--report" if options.report else "--json"
        raise UsageError(f"{wanted} needs --days: use vedette demo --days 30 {wanted}")
    if options.days is not None and options.duration:
        raise UsageError("--for does not work with --days or --births: drop one of them")
    if options.days is not None and options.world != options.parser.get_default("world"):
        raise UsageError(
            "--world does not work with --days or --births, which generate their own web: drop it, or change --seed"
        )

    return run_demo(options)


def run_demo(options: argparse.Namespace, show: type[Screen] = Screen) -> int:
    """Run the births, month or plain demo; the plain one serves a synthetic web, crawls and judges it."""
    duration_s = parse_duration(options.duration) if options.duration else None
    with ExitStack() as stack:
        folder = _prepare_folder(options.data, stack)
        if options.births:
            return run_births_demo(options, folder)
        if options.days is not None:
            return run_month_demo(options, folder)
        speed = options.speed or SPEED
        log = folder / "access.log"
        server = stack.enter_context(start_server(options.world, options.seed, speed=speed, log_path=log))
        listener = stack.enter_context(bind(options.listen or LISTEN))
        hosts = (name for name in server.hosts if not name.startswith("*."))
        settings = replace(build_settings(server, hosts, folder), forever=True, listener=listener)
        docs = _start_docs(server, folder, stack)
        settings = _add_docs(settings, docs) if docs else settings
        visitors = _start_visitors(options, settings, stack)
        print(_format_welcome(options, server, docs, settings, visitors), flush=True)
        until_s = None if duration_s is None else time.monotonic() + duration_s
        note = "Ctrl-C to stop" if duration_s is None else f"stops after {format_duration(duration_s)}; Ctrl-C to stop"
        with show(_format_headline(options, server, docs), quiet=options.quiet, note=note) as screen:
            numbers = run_to_end(settings, screen.update, until_s, print_note)
        print(format_summary(numbers))
        if visitors is not None:
            print(_describe_visits(visitors))
        logs = [log, *([folder / DOCS_LOG] if docs else [])]
        for each in (server, docs) if docs else (server,):
            each.stop()
        print(_describe_verdict(logs, settings))
    return 0


def _start_docs(server: ServerHandle, folder: Path, stack: ExitStack) -> ServerHandle | None:
    """Serve the documentation beside the synthetic web, if it is installed."""
    if find_docs() is None:
        return None
    world = f"{docs_site.__name__}:{open_docs_site.__name__}"
    return stack.enter_context(start_server(world, clock=server.clock, log_path=folder / DOCS_LOG))


def _docs_address(docs: ServerHandle) -> str:
    return f"http://{DOCS_HOST}:{docs.port}/"


def _add_docs(settings: RuntimeSettings, docs: ServerHandle) -> RuntimeSettings:
    detour = parse_override(f"{DOCS_HOST}:{docs.port}=127.0.0.1:{docs.port}")
    sites = (read_site(_docs_address(docs)), *settings.sites)
    return replace(settings, sites=sites, detours=(*settings.detours, detour))


def _prepare_folder(named: str | None, stack: ExitStack) -> Path:
    if named is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vedette-demo-")))
    folder = Path(named)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--data {named} is not empty: the demo needs a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _start_visitors(options: argparse.Namespace, settings: RuntimeSettings, stack: ExitStack) -> VisitorsHandle | None:
    """Start the demo's synthetic visitors, who search as soon as there is something to find."""
    assert settings.listener is not None
    host, port = settings.listener.getsockname()[:2]
    if not options.visitors or host not in VISITED:
        return None
    started = start_visitors(port, settings.clock, options.visitors, seed=options.seed)
    return stack.enter_context(started)


def _describe_visits(visitors: VisitorsHandle) -> str:
    tally = visitors.stop()
    if tally is None or not tally.visits:
        return "No visits yet: visitors wait until there is something to find."
    did = f"searched {format_count(tally.searches, 'time')} and opened {format_count(tally.clicks, 'result')}"
    return f"{format_count(tally.visits, 'visit')}: visitors {did}."


def _format_welcome(
    options: argparse.Namespace,
    server: ServerHandle,
    docs: ServerHandle | None,
    settings: RuntimeSettings,
    visitors: VisitorsHandle | None,
) -> str:
    first, search = next(iter(server.hosts)), search_address(settings)
    public = f"simulated, about {options.visitors:g} searches per second" if visitors else "only you"
    return "\n".join(
        [
            f"{options.world} with seed {options.seed}: {len(server.hosts)} hosts on port {server.port} of loopback.",
            f"Its clock runs {server.clock.speed:g} times as fast as real time.",
            f"Search    {search}",
            *([f"Try       {search}search?q=crawl+delay"] if docs else ()),
            f"Console   {search}console",
            f"Token     {ensure_token(settings)}",
            *([f"Docs      {_docs_address(docs)}, a real site, is crawled, too"] if docs else ()),
            f"Data      {settings.folder}",
            f"Visitors  {public}",
            f"Inspect   curl -H 'Host: {first}' http://127.0.0.1:{server.port}/",
            f"Stop      {'after ' + options.duration if options.duration else 'Ctrl-C'}",
            "",
        ]
    )


def _format_headline(options: argparse.Namespace, server: ServerHandle, docs: ServerHandle | None) -> str:
    beside = " and the docs" if docs else ""
    return f"{options.world}, {len(server.hosts)} hosts{beside}, {server.clock.speed:g} times as fast"


def _describe_verdict(logs: Sequence[Path], settings: RuntimeSettings) -> str:
    verdicts = [_judge(log, settings) for log in logs]
    requests, hosts = (sum(getattr(each, name) for each in verdicts) for name in ("requests", "hosts"))
    violations = [violation.detail for each in verdicts for violation in each.violations]
    traffic = f"According to the servers' log: {format_number(requests)} requests to {format_number(hosts)} hosts"
    if not violations:
        return f"{traffic}, none too soon, none disallowed."
    total = sum(each.total for each in verdicts)
    return "\n".join([f"{traffic}, {format_number(total)} violations:", *violations[:10]])


def _judge(log: Path, settings: RuntimeSettings) -> Verdict:
    header, entries = read_log(log)
    crawl = settings.config.crawl
    return judge_log(entries, header, delay_s=crawl.delay_s, address_delay_s=crawl.address_delay_s)
