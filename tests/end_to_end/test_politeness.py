"""Politeness, judged only by the servers' log, with crawl delays, Retry-After, shared addresses and kills."""

import signal
import subprocess
from collections import Counter
from math import inf
from pathlib import Path

import numpy as np
from tests.tree_runs import PATIENCE_S, PROVE, Run, is_whole, kill_all, open_run, patiently
from tests.tree_worlds import strict_town

from vedette.lab.judge.access_log import AccessEntry
from vedette.policy import rng_for

HOSTS = 200 if PROVE else 40
SPEED = 30.0 if PROVE else 60.0
REQUESTS = (10 if PROVE else 1) * HOSTS  # from one kill to the next
KILLS = 3


def started(run: Run) -> subprocess.Popen[bytes]:
    """Start a crawl, and wait until the coordinator and both fetchers are running."""
    process = run.start()
    patiently(lambda: is_whole(process.pid))
    return process


def await_requests(run: Run, more: int) -> None:
    """Wait until the servers have received that many more requests."""
    wanted = len(run.entries()) + more
    patiently(lambda: len(run.entries()) >= wanted)


def crawl_with_kills(run: Run, kills: int, rng: np.random.Generator) -> None:
    """Crawl, kill the whole tree and continue, this many times.

    Stop the last crawl with Ctrl-C when enough was seen.
    """
    for _ in range(kills):
        process = started(run)
        await_requests(run, int(REQUESTS * rng.uniform(0.5, 1.5)))
        kill_all(process)
    last = started(run)
    try:
        patiently(lambda: has_all(run.entries()))
        last.send_signal(signal.SIGINT)
        last.wait(PATIENCE_S)
    finally:
        kill_all(last)


def has_all(entries: list[AccessEntry]) -> bool:
    """Check whether there is enough to judge: pages of every good host, refusals, and many pages."""
    statuses = Counter(entry.status for entry in entries)
    hosts = {entry.host for entry in entries if entry.target != "/robots.txt"}
    good = {each.name for each in strict_town(HOSTS).manners if each.robots == "none"}
    return statuses[200] > 5 * HOSTS and min(statuses[429], statuses[503], statuses[0]) > 0 and good <= hosts


def test_no_request_is_too_soon_or_disallowed_across_three_kills(tmp_path: Path) -> None:
    """Many hosts, 20 crawl-delays, 429s, shared addresses, failing robots.txt, three kill -9: no violation."""
    with open_run("strict_town", HOSTS, tmp_path, speed=SPEED) as run:
        crawl_with_kills(run, KILLS, rng_for(1, "politeness/kills"))
        judged = run.verdict()
        assert [each.detail for each in judged.violations] == []
        pages = {entry.host for entry in run.entries() if entry.target != "/robots.txt"}
        closed = [
            each.name for each in strict_town(HOSTS).manners if each.robots != "none" and each.robots_until_s == inf
        ]
        assert closed
        assert [name for name in closed if name in pages] == []
