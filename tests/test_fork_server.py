"""A forked program behaves like one in a fresh interpreter."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fork_server import ForkingPopen
from tests.tree_runs import PROVE

pytestmark = pytest.mark.skipif(PROVE, reason="make prove starts a fresh interpreter for every program")
COMMANDS = (
    ("vedette", "--version"),
    ("vedette", "crawl", "--help"),
    ("vedette", "stauts"),
    ("vedette", "sites", "list", "--json"),
    ("vedette", "sites", "add", "127.0.0.1"),
    ("vedette", "set", "crawl.contact", "me@example.org", "--json"),
)


def play(folder: Path, *, fresh: bool) -> list[tuple[int, str, str]]:
    """Run all commands in a folder, one after another; return codes and outputs."""
    folder.mkdir()
    environment = {**os.environ, "VEDETTE_STORE_DATA": "here"}
    runs = [
        subprocess.run(
            [sys.executable, "-m", *command],
            executable=sys.executable if fresh else None,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        for command in COMMANDS
    ]
    assert [entry.name for entry in folder.iterdir()] == ["here"]
    return [(run.returncode, run.stdout, run.stderr) for run in runs]


def test_it_says_and_does_what_a_fresh_interpreter_does(tmp_path: Path) -> None:
    """Arguments, folder, environment, output, errors and exit codes are the same."""
    assert play(tmp_path / "forked", fresh=False) == play(tmp_path / "fresh", fresh=True)


def test_it_is_a_child_that_leads_its_session_and_ends_by_its_own_signal() -> None:
    """Its parent is the test's process, which kills it and sees the signal that ended it."""
    command = [sys.executable, "-m", "vedette.lab.worlds.synthetic.server", "made:tiny"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert isinstance(process, ForkingPopen)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'{"port"')
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert os.getsid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
