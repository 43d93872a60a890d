"""Unseen URLs whose links match searches are fetched first, by the real program over a real server.

A crawl gets a query log, fetches part of a site, and estimates in the background what the rest would gain. Then all
articles of one section, none of which was fetched before, come before what a crawl without searches would fetch.
"""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import sqrt
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from tests.impact_worlds import ARTICLES, HOST, is_of, query
from tests.tree_runs import PATIENCE_S

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.adapters.crawl_store.url_list import list_unfetched
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import ImpactEstimates
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.price_controller import PRICE_KEY, PriceController
from vedette.lab.judge.access_log import read_log
from vedette.lab.worlds.synthetic.server import start_server
from vedette.runtime.indexing.impact import run_impact_pass
from vedette.runtime.indexing.query_curves import update_curves
from vedette.runtime.processes.gain_reader import read_new_gains

SECTIONS, WANTED = 20, 15
EARLY, LATER = 150, 60
SETTINGS = '[crawl]\ndelay = "20ms"\naddress_delay = "0s"\norder = "{order}"\nbudget = "{budget}"\n'
# At such a speed six pages a minute are ten a second. Whatever the price six leave at once, and then one in ten.
BUDGET, PER_S, SPEED = "6/min", 0.1, 100.0
MEASURED, DEAR = 30, 40


def run(*words: str, most_s: float = PATIENCE_S) -> str:
    """Run the real program to its end and return its output."""
    done = subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True, timeout=most_s)
    return done.stdout.decode()


class Tree(NamedTuple):
    """A data folder, the server's log, and the command that crawls more pages."""

    data: Path
    log: Path
    crawl: list[str]

    def articles(self) -> list[str]:
        """Return the requested articles, in order."""
        return [entry.url for entry in read_log(self.log)[1] if "/a/" in entry.url]


@contextmanager
def started(folder: Path, order: str, speed: float = 1.0) -> Iterator[Tree]:
    """Return a crawl that has fetched part of the site, and then got a query log."""
    log, data = folder / "access.log", folder / "data"
    asked = [
        (query(k, n), 1000 if k == WANTED else 2000 // (1 + (k * 37 + n * 101) % 240) + 1)
        for k in range(SECTIONS)
        for n in range(12)
    ]
    (folder / "queries.tsv").write_text("".join(f"{words}\t{times}\n" for words, times in asked))
    (folder / "vedette.toml").write_text(SETTINGS.format(order=order, budget="0"))
    with start_server("tests.impact_worlds:sections", SECTIONS, speed=speed, log_path=log) as web:
        (folder / "hosts.txt").write_text("\n".join(web.connect_to_lines()))
        crawl = ["vedette", "crawl", f"http://{HOST}/", "--connect-to", f"@{folder / 'hosts.txt'}", "--json"]
        crawl += ["--allow-private", "--config", str(folder / "vedette.toml"), "--data", str(data)]
        crawl += ["--speed", str(speed), "--pages"]
        run(*crawl, str(EARLY))  # before there are queries, so that no impact pass runs meanwhile
        run("vedette", "queries", "import", str(folder / "queries.tsv"), "--data", str(data))
        yield Tree(data, log, crawl)


@pytest.mark.parametrize("order", ["impact", "breadth"])
def test_pages_that_match_searches_are_fetched_first(tmp_path: Path, order: str) -> None:
    """With limited fetches, most of the section is fetched by impact, and none of it breadth first.

    Queues are random, so it is not all of it; without any order, 210 of 830 fetches would find 10 of the 40. Between
    the two crawls, the impact pass is killed once at a random moment and started again.
    """
    with started(tmp_path, order) as tree:
        making = [
            sys.executable,
            "-m",
            "vedette.runtime.indexing.impact",
            str(tree.data),
            str(start_clock(time.time(), 1.0)),
        ]
        killed = subprocess.Popen(making)
        time.sleep(0.5)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        run_impact_pass(tree.data, time.time())  # here, as what gives way to all others may take long on a busy machine
        told = json.loads(
            run("vedette", "explain", f"http://{HOST}/a/{WANTED + SECTIONS * 7}", "--json", "--data", str(tree.data))
        )
        run(*tree.crawl, str(LATER))
        articles = tree.articles()
    of_section = sum(is_of(url, WANTED, SECTIONS) for url in articles)
    assert (of_section >= 0.6 * ARTICLES) if order == "impact" else (of_section == 0), f"{of_section} of {ARTICLES}"
    assert told["first"]["gain"] > 3 * told["first"]["usual"]
    assert query(WANTED, 7) in [one["query"] for one in told["first"]["matches"]]


def test_pages_that_match_searches_are_fetched_first_under_a_budget(tmp_path: Path) -> None:
    """With a budget, fetches have a price; at one between both worths, most fetches are of that section.

    The price is set as days of refreshes would set it. A small part of the budget is for URLs below the price; without
    any order, 40 of 650 fetches would find 3 of the section.
    """
    with started(tmp_path, "impact", SPEED) as tree:
        generation = Generations(tree.data).current()
        assert generation is not None
        update_curves(tree.data, generation, time.time())
        run(*tree.crawl, str(MEASURED))
        run_impact_pass(tree.data, time.time())
        early = tree.articles()
        (tmp_path / "vedette.toml").write_text(SETTINGS.format(order="impact", budget=BUDGET))
        wanted, others = worths(tree.data)
        assert wanted > 1.5 * others
        price = sqrt(wanted * others)
        with closing(sqlite3.connect(tree.data / "state.db")) as db, db:
            CrawlStore(db).set_value(
                PRICE_KEY, PriceController("expected-gain", price=price, is_settled=True).to_json()
            )
        run(*tree.crawl, str(DEAR))
        after = tree.articles()[len(early) :]
    of_section = sum(is_of(url, WANTED, SECTIONS) for url in after)
    assert of_section >= 0.5 * DEAR, f"{of_section} of {len(after)}"


def worths(data: Path) -> tuple[float, float]:
    """Return the median worth of first fetches: for articles of the section, and for all others."""
    urls, expected = list_unfetched(data, 0, 10_000), ImpactEstimates(data / "index")
    gains = expected.get_known(np.array([one.id for one in urls], np.uint32)).tolist()
    with closing(sqlite3.connect(data / "state.db")) as db:
        book = CrawlStore(db)
        firsts = FirstFetches(CrawlRules(budget_per_s=PER_S), book, SimpleNamespace(price=1.0))
        firsts.on_first_gains(
            read_new_gains(book, data).first_fetches, 0.0
        )  # as the coordinator does when it starts; nothing is committed here
    each = [
        (is_of(one.url, WANTED, SECTIONS), firsts.estimate_worth(one.url, 1, gain))
        for one, gain in zip(urls, gains, strict=True)
    ]
    return median(worth for is_wanted, worth in each if is_wanted), median(
        worth for is_wanted, worth in each if not is_wanted
    )
