"""Crawlers of ``vedette demo`` side by side over one synthetic web, each with its folder, server, log and policy.

All share one clock. Each has its own server, so that its log says what this crawler fetched, and when.
"""

import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import IO

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.cli.output import format_duration
from vedette.cli.progress import ProgressBar
from vedette.config import Config, override
from vedette.discover.urls.scope import read_site
from vedette.engine.scheduling.schedule import is_good
from vedette.errors import VedetteError
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.lab.judge.live_quality import HeldPage, Snapshot
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.runtime.processes.run import catch_signals
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import Supervisor, ask_coordinator
from vedette.version import __version__

PRINT_INTERVAL_S = 10.0
TICK_S = 0.1
MAX_CRAWL_S = 300.0
ASK_TIMEOUT_S = 0.7
# Other spellings of a page would be separate pages, and say nothing about changes or new pages.
OTHER_SPELLINGS = ("*?*",)
LOG_NAME = "access.log"


@contextmanager
def catch_interrupts() -> Iterator[Callable[[], None]]:
    """Hold back SIGINT and SIGTERM during a demo; yield a check that raises ``KeyboardInterrupt`` if one came."""
    with catch_signals() as is_stopped:

        def check() -> None:
            if is_stopped():
                raise KeyboardInterrupt

        yield check


class DemoProgress(ProgressBar):
    """Progress of ``vedette demo`` through its stages, as a bar or as lines; says so if it was interrupted."""

    _stage = ""

    def __init__(self, total: int, *, quiet: bool) -> None:
        super().__init__(total, quiet=quiet, interval_s=PRINT_INTERVAL_S)

    def __exit__(self, kind: object = None, *_: object) -> None:
        super().__exit__()
        if kind is KeyboardInterrupt and not self._quiet:
            print("vedette: stopped early; nothing was measured.", file=sys.stderr)

    def update(self, words: str, done: int | None = None) -> None:
        """Show the current stage of the demo, and how much of it is done."""
        stage = words.partition(" ")[0]
        is_new = stage != self._stage
        self.draw(done, words, lambda elapsed_s: f"{format_duration(elapsed_s):>10}  {words}", soon=is_new)
        self._stage = stage


@dataclass(frozen=True, slots=True)
class Contender:
    """A crawler that competes in ``vedette demo``: its policy, its data folder and the synthetic server it fetches."""

    policy: str
    settings: RuntimeSettings
    server: ServerHandle

    @property
    def log(self) -> Path:
        """Return the path of the access log of this crawler's synthetic server."""
        return self.settings.folder.with_name(f"{self.policy}-{LOG_NAME}")


def start_contenders(
    policies: Sequence[str], world: str, seed: int, hosts: Sequence[str], clock: Clock, folder: Path, stack: ExitStack
) -> list[Contender]:
    """Start a competing demo crawler for each policy; their synthetic servers end with the stack."""
    contenders = []
    for policy in policies:
        log = folder / f"{policy}-{LOG_NAME}"
        server = stack.enter_context(start_server(world, seed, clock=clock, log_path=log))
        typed = {"refresh.policy": policy, "crawl.source_interval": "3d"}
        settings = build_settings(server, hosts, folder / policy, typed, exclude=OTHER_SPELLINGS)
        contenders.append(Contender(policy, settings, server))
    return contenders


def build_settings(
    server: ServerHandle,
    hosts: Iterable[str],
    folder: Path,
    typed: Mapping[str, str] = MappingProxyType({}),
    exclude: tuple[str, ...] = (),
) -> RuntimeSettings:
    """Build the runtime settings of a demo crawler of synthetic sites; ``typed`` are ``vedette.toml`` settings."""
    return RuntimeSettings(
        config=override(Config(), {"store.data": str(folder), **typed}),
        clock=server.clock,
        folder=folder,
        agent=build_user_agent(__version__, ""),
        sites=tuple(read_site(f"http://{name}/", exclude=exclude) for name in hosts),
        detours=tuple(parse_override(line) for line in server.connect_to_lines()),
        allow_private=True,
        demo=True,
    )


