"""The lab repeats a crawl's decisions bit for bit, from the facts that the crawl logged."""

from pathlib import Path

import numpy as np
import pytest
from tests.engine.memory_web import Drive, MemoryWeb, rules_for
from tests.engine.memory_web import page as served
from tests.search_runs import page, small_web, up
from tests.tree_runs import patiently

from vedette.adapters.net.ipc import Request
from vedette.cli.main import main
from vedette.engine.decision_record import Decision, format_decision, parse_decision
from vedette.engine.ports import FetchGain
from vedette.engine.scheduling.schedule import Schedule
from vedette.lab.core.parity import Difference, find_difference, replay_log
from vedette.lab.worlds.own_crawl import load_crawl_history
from vedette.runtime.processes.settings import DECISIONS_ENV
from vedette.runtime.processes.supervisor import ask_coordinator

HOME = "http://a.test/"
STAGES = ("fetched", "asked", "gained")


def decisions_of(log: Path) -> list[Decision]:
    """Return the decisions on complete lines."""
    return [found for line in log.read_text().splitlines() if (found := parse_decision(line))]


def is_about_gain(decision: Decision) -> bool:
    """Check whether a decision concerns the gain of a fetch."""
    report = decision.stage in {"refresh/fetched", "refresh/gained"}
    return report and bool(np.isfinite(np.array(decision.facts["gain"], float)).any())


def test_a_crawl_replayed(tmp_path: Path) -> None:
    """A real crawl logs its decisions; the lab makes the same ones, and the archive becomes a history."""
    pages = {HOME: page("Home", "where it begins", {f"/{n}": f"page {n}" for n in range(4)})}
    pages |= {f"{HOME}{n}": page(f"Page {n}", f"number {n}") for n in range(4)}
    log = tmp_path / "decisions.jsonl"
    with small_web(pages) as web, up(web, tmp_path, HOME, speed=10.0, environment={DECISIONS_ENV: str(log)}):
        patiently(lambda: all(web.visited(url) for url in pages))
        web.pages[HOME] = page("Home", "it has changed", {"/0": "page 0"})
        seen = len(web.visited(HOME))
        patiently(lambda: len(web.visited(HOME)) >= seen + 2)
        patiently(lambda: log.exists() and log.read_text().count("due_s") > 1)
        # Gains are measured once the index has curves; measuring is not urgent.
        patiently(lambda: any((tmp_path / "data" / "index").glob("*/curves")))
        web.pages[f"{HOME}0"] = page("Page 0", "nothing is as it was before")
        ask_coordinator(tmp_path / "data", Request("fetch", {"urls": [f"{HOME}0"]}), 20.0)
        patiently(lambda: any(is_about_gain(one) for one in decisions_of(log)))
    decisions = decisions_of(log)
    assert {"order", "refresh", "refresh/fetched", "refresh/asked"} <= {one.stage for one in decisions}
    for stage in ("refresh", "refresh/fetched"):
        assert any(not all(one.facts["first_fetch"]) for one in decisions if one.stage == stage)
    assert replay_log(log) == (len(decisions_of(log)), None)
    history = load_crawl_history(tmp_path / "data")
    assert {*pages} <= {*history.urls}
    home = [*history.urls].index(HOME)
    versions = np.flatnonzero(history.version_page == home)
    assert len(versions) == 2
    assert "it has changed" in history.texts.text(int(versions[1]))
    assert [history.urls[one] for one in history.links_of(int(versions[1]))] == [f"{HOME}0"]


@pytest.mark.parametrize("policy", ["expected-gain", "nutch", "uniform"])
def test_weeks_of_refreshing_replayed(policy: str) -> None:
    """Each batch of a policy with any kind of memory is reproduced bit for bit from the log alone."""
    decisions: list[Decision] = []
    web = MemoryWeb({f"{HOME}start": served("/a", "/b"), f"{HOME}a": served(title="a"), f"{HOME}b": served(title="b")})
    schedule = Schedule(recrawl=True, witness=decisions.append)
    drive = Drive(web, rules_for(f"{HOME}start", recrawl=True, refresh=policy), schedule=schedule).begin()
    drive.run(20 * 86_400.0)
    row = drive.pages()[f"{HOME}a"]
    drive.keeper.on_gains([FetchGain(row.id, row.fetched_s, 0.5, 2.0)], drive.now_s)
    again = [found for one in decisions if (found := parse_decision(format_decision(one)))]
    assert {f"refresh/{each}" for each in STAGES} <= {one.stage for one in decisions}
    assert sum(one.stage == "refresh/fetched" for one in decisions) > 5
    assert find_difference(again) is None
    (last,) = [one for one in again if one.stage == "refresh/asked"][-1:]
    due_s = [at_s + 1.0 for at_s in last.outcome["due_s"]]  # type: ignore[operator]  # it is a column of numbers
    assert find_difference([last._replace(outcome={"due_s": due_s})]) == Difference(0, "refresh/asked", "due_s", 0)


def refresh_decision() -> Decision:
    """A batch of a page that changed after an interval of two hours, and of a source."""
    facts: dict[str, list[float] | list[bool] | list[int]] = {
        "state": [7200.0, 0.0],
        "is_source": [False, True],
        "place": [0, 1],
        "last_fetch_s": [1000.0, 900.0],
        "changed": [True, False],
        "first_fetch": [False, True],
        "modified_s": [float("nan")] * 2,
    }
    outcome = {"state": [5760.0, 86400.0], "due_s": [6760.0, 1500.0]}
    return Decision("refresh", 1000.0, 1, "refresh/1000.0", {"pages": {}, "sources": {}}, facts, outcome)


def test_a_difference_is_found_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``vedette lab replay`` names an impossible decision by its number, column and row; it skips incomplete lines."""
    right, log = refresh_decision(), tmp_path / "decisions.jsonl"
    wrong = right._replace(outcome={**right.outcome, "due_s": [6760.0, 1501.0]})
    torn = format_decision(right)[:-9]
    log.write_text("\n".join([format_decision(right), torn, format_decision(right)]))
    assert main(["lab", "replay", str(log)]) == 0
    assert capsys.readouterr().out == "2 decisions: the lab makes the same.\n"
    log.write_text("\n".join([format_decision(right), torn, format_decision(wrong)]))
    assert replay_log(log) == (2, Difference(1, "refresh", "due_s", 1))
    assert main(["lab", "replay", str(log)]) == 1
    assert capsys.readouterr().out == "Decision 2 (refresh) differs in due_s[1].\n"


def test_a_torn_line_is_no_decision() -> None:
    """A truncated line is ignored."""
    line = format_decision(refresh_decision())
    assert all(parse_decision(line[:cut]) is None for cut in range(0, len(line), 7))
