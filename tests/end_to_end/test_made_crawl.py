"""The whole system: a synthetic web over HTTP, crawled by the real program, judged by the web's own log."""

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.tree_runs import patiently

from vedette.adapters.crawl_store.store import CrawlStore
from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import Verdict, judge_log
from vedette.lab.worlds.synthetic import open_synthetic_world
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server

SPEED = 600.0


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServerHandle]:
    """The smallest made web, ten minutes a second."""
    with start_server("made:tiny", seed=3, speed=SPEED, log_path=tmp_path / "access.log") as server:
        (tmp_path / "hosts.txt").write_text("\n".join(server.connect_to_lines()))
        yield server


def command(web: ServerHandle, folder: Path, *more: str) -> list[str]:
    """A crawl of all its hosts."""
    sites = [f"http://{name}/" for name in web.hosts if not name.startswith("*.")]
    options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED)]
    return [sys.executable, "-m", "vedette", "crawl", *sites, *options, "--data", str(folder / "data"), *more]


def verdict(web: ServerHandle, folder: Path) -> Verdict:
    """What the servers' log says, once all of it is written."""
    web.stop()
    header, entries = read_log(folder / "access.log")
    return judge_log(entries, header, delay_s=1.0, address_delay_s=0.25)


def test_a_crawl_of_the_made_web_is_polite_and_finds_its_pages(web: ServerHandle, tmp_path: Path) -> None:
    """No violation in the servers' log, and nearly every page that lived through the crawl was found by links."""
    opened_s = web.clock.now()
    done = subprocess.run(
        command(web, tmp_path, "--json", "--pages", "400"), capture_output=True, timeout=300, check=True
    )
    told = json.loads(done.stdout)
    judged = verdict(web, tmp_path)
    assert [each.detail for each in judged.violations] == []
    assert judged.requests == told["requests"]
    with closing(sqlite3.connect(tmp_path / "data" / "state.db")) as db:
        fetched = {url for url, page in CrawlStore(db).iter_pages() if page.status == 200}
    world = open_synthetic_world("tiny", 3)
    living = {
        url for host in world.hosts() if not host.name.startswith("*.") for url in world.live_pages(host.name, opened_s)
    }
    assert living
    assert len(living & fetched) >= 0.5 * len(living)


def test_stopped_and_started_again_it_stays_polite_and_asks_nothing_twice(web: ServerHandle, tmp_path: Path) -> None:
    """Ctrl-C ends it; the next run goes on, waits first, and repeats no page that was kept."""
    first = subprocess.Popen(command(web, tmp_path, "--json"), stdout=subprocess.PIPE)
    patiently((tmp_path / "data" / "status.json").exists)  # the crawl has just begun
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate(timeout=300)
    before = json.loads(out)
    assert before["ending"] == "stopped"
    again = subprocess.run(
        command(web, tmp_path, "--json", "--pages", "20"), capture_output=True, timeout=300, check=True
    )
    after = json.loads(again.stdout)
    assert after["pages"] == 20
    judged = verdict(web, tmp_path)
    assert [each.detail for each in judged.violations] == []
    _, entries = read_log(tmp_path / "access.log")
    asked = [entry.url for entry in entries if entry.status == 200 and not entry.target.startswith("/robots.txt")]
    # Requests in flight at Ctrl-C are repeated: at most one per host.
    assert len(asked) - len(set(asked)) <= len(web.hosts)


def test_the_demo_ends_by_itself_and_says_that_it_was_polite() -> None:
    """`vedette demo --for 4s` prints where to look, and the judge's verdict."""
    done = subprocess.run(
        [sys.executable, "-m", "vedette", "demo", "--for", "4s", "--world", "made:tiny", "--speed", "600"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert "Ctrl-C" not in done.stdout
    assert "Search    http://127.0.0.1:" in done.stdout
    assert "none too soon, none disallowed" in done.stdout
