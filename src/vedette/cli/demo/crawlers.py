"""Several crawlers side by side over one made web: each with a data folder, a server with a log, and a refresh policy.

All share one clock. Each has a server of its own, so that its log says what this crawler fetched, and when.
"""

import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Self

from vedette import __version__
from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.data_folder import lock_folder
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.ipc import ChannelClosed
from vedette.cli.output import format_duration
from vedette.config import Config, override
from vedette.discover.urls.scope import read_site
from vedette.errors import VedetteError
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.lab.judge.live_quality import HeldPage, Snapshot
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.runtime.commands.rpc import Request
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import Supervisor, ask_coordinator

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


PRINT_INTERVAL_S = 10.0


@contextmanager
def catch_signals() -> Iterator[Callable[[], None]]:
    """What ends it, once somebody wants it to end and it is asked.

    An interrupt that is raised wherever the program happens to be gets lost in callbacks around a fork.
    """
    wanted: list[int] = []

    def heed() -> None:
        if wanted:
            raise KeyboardInterrupt

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: wanted.append(number)) for number in numbers}
    try:
        yield heed
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class DemoProgress:
    """A bar on a terminal, a line now and then elsewhere; drawn by whoever tells, as a thread would not bear forks."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._began_s = time.monotonic()
        self._printed_s, self._printed = self._began_s, ""

    def __enter__(self) -> Self:
        if not self._quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            words = TextColumn("{task.description}", markup=False)
            columns = (BarColumn(), TimeRemainingColumn(), words)
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=self._total)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if isinstance(error, KeyboardInterrupt) and not self._quiet:
            print("vedette: stopped before its time; nothing was measured.", file=sys.stderr)

    def show_stage(self, words: str) -> None:
        """What is being done."""
        self._draw(None, words)

    def update(self, done: int, words: str) -> None:
        """So much of it is done."""
        self._draw(done, words)

    def _draw(self, done: int | None, words: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=words, refresh=True)
            return
        now_s = time.monotonic()
        if not self._quiet and (
            words.partition(" ")[0] != self._printed or now_s - self._printed_s >= PRINT_INTERVAL_S
        ):
            self._printed_s, self._printed = now_s, words.partition(" ")[0]
            print(f"{format_duration(now_s - self._began_s):>10}  {words}", file=sys.stderr, flush=True)


TICK_S = 0.1
MAX_CRAWL_S = 300.0
ASK_TIMEOUT_S = 0.7
LOG_NAME = "access.log"


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy, the folder of its crawler, and the server that it asks."""

    policy: str
    settings: RuntimeSettings
    server: ServerHandle

    @property
    def log(self) -> Path:
        """What its server saw."""
        return self.settings.folder.with_name(f"{self.policy}-{LOG_NAME}")


def start_contenders(
    policies: Sequence[str], world: str, seed: int, hosts: Sequence[str], clock: Clock, folder: Path, stack: ExitStack
) -> list[Contender]:
    """One for each policy; their servers end with the stack."""
    made = []
    for policy in policies:
        log = folder / f"{policy}-{LOG_NAME}"
        server = stack.enter_context(start_server(world, seed, clock=clock, log_path=log))
        typed = {"refresh.policy": policy, "crawl.source_interval": "3d"}
        made.append(Contender(policy, build_settings(typed, server, hosts, folder / policy), server))
    return made


def build_settings(
    typed: Mapping[str, str], server: ServerHandle, hosts: Sequence[str], folder: Path
) -> RuntimeSettings:
    """A crawler of made sites, with some settings as they are typed."""
    typed = {"store.data": str(folder), **typed}
    return RuntimeSettings(
        config=override(Config(), typed),
        clock=server.clock,
        folder=folder,
        agent=build_user_agent(__version__, ""),
        # Other spellings of a page would be pages of their own, and tell nothing of changes or births.
        sites=tuple(read_site(f"http://{name}/", exclude=("*?*",)) for name in hosts),
        detours=tuple(parse_override(line) for line in server.connect_to_lines()),
        allow_private=True,
        demo=True,
    )


@contextmanager
def run_trees(some: Sequence[Contender], budget: str = "0", *, forever: bool) -> Iterator[list[Supervisor]]:
    """Their process trees, which end with the block, whatever ends it."""
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
    """What has died starts again, and it is said."""
    for tree in trees:
        for happening in tree.restart_dead():
            print(happening, file=sys.stderr)


def crawl_fully(some: Sequence[Contender]) -> Generator[None]:
    """Crawl until nothing is left to be fetched a first time, without a budget; whoever iterates may look meanwhile."""
    until_s = time.monotonic() + MAX_CRAWL_S
    with run_trees(some, forever=False) as trees:
        while not all(tree.is_over for tree in trees):
            if time.monotonic() > until_s:
                raise VedetteError(f"the first crawl was not over within {MAX_CRAWL_S:g} s: try a lower --speed")
            tend_trees([tree for tree in trees if not tree.is_over])
            yield
            time.sleep(TICK_S)  # the crawl itself runs in other processes


def read_holding(folder: Path) -> Snapshot:
    """What a crawler holds at this moment, by URL."""
    with open_state_reader(folder) as view:
        return {url: HeldPage(row.status, row.fetched_s, row.kind) for url, row in view.store.iter_pages()}


def _stop_trees(trees: Sequence[Supervisor]) -> None:
    """All at once, since each takes its time: keepers are told first."""
    for tree in trees:
        tree.set_stop_deadline()
    waiting = list(trees)
    while waiting:
        for tree in waiting:
            with suppress(OSError, ChannelClosed):
                ask_coordinator(tree.settings.folder, Request("stop"), timeout_s=ASK_TIMEOUT_S)
        tend_trees(waiting)
        waiting = [tree for tree in waiting if tree.is_alive and not tree.is_over]
        time.sleep(TICK_S)  # they end by themselves; this is how often we look
    for tree in trees:
        tree.stop()
