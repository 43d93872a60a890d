"""Every trap and fault of the synthetic web, crawled by the real program: requests, memory, bytes and time are bounded.

There is one crawl of a small synthetic web in which each host has a different peculiarity, and one of a farm with an
endless number of hosts. The bounds are for a host of a few dozen real pages, and are checked with the web's own log.
"""

import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.tree_runs import PATIENCE_S, PROVE, children, kill_all

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.lab.judge.access_log import AccessEntry, read_log
from vedette.lab.judge.politeness import judge_log
from vedette.lab.worlds.synthetic import SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server
from vedette.lab.worlds.synthetic.sites import LINK_FARM

# Servers ask for pauses of hours, so half an hour of the world takes a second.
SPEED = 1800.0
SEED = 3
SIZE = "small" if PROVE else "tiny"
# More than a crawl of all real pages and every allowance needs; who comes here was kept going by a trap.
MOST_PAGES = 8_000 if PROVE else 900
MOST_FARM_PAGES = 300
LONGEST_S = 1_500.0  # against hangs alone
MOST_RESIDENT_MIB = 400
MOST_ANSWER_BYTES = 16 * 2**20
MOST_TIMES_A_FAULT = 12
# Who hangs is waited for on the wall, whatever the speed of the world; the usual half minute would only cost patience.
# Much less, and on a busy machine hosts that do not hang seem to: then the crawl ends before most faults were met.
SETTINGS = '[crawl]\ntimeout = "4s"\nconnect_timeout = "30s"\n'

BOTH = pytest.mark.parametrize("which", ["crawled", "farmed"])


@dataclass(frozen=True, slots=True)
class Crawl:
    """The crawl's report, its pages, the servers' logs, and the peak memory of each process."""

    opened_s: float
    told: dict[str, Any]
    fetched: frozenset[str]
    entries: list[AccessEntry]
    resident_mib: dict[str, int]
    said: str
    accused: list[str]

    def asked(self, beginning: str) -> Counter[str]:
        """Count the requests with this prefix by host."""
        return Counter(entry.host for entry in self.entries if entry.target.startswith(beginning))


def resident_mib(pid: int) -> int:
    """Return the peak memory of a process; 0 if it has exited."""
    with suppress(OSError):
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        return int(found[1]) // 1024 if found else 0
    return 0


def watched(process: subprocess.Popen[bytes], until_s: float) -> dict[str, int]:
    """Poll the peak memory of a process and its children until it exits; kill it if it does not."""
    peaks: dict[str, int] = {}
    while process.poll() is None and time.monotonic() < until_s:
        for name, pid in {"supervisor": process.pid, **children(process.pid)}.items():
            peaks[name] = max(peaks.get(name, 0), resident_mib(pid))
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.wait(PATIENCE_S)
    return peaks


def crawl(web: ServerHandle, folder: Path, sites: list[str], most_pages: int, *more: str) -> Crawl:
    """Crawl the sites of a served web with the real program."""
    (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
    (folder / "vedette.toml").write_text(SETTINGS)
    opened_s = web.clock.now()
    options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED), "--json"]
    options += ["--pages", str(most_pages), "--data", str(folder / "data")]
    options += ["--config", str(folder / "vedette.toml"), *more]
    command = [sys.executable, "-m", "vedette", "crawl", *sites, *options]
    with (folder / "summary.json").open("wb") as told, (folder / "messages.txt").open("wb") as said:
        process = subprocess.Popen(command, stdout=told, stderr=said, start_new_session=True)
    try:
        peaks = watched(process, time.monotonic() + LONGEST_S)
    finally:
        kill_all(process)
    web.stop()
    words = (folder / "messages.txt").read_text()
    numbers = json.loads((folder / "summary.json").read_text() or "{}")
    with closing(sqlite3.connect(folder / "data" / "state.db")) as db:
        fetched = frozenset(url for url, page in CrawlStore(db).iter_pages() if page.status == 200)
    header, entries = read_log(folder / "access.log")
    verdict = judge_log(entries, header, delay_s=1.0, address_delay_s=0.25)
    return Crawl(opened_s, numbers, fetched, entries, peaks, words, [each.detail for each in verdict.violations])


