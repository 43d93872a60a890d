"""Kill -9 of fetchers, coordinator and the whole tree at random moments: nothing is lost, and little is repeated."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
from tests.tree_runs import PATIENCE_S, PROVE, Run, children, is_whole, kill_all, open_run, patiently
from tests.tree_worlds import kill_town

from vedette.policy import rng_for

HOSTS = 100 if PROVE else 12
KILLS = 50 if PROVE else 6
SPEED = 300.0
MOST_REPEATED_PER_KILL = 40
GUESSED = ("/sitemap.xml", "/sitemap_index.xml")  # no page names them; the crawler tries them once a host

Victim = Literal["worker", "keeper", "indexer", "tree"]
VICTIMS: tuple[Victim, ...] = ("worker", "keeper", "indexer", "tree")


def kill(process: subprocess.Popen[bytes], victim: Victim, rng: np.random.Generator) -> None:
    """Kill one process of the tree, or all of it."""
    if victim == "tree":
        kill_all(process)
        return
    named = children(process.pid)
    start = "vedette w" if victim == "worker" else f"vedette {victim}"
    wanted = [pid for name, pid in sorted(named.items()) if name.startswith(start)]
    with suppress(ProcessLookupError):
        os.kill(wanted[int(rng.integers(len(wanted)))], signal.SIGKILL)


def is_whole_or_over(process: subprocess.Popen[bytes]) -> bool:
    """Check whether all processes are running, or the crawl has ended."""
    return process.poll() is not None or is_whole(process.pid)


def await_requests(run: Run, process: subprocess.Popen[bytes], wanted: int) -> None:
    """Wait until the servers have received that many requests, or the crawl has ended."""
    while process.poll() is None and (run.folder / "access.log").read_bytes().count(b"\n") < wanted:
        time.sleep(0.01)  # nothing signals a line in a log


def crawl_with_kills(run: Run, kills: int, rng: np.random.Generator) -> int:
    """Crawl to the end, killing this many times; return the number of kills before the crawl was over."""
    process, share = run.start(), len(kill_town(HOSTS).urls()) / (kills + 1)
    for number in range(kills):
        patiently(partial(is_whole_or_over, process))
        await_requests(run, process, int((number + rng.uniform(0.2, 1.0)) * share))
        if process.poll() is not None:
            return number
        kill(process, VICTIMS[number % len(VICTIMS)], rng)
        if VICTIMS[number % len(VICTIMS)] == "tree":
            process = run.start()
    assert process.wait(PATIENCE_S) == 0
    return kills


def passes(command: list[str]) -> None:
    """Check that an archive checker, installed next to this Python, finds no problem."""
    program = Path(sys.executable).with_name(command[0])
    done = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_page_is_fetched_and_archived_once_despite_kills(tmp_path: Path) -> None:
    """After all kills each page is in the state and once in a valid archive, and few requests were repeated."""
    with open_run("kill_town", HOSTS, tmp_path, speed=SPEED) as run:
        kills = crawl_with_kills(run, KILLS, rng_for(2, "kills/moments"))
        assert kills == KILLS, "the crawl was over too soon to be killed as often"
        judged = run.verdict()
        wanted = sorted(kill_town(HOSTS).urls())
        pages, archived = run.pages(), run.archived()
        assert sorted(pages) == wanted
        assert [url for url in wanted if pages[url][0] != 200] == []
        asked = {url: places for url, places in archived.items() if not url.endswith(GUESSED)}
        assert {url: [place[1:]] for url, place in pages.items()} == asked
        assert run.repeated() <= MOST_REPEATED_PER_KILL * kills
        passes(["warcio", "check", *map(str, run.files())])
        for file in run.files():
            passes(["fastwarc", "check", "-q", str(file)])
        assert [each.detail for each in judged.violations] == []
