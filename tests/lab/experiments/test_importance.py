"""Importance by links compared with impact on search, on webs small enough to check by hand."""

import numpy as np
import pytest
from tests.lab.histories import P, V, web

from vedette.lab.core.statistics import spearman
from vedette.lab.experiments.importance import build_rows, compute_impact, compute_importance
from vedette.lab.quality.query_files import build_queries
from vedette.lab.quality.workload import draw_queries
from vedette.lab.runs.web_snapshot import take_snapshot
from vedette.lab.worlds.history import History


def small() -> History:
    """Return a home page that all others link to, two pages about tides, and a deleted page."""
    return web([
        P([V(0.0, (1, 2, 3), text="welcome home")]),
        P([V(0.0, (0,), text="old words"), V(5.0, (0,), text="low tide tide")]),
        P([V(0.0, (0,), text="tide and other matters of the sea")]),
        P([V(0.0, (0,), text="tide tide tide")], died_s=8.0),
    ])  # fmt: skip


def test_only_what_lives_is_seen_as_it_is_then() -> None:
    """At the end, three pages live, the second with its later text; the dead page's link is gone as well."""
    seen = take_snapshot(small(), 10.0)
    assert [seen.web.texts.text(page) for page in range(seen.web.pages)][1] == "low tide tide"
    assert compute_importance(seen, "in-links").tolist() == [2, 1, 1]
    assert compute_importance(seen, "pagerank").argmax() == 0


def test_impact_is_how_often_a_page_is_among_the_first() -> None:
    """With one result per query, the page with the most "tide" has both queries; two results reach the other.

    "tide" is searched 3 times and "low tide" once: page 1 gets 4. With two results, page 2 gets the 3 of "tide".
    """
    seen = take_snapshot(small(), 10.0)
    queries = build_queries([("tide", 3.0), ("low tide", 1.0), ("nobody says this", 9.0)])
    assert compute_impact(seen, queries, 1).pages.tolist() == [0, 4, 0]
    assert compute_impact(seen, queries, 2).pages.tolist() == [0, 4, 3]
    assert compute_impact(seen, queries, 2).queries == 2


def test_rank_correlation_of_a_worked_example() -> None:
    """Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15) = 0.8; equal values share their mean rank."""
    assert spearman(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 30.0, 20.0, 400.0])) == pytest.approx(0.8)
    assert spearman(np.array([1.0, 1.0, 2.0]), np.array([5.0, 5.0, 9.0])) == pytest.approx(1.0)


def test_the_interval_holds_the_correlation() -> None:
    """The bootstrap interval contains the estimate, the bins have all pages, and their mean impact is 1."""
    rng = np.random.default_rng(2)
    importance = rng.random(400)
    seen = compute_impact(take_snapshot(small(), 10.0), build_queries([("tide", 1.0)]), 1)._replace(
        pages=importance + rng.random(400)
    )
    summary, *bins = build_rows(importance, seen, seed=1)
    assert summary["spearman_low"] < summary["spearman"] < summary["spearman_high"]
    assert sum(row["pages"] for row in bins) == 400
    assert sum(row["pages"] * row["impact_mean"] for row in bins) == pytest.approx(400)


def test_a_web_that_answers_nothing_has_no_correlation() -> None:
    """If no query has results, there is only a count."""
    seen = take_snapshot(small(), 10.0)
    impact = compute_impact(seen, build_queries([("unheard of", 1.0)]), 10)
    assert build_rows(compute_importance(seen, "in-links"), impact, seed=1) == [{"pages": 3, "queries": 0}]


def test_drawn_queries_are_answered() -> None:
    """Two neighboring words of a page find at least that page, and the same seed draws the same queries."""
    seen = take_snapshot(small(), 10.0)
    queries = draw_queries(seen.web, np.arange(seen.web.pages), 4)
    assert compute_impact(seen, queries, 10).queries == len(queries) > 0
    assert queries.texts == draw_queries(seen.web, np.arange(seen.web.pages), 4).texts
