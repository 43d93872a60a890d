"""The crawler polls as the lab does: for one history, every decision is the same, bit for bit."""

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, page, rules_for
from tests.lab.small_frontpages import front

from vedette.discover.live_policies import PUBLISHED_SETTINGS
from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.overlap import AccrualState
from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.engine.scheduling.poll_schedule import FLOOR_WORTH, find_free_price
from vedette.engine.scheduling.polling import PAGE_WORTH, SourcePoller
from vedette.engine.scheduling.schedule import Schedule
from vedette.lab.core.registry import find_policy
from vedette.lab.experiments.discovery_as_live import LivePoller
from vedette.lab.worlds.frontpages import Frontpages
from vedette.policy import Ints, Picks, rng_for
from vedette.refresh.policies.fixed import Fixed

Decision = tuple[list[int], list[int]]
HOUR_S = 3_600.0
HOME = "https://a.test/"
SNAPSHOTS, SOURCES = 96, 12


def record_sites() -> Frontpages:
    """Record twelve sources of three hosts for four days: some busy, some overlapping, some failing or late."""
    rng = rng_for(3, "tests/poll parity")
    rows = []
    for target in range(300):
        born = int(rng.integers(0, SNAPSHOTS - 1))
        first = int(rng.choice(SOURCES, p=np.arange(1, SOURCES + 1) / sum(range(1, SOURCES + 1))))
        lives = int(rng.choice([1, 4, 30, 200]))
        rows.append((first, target, born, min(born + lives, SNAPSHOTS)))
        if rng.random() < 0.5:  # a relative of the same host shows it, too
            later = min(born + int(rng.integers(0, 3)), SNAPSHOTS - 1)
            rows.append(((first + 3) % SOURCES, target, later, min(later + lives, SNAPSHOTS)))
    failed = [(snapshot, source) for snapshot in range(60, 78) for source in (2, 7)]
    return front(rows, SNAPSHOTS, [place % 3 for place in range(SOURCES)], failed)


class LabAgent:
    """A policy as the lab's runs drive it: a history of polls, its own state, a choice of k."""

    def __init__(self, world: Frontpages, policy: Any) -> None:
        self.policy, self._book, self.state = policy, PollHistory(world.host), policy.start(None)

    def choose(self, k: int, now_s: float) -> list[int]:
        """Choose sources, best first, with the crawler's random stream."""
        picks = self.policy.choose(self.state, self._book.list_options(), k, now_s, rng_for(1, f"discover/{now_s}"))
        rows: list[int] = picks.rows.tolist()
        return rows

    def observe(self, results: PollResults, now_s: float) -> None:
        """Learn."""
        self.state = self.policy.observe(self.state, self._book.record(results, now_s), now_s)


def run_both(world: Frontpages, lab: LabAgent, crawler: LivePoller, price: float, k: int) -> list[Decision]:
    """Run a recording through the lab's agent and the crawler's poller; both learn from the crawler's polls."""
    known = np.zeros(world.targets, bool)
    decisions: list[Decision] = []
    for snapshot in range(world.snapshots):
        now_s = float(world.times[snapshot])
        chosen: Ints = np.arange(world.sources)
        if snapshot:
            live = crawler.poller.choose(price, k, now_s)
            # A published policy knows no price: it chooses as many as the default would.
            decisions.append((lab.choose(k if isinstance(lab.policy, Accrual) else len(live), now_s), live))
            chosen = np.array(live, np.int64)
        received = world.poll(chosen, snapshot)
        ok = received.ok | (snapshot == 0)
        results = PollResults(chosen, ok, received.start, received.target, ~known[received.target])
        known[received.target] = True
        lab.observe(results, now_s)
        crawler.observe(snapshot, results)
    return decisions


