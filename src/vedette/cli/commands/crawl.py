"""What ``vedette crawl`` does: settings, checks, a process tree, a screen, a summary."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vedette import __version__
from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.net.dns import resolve_host
from vedette.adapters.net.ipc import ChannelClosed
from vedette.cli.options import (
    add_data_options,
    add_fetch_options,
    add_output_options,
    add_patience_option,
    add_scope_options,
)
from vedette.cli.output import format_bytes, format_count, format_counts, format_duration, format_number
from vedette.cli.progress import Screen
from vedette.config import Config, load, override, parse_duration
from vedette.discover.urls.scope import read_site
from vedette.engine.coordinator.state import CrawlRules
from vedette.errors import AddressRefused, ContactMissing, SiteError, UsageError
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import ConnectOverride, find_endpoint, parse_override
from vedette.fetch.request import build_user_agent
from vedette.model import Failure, Site, origin_of
from vedette.runtime.commands.rpc import Request
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.runtime.processes.supervisor import Supervisor, ask_coordinator

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Fetch the pages of the sites that you name, politely: robots.txt is obeyed, a host is
asked for one page at a time, with a pause after each answer. What was fetched is kept
in the data folder; the same command again goes on where it stopped.

  vedette crawl https://example.org/docs/ --scope prefix --pages 500 --contact me@example.org
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("crawl", help="fetch the pages of sites", description=DESCRIPTION)
    parser.add_argument("sites", metavar="SITE", nargs="+", help="an http(s) URL or a host name")
    parser.add_argument("--pages", metavar="N", type=_parse_count, help="stop after N pages")
    add_scope_options(parser)
    add_fetch_options(parser)
    add_patience_option(parser, "how long to wait for hosts in trouble when nothing else is left")
    add_data_options(parser)
    add_output_options(parser, "print one JSON object at the end, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Crawl, show progress, sum up."""
    return crawl(options)


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of pages: write a whole number above 0, such as 100'
        )
    return int(text)


POLL_INTERVAL_S = 0.1
StatusNumbers = Mapping[str, Any]


def crawl(options: argparse.Namespace) -> int:
    """Crawl, show progress, sum up."""
    settings = build_settings(options)
    check_sites(settings)
    quiet = options.quiet or options.json
    note = f"{settings.folder}   Ctrl-C stops; the same command goes on"
    with Screen(_format_headline(settings.sites), quiet=quiet, note=note) as screen:
        told = run_process_tree(settings, screen.update)
    if options.json:
        print(json.dumps({"data": str(settings.folder), **told}))
    else:
        print(format_summary(told))
        print(f"Everything is in {settings.folder} (state.db is an SQLite file, warc/ holds the pages).")
        if told["ending"] != "done":
            print("Run the same command again to go on.")
    return 0 if told["pages"] or told["ending"] != "stuck" else 1


def build_settings(options: argparse.Namespace) -> RuntimeSettings:
    """What the command line and the settings say."""
    config = _load_config(options)
    sites = tuple(
        read_site(text, scope=options.scope, include=tuple(options.include), exclude=tuple(options.exclude))
        for text in options.sites
    )
    return RuntimeSettings(
        config=config,
        clock=start_clock(time.time(), options.speed),
        folder=config.store.data,
        agent=build_user_agent(__version__, config.crawl.contact),
        sites=sites,
        detours=_parse_detours(options.connect_to),
        allow_private=options.allow_private,
        max_pages=options.pages,
        patience_s=parse_duration(options.patience),
        workers=config.crawl.workers,
    )


def run_process_tree(
    settings: RuntimeSettings, look: Callable[[StatusNumbers], object], until_s: float | None = None
) -> dict[str, Any]:
    """Run keeper and workers to their end, or to a wall time; the last numbers. Ctrl-C and SIGTERM end it cleanly."""
    lock = lock_folder(settings.folder)
    tree = Supervisor(settings)
    started_s = time.monotonic()
    told: dict[str, Any] = {}
    with _catch_signals() as stopped:
        tree.start()
        while tree.is_alive and not tree.is_over:
            for happening in tree.restart_dead():
                print(happening, file=sys.stderr)
            over = stopped() or (until_s is not None and time.monotonic() >= until_s)
            if over:
                tree.set_stop_deadline()
            told = _poll_coordinator(settings.folder, Request("stop" if over else "status")) or told
            if told:
                look(told)
            time.sleep(POLL_INTERVAL_S)  # how often people look; the crawl itself runs in other processes
        tree.stop()
        told = {**told, **tree.read_final_status()}
    lock.close()
    return {**told, "ending": told.get("ending") or "stopped", "seconds": round(time.monotonic() - started_s, 3)}


