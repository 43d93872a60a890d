"""Unseen URLs are ordered live as in the lab: for one history, every worth is the same, bit for bit.

The order by impact is compared in ``tests/runtime/indexing/test_impact.py``, where impact is computed.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, page, rules_for

from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.decision_record import Decision
from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.first_fetch import FirstFetches
from vedette.engine.scheduling.schedule import Schedule
from vedette.frontier.unseen import UnseenUrls
from vedette.lab.core.registry import find_policy
from vedette.lab.runs.joint import FirstFetchAgent
from vedette.model import Site
from vedette.policy import rng_for
from vedette.refresh.policies.fixed import Fixed

SITE = "https://a.test/"
START = f"{SITE}start"
# Each page of a section links to up to four others, so URLs differ in depth and in how many pages link to them.
LINKS = {START: [f"{SITE}s{part}/0" for part in range(3)]} | {
    f"{SITE}s{part}/{n}": [
        f"{SITE}s{part}/{m}" for m in dict.fromkeys((2 * n + 1, 2 * n + 2, n // 2, min(n + 9, 39))) if m < 40
    ]
    for part in range(3)
    for n in range(40)
}


def crawl(order: str, decisions: list[tuple[Decision, list[str]]], *, recrawl: bool = False) -> Drive:
    """Crawl the site once; record each decision with the pages that had been fetched until then."""
    web = MemoryWeb({url: page(*links, title=url) for url, links in LINKS.items()})

    def note(decision: Decision) -> None:
        pages = drive.pages()
        decisions.append((decision, [asked.url for asked in drive.log if asked.url in pages]))

    rules = rules_for(Site(START, overrule=("trap",)), order=order, delay_s=0.1, recrawl=recrawl)
    schedule = Schedule(recrawl=recrawl, sources=Fixed(), witness=note)
    drive = Drive(web, rules, workers=1, schedule=schedule).begin()
    return drive.run(until=lambda: len(drive.pages()) == len(LINKS))


def describe_for_lab(urls: list[str], numbers: list[int], fetched: list[str]) -> UnseenUrls:
    """Describe URLs for the lab from the history alone: where each was first found, and the pages that link to it."""
    depth = {START: 0}
    for url in fetched:
        for link in LINKS[url]:
            depth.setdefault(link, depth[url] + 1)
    named = [sum(url in LINKS[one] for one in fetched) + (url == START) for url in urls]
    return UnseenUrls(np.array([depth[url] for url in urls]), np.array(numbers), np.array(named))


@pytest.mark.parametrize("order", ["breadth", "inlinks"])
def test_the_coordinator_orders_unseen_urls_as_the_lab_does(order: str) -> None:
    """Every batch that is drawn from the front queues has the worths of the lab's policy, and is fetched by them."""
    decisions: list[tuple[Decision, list[str]]] = []
    drive = crawl(order, decisions)
    url_of = dict(drive.db.execute("SELECT id, url FROM url"))
    agent, drawn, worths = find_policy("order", order), 0, set[float]()
    place_of, differing = {url: place for place, url in enumerate(drive.asked_urls())}, 0
    last = {number: at for at, (decision, _) in enumerate(decisions) for number in decision.facts.get("found", [])}
    for at, (decision, fetched) in enumerate(decisions):
        numbers = [int(number) for number in decision.facts.get("found", []) if number]  # type: ignore[arg-type]  # numbers
        if decision.stage != "order" or not numbers:
            continue
        batch = describe_for_lab([url_of[number] for number in numbers], numbers, fetched)
        worth = agent.worth(agent.start(None), batch, 0.0, rng_for(decision.seed, decision.stream))
        assert worth.tolist() == decision.outcome["worth"], decision
        drawn, worths = drawn + len(numbers), worths | set(worth.tolist())
        # A URL that waits is drawn again.
        pairs = zip(numbers, worth.tolist(), strict=True)
        fetches = sorted((place_of[url_of[number]], each) for number, each in pairs if last[number] == at)
        in_turn = [each for _, each in fetches]
        assert in_turn == sorted(in_turn, reverse=True)
        differing += len(set(in_turn)) > 1
    assert differing, "the order within a batch matters"
    assert drawn >= len(LINKS)
    assert len(worths) > 20, "there is something to order"


def test_first_fetches_are_worth_the_same_live_and_in_the_lab() -> None:
    """Both use the same fetches and gains, by section, depth and in-links; all fetches in the lab cost the same."""
    drive = crawl("breadth", [], recrawl=True)
    rows, urls = drive.pages(), [*LINKS]
    live = FirstFetches(CrawlRules(budget_per_s=1.0), drive.book, SimpleNamespace(price=1.0))
    lab = FirstFetchAgent(urls)
    gain_of = dict(zip(urls, rng_for(1, "tests/first fetches").exponential(1.0, len(urls)).tolist(), strict=True))
    named, fetched, worths = np.zeros(len(urls), np.int64), drive.asked_urls()[: len(urls)], set[float]()
    differing = 0
    named[0] = 1  # a start URL counts as linked
    lab.on_fetches(np.zeros(0, np.int64), np.zeros(0), [np.array([0])])
    for number, url in enumerate(fetched):
        links, gain = np.array([urls.index(link) for link in LINKS[url]]), gain_of[url]
        results = [FetchGain(rows[url].id, rows[url].fetched_s, gain, None)]
        lab.on_fetches(np.array([urls.index(url)]), np.array([gain]), [links])
        live.on_first_gains(results, drive.now_s)
        named[links] += 1
        if number % 3 == 0:
            lab.on_changes(np.array([gain]))
            live.on_change_gains(results, drive.now_s)
        unseen = np.flatnonzero((named > 0) & ~np.isin(urls, fetched[: number + 1]))
        waiting = [urls[at] for at in unseen]
        differing += len({*named[unseen].tolist()}) > 1
        worth = lab.worth(unseen).tolist()
        assert live.estimate_worths(waiting, named[unseen].tolist()).tolist() == worth
        singly = zip(waiting, named[unseen].tolist(), strict=True)
        assert [live.estimate_worth(each, count) for each, count in singly] == worth
        worths |= set(worth)
    assert len(worths) > 100, "there is something to tell apart"
    assert differing > 20, "by in-links, too"
