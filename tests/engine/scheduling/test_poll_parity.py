"""The crawler polls as the lab does: one history is put to both, and every decision is the same, to the bit."""

import numpy as np
import pytest
from numpy.random import Generator
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, page, rules_for
from tests.lab.small_frontpages import front

from vedette.discover.policies.accrual import Accrual
from vedette.discover.polling.overlap import AccrualState
from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.engine.scheduling.schedule import Schedule
from vedette.lab.experiments.discovery_as_live import LivePoller
from vedette.lab.worlds.frontpages import Frontpages
from vedette.policy import Ints, Picks, rng_for
from vedette.refresh.policies.fixed import Fixed

HOUR_S = 3_600.0
HOME = "https://a.test/"
SNAPSHOTS, SOURCES = 160, 12


def record_sites() -> Frontpages:
    """Twelve sources of three hosts for a week: some busy, some overlapping, some that fail or begin late."""
    rng = rng_for(3, "tests/poll parity")
    rows = []
    for target in range(500):
        born = int(rng.integers(0, SNAPSHOTS - 1))
        first = int(rng.choice(SOURCES, p=np.arange(1, SOURCES + 1) / sum(range(1, SOURCES + 1))))
        lives = int(rng.choice([1, 4, 30, 200]))
        rows.append((first, target, born, min(born + lives, SNAPSHOTS)))
        if rng.random() < 0.5:  # a relative of the same host shows it, too
            later = min(born + int(rng.integers(0, 3)), SNAPSHOTS - 1)
            rows.append(((first + 3) % SOURCES, target, later, min(later + lives, SNAPSHOTS)))
    failed = [(snapshot, source) for snapshot in range(100, 130) for source in (2, 7)]
    return front(rows, SNAPSHOTS, [place % 3 for place in range(SOURCES)], failed)


class LabAgent:
    """The policy as the lab's runs drive it: a history of polls, its own state, a choice at a price."""

    def __init__(self, world: Frontpages, policy: Accrual) -> None:
        self.policy, self._book, self.state = policy, PollHistory(world.host), policy.start(None)

    def choose(self, k: int, now_s: float) -> list[int]:
        """Choose sources, best first."""
        picks = self.policy.choose(self.state, self._book.list_options(), k, now_s, rng_for(1, "any"))
        rows: list[int] = picks.rows.tolist()
        return rows

    def observe(self, brought: PollResults, now_s: float) -> None:
        """Learn."""
        self.state = self.policy.observe(self.state, self._book.record(brought, now_s), now_s)


def run_both(
    world: Frontpages, policy: Accrual, k: int, live: Accrual | None = None
) -> list[tuple[list[int], list[int]]]:
    """Put a recording to the lab's agent and to the crawler's poller; both hear what the crawler's polls brought."""
    lab, crawler = LabAgent(world, policy), LivePoller(world, float(k), 1, is_priced=False)
    if live is not None:
        crawler.poller._policy = live
    known = np.zeros(world.targets, bool)
    decisions = []
    for snapshot in range(world.snapshots):
        now_s = float(world.times[snapshot])
        chosen: Ints = np.arange(world.sources)
        if snapshot:
            decisions.append((lab.choose(k, now_s), crawler.poller.choose(policy.price, k, now_s)))
            chosen = np.array(decisions[-1][1], np.int64)
        came = world.poll(chosen, snapshot)
        ok = came.ok | (snapshot == 0)
        brought = PollResults(chosen, ok, came.start, came.target, ~known[came.target])
        known[came.target] = True
        lab.observe(brought, now_s)
        crawler.observe(snapshot, brought)
    for part in ("links", "hours", "looked_s", "down_s", "filled"):
        ours, theirs = (getattr(state.arrivals, part) for state in (lab.state, crawler.poller._belief))
        assert live is not None or np.array_equal(ours, theirs, equal_nan=True)
    return decisions


@pytest.mark.parametrize(("price", "k"), [(0.02, 3), (1.0, SOURCES), (1e-9, 1)])
def test_the_crawler_decides_as_the_lab_does(price: float, k: int) -> None:
    """At every hour both choose the same sources in the same order, and believe the same in the end."""
    decisions = run_both(record_sites(), Accrual(price=price), k)
    assert [lab for lab, _ in decisions] == [live for _, live in decisions]
    assert sum(len(lab) for lab, _ in decisions) > 30


def test_a_rule_without_optimism_would_be_noticed() -> None:
    """The history tells rules apart: the one that ran live before decides otherwise."""
    decisions = run_both(record_sites(), Accrual(price=0.02), 3, live=Accrual(price=0.02, optimism=0.0))
    assert any(lab != live for lab, live in decisions)


class News(MemoryWeb):
    """A home page that names a page more each hour, and pages with a text of their own."""

    def reply(self, url: str, now_s: float) -> Served:
        """Answer by the time."""
        links = [f"/news/{hour}" for hour in range(int(now_s // HOUR_S) + 1)] if url == HOME else []
        return Reply(404) if url.endswith((".txt", ".xml")) else page(*links, title=url)


@pytest.mark.parametrize("budget_per_s", [0.0, 0.05])
@pytest.mark.parametrize("refresh", ["expected-gain", "nutch"])
def test_lists_are_fetched_again_only_where_the_policy_chooses_them(
    refresh: str, budget_per_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the refresh policy, with a budget and without: new pages are found by polls that the policy chose."""
    chosen: list[int] = []
    choose = Accrual.choose

    def note(self: Accrual, state: AccrualState, options: Sources, k: int, now: float, rng: Generator) -> Picks:
        picks = choose(self, state, options, k, now, rng)
        chosen.extend(options.place[picks.rows].tolist())
        return picks

    monkeypatch.setattr(Accrual, "choose", note)
    rules = rules_for(HOME, recrawl=True, refresh=refresh, budget_per_s=budget_per_s)
    drive = Drive(News(), rules, schedule=Schedule(recrawl=True, sources=Fixed(interval_s=600.0))).begin()
    drive.run(12 * HOUR_S)
    polls = [asked for asked in drive.log if asked.url == HOME][1:]
    assert 3 <= len(polls) <= chosen.count(0)
    assert sum("/news/" in url for url in drive.pages()) >= 6