def _poll_coordinator(folder: Path, call: Request) -> dict[str, Any]:
    try:
        # Short, so that a keeper which hangs cannot keep Ctrl-C waiting.
        return ask_coordinator(folder, call, timeout_s=0.3 if call.verb == "stop" else 0.7)
    except (OSError, ChannelClosed):
        return {}


def format_summary(told: StatusNumbers) -> str:
    """What came of it, in a few lines."""
    if "pages" not in told:
        return "Nothing was fetched."
    brought = f"{format_count(told['pages'], 'page')}, {format_bytes(told['bytes'])}, from {format_count(told['hosts'], 'host')}"
    cost = (
        f"{format_count(told['requests'], 'request')}, {format_number(told['robots_requests'])} of them for robots.txt"
    )
    left = told["urls_waiting"]
    lines = [
        f"{brought} in {format_duration(told['seconds'])} ({cost}).",
        f"{format_count(told['urls_known'], 'URL')} known, {format_number(left) if left else 'none'} of them still to be fetched.",
    ]
    if told["refusals"]:
        lines.append(f"Not fetched: {format_counts(told['refusals'])}.")
    if told["failures"]:
        lines.append(f"Failed: {format_counts(told['failures'])}.")
    if told["ending"] == "stuck":
        named = [f"{name} ({trouble})" for name, trouble in told["hosts_in_trouble"].items()]
        lines.append(f"Waited in vain for {', '.join(named[:5])}{' and others' if len(named) > 5 else ''}.")
    return "\n".join(lines)


def _load_config(options: argparse.Namespace) -> Config:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    typed = {"crawl.contact": options.contact, "crawl.delay": options.delay, "store.data": options.data}
    return override(load(path), {key: value for key, value in typed.items() if value is not None})


def check_sites(settings: RuntimeSettings) -> None:
    """Nothing is begun that cannot be done: names that do not exist, addresses that may not be asked."""
    rules = build_rules(settings, [])
    for site in settings.sites:
        check_addresses(site, _resolve_site(site, settings.detours), rules)


def check_addresses(site: Site, addresses: Sequence[str], rules: CrawlRules) -> None:
    """One of a site's addresses may be asked, or it is said what to do."""
    if any(map(rules.can_fetch_address, addresses)) or (site.allow_private and not all(map(is_public, addresses))):
        return
    host = origin_of(site.start).host
    if any(map(is_public, addresses)):
        raise ContactMissing(
            f"{host} is a public host, and its operator must be able to reach you: say --contact you@example.org, "
            "or set crawl.contact in vedette.toml"
        )
    raise AddressRefused(f"{host} is at the private address {addresses[0]}: say --allow-private if you mean it")


def _resolve_site(site: Site, detours: Sequence[ConnectOverride]) -> tuple[str, ...]:
    origin = origin_of(site.start)
    detour = find_endpoint(origin, detours)
    if detour:
        return (detour.address,)
    pause_s = 1.0
    while (found := resolve_host(origin.host)).failure is Failure.RESOLVER:
        print(
            f"The resolver does not answer for {origin.host}; trying again in {format_duration(pause_s)} (Ctrl-C stops)",
            file=sys.stderr,
        )
        time.sleep(pause_s)  # nothing else is to be done before the name is known
        pause_s = min(pause_s * 2, 60.0)
    if found.failure is not None:
        raise SiteError(f"{origin.host} does not exist: check the spelling of {site.start}")
    return found.addresses


def _parse_detours(texts: Sequence[str]) -> tuple[ConnectOverride, ...]:
    return tuple(parse_override(line) for text in texts for line in _read_lines(text))


def _read_lines(text: str) -> list[str]:
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--connect-to {text}: {error}; name a file with one HOST:PORT=ADDR:PORT a line") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _format_headline(sites: Sequence[Site]) -> str:
    first = sites[0].start
    return f"{first} and {len(sites) - 1} more" if len(sites) > 1 else first


@contextmanager
def _catch_signals() -> Iterator[Callable[[], bool]]:
    """Whether somebody wants it to end."""
    wanted: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _: wanted.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield lambda: bool(wanted)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
