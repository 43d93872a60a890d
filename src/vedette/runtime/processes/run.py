"""Run the process tree of a crawl to its end, after checking that its sites may be fetched."""

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import IO, Any, TextIO, cast

from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.crawl_store.status_file import read_status
from vedette.adapters.crawl_store.store import SiteRow
from vedette.adapters.net.dns import resolve_host
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.adapters.subprocesses import LossyOutput
from vedette.config import Config
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.scheduling.spending import FetchStats, StatsByKind, load_all_time
from vedette.errors import AddressRefused, ContactMissing, SiteError, StoreError, UsageError
from vedette.fetch.address_guard import is_public
from vedette.fetch.connect_to import ConnectOverride, find_endpoint
from vedette.model import Failure, Site, origin_of
from vedette.runtime.commands.setting_commands import load_current
from vedette.runtime.indexing.embedding import explain_unusable_setting
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.runtime.processes.supervisor import Supervisor, ask_coordinator
from vedette.runtime.search.answers import read_key

POLL_INTERVAL_S = 0.1

Status = Mapping[str, Any]
Note = Callable[[str], object]

_LOG = logging.getLogger("vedette")


def run_to_end(
    settings: RuntimeSettings,
    on_status: Callable[[Status], object] = lambda _: None,
    until_s: float | None = None,
    on_note: Note = _LOG.warning,
    lock: IO[str] | None = None,
) -> dict[str, Any]:
    """Run the process tree of a crawl to its end, or to a wall time; return its numbers, counted from the state.

    Ctrl-C and SIGTERM end it cleanly. ``on_status`` gets the coordinator's last numbers several times a second, with
    their age as ``age_s``; ``on_note`` gets a line for each process that died and was restarted. ``lock`` is the
    lock of the folder, if the caller has it.
    """
    lock = lock or lock_folder(settings.folder)
    tree = Supervisor(settings)
    started_s, began_s, spent = time.monotonic(), settings.clock.now(), _load_spent(settings.folder)
    # A message that cannot be written, such as to a log file on a full disk, ends no process and no search.
    with catch_signals() as is_stopped, redirect_stderr(cast("TextIO", LossyOutput(sys.stderr))):
        tree.start()
        while tree.is_alive and not tree.is_over:
            for event in tree.restart_dead():
                on_note(event)
            over = is_stopped() or (until_s is not None and time.monotonic() >= until_s)
            if over:
                tree.set_stop_deadline()
                request_stop(settings.folder)
            live = read_status(settings.folder)
            if live.numbers:
                on_status({**live.numbers, "age_s": live.age_s})
            time.sleep(POLL_INTERVAL_S)  # refresh rate of the display; the crawl itself runs in other processes
        tree.stop()
        status = read_status(settings.folder).numbers
        status |= _count_run(settings.folder, began_s, spent)
    lock.close()
    left_out = ("queue", "queue_hosts")
    return {
        **{name: value for name, value in status.items() if name not in left_out},
        "ending": status.get("ending") or "stopped",
        "seconds": round(time.monotonic() - started_s, 3),
    }


def request_stop(folder: Path) -> None:
    """Ask the coordinator of a data folder to stop, if it runs."""
    with suppress(OSError, ChannelClosed):
        # Short, so that a hanging coordinator cannot delay Ctrl-C.
        ask_coordinator(folder, Request("stop"), timeout_s=0.3)


def _load_spent(folder: Path) -> StatsByKind | None:
    """Load the spending of all earlier runs of a data folder; None if the folder has to be migrated first."""
    try:
        with open_state_reader(folder) as view:
            return load_all_time(view.store)
    except UsageError:
        return {}
    except StoreError:
        return None


def _count_run(folder: Path, began_s: float, before: StatsByKind | None) -> dict[str, Any]:
    """Count the results of a run from the state on disk: counters in memory reset with each coordinator."""
    with suppress(StoreError, UsageError), open_state_reader(folder) as view:
        pages, hosts = view.count_fetched(began_s)
        failures, refusals = view.count_failures()
        spent = load_all_time(view.store)
        return {
            "pages": pages,
            "hosts": hosts,
            "urls_known": view.count_known(),
            "urls_waiting": view.count_waiting(),
            "urls_out": 0,
            "failures": dict(failures),
            "refusals": dict(refusals),
            **({} if before is None else _count_requests(spent, before)),
        }
    return {}


