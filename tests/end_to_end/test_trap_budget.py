"""Half of a web is traps: the real program fetches the other half, judged by the web's log and ground truth.

Every second host has a calendar, member pages, a maze of folders, soft 404s, session ids and three kinds of parameter
copies; there are also mirrors and a farm of hosts. No parameter is known to be irrelevant in advance.
``VEDETTE_PROVE=1`` uses a web of twenty thousand pages instead of seven hundred.
"""

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from bench.traps import half_few, half_medium, is_trap, sort_of
from tests.tree_runs import PROVE

from vedette.lab.judge.access_log import read_log
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.synthetic.sites import LINK_FARM
from vedette.lab.worlds.synthetic.world import SyntheticWorld

SEED = 3
SPEED = 600.0
# What it takes to learn the traps: it is the same for a farm, a mirror or a calendar however many pages there are.
MOST_WASTE = 0.05 if PROVE else 0.09
FARM_START = f"http://start.{LINK_FARM}/0"


@pytest.fixture
def world() -> SyntheticWorld:
    """The synthetic web, to look up the truth."""
    return (half_medium if PROVE else half_few)(SEED)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServerHandle]:
    """The same web, served."""
    name = f"bench.traps:half_{'medium' if PROVE else 'few'}"
    with start_server(name, SEED, speed=SPEED, log_path=tmp_path / "access.log") as server:
        (tmp_path / "hosts.txt").write_text("\n".join(server.connect_to_lines()))
        yield server


def vedette(folder: Path, *words: str) -> str:
    """Run a command of the real program on a data folder and return its output."""
    command = [sys.executable, "-m", "vedette", *words, "--data", str(folder / "data"), "--json"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def crawl(folder: Path, starts: list[str]) -> None:
    """Crawl all sites with all hosts of their domains to the end, without dropping parameters."""
    tables = (f'[[site]]\nstart = "{start}"\nscope = "domain"\ndrop_parameters = []\n' for start in starts)
    (folder / "sites.toml").write_text("\n".join(tables))
    vedette(folder, "sites", "import", str(folder / "sites.toml"))
    options = ["--scope", "domain", "--allow-private", "--speed", str(SPEED)]
    told = json.loads(vedette(folder, "crawl", *starts, *options, "--connect-to", f"@{folder / 'hosts.txt'}"))
    assert told["ending"] == "done"


def known_urls(folder: Path) -> list[str]:
    """Return every URL that the crawl ever saw."""
    with closing(sqlite3.connect(folder / "data" / "state.db")) as db:
        return [url for (url,) in db.execute("SELECT url FROM url")]


def test_half_of_the_web_is_traps_and_hardly_a_fetch_is_wasted(
    web: ServerHandle, world: SyntheticWorld, tmp_path: Path
) -> None:
    """All but 1% of the pages that existed throughout are fetched, and few of the fetches are wasted."""
    open_sites = [site.name for site in world.sites.values() if site.robots != "closed"]
    opened_s = web.clock.now()
    crawl(tmp_path, [*(f"http://{name}/" for name in open_sites), FARM_START])
    ended_s = web.clock.now()
    web.stop()
    entries = [entry for entry in read_log(tmp_path / "access.log")[1] if entry.target != "/robots.txt"]
    sorts = Counter(sort_of(world, entry.url, entry.status).partition(":")[0] for entry in entries)
    living = {
        url
        for name in open_sites
        for url in set(world.live_pages(name, opened_s)).intersection(world.live_pages(name, ended_s))
    }
    fetched = {entry.url for entry in entries if entry.status == 200}
    traps = Counter(is_trap(world, url) for url in known_urls(tmp_path))
    assert traps[True] >= traps[False], "this web is not half traps"
    assert len(living & fetched) >= 0.99 * len(living)
    assert sorts["waste"] <= MOST_WASTE * sorts.total()