@pytest.mark.parametrize(("price", "k"), [(0.02, 3), (1.0, SOURCES), (1e-9, 1)])
def test_the_crawler_decides_as_the_lab_does(price: float, k: int) -> None:
    """Every hour, both choose the same sources in the same order, and their beliefs are the same at the end."""
    world = record_sites()
    agent, crawler = LabAgent(world, Accrual(price=price)), LivePoller(world, float(k), 1, is_priced=False)
    decisions = run_both(world, agent, crawler, price, k)
    assert [lab for lab, _ in decisions] == [live for _, live in decisions]
    assert sum(len(lab) for lab, _ in decisions) > 30
    for part in ("links", "hours", "looked_s", "down_s", "filled"):
        ours, theirs = (getattr(state.arrivals, part) for state in (agent.state, crawler.poller._belief))
        assert np.array_equal(ours, theirs, equal_nan=True)


@pytest.mark.parametrize(("name", "setting"), PUBLISHED_SETTINGS.items())
def test_published_policies_decide_live_as_in_the_lab(name: str, setting: str) -> None:
    """Each policy chooses the same sources in the same order as in the lab; it survives a restart."""
    world = record_sites()
    agent = LabAgent(world, find_policy("discover", name))
    crawler = LivePoller(world, 3.0, 1, is_priced=False, policy=setting)
    decisions = run_both(world, agent, crawler, 1e-9, 3)
    assert [lab for lab, _ in decisions] == [live for _, live in decisions]
    assert sum(len(lab) for lab, _ in decisions) > 180
    now_s = float(world.times[-1])
    crawler.poller.save(now_s)
    again = SourcePoller(crawler.poller._store)
    assert crawler.poller._published is not None
    assert again._published is not None
    assert again._published.name == setting
    assert again._published.pack() == crawler.poller._published.pack()


def test_a_rule_without_optimism_would_be_noticed() -> None:
    """The history can tell rules apart: the rule that used to run live decides differently."""
    world = record_sites()
    agent, crawler = LabAgent(world, Accrual(price=0.02)), LivePoller(world, 3.0, 1, is_priced=False)
    crawler.poller._policy = Accrual(price=0.02, optimism=0.0)
    decisions = run_both(world, agent, crawler, 0.02, 3)
    assert any(lab != live for lab, live in decisions)


class News(MemoryWeb):
    """A home page that links to one more page each hour, and pages with their own text."""

    def reply(self, url: str, now_s: float) -> Served:
        """Answer by the time."""
        links = [f"/news/{hour}" for hour in range(int(now_s // HOUR_S) + 1)] if url == HOME else []
        return Reply(404) if url.endswith((".txt", ".xml")) else page(*links, title=url)


@pytest.mark.parametrize("budget_per_s", [0.0, 0.05])
@pytest.mark.parametrize("refresh", ["expected-gain", "nutch"])
def test_lists_are_fetched_again_only_where_the_policy_chooses_them(
    refresh: str, budget_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each refresh policy, with and without a budget, the policy's polls find new pages.

    It chooses at the price of all fetches or, without a budget, at the free price.
    """
    chosen: list[int] = []
    prices: list[tuple[float, float | None]] = []
    choose = Accrual.choose

    def note(self: Accrual, state: AccrualState, options: Sources, k: int, now: float, rng: Generator) -> Picks:
        picks = choose(self, state, options, k, now, rng)
        chosen.extend(options.place[picks.rows].tolist())
        prices.append((self.price, drive.keeper.refresher.price))
        return picks

    monkeypatch.setattr(Accrual, "choose", note)
    rules = rules_for(HOME, recrawl=True, refresh=refresh, budget_per_s=budget_per_s)
    drive = Drive(News(), rules, schedule=Schedule(recrawl=True, sources=Fixed(interval_s=600.0))).begin()
    drive.run(12 * HOUR_S)
    polls = [asked for asked in drive.log if asked.url == HOME][1:]
    assert 3 <= len(polls) <= chosen.count(0)
    assert sum("/news/" in url for url in drive.pages()) >= 6
    free = find_free_price(600.0)
    has_price = budget_per_s > 0 and refresh == "expected-gain"
    assert all(
        ours == theirs / PAGE_WORTH if has_price and theirs is not None else ours in {free, FLOOR_WORTH * free}
        for ours, theirs in prices
    )
