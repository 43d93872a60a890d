"""Every trap and fault of the synthetic web, crawled by the real program: bounded in requests, memory, bytes, time.

One crawl of a small made web in which each host has another oddity, and one of the farm whose hosts have no end. The
bounds are for a host of a few dozen real pages, and are judged by the web's own log.
"""

import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.tree_runs import PROVE, children, kill_all

from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.judge.politeness import judge_log
from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.synthetic.sites import LINK_FARM

SPEED = 600.0
SEED = 3
SIZE = "small" if PROVE else "tiny"
# More than a crawl of all real pages and every allowance needs; who comes here was kept going by a trap.
MOST_PAGES = 8_000 if PROVE else 900
MOST_FARM_PAGES = 300
LONGEST_S = 1_500.0 if PROVE else 400.0
MOST_RESIDENT_MIB = 400
MOST_ANSWER_BYTES = 16 * 2**20
MOST_TIMES_A_FAULT = 12
# Who hangs is waited for on the wall, whatever the speed of the world; the usual half minute would only cost patience.
SETTINGS = '[crawl]\ntimeout = "4s"\nconnect_timeout = "30s"\n'

BOTH = pytest.mark.parametrize("which", ["crawled", "farmed"])


@dataclass(frozen=True, slots=True)
class Crawl:
    """The crawl's report, the servers' logs, and the peak memory of each process."""

    told: dict[str, Any]
    entries: list[AccessEntry]
    resident_mib: dict[str, int]
    said: str
    accused: list[str]

    def asked(self, beginning: str) -> Counter[str]:
        """How many requests each host got with this prefix."""
        return Counter(entry.host for entry in self.entries if entry.target.startswith(beginning))


def resident_mib(pid: int) -> int:
    """The most memory that a process ever had; nothing for one that is gone."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) // 1024 if found else 0
    return 0


def watched(process: subprocess.Popen[bytes], until_s: float) -> dict[str, int]:
    """The peaks of a process and its children, polled until it exits; it is killed if it does not."""
    peaks: dict[str, int] = {}
    while process.poll() is None and time.monotonic() < until_s:
        for name, pid in {"supervisor": process.pid, **children(process.pid)}.items():
            peaks[name] = max(peaks.get(name, 0), resident_mib(pid))
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(300)
    return peaks


def crawl(web: ServerHandle, folder: Path, sites: list[str], most_pages: int, *more: str) -> Crawl:
    """Crawl sites of a served web with the real program."""
    (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
    (folder / "vedette.toml").write_text(SETTINGS)
    options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED), "--json"]
    options += ["--pages", str(most_pages), "--data", str(folder / "data")]
    options += ["--config", str(folder / "vedette.toml"), *more]
    command = [sys.executable, "-m", "vedette", "crawl", *sites, *options]
    with (folder / "told.json").open("wb") as told, (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(command, stdout=told, stderr=said, start_new_session=True)
    try:
        peaks = watched(process, time.monotonic() + LONGEST_S)
    finally:
        kill_all(process)
    web.stop()
    words = (folder / "said.txt").read_text()
    numbers = json.loads((folder / "told.json").read_text() or "{}")
    header, entries = read_log(folder / "access.log")
    verdict = judge_log(entries, header, delay_s=1.0, address_delay_s=0.25)
    return Crawl(numbers, entries, peaks, words, [each.detail for each in verdict.violations])


@pytest.fixture(scope="module")
def world() -> SyntheticWorld:
    """The crawled world, to look up the truth."""
    return open_synthetic_world(SIZE, SEED)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """Every host with its oddities."""
    folder = tmp_path_factory.mktemp("odd")
    with start_server(f"made:{SIZE}", seed=SEED, speed=SPEED, log_path=folder / "access.log") as web:
        sites = [f"http://{name}/" for name in web.hosts if not name.startswith("*.")]
        yield crawl(web, folder, sites, MOST_PAGES)


@pytest.fixture(scope="module")
def farmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """The farm, by an operator who takes a whole domain in."""
    folder = tmp_path_factory.mktemp("farm")
    with start_server(f"made:{SIZE}", seed=SEED, speed=SPEED, log_path=folder / "access.log") as web:
        yield crawl(web, folder, [f"http://offers.{LINK_FARM}/"], MOST_FARM_PAGES, "--scope", "domain")


@pytest.mark.parametrize(
    ("place", "most"),
    [
        pytest.param("/calendar/", 60, id="a calendar without end"),
        pytest.param("/members/", 60, id="session ids"),
        pytest.param("/browse/", 60, id="folders within folders"),
    ],
)
def test_a_place_without_end_is_left(crawled: Crawl, place: str, most: int) -> None:
    """A host gets requests for pages of a trap, since it cannot be known before; and then no more."""
    asked = crawled.asked(place)
    assert asked
    assert max(asked.values()) <= most


def test_a_host_that_never_says_not_found(crawled: Crawl, world: SyntheticWorld) -> None:
    """Links to pages that are not there bring no others, so a host of soft 404s costs no more than its links."""
    soft = [name for name, site in world.sites.items() if "soft404" in site.features]
    asked = Counter(entry.host for entry in crawled.entries if world.classify_url(entry.url) == "unknown")
    assert soft
    assert all(asked[name] <= 60 for name in soft)


def test_the_hosts_of_a_farm_have_an_end(farmed: Crawl) -> None:
    """Of the hosts that a domain names without end some are tried."""
    hosts = {entry.host for entry in farmed.entries}
    assert hosts
    assert len(hosts) <= 60


@pytest.mark.parametrize(("which", "most"), [("crawled", MOST_PAGES), ("farmed", MOST_FARM_PAGES)])
def test_a_crawl_comes_to_its_own_end(which: str, most: int, request: pytest.FixtureRequest) -> None:
    """It ends because nothing worth asking for is left, before it has the number of pages that it is allowed."""
    assert request.getfixturevalue(which).told["pages"] < most


@BOTH
def test_a_crawl_is_over_in_time(which: str, request: pytest.FixtureRequest) -> None:
    """Hangs, drips and pauses that servers ask for do not keep it from its end, nor from the pages that it may have."""
    told = request.getfixturevalue(which).told
    assert told.get("ending") in {"done", "stuck"}


def test_each_fault_costs_few_requests(crawled: Crawl) -> None:
    """URLs that fail, loop, reset, hang or say "later" are retried some times, and then not."""
    faults = Counter(entry.url for entry in crawled.entries if entry.target.startswith("/odd/"))
    assert len(faults) > 30
    assert {url: times for url, times in faults.items() if times > MOST_TIMES_A_FAULT} == {}


def test_an_answer_without_end_is_cut(crawled: Crawl) -> None:
    """A server that sends forever is left once the page is too large."""
    endless = [entry for entry in crawled.entries if entry.target == "/odd/endless"]
    assert endless
    assert max(entry.bytes for entry in endless) <= MOST_ANSWER_BYTES


@BOTH
def test_no_process_grows_or_falls(which: str, request: pytest.FixtureRequest) -> None:
    """Coordinator and fetchers stay small throughout, and none has to be restarted."""
    crawl = request.getfixturevalue(which)
    assert {"supervisor"} < set(crawl.resident_mib)
    assert {name: peak for name, peak in crawl.resident_mib.items() if peak > MOST_RESIDENT_MIB} == {}
    assert "Traceback" not in crawl.said
    assert "restarting" not in crawl.said


@BOTH
def test_oddities_make_nobody_impolite(which: str, request: pytest.FixtureRequest) -> None:
    """Among traps and faults, too, no request was too soon or disallowed, by the judge of the servers' log."""
    assert request.getfixturevalue(which).accused == []
