"""One implementation decides in the lab and live: both run through the same history, for every live policy."""

from functools import partial

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, page, rules_for
from tests.lab.histories import P, V, web

from vedette.engine.decision_record import Decision
from vedette.engine.ports import ChangeSignal, FetchGain
from vedette.engine.scheduling.refresh_policies import POLICIES
from vedette.engine.scheduling.schedule import Schedule
from vedette.lab.runs.refresh.agents import FetchFindings, PolicyAgent
from vedette.model import Site
from vedette.policy import Ints
from vedette.refresh.known_pages import KnownPages

DAY_S = 86_400.0
SITE = "http://a.test/"
# Days between changes of each page, of two sections; 0 for never.
EVERY_D = {f"{SITE}news/{n}": n / 2 for n in range(1, 5)} | {f"{SITE}docs/{n}": 5.0 * n for n in range(4)}


def served_page(every_d: float, now_s: float) -> Reply:
    """Return a page whose text changes after each such time."""
    turn = int(now_s // (every_d * DAY_S)) if every_d else 0
    return page(title="".join(chr(97 + int(digit)) for digit in str(turn)))


def small_web() -> MemoryWeb:
    """Return a start page that links to pages that change, and to one that is gone for a while."""
    links = [url.removeprefix(SITE.rstrip("/")) for url in EVERY_D]
    replies: dict[str, Served | Server] = {url: partial(served_page, every_d) for url, every_d in EVERY_D.items()}
    replies[f"{SITE}docs/away"] = lambda now_s: Reply(404) if 2 * DAY_S < now_s < 5 * DAY_S else page(title="here")
    return MemoryWeb({f"{SITE}start": page(*links, "/docs/away"), **replies})


def drive_live(policy: str, days: int) -> tuple[Drive, list[Decision]]:
    """Crawl a site that is busy by day, with some gains, views and signals; return all refresh decisions."""
    decisions: list[Decision] = []
    schedule = Schedule(recrawl=True, witness=decisions.append)
    site = Site(f"{SITE}start", busy_hours="08:00-18:00 x3")
    drive = Drive(small_web(), rules_for(site, recrawl=True, refresh=policy), schedule=schedule).begin()
    for day in range(days):
        drive.run(DAY_S)
        rows = [row for url, row in drive.pages().items() if "/news/" in url]
        drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, day % 3 / 2, 0.1) for row in rows[::2]], drive.now_s)
        drive.keeper.refresher.on_signals([ChangeSignal(rows[day % len(rows)].id, drive.now_s, "feed")], drive.now_s)
    return drive, [one for one in decisions if one.stage.startswith("refresh/")]


def find_pages(drive: Drive, decision: Decision, urls: list[str]) -> Ints:
    """Return the pages of a decision: no two fetches of a host end at the same time."""
    url_at = {asked.ended_s: asked.url for asked in drive.log if asked.purpose == "page"}
    return np.array([urls.index(url_at[at_s]) for at_s in decision.facts["last_fetch_s"]])  # type: ignore[index]  # numbers


def to_findings(decision: Decision) -> FetchFindings:
    """Return the live engine's observations, without its policy's memory."""
    own = {"place", "section", "site"}
    facts = {name: np.array(decision.facts[name]) for name in KnownPages.__slots__ if name not in own}
    last_fetch_s, changed, gone, first = (
        facts.pop(name) for name in ("last_fetch_s", "changed", "gone", "first_fetch")
    )
    return FetchFindings(last_fetch_s, changed, gone, first, more=facts)


def replay(agent: PolicyAgent, pages: Ints, decision: Decision) -> list[float]:
    """Let the lab's agent make the same decisions, from its own memory."""
    report, now_s = to_findings(decision), decision.now_s
    price = float(decision.facts["price"][0])  # type: ignore[arg-type]  # a column of one number
    if decision.stage == "refresh/gained":
        agent.learn_gains(pages, report, now_s)
        return []
    ask = agent.learn if decision.stage == "refresh/fetched" else agent.due
    due_s: list[float] = ask(pages, report, now_s, price).tolist()
    return due_s


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_live_and_lab_decide_the_same_to_the_bit(policy: str) -> None:
    """From observations alone, the lab's agent sets the same due times as the engine: no memory is shared."""
    drive, decisions = drive_live(policy, days=9)
    urls = list(dict.fromkeys(asked.url for asked in drive.log if asked.purpose == "page"))
    history = web([P([V(0.0)], url=url) for url in urls])
    agent = PolicyAgent(POLICIES[policy](), history, seed=1)
    assert sum(one.stage == "refresh/fetched" for one in decisions) > 15
    assert sum(one.stage == "refresh/gained" for one in decisions) > 3
    for number, decision in enumerate(decisions):
        due_s = replay(agent, find_pages(drive, decision, urls), decision)
        assert due_s == decision.outcome.get("due_s", []), (number, decision.stage)
