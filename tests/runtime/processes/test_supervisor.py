"""The process tree: processes that die, hang or are stopped, and what is left. Real processes and signals."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.tree_runs import PATIENCE_S, Run, children, kill_all, open_run, patiently, remains

from vedette.adapters.crawl_store.data_folder import FORMAT, open_for_write
from vedette.adapters.crawl_store.status_file import (
    FAILING_FILE,
    SOCKET,
    FailingProcess,
    read_failing,
    read_live_status,
    write_failing,
)
from vedette.errors import CommandPending, StoreError
from vedette.runtime.commands.client import send_command
from vedette.runtime.commands.operator import FolderOperator
from vedette.runtime.processes.fetcher import MAX_UNACKED
from vedette.runtime.processes.supervisor import RESTART_DELAYS_S, Supervisor, _can_be_served, _Child
from vedette.web.commands.commands import LogSignIn

WHOLE = ("vedette keeper", "vedette w0", "vedette w1", "vedette indexer")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run a crawl of several hundred pages, one per host every two seconds, so that nothing ends too soon."""
    with open_run("kill_town", 12, tmp_path, speed=60.0) as run:
        yield run


@pytest.fixture
def process(run: Run) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl that has started to fetch pages."""
    process = run.start()
    try:
        patiently(lambda: set(children(process.pid)) == set(WHOLE) and has_pages(run))
        yield process
    finally:
        kill_all(process)


def has_pages(run: Run, more_than: int = 0) -> bool:
    """Check whether the servers got more page requests than that."""
    return sum(entry.target != "/robots.txt" for entry in run.entries()) > more_than


def count_good(run: Run) -> int:
    """Return the number of pages with a good status in the state."""
    return sum(200 <= status < 300 for status, _, _ in run.pages().values())


def test_ctrl_c_ends_all_with_slow_requests_under_way(tmp_path: Path) -> None:
    """Hanging hosts don't delay the exit, which is reported, and neither processes nor sockets are left."""
    with open_run("slow_town", 30, tmp_path, speed=1.0, timeout_s=2 * PATIENCE_S) as run:
        process = run.start()
        try:
            patiently(lambda: has_pages(run, more_than=20))
            pids = [process.pid, *children(process.pid).values()]
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            kill_all(process)
        assert run.summary()["ending"] == "stopped"
        assert remains(pids) == []
        assert not (run.data / SOCKET).exists()