@pytest.fixture(scope="module")
def world() -> SyntheticWorld:
    """Return the crawled world, to look up the truth."""
    return open_synthetic_world(SIZE, SEED)


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """Crawl every host with its oddities."""
    folder = tmp_path_factory.mktemp("odd")
    with start_server(f"made:{SIZE}", seed=SEED, speed=SPEED, log_path=folder / "access.log") as web:
        sites = [f"http://{name}/" for name in web.hosts if not name.startswith("*.")]
        yield crawl(web, folder, sites, MOST_PAGES)


@pytest.fixture(scope="module")
def farmed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawl]:
    """Crawl the farm with a whole domain in scope."""
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
    """A host gets some requests for pages of a trap, because it can't be known in advance, and then no more."""
    asked = crawled.asked(place)
    assert asked
    assert max(asked.values()) <= most


def test_a_host_of_soft_404s_costs_only_its_links(crawled: Crawl, world: SyntheticWorld) -> None:
    """Links to missing pages lead to no others, so a host of soft 404s costs no more than its links."""
    soft = [name for name, site in world.sites.items() if "soft404" in site.features]
    asked = Counter(entry.host for entry in crawled.entries if world.classify_url(entry.url) == "unknown")
    assert soft
    assert all(asked[name] <= 60 for name in soft)


def test_the_hosts_of_a_farm_have_an_end(farmed: Crawl) -> None:
    """Only some of a domain's endless hosts are tried."""
    hosts = {entry.host for entry in farmed.entries}
    assert hosts
    assert len(hosts) <= 60


@pytest.mark.parametrize(("which", "most"), [("crawled", MOST_PAGES), ("farmed", MOST_FARM_PAGES)])
def test_a_crawl_ends_before_the_page_limit(which: str, most: int, request: pytest.FixtureRequest) -> None:
    """It ends because nothing worth fetching is left, before it reaches the page limit."""
    assert request.getfixturevalue(which).told["pages"] < most


@BOTH
def test_a_crawl_is_over_in_time(which: str, request: pytest.FixtureRequest) -> None:
    """Despite hangs, slow responses and requested pauses, the crawl finishes and gets the pages that it may have."""
    told = request.getfixturevalue(which).told
    assert told.get("ending") in {"done", "stuck"}


def test_pages_between_traps_are_found(crawled: Crawl, world: SyntheticWorld) -> None:
    """Links lead to most pages that existed when the crawl began."""
    hosts = [host.name for host in world.hosts() if not host.name.startswith("*.")]
    living = {url for name in hosts for url in world.live_pages(name, crawled.opened_s)}
    assert living
    assert len(living & crawled.fetched) >= 0.5 * len(living)


def test_each_fault_costs_few_requests(crawled: Crawl) -> None:
    """URLs that fail, loop, reset, hang or say "later" are retried a few times, and then no more."""
    faults = Counter(entry.url for entry in crawled.entries if entry.target.startswith("/odd/"))
    assert len(faults) > 10
    assert {url: times for url, times in faults.items() if times > MOST_TIMES_A_FAULT} == {}


def test_an_answer_without_end_is_cut(crawled: Crawl) -> None:
    """A response that never ends is cut off once the page is too large."""
    endless = [entry for entry in crawled.entries if entry.target == "/odd/endless"]
    assert endless
    assert max(entry.bytes for entry in endless) <= MOST_ANSWER_BYTES


@BOTH
def test_no_process_grows_or_falls(which: str, request: pytest.FixtureRequest) -> None:
    """Coordinator and fetchers stay small, and none is restarted."""
    crawl = request.getfixturevalue(which)
    assert {"supervisor"} < set(crawl.resident_mib)
    assert {name: peak for name, peak in crawl.resident_mib.items() if peak > MOST_RESIDENT_MIB} == {}
    assert "Traceback" not in crawl.said
    assert "restarting" not in crawl.said


@BOTH
def test_a_crawl_of_odd_sites_is_polite(which: str, request: pytest.FixtureRequest) -> None:
    """Even among traps and faults, the judge finds no request that was too soon or disallowed."""
    crawl = request.getfixturevalue(which)
    assert crawl.accused == []
    assert len(crawl.entries) == crawl.told["requests"]
