"""The experiments on new pages: whether a few old pages lead to them, and how many are on new sites."""

import numpy as np
import pytest
from tests.lab.histories import P, V, web

from vedette.lab.core.experiment import Experiment, Measurements
from vedette.lab.experiments import feasibility, new_sites
from vedette.lab.runs.discovery.arrivals import split_intervals
from vedette.lab.worlds.frontpages import Frontpages
from vedette.lab.worlds.history import History

WEEK_S = 7 * 86400.0
NOW_S = 2 * WEEK_S


def two_sites() -> History:
    """Return two sites: in week 1, a page of site 0 gets links to four new pages, two pages of site 1 get one each."""
    at_s = WEEK_S / 2
    old = [P([V(0.0), V(at_s, (3, 4, 5, 6))]), P([V(0.0), V(at_s, (7,))], 1), P([V(0.0), V(at_s, (8,))], 1)]
    new = [P([V(at_s, wave=page == 6)], site=int(page > 6)) for page in range(3, 9)]
    return web([*old, *new], end_s=NOW_S)


def rows_with(column: str, rows: list[Measurements]) -> dict[float, Measurements]:
    """Return the rows that have a column, by its value."""
    return {row[column]: row for row in rows if column in row}


def rows_of(history: History, *, waves: bool = True) -> list[Measurements]:
    """Return the rows of weekly snapshots."""
    cases = feasibility.build_cases(history, 0.0, NOW_S, WEEK_S, waves=waves)
    return feasibility.build_rows(cases, 10, waves=waves, seed=1)


def test_the_two_forms_of_overhead_differ() -> None:
    """Site 0 has a cover of 1 for 4 pages, site 1 one of 2 for 2: 3/6 as sums, and (1/4 + 1) / 2 as a mean."""
    row = rows_with("level", rows_of(two_sites()))[1.0]
    assert (row["overhead"], row["overhead_mean"], row["coverage"]) == (3 / 6, 0.625, 1.0)


def test_covers_are_cut_at_their_size() -> None:
    """With one page per site, 4 + 1 of 6 pages are found: 2.5 per site, with 2 fetches for 5 pages."""
    row = rows_with("k", rows_of(two_sites()))[1]
    assert (row["found"], row["coverage"], row["overhead"], row["cover_size"]) == (2.5, 5 / 6, 2 / 5, 1.0)


def test_pooled_levels_take_what_is_cheapest() -> None:
    """Half of all pages are found by site 0's page alone (1 fetch for 4); half of each site takes 2 fetches for 5."""
    row = rows_with("level", rows_of(two_sites()))[0.5]
    assert (row["overhead_pooled"], row["overhead"]) == (1 / 4, 2 / 5)


def test_pages_born_in_waves_can_be_left_out() -> None:
    """Without the page from a wave, site 0's page links to three: 3 fetches for 5 pages in total."""
    row = rows_with("level", rows_of(two_sites(), waves=False))[1.0]
    assert (row["overhead"], row["waves"]) == (3 / 5, 0.0)


def test_each_case_has_a_row() -> None:
    """A row has a site, a step, its new pages, and how many fetches find 90% of them and all of them."""
    rows = [row for row in rows_of(two_sites()) if "host" in row]
    assert [(row["host"], row["step"], row["new"], row["cover_size_90"], row["cover_size"]) for row in rows] == [
        (0, 0, 4, 1, 1),
        (1, 0, 2, 2, 2),
    ]


def test_overlaps_are_counted_in_bins() -> None:
    """Two old pages lead to the same two new ones, a third to one of them: J = 1 once, J = 1/2 twice."""
    at_s = WEEK_S / 2
    old = [P([V(0.0), V(at_s, links)]) for links in ((3, 4), (3, 4), (4,))]
    bins = rows_with("jaccard", rows_of(web([*old, P([V(at_s)]), P([V(at_s)])])))
    assert {at: row["pairs"] for at, row in bins.items() if row["pairs"]} == {0.5: 2 / 3, 0.9: 1 / 3}