def test_ctrl_c_ends_a_tree_whose_keeper_hangs(run: Run, process: subprocess.Popen[bytes]) -> None:
    """It exits although no one responds; committed data is there for the next crawl."""
    patiently(run.pages)
    pids = children(process.pid)
    os.kill(pids["vedette keeper"], signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert remains(list(pids.values())) == []
    assert run.pages()


def test_a_dead_fetcher_is_restarted_and_its_leases_are_returned(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Another process takes over and fetches what the dead one had leased; this is reported."""
    before = children(process.pid)
    hosts = hosts_of(run)
    os.kill(before["vedette w0"], signal.SIGKILL)
    patiently(lambda: children(process.pid).get("vedette w0", before["vedette w0"]) != before["vedette w0"])
    known = len(run.entries())
    patiently(lambda: {entry.host for entry in run.entries()[known:]} >= hosts)
    assert children(process.pid)["vedette keeper"] == before["vedette keeper"]
    assert "fetcher 0 ended (SIGKILL); restarting" in run.messages()
    end(process)
    assert [each.detail for each in run.verdict().violations] == []


def hosts_of(run: Run) -> set[str]:
    """Return the hosts with page requests so far."""
    return {entry.host for entry in run.entries() if entry.target != "/robots.txt"}


def end(process: subprocess.Popen[bytes]) -> None:
    """Send Ctrl-C, and wait."""
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)


def test_the_death_of_the_keeper_restarts_its_workers(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Fetchers exit with their coordinator; new ones work politely for a new one. The indexer continues.

    The summary counts the pages of both coordinators, because it is computed from the state.
    """
    before = children(process.pid)
    indexer = before.pop("vedette indexer")
    os.kill(before["vedette keeper"], signal.SIGKILL)
    patiently(lambda: not remains(list(before.values())))
    patiently(lambda: set(children(process.pid)) == set(WHOLE))
    assert children(process.pid)["vedette indexer"] == indexer
    known = sum(1 for entry in run.entries() if entry.target != "/robots.txt")
    patiently(lambda: has_pages(run, more_than=known) and count_good(run) > 0)
    end(process)
    assert run.summary()["pages"] == count_good(run)
    assert run.summary()["requests"] >= run.summary()["pages"] + run.summary()["robots_requests"]
    assert [each.detail for each in run.verdict().violations] == []


def test_nothing_waits_for_a_hanging_coordinator(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Its last numbers can be read, users sign in, and a command says that it is waiting; it runs once, later."""
    patiently(lambda: bool(read_live_status(run.data)))
    keeper = children(process.pid)["vedette keeper"]
    os.kill(keeper, signal.SIGSTOP)
    operator = FolderOperator(run.data)
    for _ in range(100):  # more than the socket takes; each would wait forever if it waited at all
        live = read_live_status(run.data)
        assert live is not None
        assert live.numbers["pages"] >= 0
    with pytest.raises(StoreError, match=r"did not run: .* overloaded"):
        send_command(run.data, LogSignIn(), "a test", "refused", timeout_s=0.1)
    os.kill(keeper, signal.SIGCONT)
    assert send_command(run.data, LogSignIn(), "a test", "first", timeout_s=PATIENCE_S)
    os.kill(keeper, signal.SIGSTOP)
    operator.open_session("11" * 32, 5.0, "a test")
    assert operator.session_opened_s("11" * 32) == 5.0
    with pytest.raises(CommandPending, match="not done yet"):
        send_command(run.data, LogSignIn(), "a test", "second", timeout_s=0.1)
    os.kill(keeper, signal.SIGCONT)
    patiently(lambda: len(operator.list_actions(9)) == 3)
    again = send_command(run.data, LogSignIn(), "a test", "second", timeout_s=PATIENCE_S)
    assert again is not None
    assert again["action"] in {line.id for line in operator.list_actions(9)}
    assert len(operator.list_actions(9)) == 3


def test_no_process_survives_the_supervisor(run: Run, process: subprocess.Popen[bytes]) -> None:
    """The kernel kills the children; the next crawl opens the folder at once and continues politely."""
    pids = list(children(process.pid).values())
    process.kill()
    process.wait()
    patiently(lambda: not remains(pids))
    again = subprocess.run(run.command("--pages", "5"), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert again.returncode == 0, again.stderr
    assert [each.detail for each in run.verdict().violations] == []


def test_a_second_tree_on_the_folder_is_refused(run: Run, process: subprocess.Popen[bytes]) -> None:
    """It says why and changes nothing; the first one continues."""
    second = subprocess.run(run.command(), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 1
    assert "in use by another vedette" in second.stderr
    assert process.poll() is None
    assert set(children(process.pid)) == set(WHOLE)


@contextmanager
def tree_child(run: Run, lease_wall_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """Start a tree with that lease time; its supervisor's output goes to a file."""
    command = [sys.executable, "-m", "tests.tree_child", str(run.folder), f"--clock={run.web.clock}"]
    with (run.folder / "messages.txt").open("ab") as message:
        process = subprocess.Popen(
            [*command, f"--lease={lease_wall_s}"], stdout=message, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_all(process)


def test_a_hung_worker_loses_its_leases_and_is_replaced(run: Run) -> None:
    """If it is silent for the time of a lease, another process gets its tasks and stays polite."""
    with tree_child(run, lease_wall_s=1.0) as process:
        patiently(lambda: set(children(process.pid)) == set(WHOLE) and has_pages(run))
        hosts = hosts_of(run)
        hung = children(process.pid)["vedette w0"]
        os.kill(hung, signal.SIGSTOP)
        patiently(lambda: children(process.pid).get("vedette w0", hung) != hung)
        known = len(run.entries())
        patiently(lambda: {entry.host for entry in run.entries()[known:]} >= hosts)
        assert remains([hung]) == []
    assert "fetcher 0 has not responded for" in run.messages()
    assert [each.detail for each in run.verdict().violations] == []
    # What was on its way or not yet noted when it hung.
    assert run.repeated() <= len(run.web.hosts) + MAX_UNACKED


def test_a_fetcher_without_a_lease_sends_nothing(run: Run) -> None:
    """Stopped together with its coordinator, so that no one kills it, it drops its tasks itself and returns."""
    with tree_child(run, lease_wall_s=1.0) as process:
        patiently(lambda: set(children(process.pid)) == set(WHOLE) and has_pages(run))
        before = children(process.pid)
        for pid in before.values():
            os.kill(pid, signal.SIGSTOP)
        time.sleep(1.5)  # longer than the lease
        os.kill(before["vedette w0"], signal.SIGCONT)
        patiently(lambda: not remains([before["vedette w0"]]))
        for name in ("vedette keeper", "vedette w1"):
            os.kill(before[name], signal.SIGCONT)
        patiently(lambda: set(children(process.pid)) == set(WHOLE))
        known = len(run.entries())
        patiently(lambda: len(run.entries()) > known + 20)
    assert [each.detail for each in run.verdict().violations] == []


def test_fetchers_stop_if_their_reports_are_not_stored(tmp_path: Path) -> None:
    """A crash repeats few requests, because requests beyond the last durable report are limited."""
    with open_run("good_part", 200, tmp_path, speed=1.0, delay_s=0.05) as run:
        process = run.start()
        try:
            patiently(lambda: has_pages(run, more_than=100))
            os.kill(children(process.pid)["vedette keeper"], signal.SIGSTOP)
            noted = len(run.pages())
            patiently(lambda: is_quiet(run))
        finally:
            kill_all(process)
        guesses = ("/robots.txt", "/sitemap.xml", "/sitemap_index.xml")
        asked = {entry.url for entry in run.entries() if entry.target not in guesses}
        assert noted < len(asked) <= noted + 2 * MAX_UNACKED + len(run.web.hosts)


def is_quiet(run: Run) -> bool:
    """Check that no request arrived for longer than the servers buffer their log."""
    before = len(run.entries())
    time.sleep(1.5)
    return len(run.entries()) == before


def test_a_crash_loop_is_slowed_down_and_reported(run: Run) -> None:
    """A coordinator that can't open its folder is restarted at growing intervals, and each exit is reported."""
    run.data.mkdir()
    (run.data / "state.db").write_bytes(b"this is no database, and will not become one" * 100)
    with tree_child(run, lease_wall_s=300.0):
        seen_s = {0: time.monotonic()}  # when each number of deaths was last seen

        def is_fifth() -> bool:
            seen_s[deaths(run)] = time.monotonic()
            return max(seen_s) >= 5

        patiently(is_fifth)
    earlier_s = max(at_s for number, at_s in seen_s.items() if number < 4)
    assert seen_s[max(seen_s)] - earlier_s >= RESTART_DELAYS_S[3] / 2
    assert "coordinator ended (exit code 1); restarting in" in run.messages()
    assert "(failure 5 in a row)" in run.messages()
    assert "restore a backup, or choose another folder" in run.messages()


def deaths(run: Run) -> int:
    """Return the number of reported deaths."""
    return run.messages().count("coordinator ended")


def test_servers_wait_for_the_coordinator_of_a_new_or_older_folder(tmp_path: Path) -> None:
    """They need a state in the current format, and only the coordinator creates or upgrades it."""
    assert not _can_be_served(tmp_path)
    for text in (f"{FORMAT - 1}\n", f"{FORMAT + 1}\n", ""):
        (tmp_path / "format").write_text(text)
        assert not _can_be_served(tmp_path)
    (tmp_path / "format").unlink()
    with open_for_write(tmp_path, 0.0):
        pass
    assert _can_be_served(tmp_path)


# Failing


def fail() -> int:
    """A child that can't work."""
    raise StoreError("the index is made of cheese")


def hang() -> int:
    """A child that keeps running."""
    time.sleep(600)
    return 0


def test_a_process_that_keeps_failing_is_listed_with_its_last_words(tmp_path: Path) -> None:
    """It is restarted at growing intervals; the folder shows which process, how often and why."""
    (tmp_path / SOCKET).touch()
    tree = Supervisor(SimpleNamespace(folder=tmp_path))  # type: ignore[arg-type]  # no more of the settings is needed
    tree._children = [_Child("indexer", fail), _Child("herald", hang)]
    events: list[str] = []

    def is_listed() -> bool:
        events.extend(tree.restart_dead())
        return bool(read_failing(tmp_path))

    try:
        patiently(is_listed)
        (failing,) = read_failing(tmp_path)
        assert (failing.role, failing.failures) == ("indexer", len(events))
        assert failing.why == "the index is made of cheese"
        pauses = [float(found[1]) for event in events if (found := re.search(r"in ([\d.]+) s", event))]
        assert pauses == sorted(pauses)
        assert len(pauses) >= 2
    finally:
        for pid in tree.list_pids().values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def test_no_process_is_listed_after_the_end(tmp_path: Path) -> None:
    """The next tree does not show the list of a killed one, or garbage in the file."""
    write_failing(tmp_path, [FailingProcess("indexer", 9, "words")])
    assert read_failing(tmp_path)[0].failures == 9
    write_failing(tmp_path, ())
    assert read_failing(tmp_path) == ()
    for nonsense in ("", "[", "[1]", '[["a", "b", "c"]]', "{}"):
        (tmp_path / FAILING_FILE).write_text(nonsense)
        assert read_failing(tmp_path) == ()
