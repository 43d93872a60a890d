"""Unseen URLs whose links say what people search for are fetched first, by the real program over a real server.

A crawl is told what people search for, fetches a part of a site, and works out aside what the rest would bring. Of one
section, of which nothing was fetched, all articles then come before what a crawl without searches would fetch.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.impact_worlds import ARTICLES, HOST, is_of, query

from vedette.edges.clock import start_clock
from vedette.lab.access_log import read_log
from vedette.lab.worlds.made.server import start_server
from vedette.live.impact import weigh

SECTIONS, WANTED = 20, 15
EARLY, LATER = 150, 60
SETTINGS = '[crawl]\ndelay = "20ms"\naddress_delay = "0s"\norder = "{order}"\n'
PATIENCE_S = 100


def run(*words: str, most_s: float = PATIENCE_S) -> str:
    """The real program, to its end; what it says."""
    done = subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, timeout=most_s)
    return done.stdout.decode()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("order", ["impact", "breadth"])
def test_what_people_search_for_is_fetched_first(tmp_path: Path, order: str) -> None:
    """Under a limit of fetches most of the section is there by impact, and nothing of it breadth first.

    Queues are drawn by lot, so not all of it; without any order 60 of 680 fetches would find 4 of the 40.
    Between both crawls the making is killed once, at a moment that chance chooses, and begun anew.
    """
    log, data = tmp_path / "access.log", tmp_path / "data"
    asked = [
        (query(k, n), 1000 if k == WANTED else 2000 // (1 + (k * 37 + n * 101) % 240) + 1)
        for k in range(SECTIONS)
        for n in range(12)
    ]
    (tmp_path / "queries.tsv").write_text("".join(f"{words}\t{times}\n" for words, times in asked))
    (tmp_path / "vedette.toml").write_text(SETTINGS.format(order=order))
    with start_server("tests.impact_worlds:sections", SECTIONS, log_path=log) as web:
        (tmp_path / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        crawl = ["vedette", "crawl", f"http://{HOST}/", "--connect-to", f"@{tmp_path / 'hosts.txt'}", "--json"]
        crawl += ["--allow-private", "--config", str(tmp_path / "vedette.toml"), "--data", str(data), "--pages"]
        run(*crawl, "1")
        run("vedette", "queries", "import", str(tmp_path / "queries.tsv"), "--data", str(data))
        run(*crawl, str(EARLY))
        making = [sys.executable, "-m", "vedette.live.impact", str(data), str(start_clock(time.time(), 1.0))]
        killed = subprocess.Popen(making)
        time.sleep(0.5)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        weigh(data, time.time())  # here, as what gives way to all others may take long on a busy machine
        told = json.loads(
            run("vedette", "explain", f"http://{HOST}/a/{WANTED + SECTIONS * 7}", "--json", "--data", str(data))
        )
        run(*crawl, str(LATER))
    articles = [entry.url for entry in read_log(log)[1] if "/a/" in entry.url]
    before, after = articles[:-LATER], articles[-LATER:]
    assert not [url for url in before if is_of(url, WANTED, SECTIONS)]
    of_section = sum(is_of(url, WANTED, SECTIONS) for url in after)
    assert (of_section >= 0.6 * ARTICLES) if order == "impact" else (of_section == 0), f"{of_section} of {ARTICLES}"
    assert told["first"]["gain"] > 3 * told["first"]["usual"]
    assert query(WANTED, 7) in [one["query"] for one in told["first"]["matches"]]