def _count_requests(spent: StatsByKind, before: StatsByKind) -> dict[str, Any]:
    used = {kind: one - before.get(kind, FetchStats()) for kind, one in spent.items()}
    return {
        "bytes": int(sum(one.bytes for one in used.values())),
        "requests": int(sum(one.fetches for one in used.values())),
        "robots_requests": int(used["robots"].fetches) if "robots" in used else 0,
    }


@contextmanager
def catch_signals() -> Iterator[Callable[[], bool]]:
    """Hold back SIGINT and SIGTERM while a crawl runs; the yielded value says whether one came.

    Threads other than the main one get none.

    An interrupt raised at an arbitrary point gets lost in callbacks around a fork.
    """
    caught: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, lambda number, _: caught.append(number)) for number in numbers}
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_sites(settings: RuntimeSettings, on_note: Note = _LOG.warning) -> None:
    """Refuse to start a crawl that cannot work: host names that do not exist, addresses not allowed."""
    rules = build_rules(load_current(settings), [])
    for site in settings.sites:
        _check_addresses(site, _resolve_site(site, settings.detours, on_note), rules)


def check_serving(config: Config) -> None:
    """Refuse to start a server that cannot work as configured: models or keys that cannot be read."""
    serve = config.serve
    if problem := explain_unusable_setting(serve.embedding_model):
        raise UsageError(problem)
    if serve.answer_endpoint and not serve.answer_model:
        raise UsageError("serve.answer_endpoint needs serve.answer_model: set it to a model that the endpoint serves")
    read_key(serve.answer_key if serve.answer_endpoint else "")


def find_blocked_sites(settings: RuntimeSettings, rows: Sequence[SiteRow]) -> list[str]:
    """Explain what to do about each active site that may not be fetched; the others are crawled."""
    rules = build_rules(load_current(settings), list(rows))
    advice = []
    for site in rules.sites:
        origin = origin_of(site.start)
        detour = find_endpoint(origin, settings.detours)
        addresses = (detour.address,) if detour else resolve_host(origin.host).addresses
        try:
            if addresses:
                _check_addresses(site, addresses, rules)
        except UsageError as error:
            advice.append(f"{site.start} is not fetched: {error}; or pause it: vedette sites pause {site.start}")
    return advice


def _check_addresses(site: Site, addresses: Sequence[str], rules: CrawlRules) -> None:
    """Return which of a site's addresses may be fetched from; otherwise explain what to do."""
    if any(map(rules.can_fetch_address, addresses)) or (site.allow_private and not all(map(is_public, addresses))):
        return
    host = origin_of(site.start).host
    if any(map(is_public, addresses)):
        raise ContactMissing(
            f"{host} is a public host, and its operator must be able to reach you: add --contact you@example.org, "
            "set crawl.contact in vedette.toml, or set it in the console under Sites"
        )
    raise AddressRefused(f"{host} has the private address {addresses[0]}: add --allow-private to allow this")


def _resolve_site(site: Site, detours: Sequence[ConnectOverride], on_note: Note) -> tuple[str, ...]:
    origin = origin_of(site.start)
    detour = find_endpoint(origin, detours)
    if detour:
        return (detour.address,)
    pause_s = 1.0
    while (found := resolve_host(origin.host)).failure is Failure.RESOLVER:
        on_note(f"DNS does not respond for {origin.host}; trying again in {pause_s:.0f} s (Ctrl-C to stop)")
        time.sleep(pause_s)  # nothing else to do before the name is resolved
        pause_s = min(pause_s * 2, 60.0)
    if found.failure is not None:
        raise SiteError(f"{origin.host} does not exist: check the spelling of {site.start}")
    return found.addresses
