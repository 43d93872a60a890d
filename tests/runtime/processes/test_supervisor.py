"""The process tree: which process dies, hangs or is stopped, and what is left. Real processes, real signals."""

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
from vedette.runtime.processes.supervisor import RESTART_DELAYS_S, Supervisor, _Child
from vedette.web.commands.commands import LogSignIn

WHOLE = ("vedette keeper", "vedette w0", "vedette w1", "vedette indexer")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Some hundred pages, one every second of two a host; nothing ends by itself too soon."""
    with open_run("kill_town", 12, tmp_path, speed=60.0) as run:
        yield run


@pytest.fixture
def process(run: Run) -> Iterator[subprocess.Popen[bytes]]:
    """A crawl that has begun to fetch pages."""
    process = run.start()
    try:
        patiently(lambda: set(children(process.pid)) == set(WHOLE) and has_pages(run))
        yield process
    finally:
        kill_all(process)


def has_pages(run: Run, more_than: int = 0) -> bool:
    """Whether the servers got more page requests than that."""
    return sum(entry.target != "/robots.txt" for entry in run.entries()) > more_than


def count_good(run: Run) -> int:
    """How many pages the state has that came with a good status."""
    return sum(200 <= status < 300 for status, _, _ in run.pages().values())


def test_ctrl_c_ends_all_with_slow_requests_under_way(tmp_path: Path) -> None:
    """Hosts that hang keep no one: it ends before they do, says so, and leaves neither process nor socket."""
    with open_run("slow_town", 30, tmp_path, speed=1.0, timeout_s=2 * PATIENCE_S) as run:
        process = run.start()
        try:
            patiently(lambda: has_pages(run, more_than=20))
            pids = [process.pid, *children(process.pid).values()]
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        finally:
            kill_all(process)
        assert run.told()["ending"] == "stopped"
        assert remains(pids) == []
        assert not (run.data / SOCKET).exists()


def test_ctrl_c_ends_a_tree_whose_keeper_hangs(run: Run, process: subprocess.Popen[bytes]) -> None:
    """No one answers, and it ends all the same; what was committed is there for the next crawl."""
    patiently(run.pages)
    pids = children(process.pid)
    os.kill(pids["vedette keeper"], signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)
    assert remains(list(pids.values())) == []
    assert run.pages()


def test_a_dead_worker_comes_back_and_its_leases_at_once(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Another process takes its place, says so, and asks its hosts for what the dead one held."""
    before = children(process.pid)
    hosts = hosts_of(run)
    os.kill(before["vedette w0"], signal.SIGKILL)
    patiently(lambda: children(process.pid).get("vedette w0", before["vedette w0"]) != before["vedette w0"])
    known = len(run.entries())
    patiently(lambda: {entry.host for entry in run.entries()[known:]} >= hosts)
    assert children(process.pid)["vedette keeper"] == before["vedette keeper"]
    assert "fetcher 0 ended (SIGKILL); restarting" in run.said()
    end(process)
    assert [each.detail for each in run.verdict().violations] == []


def hosts_of(run: Run) -> set[str]:
    """The hosts with page requests so far."""
    return {entry.host for entry in run.entries() if entry.target != "/robots.txt"}


def end(process: subprocess.Popen[bytes]) -> None:
    """Ctrl-C, and wait."""
    process.send_signal(signal.SIGINT)
    process.wait(PATIENCE_S)


