"""Discovery on histories of sites: cycles, policies that learn from full crawls, and their upper limit."""

import math

import numpy as np
import pytest
from tests.lab.histories import P, V, web

from vedette.lab.core.experiment import Cell, Measurements
from vedette.lab.core.registry import load_policies
from vedette.lab.core.run_folder import Row
from vedette.lab.experiments.discovery import EXPERIMENT
from vedette.lab.runs.discovery.cycles import (
    FULL_CRAWL_POLICIES,
    Cycle,
    CyclePolls,
    build_bound_rows,
    build_cycles,
    build_policy_rows,
)
from vedette.lab.runs.discovery.headlines import compute_headlines
from vedette.lab.worlds.history import History

WEEK_S = 7 * 86_400.0
WEEKS = 12


def a_site() -> History:
    """Page 0 links to a new page every week, and page 1 to the same one in even weeks; page 2 links to none and dies.

    In week 6, another new page appears that only page 3 links to, which never linked to any before.
    """
    born = [(week + 0.5) * WEEK_S for week in range(WEEKS)]
    number = range(4, 4 + WEEKS)
    hub = [V(0.0), *(V(at_s, (page,)) for at_s, page in zip(born, number, strict=True))]
    copy = [V(0.0), *(V(born[week], (number[week],) if week % 2 == 0 else ()) for week in range(WEEKS))]
    surprise = [V(0.0), V(born[6], (4 + WEEKS,))]
    old = [P(hub), P(copy), P([V(0.0)], died_s=3.2 * WEEK_S), P(surprise)]
    return web([*old, *(P([V(at_s)]) for at_s in born), P([V(born[6])])], end_s=WEEKS * WEEK_S)


def hosts() -> list[list[Cycle]]:
    """Return its weeks."""
    history = a_site()
    return build_cycles(history, history.begin_s, history.end_s, WEEK_S)


def row_at(rows: list[Measurements], recrawl: int, k: int) -> Measurements:
    """Return the only row of these."""
    (found,) = [row for row in rows if (row["recrawl"], row["k"]) == (recrawl, k)]
    return found


def test_a_cycle_knows_what_leads_to_what_is_new() -> None:
    """In week 6, there are two new pages: 0 and 1 link to one, 3 to the other; all earlier pages are known."""
    (cycles,) = hosts()
    assert [cycle.new for cycle in cycles] == [1] * 6 + [2] + [1] * 5
    week = cycles[6]
    assert sorted(week.link_bits) == [0, 1, 3]
    assert week.link_bits[0] == week.link_bits[1] != week.link_bits[3]
    assert week.known.tolist() == [0, 1, 3, *range(4, 10)]
    assert week.count_found(np.array([1, 0, 3])) == [1, 1, 2]


def test_a_page_that_died_since_is_looked_at_in_vain() -> None:
    """Page 2 was there at the end of week 3 and dies early in the next one, which only a poll reveals."""
    (cycles,) = hosts()
    results = cycles[3].poll(np.array([0, 2]))
    assert results.ok.tolist() == [True, False]
    assert results.yields.tolist() == [1, 0]


def test_policies_are_told_of_known_pages_only() -> None:
    """A page that appears later has no row to choose, and nothing reveals it."""
    (cycles,) = hosts()
    options = CyclePolls(cycles).options(cycles[0])
    assert options.place.tolist() == [0, 1, 2, 3]


def test_what_never_led_to_anything_is_above_the_ceiling() -> None:
    """After the first week, eleven weeks have twelve new pages; history can find all except page 3's surprise."""
    for name in FULL_CRAWL_POLICIES:
        row = row_at(build_policy_rows(load_policies("discover")[name], hosts(), 100, 1), 1, 100)
        assert row["ceiling"] == pytest.approx(11 / 12)
        assert row["coverage"] <= row["ceiling"]
    assert row_at(build_bound_rows(hosts(), 100), 1, 100)["coverage"] == 1.0


