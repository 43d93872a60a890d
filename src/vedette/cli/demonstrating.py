"""What ``vedette demo`` does: serves a made web, crawls it, and lets its log judge."""

import argparse
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

from vedette.cli.crawling import rules_of, run_worker, summary, worker_for
from vedette.cli.screen import Screen
from vedette.cli.words import amount, span
from vedette.config import Config, override, parse_duration
from vedette.discover.scope import read_site
from vedette.errors import UsageError
from vedette.fetch.connect import read_detour
from vedette.lab.access_log import read_log
from vedette.lab.judge import judge
from vedette.lab.worlds.made.server import ServerHandle, start_server
from vedette.live.worker import Worker

__all__ = ["demonstrate"]


def demonstrate(options: argparse.Namespace, show: type[Screen] = Screen) -> int:
    """Serve, crawl, show, judge."""
    duration_s = parse_duration(options.duration) if options.duration else None
    with ExitStack() as stack:
        folder = _folder(options.data, stack)
        log = folder / "access.log"
        server = stack.enter_context(start_server(options.world, options.seed, speed=options.speed, log_path=log))
        worker = _worker(server, folder)
        print(_welcome(options, server, folder))
        started_s = time.monotonic()
        _stop_after(worker, duration_s)
        note = "Ctrl-C stops" if duration_s is None else f"ends after {span(duration_s)}; Ctrl-C stops"
        with show(_headline(options, server), quiet=options.quiet, note=note) as screen:
            worker.look = screen.look
            ending = run_worker(worker)
        print(summary(worker.crawl, ending, time.monotonic() - started_s))
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


def _worker(server: ServerHandle, folder: Path) -> Worker:
    config = override(Config(), {"store.data": str(folder)})
    names = [name for name in server.hosts if not name.startswith("*.")]
    sites = tuple(read_site(f"http://{name}/") for name in names)
    detours = tuple(read_detour(line) for line in server.connect_to_lines())
    worker = worker_for(rules_of(config, sites, detours, allow_private=True, pages=None), config, server.clock)
    worker.linger = True
    return worker


def _welcome(options: argparse.Namespace, server: ServerHandle, folder: Path) -> str:
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


def _headline(options: argparse.Namespace, server: ServerHandle) -> str:
    return f"{options.world}, {len(server.hosts)} hosts, {options.speed:g} times as fast"


def _stop_after(worker: Worker, duration_s: float | None) -> None:
    if duration_s is not None:
        timer = threading.Timer(duration_s, worker.stop)
        timer.daemon = True
        timer.start()


def _judged(log: Path, worker: Worker) -> str:
    header, entries = read_log(log)
    rules = worker.crawl.rules
    verdict = judge(entries, header, delay_s=rules.delay_s, address_delay_s=rules.address_delay_s)
    told = f"The servers' own log: {amount(verdict.requests)} requests to {amount(verdict.hosts)} hosts"
    if not verdict.total:
        return f"{told}, none too soon, none disallowed."
    return "\n".join(
        [f"{told}, {amount(verdict.total)} violations:", *(each.detail for each in verdict.violations[:10])]
    )