@contextmanager
def run_trees(some: Sequence[Contender], budget: str = "0", *, forever: bool) -> Iterator[list[Supervisor]]:
    """Run the process trees of the demo's crawlers; they are stopped however the block ends."""
    settings = [_set_budget(one.settings, budget, forever=forever) for one in some]
    locks: list[IO[str]] = []
    trees = [Supervisor(one) for one in settings]
    try:
        for one, tree in zip(settings, trees, strict=True):
            locks.append(lock_folder(one.folder))
            tree.start()
        yield trees
    finally:
        _stop_trees([tree for tree, _ in zip(trees, locks, strict=False)])
        for lock in locks:
            lock.close()


def _set_budget(settings: RuntimeSettings, budget: str, *, forever: bool) -> RuntimeSettings:
    return replace(settings, config=override(settings.config, {"crawl.budget": budget}), forever=forever)


def tend_trees(trees: Sequence[Supervisor]) -> None:
    """Restart processes that died in the trees of the demo's crawlers, and report it."""
    for tree in trees:
        for happening in tree.restart_dead():
            print(happening, file=sys.stderr)


def crawl_fully(some: Sequence[Contender]) -> Generator[None]:
    """Run the demo's first full crawl without a budget; yield at each step so that the caller can check."""
    until_s = time.monotonic() + MAX_CRAWL_S
    with run_trees(some, forever=False) as trees:
        while not all(tree.is_over for tree in trees):
            if time.monotonic() > until_s:
                raise VedetteError(f"the first crawl did not finish within {MAX_CRAWL_S:g} s: try a lower --speed")
            tend_trees([tree for tree in trees if not tree.is_over])
            yield
            time.sleep(TICK_S)  # the crawl itself runs in other processes


def read_holding(folder: Path) -> Snapshot:
    """Return a snapshot of the pages that a demo crawler holds at this moment, by URL."""
    with open_state_reader(folder) as view:
        return {url: HeldPage(row.status, row.fetched_s, row.kind) for url, row in view.store.iter_pages()}


def _stop_trees(trees: Sequence[Supervisor]) -> None:
    """Stop the process trees of all demo crawlers at once, coordinators first, since each takes its time."""
    for tree in trees:
        tree.set_stop_deadline()
    waiting = list(trees)
    while waiting:
        for tree in waiting:
            with suppress(OSError, ChannelClosed):
                ask_coordinator(tree.settings.folder, Request("stop"), timeout_s=ASK_TIMEOUT_S)
        tend_trees(waiting)
        waiting = [tree for tree in waiting if tree.is_alive and not tree.is_over]
        time.sleep(TICK_S)  # they exit by themselves; this is the polling interval
    for tree in trees:
        tree.stop()


def run_first_crawl(
    contenders: Sequence[Contender], progress: DemoProgress, check: Callable[[], None]
) -> tuple[Snapshot, int]:
    """Run the demo's first full crawl; return the first crawler's snapshot and its number of good pages."""
    with closing(crawl_fully(contenders)) as steps:
        for _ in steps:
            check()
            progress.update("first crawl")
    held = read_holding(contenders[0].settings.folder)
    return held, sum(is_good(row.status) and row.kind == "page" for row in held.values())


def observe(
    contenders: Sequence[Contender],
    budget: int,
    moments: Sequence[float],
    check: Callable[[], None],
    on_step: Callable[[int, float], None],
) -> tuple[float, float]:
    """Let demo time pass under a daily fetch budget; return when measuring began and when it ended.

    ``moments`` are seconds from the start; at each of them ``on_step`` gets its number and its time.
    """
    with run_trees(contenders, f"{budget}/d", forever=True) as trees:
        clock = contenders[0].settings.clock
        begin_s = clock.now()
        for step, moment_s in enumerate(moments, 1):
            while clock.now() < begin_s + moment_s:
                check()
                tend_trees(trees)
                time.sleep(TICK_S / 2)  # polling interval; crawlers run in other processes
            on_step(step, begin_s + moment_s)
        return begin_s, clock.now()