def test_pairs_that_share_nothing_are_pairs_too() -> None:
    """Figure 3.3: of three old pages, two lead to the same new page, and the third to another one."""
    at_s = WEEK_S / 2
    old = [P([V(0.0), V(at_s, links)]) for links in ((3,), (3,), (4,))]
    bins = rows_with("jaccard", rows_of(web([*old, P([V(at_s)]), P([V(at_s)])])))
    assert {at: row["pairs"] for at, row in bins.items() if row["pairs"]} == {0.0: 2 / 3, 0.9: 1 / 3}
    assert bins[0.0]["disjoint"] == 2 / 3


def test_a_web_without_news_has_only_a_summary() -> None:
    """Without new pages, there are no figures, and no division by zero."""
    rows = rows_of(web([P([V(0.0)])]))
    assert rows == [{"waves": 1.0, "cases": 0, "new": 0, "orphans": 0.0, "direct": 0.0}]


def test_orphans_are_counted_and_left_out() -> None:
    """Of two new pages, one is linked: half are orphans, and the cover of the other one is complete."""
    rows = rows_of(web([P([V(0.0), V(9.0, (1,))]), P([V(9.0)]), P([V(9.0)])]))
    assert rows[0]["orphans"] == 1 / 2
    assert rows_with("level", rows)[1.0]["overhead"] == 1.0


def test_front_pages_are_old_and_their_targets_new() -> None:
    """On day 1, two sources of a host show target 1, and one of them also shows target 2, so one poll finds both.

    Target 0 was there from the beginning, and target 3 appeared and disappeared between snapshots.
    """
    hours = np.arange(0, 49) * 3600
    world = Frontpages(
        name="by hand",
        times=hours,
        source=np.array([0, 0, 0, 1, 1]),
        target=np.array([0, 1, 2, 1, 3]),
        start=np.array([0, 20, 20, 20, 5]),
        stop=np.array([49, 49, 30, 49, 8]),
        ok=np.ones((49, 2), bool),
        host=np.array([0, 0]),
        source_names=("a", "b"),
        host_names=("host",),
        targets=4,
    )
    (case,) = feasibility.build_frontpage_cases(world, 0.0, 48 * 3600.0, 24 * 3600.0)
    assert (case.step, case.findable, case.cover.gains) == (0, 2, (2,))


def test_new_pages_on_new_sites_are_told_apart() -> None:
    """Of four new pages three are on a new site, which one old page leads to: one fetch for the site, 1/3 a page."""
    history = web([
        P([V(0.0), V(9.0, (1, 2))]),
        P([V(9.0)]),
        P([V(9.0, (3,))], site=1),
        P([V(9.0, (4,))], site=1),
        P([V(9.0)], site=1),
    ])  # fmt: skip
    found = new_sites.find_new_sites(history, split_intervals(0.0, WEEK_S, WEEK_S), waves=True)
    rows = new_sites.build_rows(found, waves=True)
    assert rows[0]["on_new_sites"] == 3 / 4
    assert rows[0]["pages_per_site"] == 3
    level = rows_with("level", rows)[1.0]
    assert (level["site_overhead"], level["overhead"]) == (1.0, 1 / 3)


def test_new_sites_that_nobody_links_to_are_orphans() -> None:
    """A site that no old page links to is counted, but adds no cost, because it cannot be found."""
    history = web([P([V(0.0)]), P([V(9.0)], site=1)])
    rows = new_sites.build_rows(
        new_sites.find_new_sites(history, split_intervals(0.0, WEEK_S, WEEK_S), waves=True), waves=True
    )
    assert (rows[0]["orphan_sites"], rows[0]["new_sites"]) == (1.0, 1)
    assert not rows_with("level", rows)


@pytest.mark.parametrize("experiment", [feasibility.EXPERIMENT, new_sites.EXPERIMENT])
def test_every_metric_is_described(experiment: Experiment) -> None:
    """Each experiment's own metrics are among its metrics, and it has policies and budgets."""
    assert all(name in experiment.metrics for name in experiment.own)
    assert experiment.policies
    assert experiment.budgets
