"""Background jobs pause in proportion to their CPU time, not their wall time, and end with their parent."""

import subprocess
import sys
import time

import pytest

from vedette.runtime.processes.background import PARENT_ENV, BackgroundJob

DAYS_S = 1e6
STEPS = 3_000


def test_what_waited_for_the_processor_does_not_rest_for_that() -> None:
    """The job took days of wall time but little CPU time, so it may start again within the hour."""
    aside = BackgroundJob("vedette")
    aside.start(0.0, "--version")
    for step in range(STEPS):
        if aside.is_ready(DAYS_S + step):
            break
        time.sleep(0.01)
    assert aside.is_ready(DAYS_S + STEPS)


def test_a_job_whose_parent_is_gone_does_not_start() -> None:
    """The parent was killed while the job was still importing, so nothing else would ever end it."""
    program = "from vedette.runtime.processes.background import lower_priority; lower_priority(); print('started')"
    for parent, words in (("1", ""), (None, "started\n")):
        environment = {} if parent is None else {PARENT_ENV: parent}
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == words


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raise OSError(errno.ENOSPC, 'no space')", ""),
        (
            "try:\n        raise OSError(errno.EDQUOT, 'quota')\n    finally:\n        raise ValueError('open')",
            "",
        ),
        ("raise OSError(errno.EIO, 'broken disk')", "broken disk"),
    ],
)
def test_a_job_ends_quietly_on_a_full_disk(fault: str, message: str) -> None:
    """The indexer reports a full disk; any other error of a job is shown."""
    program = (
        "import errno\nfrom vedette.runtime.processes.background import run_in_background\n"
        f"with run_in_background():\n    {fault}\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env={}, capture_output=True, text=True, check=False)
    assert (done.returncode != 0, bool(done.stderr)) == (bool(message), bool(message))
    assert message in done.stderr
