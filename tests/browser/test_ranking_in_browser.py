"""Learned ranking, from the first click to the guard: user requests, a real tree, the console in a browser.

Visitors come from separate addresses. First they like one page with low relevance; once that is learned, the page is
first, and little-known pages are tried. Then visitors with that order return quickly, so clicks are worth less than
with relevance alone: the guard restores the safe order for everyone, and this is reported.
"""

import os
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect
from tests.browser.browsing import violations
from tests.search_runs import SmallWeb, Up, page, small_web, up
from tests.tree_runs import children, patiently

from vedette.adapters.index_store.generations import Generations
from vedette.lab.visitors.habits import Click, ResultPage, Search, View
from vedette.lab.visitors.population import Person
from vedette.lab.visitors.traffic import Browser
from vedette.runtime.search.click_learning import IndexedPages, learn
from vedette.runtime.search.reputation_store import load_ranking_status
from vedette.web.console.ports.monitoring import RankingReport

HOME = "http://one.test/"
NAMES = [f"kite{number}" for number in range(24)]
PAGES = {HOME: page("Harbour", "the harbour", {f"/{name}": name for name in NAMES})} | {
    f"{HOME}{name}": page(f"About {name}", f"a zeppelin and {name}") for name in NAMES
}
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
QUERY = "zeppelin"
LIKED_AT = 6  # the place, from 0, of the page that readers will like
TEACHERS, UNHAPPY = 105, 50


class Readers:
    """Different people who search, view the results, and open one of them."""

    def __init__(self, port: int) -> None:
        self._port, self._next = port, 0

    def come(self, many: int) -> list[tuple[Browser, ResultPage]]:
        """Let this many users search and view the results."""
        received = []
        for _ in range(many):
            self._next += 1
            address = f"127.1.{self._next // 200}.{self._next % 200 + 1}"
            browser = Browser(self._port, Person(self._next, address, AGENT, is_robot=False))
            found = browser.perform(Search(0.0, QUERY))
            assert found is not None
            assert browser.perform(View(0.0, found.slate)) is not None
            received.append((browser, found))
        time.sleep(0.4)  # no one opens a result sooner
        return received


@pytest.fixture(scope="module")
def run(chromium: Chromium, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:  # noqa: ARG001 - without a browser it is not started
    """A site whose pages all have the word."""
    web: SmallWeb
    with small_web(PAGES) as web, up(web, tmp_path_factory.mktemp("ranking"), HOME) as run:
        patiently(lambda: run.search(QUERY)["total"] == len(NAMES))
        with paused_indexer(run):
            yield run


@contextmanager
def paused_indexer(run: Up) -> Iterator[None]:
    """Stop the tree from learning by itself: on a busy machine, it might learn between a view and its click."""
    indexer = children(run.process.pid)["vedette indexer"]

    def is_paused() -> bool:
        os.kill(indexer, signal.SIGSTOP)
        works = bool(children(indexer))
        if works:
            os.kill(indexer, signal.SIGCONT)
        return not works

    patiently(is_paused)
    try:
        yield
    finally:
        os.kill(indexer, signal.SIGCONT)


def read_status(run: Up) -> RankingReport:
    """Return the ranking status, as servers and console read it."""
    return load_ranking_status(run.folder / "data" / "index") or RankingReport()


def learn_now(run: Up, clicks: int) -> None:
    """Learn from everything recorded now."""
    folder = run.folder / "data"
    events = "SELECT count(*) FROM event WHERE kind = 'click'"
    with closing(sqlite3.connect(f"file:{folder / 'record.db'}?mode=ro", uri=True)) as record:
        patiently(lambda: record.execute(events).fetchone()[0] == clicks)
    generation = Generations(folder).current()
    assert generation is not None
    learn(folder, generation, generation.parent, IndexedPages(generation), time.time())


@pytest.fixture
def console(chromium: Chromium, run: Up) -> Iterator[Page]:
    """A signed-in tab."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    tab = context.new_page()
    tab.goto(f"{run.address}/console")
    report = (run.folder / "output.txt").read_text()
    tab.fill("#token", next(word for word in report.split() if word.startswith("vt_")))
    tab.click("text=Sign in >> nth=-1")
    yield tab
    context.close()


def test_from_the_first_click_to_the_guard(run: Up, console: Page) -> None:
    """A liked page rises. If clicks get worse, the safe order returns, and console, status and explain say why."""
    readers = Readers(run.port)
    received = readers.come(TEACHERS)
    by_relevance = [hit.page for hit in received[0][1].hits]
    assert all([hit.page for hit in found.hits] == by_relevance for _, found in received)
    liked = received[0][1].hits[LIKED_AT]
    assert all(browser.perform(Click(0.0, found.slate, liked.page)) is not None for browser, found in received)
    learn_now(run, TEACHERS)
    patiently(lambda: run.found(QUERY)[0] == liked.url)
    assert "expected like rate" in run.vedette("explain", liked.url)

    received = readers.come(UNHAPPY)
    learned = [(browser, found) for browser, found in received if found.hits[0].page == liked.page]
    assert len(learned) > UNHAPPY // 2
    assert len({tuple(hit.page for hit in found.hits) for _, found in learned}) > 1  # trials are random
    for browser, found in received:
        assert browser.perform(Click(0.0, found.slate, found.hits[0].page)) is not None
        if found.hits[0].page == liked.page:
            browser.perform(Search(0.0, QUERY))
    learn_now(run, TEACHERS + UNHAPPY)
    patiently(lambda: run.found(QUERY)[0] != liked.url)
    assert all([hit.page for hit in found.hits] == by_relevance for _, found in readers.come(20))

    why = "quality per click fell from 1.00 to 0.00"
    patiently(lambda: why in run.vedette("status"))
    assert why in run.vedette("explain", liked.url)
    console.goto(f"{run.address}/console/explain?url={liked.url}")
    expect(console.locator("main")).to_contain_text(f"because the guard is active: {why}")
    console.goto(f"{run.address}/console/ranking")
    expect(console.locator("[role=status]").first).to_contain_text(f"turned off learned ranking: {why}")
    tried = read_status(run).promoted
    assert tried
    assert sum(row.shown for row in tried) == read_status(run).tried
    expect(console.locator("#promoted")).to_be_visible()
    for row in tried[:5]:
        expect(console.locator("main")).to_contain_text(row.url)
    expect(console.get_by_role("region", name="What if everyone").last).to_contain_text("not enough data")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_usable_with_all_that_it_can_hold(run: Up, console: Page, width: int) -> None:
    """Nothing overflows, and there are no serious violations."""
    console.set_viewport_size({"width": width, "height": 800})
    console.goto(f"{run.address}/console/ranking")
    assert console.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(console, with_contrast=width == 1280) == []
