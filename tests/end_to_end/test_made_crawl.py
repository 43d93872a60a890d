"""The whole system: a synthetic web over HTTP, crawled by the real program, judged by the web's own log.

A crawl to its end is in ``tests/hostile/test_traps_and_faults.py``.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tree_runs import patiently

from vedette.lab.judge.access_log import read_log
from vedette.lab.judge.politeness import Verdict, judge_log
from vedette.lab.worlds.synthetic.server import ServerHandle, start_server

SPEED = 600.0


@pytest.fixture
def web(tmp_path: Path) -> Iterator[ServerHandle]:
    """The smallest synthetic web, at ten minutes per second."""
    with start_server("made:tiny", seed=3, speed=SPEED, log_path=tmp_path / "access.log") as server:
        (tmp_path / "hosts.txt").write_text("\n".join(server.connect_to_lines()))
        yield server


def command(web: ServerHandle, folder: Path, *more: str) -> list[str]:
    """A crawl of all its hosts."""
    sites = [f"http://{name}/" for name in web.hosts if not name.startswith("*.")]
    options = ["--connect-to", f"@{folder / 'hosts.txt'}", "--allow-private", "--speed", str(SPEED)]
    return [sys.executable, "-m", "vedette", "crawl", *sites, *options, "--data", str(folder / "data"), *more]


def verdict(web: ServerHandle, folder: Path) -> Verdict:
    """Return the judge's verdict once the log is complete."""
    web.stop()
    header, entries = read_log(folder / "access.log")
    return judge_log(entries, header, delay_s=1.0, address_delay_s=0.25)


def test_a_restarted_crawl_is_polite_and_repeats_nothing(web: ServerHandle, tmp_path: Path) -> None:
    """Ctrl-C stops it; the next run continues after a pause, and repeats no stored page."""
    first = subprocess.Popen(command(web, tmp_path, "--json"), stdout=subprocess.PIPE)
    patiently((tmp_path / "data" / "status.json").exists)  # the crawl has just begun
    first.send_signal(signal.SIGINT)
    out, _ = first.communicate()
    before = json.loads(out)
    assert before["ending"] == "stopped"
    again = subprocess.run(command(web, tmp_path, "--json", "--pages", "20"), capture_output=True, check=True)
    after = json.loads(again.stdout)
    assert after["pages"] == 20
    judged = verdict(web, tmp_path)
    assert [each.detail for each in judged.violations] == []
    _, entries = read_log(tmp_path / "access.log")
    asked = [entry.url for entry in entries if entry.status == 200 and not entry.target.startswith("/robots.txt")]
    # Requests in flight at Ctrl-C are repeated: at most one per host.
    assert len(asked) - len(set(asked)) <= len(web.hosts)


def test_the_demo_ends_and_reports_that_it_was_polite() -> None:
    """`vedette demo --for 4s` prints where to look, and the judge's verdict."""
    done = subprocess.run(
        [sys.executable, "-m", "vedette", "demo", "--for", "4s", "--world", "made:tiny", "--speed", "600"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Ctrl-C" not in done.stdout
    assert "Search    http://127.0.0.1:" in done.stdout
    assert "none too soon, none disallowed" in done.stdout
