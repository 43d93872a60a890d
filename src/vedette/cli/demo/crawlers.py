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
from vedette.adapters.crawl_store.data_folder import hold
from vedette.adapters.crawl_store.reader import open_view
from vedette.adapters.net.ipc import Gone
from vedette.cli.output import span
from vedette.config import Config, override
from vedette.discover.urls.scope import read_site
from vedette.errors import VedetteError
from vedette.fetch.connect_to import read_detour
from vedette.fetch.request import user_agent
from vedette.lab.judge.live_quality import Held, Holding
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.processes.supervisor import Tree, ask_keeper

__all__ = [
    "Contender",
    "Progress",
    "contenders",
    "crawl_fully",
    "holding_of",
    "running",
    "settings_of",
    "signals",
    "tend",
]

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


SAY_EVERY_S = 10.0


@contextmanager
def signals() -> Iterator[Callable[[], None]]:
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


class Progress:
    """A bar on a terminal, a line now and then elsewhere; drawn by whoever tells, as a thread would not bear forks."""

    def __init__(self, total: int, *, quiet: bool) -> None:
        self._total, self._quiet = total, quiet
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._began_s = time.monotonic()
        self._said_s, self._said = self._began_s, ""

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

    def say(self, words: str) -> None:
        """What is being done."""
        self._tell(None, words)

    def look(self, done: int, words: str) -> None:
        """So much of it is done."""
        self._tell(done, words)

    def _tell(self, done: int | None, words: str) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=words, refresh=True)
            return
        now_s = time.monotonic()
        if not self._quiet and (words.partition(" ")[0] != self._said or now_s - self._said_s >= SAY_EVERY_S):
            self._said_s, self._said = now_s, words.partition(" ")[0]
            print(f"{span(now_s - self._began_s):>10}  {words}", file=sys.stderr, flush=True)


BEAT_S = 0.1
CRAWL_MOST_S = 300.0
ASK_S = 0.7
LOG = "access.log"


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy, the folder of its crawler, and the server that it asks."""

    policy: str
    settings: LiveSettings
    server: ServerHandle

    @property
    def log(self) -> Path:
        """What its server saw."""
        return self.settings.folder.with_name(f"{self.policy}-{LOG}")


def contenders(
    policies: Sequence[str], world: str, seed: int, hosts: Sequence[str], clock: Clock, folder: Path, stack: ExitStack
) -> list[Contender]:
    """One for each policy; their servers end with the stack."""
    made = []
    for policy in policies:
        log = folder / f"{policy}-{LOG}"
        server = stack.enter_context(start_server(world, seed, clock=clock, log_path=log))
        typed = {"refresh.policy": policy, "crawl.source_interval": "3d"}
        made.append(Contender(policy, settings_of(typed, server, hosts, folder / policy), server))
    return made


def settings_of(typed: Mapping[str, str], server: ServerHandle, hosts: Sequence[str], folder: Path) -> LiveSettings:
    """A crawler of made sites, with some settings as they are typed."""
    typed = {"store.data": str(folder), **typed}
    return LiveSettings(
        config=override(Config(), typed),
        clock=server.clock,
        folder=folder,
        agent=user_agent(__version__, ""),
        # Other spellings of a page would be pages of their own, and tell nothing of changes or births.
        sites=tuple(read_site(f"http://{name}/", exclude=("*?*",)) for name in hosts),
        detours=tuple(read_detour(line) for line in server.connect_to_lines()),
        allow_private=True,
        demo=True,
    )


@contextmanager
def running(some: Sequence[Contender], budget: str = "0", *, forever: bool) -> Iterator[list[Tree]]:
    """Their process trees, which end with the block, whatever ends it."""
    settings = [_with_budget(one.settings, budget, forever=forever) for one in some]
    locks: list[IO[str]] = []
    trees = [Tree(one) for one in settings]
    try:
        for one, tree in zip(settings, trees, strict=True):
            locks.append(hold(one.folder))
            tree.start()
        yield trees
    finally:
        _end([tree for tree, _ in zip(trees, locks, strict=False)])
        for lock in locks:
            lock.close()


def _with_budget(settings: LiveSettings, budget: str, *, forever: bool) -> LiveSettings:
    return replace(settings, config=override(settings.config, {"crawl.budget": budget}), forever=forever)


def tend(trees: Sequence[Tree]) -> None:
    """What has died starts again, and it is said."""
    for tree in trees:
        for happening in tree.tend():
            print(happening, file=sys.stderr)


def crawl_fully(some: Sequence[Contender]) -> Generator[None]:
    """Crawl until nothing is left to be fetched a first time, without a budget; whoever iterates may look meanwhile."""
    until_s = time.monotonic() + CRAWL_MOST_S
    with running(some, forever=False) as trees:
        while not all(tree.ended for tree in trees):
            if time.monotonic() > until_s:
                raise VedetteError(f"the first crawl was not over within {CRAWL_MOST_S:g} s: try a lower --speed")
            tend([tree for tree in trees if not tree.ended])
            yield
            time.sleep(BEAT_S)  # the crawl itself runs in other processes


def holding_of(folder: Path) -> Holding:
    """What a crawler holds at this moment, by URL."""
    with open_view(folder) as view:
        return {url: Held(row.status, row.fetched_s, row.kind) for url, row in view.book.pages()}


def _end(trees: Sequence[Tree]) -> None:
    """All at once, since each takes its time: keepers are told first."""
    for tree in trees:
        tree.hurry()
    waiting = list(trees)
    while waiting:
        for tree in waiting:
            with suppress(OSError, Gone):
                ask_keeper(tree.settings.folder, Call("stop"), timeout_s=ASK_S)
        tend(waiting)
        waiting = [tree for tree in waiting if tree.alive and not tree.ended]
        time.sleep(BEAT_S)  # they end by themselves; this is how often we look
    for tree in trees:
        tree.stop()
