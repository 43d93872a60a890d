"""A coordinator and a fetcher with scripted DNS: ``python -m tests.hostile.guard_child``.

The coordinator uses scripted lookups: for each name, one list of addresses after the other, then always the last one.
It has no overrides, so it checks those addresses as on the open network. The fetcher has overrides: requests that the
coordinator allows to a public address are sent to a server on loopback. Without an override, it connects to the address
that the coordinator chose.
"""

import json
import os
import socket
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.data_folder import lock_folder, open_state
from vedette.adapters.crawl_store.status_file import SOCKET
from vedette.adapters.net.dns import Lookup, Resolver, resolve_host
from vedette.adapters.net.ipc import Request
from vedette.config import load
from vedette.discover.urls.scope import read_site
from vedette.fetch.connect_to import parse_override
from vedette.fetch.request import build_user_agent
from vedette.model import Failure, ScopeKind, Site
from vedette.runtime.processes.coordinator import build_process
from vedette.runtime.processes.fetcher import run_fetcher
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.version import __version__

__all__ = ["Script", "command"]

SETTINGS = """\
[crawl]
delay = "{delay_s}s"
address_delay = "0s"
timeout = "5s"
connect_timeout = "1s"
workers = 1
contact = "nobody@door.test"
"""


@dataclass(frozen=True, slots=True)
class Script:
    """Sites by scope, DNS answers by name, the fetcher's overrides, and the addresses that the operator allows."""

    sites: dict[str, ScopeKind]
    names: dict[str, list[list[str]]]
    detours: list[str]
    allow_private: bool = False
    speed: float = 1000.0
    delay_s: float = 1.0


class Scripted(Resolver):
    """A resolver with scripted answers; address literals resolve to themselves."""

    def __init__(self, names: dict[str, list[list[str]]]) -> None:
        super().__init__()
        self._script = names

    def submit(self, host: str) -> None:
        """Answer immediately."""
        self.pending += 1
        report = self._script.get(host)
        if report is None:
            # An address resolves to itself; any other name does not exist, and no real resolver is used.
            self._answers.put(resolve_host(host) if host[:1] in "[0123456789" else Lookup(host, (), Failure.NAME))
            return
        self._answers.put(Lookup(host, tuple(report.pop(0) if len(report) > 1 else report[0])))


def command(folder: Path, script: Script) -> list[str]:
    """Run a script in a folder and print the coordinator's last status."""
    (folder / "script.json").write_text(json.dumps(asdict(script)))
    (folder / "vedette.toml").write_text(SETTINGS.format(delay_s=script.delay_s))
    return [sys.executable, "-m", "tests.hostile.guard_child", str(folder)]


def _site(start: str, scope: ScopeKind) -> Site:
    """Overrule the trap check, because a start page with many similar pages looks like a trap."""
    return replace(read_site(start, scope=scope), overrule=("trap", "copy"))


def _settings(folder: Path, script: Script) -> RuntimeSettings:
    return RuntimeSettings(
        config=load(folder / "vedette.toml"),
        clock=start_clock(1.7e9, script.speed),
        folder=folder / "data",
        agent=build_user_agent(__version__, "nobody@door.test"),
        sites=tuple(_site(start, scope) for start, scope in script.sites.items()),
        detours=tuple(map(parse_override, script.detours)),
        allow_private=script.allow_private,
        patience_s=5.0,
    )


def main() -> None:
    """Crawl until nothing is left."""
    folder = Path(sys.argv[1])
    script = Script(**json.loads((folder / "script.json").read_text()))
    settings = _settings(folder, script)
    with lock_folder(settings.folder):
        worker = os.fork()
        if worker == 0:
            while not (settings.folder / SOCKET).exists():
                time.sleep(0.02)
            os._exit(run_fetcher(settings, 0))
        state = open_state(settings.folder, socket.gethostname(), settings.clock.wall_now())
        keeper = build_process(replace(settings, detours=()), state, Scripted(script.names))
        keeper.run()
        report = keeper.handler.handle(Request("status"), settings.clock.now())
        keeper.close()
        os.waitpid(worker, 0)
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