def test_memory_finds_what_the_latest_crawl_does_not_show() -> None:
    """After week 6, the latest crawl knows 0, 1 and 3, and so does all of history; no copy is taken by covers."""
    rows = {
        name: row_at(build_policy_rows(load_policies("discover")[name], hosts(), 2, 1), 1, 1)
        for name in FULL_CRAWL_POLICIES
    }
    assert rows["od-win"]["coverage"] == pytest.approx(11 / 12)
    assert rows["cov"]["depth"] == 1.0
    assert math.isclose(rows["od-win"]["overhead"], 1.0)


def test_full_crawls_cost_what_they_fetch() -> None:
    """With weekly full crawls, all known pages are fetched every week; if this counts, no overhead is low."""
    row = row_at(build_policy_rows(load_policies("discover")["od-win"], hosts(), 1, 1), 1, 1)
    known = sum(len(cycle.known) for cycle in hosts()[0])
    assert row["overhead_full"] == pytest.approx((known + 11) / 13)


def test_crawls_every_few_weeks_are_run_in_every_phase() -> None:
    """With a crawl every other week, each phase chooses in the other weeks, starting after its first crawl."""
    row = row_at(build_policy_rows(load_policies("discover")["od-win"], hosts(), 1, 1), 2, 1)
    assert row["cases"] == 11


def test_who_learns_from_own_looks_is_told_of_no_full_crawl() -> None:
    """Round-robin with one poll a week has one row, without an upper limit, and wastes no poll in a quiet week."""
    (row,) = build_policy_rows(load_policies("discover")["round-robin"], hosts(), 1, 1)
    assert (row["recrawl"], row["k"], row["fetches"]) == (0.0, 1.0, 11.0)
    assert "ceiling" not in row


def test_the_default_knows_what_its_rivals_know_or_pays_for_it() -> None:
    """It has rows with full crawls, for the same cases as other policies, and one with only its own polls."""
    mine, rival = (build_policy_rows(load_policies("discover")[name], hosts(), 3, 1) for name in ("accrual", "od-win"))
    assert [row["recrawl"] for row in mine if row["k"] == 3] == [1.0, 2.0, 4.0, 0.0]
    for every in (1, 2, 4):
        assert row_at(mine, every, 3)["cases"] == row_at(rival, every, 3)["cases"]
        assert row_at(mine, every, 3)["coverage"] >= row_at(rival, every, 3)["coverage"] - 1e-9


def test_the_experiment_takes_made_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are rows for weeks and months, with all declared numbers."""
    monkeypatch.setattr("vedette.lab.experiments.discovery.open_history", lambda name: a_site())  # noqa: ARG005 - any name
    rows = EXPERIMENT.run(Cell("discovery", "git:by-hand", "od-win", 2.0, 1))
    assert {row["days"] for row in rows} == {7.0, 30.0}
    assert {name for row in rows for name in row} - {"days", "recrawl", "k"} <= {*EXPERIMENT.metrics}


def test_both_forms_of_a_headline() -> None:
    """For two hosts, 30 of 100 against 20, and 400 of 1,000 against 400.

    +25% as a mean of ratios, +2.4% of all pages.
    """

    def row(policy: str, host: float, coverage: float, new: float) -> Row:
        numbers = {
            "host": host,
            "coverage": coverage,
            "overhead": 1 / coverage,
            "htd_p90_found": 5 * coverage,
            "new": new,
        }
        return Row(Cell("discovery-per-host", "frontpages:x", policy, 2.0, 1), numbers | {"found": coverage * new})

    rows = [row("new", 0, 0.3, 100), row("new", 1, 0.4, 1_000), row("old", 0, 0.2, 100), row("old", 1, 0.4, 1_000)]
    rows.append(Row(rows[0].cell, {"host": 0.0, "day": 1.0, "regret_so_far": 0.5}))
    (report,) = compute_headlines(rows, "new", "old")
    assert report.coverage_ratio.mean == pytest.approx(1.25)
    assert report.pages_pooled == pytest.approx(430 / 420)
    assert report.htd_difference_h.mean == pytest.approx(0.25)
    assert compute_headlines(rows, "new", "nobody") == []
