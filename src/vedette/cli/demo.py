"""``vedette demo``: a made web on loopback, crawled before your eyes; its own access log judges the crawl."""

import argparse
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.crawl import rules_of, run_worker, speed_of, summary, worker_for
from vedette.cli.screen import Screen
from vedette.cli.words import amount, span
from vedette.config import Config, override, parse_duration
from vedette.discover.scope import read_site
from vedette.errors import UsageError
from vedette.fetch.connect import read_detour
from vedette.live.worker import Worker

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser
    from vedette.lab.worlds.made.server import ServerHandle

__all__ = ["add"]

DESCRIPTION = """\
Make a web of a few dozen sites on this machine, serve it on loopback addresses, and
crawl it. Its time runs faster than ours. Nothing leaves the machine.

  vedette demo --for 2min
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("demo", help="crawl a made web on this machine", description=DESCRIPTION)
    parser.add_argument(
        "--for", dest="duration", metavar="TIME", help="end after this time, such as 120s (default: with Ctrl-C)"
    )
    parser.add_argument(
        "--world", metavar="made:SIZE", default="made:small", help="tiny, small, medium or large (default: made:small)"
    )
    parser.add_argument("--seed", type=int, default=1, help="another number is another web (default: 1)")
    parser.add_argument(
        "--speed", metavar="X", type=speed_of, default=60.0, help="how many times as fast its time runs (default: 60)"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep the data in this new folder (default: thrown away at the end)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Serve, crawl, show, judge."""
    from vedette.lab.worlds.made.server import start_server

    duration_s = parse_duration(options.duration) if options.duration else None
    with ExitStack() as stack:
        folder = _folder(options.data, stack)
        log = folder / "access.log"
        server = stack.enter_context(start_server(options.world, options.seed, speed=options.speed, log_path=log))
        worker = _worker(server, folder)
        print(_welcome(options, server, folder))
        started_s = time.monotonic()
        _stop_after(worker, duration_s)
        with Screen(_headline(options, server), quiet=options.quiet, note="Ctrl-C stops") as screen:
            worker.look = screen.look
            ending = run_worker(worker)
        print(summary(worker.crawl, ending, time.monotonic() - started_s, str(folder)))
        server.stop()
        print(_judged(log, worker))
    return 0


def _folder(named: str | None, stack: ExitStack) -> Path:
    if named is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vedette-demo-")))
    folder = Path(named)
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"--data {named} is not empty, and a demo begins anew: name a folder that does not exist yet")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _worker(server: "ServerHandle", folder: Path) -> Worker:
    config = override(Config(), {"store.data": str(folder)})
    names = [name for name in server.hosts if not name.startswith("*.")]
    sites = tuple(read_site(f"http://{name}/") for name in names)
    detours = tuple(read_detour(line) for line in server.connect_to_lines())
    worker = worker_for(rules_of(config, sites, detours, allow_private=True, pages=None), config, server.clock)
    worker.linger = True
    return worker


def _welcome(options: argparse.Namespace, server: "ServerHandle", folder: Path) -> str:
    first = next(iter(server.hosts))
    return "\n".join(
        [
            f"{options.world} with seed {options.seed}: {len(server.hosts)} hosts on port {server.port} of loopback.",
            f"One second here is {span(options.speed)} there.",
            f"Data      {folder}",
            f"Look      curl -H 'Host: {first}' http://127.0.0.1:{server.port}/",
            f"Stop      {'after ' + options.duration if options.duration else 'Ctrl-C'}",
            "",
        ]
    )


def _headline(options: argparse.Namespace, server: "ServerHandle") -> str:
    return f"{options.world}, {len(server.hosts)} hosts, {options.speed:g} times as fast"


def _stop_after(worker: Worker, duration_s: float | None) -> None:
    if duration_s is not None:
        timer = threading.Timer(duration_s, worker.stop)
        timer.daemon = True
        timer.start()


def _judged(log: Path, worker: Worker) -> str:
    from vedette.lab.access_log import read_log
    from vedette.lab.judge import judge

    header, entries = read_log(log)
    rules = worker.crawl.rules
    verdict = judge(entries, header, delay_s=rules.delay_s, address_delay_s=rules.address_delay_s)
    told = f"The servers' own log: {amount(verdict.requests)} requests to {amount(verdict.hosts)} hosts"
    if not verdict.total:
        return f"{told}, none too soon, none disallowed."
    return "\n".join(
        [f"{told}, {amount(verdict.total)} violations:", *(each.detail for each in verdict.violations[:10])]
    )
