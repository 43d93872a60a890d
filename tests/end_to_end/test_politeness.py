"""Politeness, judged by nothing but the servers' log: crawl-delays, Retry-After, shared addresses, kills."""

import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import numpy as np
from tests.tree_runs import PROVE, Run, is_whole, kill_all, open_run, patiently
from tests.tree_worlds import strict_town

from vedette.policy import rng_for

HOSTS = 200 if PROVE else 40
SPEED = 30.0 if PROVE else 60.0
RUN_S = 25.0 if PROVE else 4.0
KILLS = 3


def started(run: Run) -> subprocess.Popen[bytes]:
    """A crawl whose coordinator and both fetchers are running."""
    process = run.start()
    patiently(lambda: is_whole(process.pid))
    return process


def crawl_with_kills(run: Run, kills: int, rng: np.random.Generator) -> None:
    """Crawl, kill the whole tree, and go on, that many times; the last crawl is ended by Ctrl-C."""
    for _ in range(kills):
        process = started(run)
        time.sleep(RUN_S * rng.uniform(0.5, 1.5))
        kill_all(process)
    last = started(run)
    time.sleep(RUN_S)
    last.send_signal(signal.SIGINT)
    last.wait(300)


def test_no_request_is_too_soon_or_disallowed_across_three_kills(tmp_path: Path) -> None:
    """Many hosts, 20 crawl-delays, 429s, shared addresses, troubled robots.txt, three kill -9: nothing to accuse."""
    with open_run("strict_town", HOSTS, tmp_path, speed=SPEED) as run:
        crawl_with_kills(run, KILLS, rng_for(1, "politeness/kills"))
        judged = run.verdict()
        assert [each.detail for each in judged.violations] == []
        entries = run.entries()
        statuses = Counter(entry.status for entry in entries)
        manners = {each.name: each for each in strict_town(HOSTS).manners}
        pages = Counter(entry.host for entry in entries if entry.target != "/robots.txt")
        never = {
            name for name, each in manners.items() if each.robots != "none" and each.robots_until_s == float("inf")
        }
        # What was judged must have been there to be judged.
        assert statuses[200] > 5 * HOSTS
        assert min(statuses[429], statuses[503], statuses[0]) > 0
        assert never
        assert [name for name in sorted(never) if pages[name]] == []
        good = [name for name, each in manners.items() if each.robots == "none"]
        assert [name for name in good if not pages[name]] == []
