"""A whole ``vedette up`` whose clock and resolver the soak controls: ``python -m tests.soak.tree``.

Names resolve to the addresses in ``hosts.json``, and to nothing while the file ``no-names`` exists. SIGTERM ends it.
"""

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.runtime.ads.ads_folder import ad, market

from vedette.adapters.clock import parse_clock
from vedette.adapters.crawl_store.data_folder import open_for_write
from vedette.cli.data_folder import print_note
from vedette.config import load
from vedette.discover.urls.scope import read_site
from vedette.fetch.request import build_user_agent
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.processes.run import run_to_end
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.version import __version__
from vedette.web.commands.commands import AddSite
from vedette.web.server import bind


def resolve_from(folder: Path) -> None:
    """Replace the resolver of this process and its children."""
    addresses, others = json.loads((folder / "hosts.json").read_text()), socket.getaddrinfo

    def look_up(name: str, *more: Any, **named: Any) -> list[Any]:
        if name not in addresses:
            return others(name, *more, **named)
        if (folder / "no-names").exists():
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (addresses[name], 0))]

    socket.getaddrinfo = look_up  # type: ignore[assignment]  # it takes and returns the same


def prepare(settings: RuntimeSettings, starts: list[str]) -> None:
    """Add the sites, and a campaign whose ads match every search."""
    with open_for_write(settings.folder, settings.clock.wall_now()) as state:
        for start in starts:
            execute_command(
                AddSite(read_site(start)), state, settings.clock.now(), "soak", settings.config.crawl.delay_s
            )
    market(settings.folder, (ad("airships", "0.40", "zeppelin"), "5.00"), (ad("balloons", "0.30", "zeppelin"), "3.00"))


def main() -> None:
    """Run the tree over a folder: the arguments are folder, clock, port and the start URLs."""
    folder, clock, port = Path(sys.argv[1]), parse_clock(sys.argv[2]), int(sys.argv[3])
    resolve_from(folder)
    config = load(folder / "vedette.toml")
    settings = RuntimeSettings(
        config, clock, folder / "data", build_user_agent(__version__, ""), allow_private=True, forever=True, workers=2
    )
    if sys.argv[4:]:
        prepare(settings, sys.argv[4:])
    settings = replace(settings, listener=bind(f"127.0.0.1:{port}"))
    run_to_end(settings, on_note=print_note)


if __name__ == "__main__":
    main()
