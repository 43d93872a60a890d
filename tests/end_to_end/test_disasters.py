"""Clock jumps and DNS failures: nothing is lost, the problem is reported, and the crawl continues."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.tree_child import settings_for
from tests.tree_runs import PATIENCE_S, Run, children, open_run, patiently
from tests.tree_worlds import plain_town

from vedette.adapters.clock import real_clock
from vedette.adapters.crawl_store.data_folder import open_state
from vedette.adapters.net.ipc import ChannelClosed, Request
from vedette.engine.ports import HostRow
from vedette.model import Failure
from vedette.runtime.processes.coordinator import build_process
from vedette.runtime.processes.supervisor import ask_coordinator

HOUR_S = 3600.0
DAY_S = 86_400.0
HOSTS = 4
# Of Python, if something written to standard error is left at the end.
EXIT_UNFLUSHED = 120

# A system clock that is put back an hour two seconds after the start, for every process of the tree.
STEPPED = """
import sys, time
true, began = time.time, time.monotonic()
time.time = lambda: true() - (3600.0 if time.monotonic() - began > 2.0 else 0.0)
from vedette.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def crawled(run: Run, *program: str) -> subprocess.CompletedProcess[str]:
    """Crawl to the end with the real program or a substitute."""
    command = run.command()
    command[1:3] = program or command[1:3]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def has_all(run: Run) -> bool:
    """Check whether the state has every page of the town."""
    return sorted(run.pages()) == sorted(plain_town(HOSTS).urls())


def test_a_clock_put_back_an_hour_meanwhile_changes_nothing(tmp_path: Path) -> None:
    """The crawl continues at its pace, politely, and fetches every page."""
    with open_run("plain_town", HOSTS, tmp_path, speed=2.0) as run:
        done = crawled(run, "-c", STEPPED)
        assert done.returncode == 0, done.stderr
        assert has_all(run)
        assert [each.detail for each in run.verdict().violations] == []


def test_a_clock_put_back_an_hour_between_crawls_costs_no_hour(tmp_path: Path) -> None:
    """Hosts wait for the rest of their delay, by any clock, and a message says that the clock is behind."""
    with open_run("plain_town", HOSTS, tmp_path, speed=2.0) as run:
        subprocess.run(run.command("--pages", "5"), capture_output=True, timeout=PATIENCE_S, check=True)
        advance_clocks(run.data, HOUR_S)
        done = crawled(run)
        assert done.returncode == 0, done.stderr
        assert "the clock is" in done.stderr
        assert "behind the last run" in done.stderr
        assert has_all(run)
        assert [each.detail for each in run.verdict().violations] == []


def advance_clocks(data: Path, by_s: float) -> None:
    """Make a folder look as if its last crawl had run with clocks that far ahead."""
    with closing(sqlite3.connect(data / "state.db")) as db, db:
        db.execute("UPDATE host_state SET ready_s = ready_s + ?", (by_s,))
        db.execute("UPDATE life SET value = cast(value AS REAL) + ? WHERE what = 'clock_s'", (by_s,))


def test_a_rest_of_years_becomes_a_day(tmp_path: Path) -> None:
    """A delay that only a wrong clock can have written does not last forever."""
    with open_run("plain_town", HOSTS, tmp_path, speed=2.0) as run:
        run.data.mkdir()
        settings = settings_for(run.folder, str(real_clock()), 300.0)
        first = open_state(run.data, "test", settings.clock.wall_now())
        first.urls.intern_hosts(["good0000.test"])
        first.store.save_hosts([HostRow("good0000.test", settings.clock.now() + 1000 * DAY_S, 0, "")])
        first.close(clean=True)
        process = build_process(settings, open_state(run.data, "test", settings.clock.wall_now()))
        process._restore()
        left_s = process.coordinator.hosts["good0000.test"].ready_s - settings.clock.now()
        process.close()
        assert 0 < left_s <= DAY_S


def test_a_resolver_that_fails_for_ten_minutes_loses_nothing(tmp_path: Path) -> None:
    """No URL fails, the reason is shown, and retries become rarer; when DNS responds, every page is fetched."""
    with open_run("plain_town", HOSTS, tmp_path, speed=60.0) as run:
        command = [sys.executable, "-m", "tests.tree_child", str(run.folder), f"--clock={run.web.clock}"]
        with subprocess.Popen([*command, "--outage=600"], stdout=subprocess.PIPE, text=True) as process:
            patiently(lambda: status(run).get("hosts_waiting") == {str(Failure.RESOLVER): HOSTS})
            told = status(run)
            out, _ = process.communicate(timeout=PATIENCE_S)
        assert told["failures"] == {}
        assert told["urls_waiting"] == HOSTS
        assert process.returncode == 0
        assert HOSTS < int(out.split()[1]) < 10 * HOSTS
        assert has_all(run)
        assert [each.detail for each in run.verdict().violations] == []


def test_a_log_on_a_full_disk_ends_nothing(tmp_path: Path) -> None:
    """Messages that cannot be written are lost; the crawl continues after a process was killed.

    The hosts that it was fetching from wait for a minute of world time.
    """
    with open_run("plain_town", HOSTS, tmp_path, speed=10.0) as run:
        with Path("/dev/full").open("wb") as full:
            process = subprocess.Popen(run.command(), stdout=subprocess.DEVNULL, stderr=full)
        patiently(lambda: "vedette w0" in children(process.pid))
        os.kill(children(process.pid)["vedette w0"], signal.SIGKILL)
        assert process.wait(PATIENCE_S) in {0, EXIT_UNFLUSHED}
        assert has_all(run)


def status(run: Run) -> dict[str, object]:
    """Return a coordinator's status; empty if there is none."""
    try:
        return ask_coordinator(run.data, Request("status"))
    except (OSError, ChannelClosed):
        return {}
