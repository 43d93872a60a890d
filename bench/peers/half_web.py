"""The synthetic web *half*, crawled by the real program: every second host has every trap and copy at once."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from bench.traps import half_small, sort_of

from vedette.lab.judge.access_log import read_log
from vedette.lab.worlds.synthetic.server import start_server
from vedette.lab.worlds.synthetic.sites import LINK_FARM

__all__ = ["HalfCrawl", "crawl_half"]

SPEED = 600.0


class HalfCrawl(NamedTuple):
    """The result of a crawl: pages that lived through it, those fetched, and its requests by kind."""

    missing: list[str]
    pages: int
    sorts: Counter[str]
    ending: str

    @property
    def wasted(self) -> int:
        """The requests for traps, copies and missing pages."""
        return sum(times for sort, times in self.sorts.items() if sort.startswith("waste"))


def crawl_half(folder: Path, seed: int) -> HalfCrawl:
    """Serve the web, crawl it to the end with no parameter dropped, and judge the crawl by the server's log."""
    world, log = half_small(seed), folder / "access.log"
    names = [site.name for site in world.sites.values() if site.robots != "closed"]
    with start_server("bench.traps:half_small", seed, speed=SPEED, log_path=log) as server:
        (folder / "hosts.txt").write_text("\n".join(server.connect_to_lines()))
        opened_s = server.clock.now()
        ending = _crawl(folder, [*(f"http://{name}/" for name in names), f"http://start.{LINK_FARM}/0"])
        ended_s = server.clock.now()
    entries = [entry for entry in read_log(log)[1] if entry.target != "/robots.txt"]
    living = {url for name in names for url in world.live_pages(name, opened_s)}
    living &= {url for name in names for url in world.live_pages(name, ended_s)}
    fetched = {entry.url for entry in entries if entry.status == 200}
    sorts = Counter(sort_of(world, entry.url, entry.status) for entry in entries)
    return HalfCrawl(sorted(living - fetched), len(living), sorts, ending)


def _crawl(folder: Path, starts: list[str]) -> str:
    tables = (f'[[site]]\nstart = "{start}"\nscope = "domain"\ndrop_parameters = []\n' for start in starts)
    (folder / "sites.toml").write_text("\n".join(tables))
    _vedette(folder, "sites", "import", str(folder / "sites.toml"))
    options = ["--scope", "domain", "--allow-private", "--speed", str(SPEED)]
    done = _vedette(folder, "crawl", *starts, *options, "--connect-to", f"@{folder / 'hosts.txt'}")
    return str(json.loads(done)["ending"])


def _vedette(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "vedette", *words, "--data", str(folder / "data"), "--json"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
