"""What ``vedette crawl`` does: settings, checks, a worker, a screen, a summary."""

import argparse
import json
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vedette import __version__
from vedette.cli.screen import Screen, numbers
from vedette.cli.words import amount, bytes_in_words, counted, kinds, span
from vedette.config import Config, load, override, parse_duration
from vedette.discover.scope import read_site
from vedette.edges.clock import Clock, start_clock
from vedette.edges.dns import Resolver, look_up
from vedette.edges.http import Client, Limits
from vedette.edges.sqlite import SqliteStore
from vedette.errors import AddressRefused, ContactMissing, SiteError, UsageError
from vedette.facts import Failure, Site, origin_of
from vedette.fetch.connect import Detour, detour_for, read_detour
from vedette.fetch.guard import is_public
from vedette.fetch.request import user_agent
from vedette.live.worker import Ending, Worker
from vedette.ring.state import Crawl, Rules

__all__ = ["crawl", "rules_of", "run_worker", "summary", "worker_for"]


def crawl(options: argparse.Namespace) -> int:
    """Crawl, show progress, sum up."""
    config = _config(options)
    sites = tuple(
        read_site(text, scope=options.scope, include=tuple(options.include), exclude=tuple(options.exclude))
        for text in options.sites
    )
    rules = rules_of(
        config, sites, _detours(options.connect_to), allow_private=options.allow_private, pages=options.pages
    )
    patience_s = parse_duration(options.patience)
    _check(rules)
    clock = start_clock(time.time(), options.speed)
    worker = worker_for(rules, config, clock)
    worker.patience_s = patience_s
    quiet = options.quiet or options.json
    with Screen(
        _headline(sites), quiet=quiet, note=f"{config.store.data}   Ctrl-C stops; the same command goes on"
    ) as screen:
        worker.look = screen.look
        started_s = time.monotonic()
        ending = run_worker(worker)
    elapsed_s = time.monotonic() - started_s
    if options.json:
        print(
            json.dumps(
                {
                    "ending": ending,
                    "seconds": round(elapsed_s, 3),
                    "data": str(config.store.data),
                    **numbers(worker.crawl),
                }
            )
        )
    else:
        print(summary(worker.crawl, ending, elapsed_s))
        print(f"Everything is in {config.store.data} (state.db is an SQLite file).")
        if ending != "done":
            print("Run the same command again to go on.")
    return 0 if worker.crawl.tally.pages or ending != "stuck" else 1


def rules_of(
    config: Config, sites: tuple[Site, ...], detours: tuple[Detour, ...], *, allow_private: bool, pages: int | None
) -> Rules:
    """What the operator decided, from settings and options."""
    return Rules(
        sites=sites,
        agent=user_agent(__version__, config.crawl.contact),
        delay_s=config.crawl.delay_s,
        address_delay_s=config.crawl.address_delay_s,
        allow_public=bool(config.crawl.contact),
        allow_private=allow_private,
        detours=detours,
        most_pages=pages,
        most_redirects=config.crawl.max_redirects,
        robots_most_s=config.crawl.robots_max_age_s,
    )


def worker_for(rules: Rules, config: Config, clock: Clock) -> Worker:
    """A worker over the data folder of the settings."""
    limits = Limits(config.crawl.connect_timeout_s, config.crawl.timeout_s, config.crawl.max_page_bytes)
    store = SqliteStore(config.store.data)
    return Worker(Crawl(rules), clock, Client(clock, limits), Resolver(), store, config.crawl.concurrency)


def run_worker(worker: Worker) -> Ending:
    """Run it to its end; Ctrl-C and SIGTERM end it cleanly."""
    with _signals(worker):
        try:
            return worker.run()
        finally:
            worker.close()


def summary(crawl: Crawl, ending: Ending, elapsed_s: float) -> str:
    """What came of it, in a few lines."""
    tally = crawl.tally
    brought = f"{counted(tally.pages, 'page')}, {bytes_in_words(tally.bytes)}, from {counted(len(crawl.hosts), 'host')}"
    cost = f"{counted(tally.requests, 'request')}, {amount(tally.robots)} of them for robots.txt"
    left = len(crawl.frontier)
    lines = [
        f"{brought} in {span(elapsed_s)} ({cost}).",
        f"{counted(len(crawl.known), 'URL')} known, {amount(left) if left else 'none'} of them still to be fetched.",
    ]
    if tally.refusals:
        lines.append(f"Not fetched: {kinds(tally.refusals)}.")
    if tally.failures:
        lines.append(f"Failed: {kinds(tally.failures)}.")
    if ending == "stuck":
        named = [f"{host.name} ({host.trouble})" for host in crawl.hosts.values() if host.trouble]
        lines.append(f"Waited in vain for {', '.join(named[:5])}{' and others' if len(named) > 5 else ''}.")
    return "\n".join(lines)


def _config(options: argparse.Namespace) -> Config:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    typed = {"crawl.contact": options.contact, "crawl.delay": options.delay, "store.data": options.data}
    return override(load(path), {key: value for key, value in typed.items() if value is not None})


def _check(rules: Rules) -> None:
    """Nothing is begun that cannot be done: names that do not exist, addresses that may not be asked."""
    for site in rules.sites:
        host = origin_of(site.start).host
        addresses = _addresses(site, rules.detours)
        if any(map(rules.may_ask, addresses)):
            continue
        if any(map(is_public, addresses)):
            raise ContactMissing(
                f"{host} is a public host, and its operator must be able to reach you: say --contact you@example.org, "
                "or set crawl.contact in vedette.toml"
            )
        raise AddressRefused(f"{host} is at the private address {addresses[0]}: say --allow-private if you mean it")


def _addresses(site: Site, detours: Sequence[Detour]) -> tuple[str, ...]:
    origin = origin_of(site.start)
    detour = detour_for(origin, detours)
    if detour:
        return (detour.address,)
    pause_s = 1.0
    while (found := look_up(origin.host)).failure is Failure.RESOLVER:
        print(
            f"The resolver does not answer for {origin.host}; trying again in {span(pause_s)} (Ctrl-C stops)",
            file=sys.stderr,
        )
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, 60.0)
    if found.failure is not None:
        raise SiteError(f"{origin.host} does not exist: check the spelling of {site.start}")
    return found.addresses


def _detours(texts: Sequence[str]) -> tuple[Detour, ...]:
    return tuple(read_detour(line) for text in texts for line in _lines(text))


def _lines(text: str) -> list[str]:
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--connect-to {text}: {error}; name a file with one HOST:PORT=ADDR:PORT a line") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def _headline(sites: Sequence[Site]) -> str:
    first = sites[0].start
    return f"{first} and {len(sites) - 1} more" if len(sites) > 1 else first


@contextmanager
def _signals(worker: Worker) -> Iterator[None]:
    before = {number: signal.signal(number, lambda *_: worker.stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
