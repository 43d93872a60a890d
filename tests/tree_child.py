"""A process tree over a folder of ``tree_runs``, with a lease that a test chooses: ``python -m tests.tree_child``.

The supervisor's messages are printed to standard output, one per line; SIGTERM ends it. With ``--outage`` there is a
coordinator and a fetcher, and for that many world seconds the coordinator's resolver does not respond; it ends when all
pages are fetched.
"""

import argparse
import os
import signal
import socket
import sys
import time
from dataclasses import replace
from pathlib import Path

from vedette.adapters.clock import parse_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.net.dns import Lookup, Resolver
from vedette.config import load
from vedette.discover.urls.scope import read_site
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.model import Failure
from vedette.runtime.processes.coordinator import build_process
from vedette.runtime.processes.fetcher import run_fetcher
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.processes.supervisor import Supervisor
from vedette.version import __version__


def settings_for(folder: Path, clock: str, lease_wall_s: float) -> RuntimeSettings:
    """Return the settings of ``vedette crawl`` for a folder, with another clock and lease."""
    lines = (folder / "hosts.txt").read_text().splitlines()
    return RuntimeSettings(
        config=load(folder / "vedette.toml"),
        clock=parse_clock(clock),
        folder=folder / "data",
        agent=build_user_agent(__version__, ""),
        sites=tuple(read_site(f"http://{line.partition(':')[0]}/") for line in lines),
        detours=tuple(map(parse_override, lines)),
        allow_private=True,
        workers=2,
        lease_wall_s=lease_wall_s,
    )


class Outage(Resolver):
    """A resolver that does not answer before a world time, and after that knows where the detours lead."""

    def __init__(self, settings: RuntimeSettings, until_s: float) -> None:
        super().__init__()
        self._clock, self._until_s = settings.clock, until_s
        self._addresses = {detour.host: detour.to.address for detour in settings.detours}
        self.asked = 0

    def submit(self, host: str) -> None:
        """Answer immediately, in either case."""
        self.asked += 1
        self.pending += 1
        known = self._clock.now() >= self._until_s
        self._answers.put(Lookup(host, (self._addresses[host],)) if known else Lookup(host, (), Failure.RESOLVER))


def crawl_through_outage(settings: RuntimeSettings, outage_s: float) -> None:
    """The coordinator has no overrides and must look hosts up; the fetcher finds them at the world's port."""
    worker = os.fork()
    if worker == 0:
        while not (settings.folder / SOCKET).exists():
            time.sleep(0.02)
        os._exit(run_fetcher(settings, 0))
    state = open_state(settings.folder, socket.gethostname(), settings.clock.wall_now())
    resolver = Outage(settings, settings.clock.now() + outage_s)
    keeper = build_process(replace(settings, detours=()), state, resolver)
    keeper.run()
    keeper.close()
    os.waitpid(worker, 0)
    sys.stdout.write(f"asked {resolver.asked} times\n")


def supervise(settings: RuntimeSettings) -> None:
    """Run a whole tree until SIGTERM."""
    wanted: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: wanted.append(number))
    tree = Supervisor(settings)
    tree.start()
    while not wanted:
        sys.stdout.writelines(f"{words}\n" for words in tree.restart_dead())
        sys.stdout.flush()
        time.sleep(0.02)
    tree.set_stop_deadline()
    tree.stop()


def main() -> None:
    """Run the crawl that the arguments describe."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clock", required=True)
    parser.add_argument("--lease", type=float, default=300.0)
    parser.add_argument("--outage", type=float)
    options = parser.parse_args()
    settings = settings_for(options.folder, options.clock, options.lease)
    with lock_folder(settings.folder):
        if options.outage is None:
            supervise(settings)
        else:
            crawl_through_outage(replace(settings, workers=1), options.outage)


if __name__ == "__main__":
    main()