def test_the_death_of_the_keeper_restarts_its_workers(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Fetchers exit with their coordinator; new ones work for a new one, politely. The indexer continues.

    The summary counts the pages of both coordinators, since it is computed from the state.
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
    assert run.told()["pages"] == count_good(run)
    assert run.told()["requests"] >= run.told()["pages"] + run.told()["robots_requests"]
    assert [each.detail for each in run.verdict().violations] == []


def test_nobody_waits_for_a_keeper_that_hangs(run: Run, process: subprocess.Popen[bytes]) -> None:
    """Its last numbers can be read, people sign in, and a command says that it waits; it is executed once, later."""
    patiently(lambda: bool(read_live_status(run.data)))
    keeper = children(process.pid)["vedette keeper"]
    os.kill(keeper, signal.SIGSTOP)
    operator = FolderOperator(run.data)
    for _ in range(100):  # more than the socket takes; each would wait forever if it waited at all
        live = read_live_status(run.data)
        assert live is not None
        assert live.numbers["pages"] >= 0
    with pytest.raises(StoreError, match=r"not done: .* overloaded"):
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


def test_the_death_of_the_supervisor_leaves_nobody_and_a_usable_folder(
    run: Run, process: subprocess.Popen[bytes]
) -> None:
    """The kernel ends the children; the next crawl opens the folder at once and goes on politely."""
    pids = list(children(process.pid).values())
    process.kill()
    process.wait()
    patiently(lambda: not remains(pids))
    again = subprocess.run(run.command("--pages", "5"), capture_output=True, text=True, timeout=300, check=False)
    assert again.returncode == 0, again.stderr
    assert [each.detail for each in run.verdict().violations] == []


def test_a_second_tree_on_the_folder_is_refused(run: Run, process: subprocess.Popen[bytes]) -> None:
    """It says why and touches nothing; the first one goes on."""
    second = subprocess.run(run.command(), capture_output=True, text=True, timeout=300, check=False)
    assert second.returncode == 1
    assert "in use by another vedette" in second.stderr
    assert process.poll() is None
    assert set(children(process.pid)) == set(WHOLE)


@contextmanager
def tree_child(run: Run, lease_wall_s: float) -> Iterator[subprocess.Popen[bytes]]:
    """A tree with that lease time; its supervisor's output goes to the run's ``said``."""
    command = [sys.executable, "-m", "tests.tree_child", str(run.folder), f"--clock={run.web.clock}"]
    with (run.folder / "said.txt").open("ab") as said:
        process = subprocess.Popen(
            [*command, f"--lease={lease_wall_s}"], stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        yield process
    finally:
        kill_all(process)


def test_a_hung_worker_loses_its_leases_and_is_replaced(run: Run) -> None:
    """It says nothing for the time of a lease: another process gets its errands, and is as polite as the first."""
    with tree_child(run, lease_wall_s=1.0) as process:
        patiently(lambda: set(children(process.pid)) == set(WHOLE) and has_pages(run))
        hosts = hosts_of(run)
        hung = children(process.pid)["vedette w0"]
        os.kill(hung, signal.SIGSTOP)
        patiently(lambda: children(process.pid).get("vedette w0", hung) != hung)
        known = len(run.entries())
        patiently(lambda: {entry.host for entry in run.entries()[known:]} >= hosts)
        assert remains([hung]) == []
    assert "fetcher 0 has not responded for" in run.said()
    assert [each.detail for each in run.verdict().violations] == []
    # What was on its way or not yet noted when it hung.
    assert run.repeated() <= len(run.web.hosts) + MAX_UNACKED


def test_a_worker_that_slept_through_its_lease_asks_for_nothing_when_it_wakes(run: Run) -> None:
    """Stopped together with its coordinator, so that no one kills it: it drops its tasks by itself, and comes back."""
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


def test_workers_whose_reports_nobody_notes_soon_stop_asking(tmp_path: Path) -> None:
    """A crash costs few repeated requests, because requests beyond the last durable report are bounded."""
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
    """Whether no request came for a while, longer than the servers keep their log in memory."""
    before = len(run.entries())
    time.sleep(1.5)
    return len(run.entries()) == before


def test_a_crash_loop_is_damped_and_said(run: Run) -> None:
    """A coordinator that cannot even open its folder is restarted at growing intervals, and each death is reported."""
    run.data.mkdir()
    (run.data / "state.db").write_bytes(b"this is no database, and will not become one" * 100)
    with tree_child(run, lease_wall_s=300.0):
        patiently(lambda: deaths(run) == 4)
        began_s = time.monotonic()
        patiently(lambda: deaths(run) == 5)
    assert time.monotonic() - began_s >= RESTART_DELAYS_S[3] / 2
    assert "coordinator ended (exit code 1); restarting in" in run.said()
    assert "(failure 5 in a row)" in run.said()
    assert "restore a backup, or choose another folder" in run.said()


def deaths(run: Run) -> int:
    """How many were reported."""
    return run.said().count("coordinator ended")


# Failing


def fail() -> int:
    """A child that cannot work."""
    raise StoreError("the index is made of cheese")


def hang() -> int:
    """A child that lives on."""
    time.sleep(600)
    return 0


def test_a_process_that_keeps_failing_is_listed_with_its_last_words(tmp_path: Path) -> None:
    """It is restarted later and later; who reads the folder meanwhile learns which process, how often and why."""
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
    """What a tree that was killed left behind does not worry the next one; nonsense in the file neither."""
    write_failing(tmp_path, [FailingProcess("indexer", 9, "words")])
    assert read_failing(tmp_path)[0].failures == 9
    write_failing(tmp_path, ())
    assert read_failing(tmp_path) == ()
    for nonsense in ("", "[", "[1]", '[["a", "b", "c"]]', "{}"):
        (tmp_path / FAILING_FILE).write_text(nonsense)
        assert read_failing(tmp_path) == ()
