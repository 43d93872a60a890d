"""Fetchers with a broken coordinator: other people's servers are still safe."""

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.search_runs import small_web
from tests.tree_runs import patiently

from vedette.adapters.clock import real_clock
from vedette.adapters.crawl_store.request_budget import read_exceeded
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.net.ipc import Channel, ChannelClosed, Hello, listen
from vedette.config import Config
from vedette.engine.messages import Ack, FetchReport, FetchTask, HostSettings, WorkBatch
from vedette.fetch.connect_to import parse_override
from vedette.runtime.processes.fetcher import run_fetcher
from vedette.runtime.processes.settings import RuntimeSettings

LIMIT = 60
HOSTS = tuple(f"{name}.flooded.test" for name in "abcd")


class BrokenScheduler:
    """A coordinator that assigns every host to every fetcher, repeatedly, without a delay, and ignores reports."""

    def __init__(self, folder: Path) -> None:
        self._server = listen(folder / SOCKET)
        self._channels: list[Channel] = []
        self._numbers = count(1)
        self.returned = 0

    def run_until(self, holds: Callable[[], bool]) -> None:
        """Assign hosts and tasks until a condition is true."""

        def step() -> bool:
            self._step()
            return holds()

        patiently(step)

    def _step(self) -> None:
        """Accept connections, acknowledge reports, and assign more."""
        select.select([self._server.fileno(), *(channel.fd for channel in self._channels)], [], [], 0.05)
        with suppress(BlockingIOError):
            self._channels.append(Channel(self._server.accept()[0]))
        for channel in list(self._channels):
            try:
                for message in channel.receive():
                    self._reply(channel, message)
            except ChannelClosed:
                channel.close()
                self._channels.remove(channel)

    def _reply(self, channel: Channel, message: object) -> None:
        if isinstance(message, FetchReport):
            self.returned += len(message.returned)
            channel.send(Ack(message.serial))
        if isinstance(message, Hello | FetchReport):
            hosts = tuple(HostSettings(name, "127.0.0.1", 0.0, None, 0.0, 0) for name in HOSTS)
            tasks = tuple(
                FetchTask(next(self._numbers), name, f"http://{name}/{next(self._numbers)}", "page") for name in HOSTS
            )
            channel.send(WorkBatch(hosts, tasks))

    def close(self) -> None:
        """Close all sockets."""
        for channel in self._channels:
            channel.close()
        self._server.close()


def start_fetcher(settings: RuntimeSettings, number: int) -> int:
    """Start a real fetcher process; return its id."""
    child = os.fork()
    if child == 0:
        try:
            run_fetcher(settings, number)
        finally:
            os._exit(0)
    return child


def kill(pid: int) -> None:
    """Kill a fetcher and wait for its end."""
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@contextmanager
def broken_scheduler(folder: Path) -> Iterator[BrokenScheduler]:
    """Run a broken scheduler in a data folder."""
    scheduler = BrokenScheduler(folder)
    try:
        yield scheduler
    finally:
        scheduler.close()


def test_fetchers_enforce_the_daily_limit(tmp_path: Path) -> None:
    """Three fetchers, one of them killed again and again, send no request beyond the limit to a real server."""
    (tmp_path / "warc").mkdir()
    with small_web({}) as web, broken_scheduler(tmp_path) as scheduler:
        crawl = replace(Config().crawl, daily_limit=LIMIT, delay_s=0.0, address_delay_s=0.0, latency_factor=0)
        detour = parse_override(f"*:80=127.0.0.1:{web.port}")
        settings = RuntimeSettings(
            replace(Config(), crawl=crawl), real_clock(), tmp_path, "test", detours=(detour,), allow_private=True
        )
        fetchers = [start_fetcher(settings, number) for number in range(3)]
        try:
            scheduler.run_until(lambda: len(web.visits) >= LIMIT // 2)
            kill(fetchers.pop())
            fetchers.append(start_fetcher(settings, 2))
            scheduler.run_until(lambda: scheduler.returned >= 500 or len(web.visits) > LIMIT)
        finally:
            for pid in fetchers:
                kill(pid)
        # A request that was counted and killed before it arrived is missing.
        assert LIMIT - len(HOSTS) <= len(web.visits) <= LIMIT
    exceeded = {one.name: one.requests for one in read_exceeded(tmp_path)}
    assert exceeded == {"127.0.0.1": LIMIT}
