"""Published discovery policies, each with sources small enough to calculate by hand."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vedette.discover.policies.batch_bandit import BatchBandit
from vedette.discover.policies.pham import SHARES, Pham, YieldInputs, build_features, fit_ridge
from vedette.discover.policies.pham_scaled import PhamScaled
from vedette.discover.policies.thompson import Thompson
from vedette.discover.polling.sources import PollHistory, PollResults, Sources
from vedette.lab.baselines.discover.cliq_1 import Cliq1
from vedette.lab.baselines.discover.cliq_win import CliqWin
from vedette.lab.baselines.discover.cov import Cov
from vedette.lab.baselines.discover.od_1 import Od1
from vedette.lab.baselines.discover.od_win import OdWin
from vedette.lab.baselines.full_crawl import cluster_sets
from vedette.policy import rng_for

HOUR_S = 3_600.0
RNG = rng_for(1, "test")


def build_polls(shown: dict[int, list[int]]) -> PollResults:
    """Return polls of these sources that found these targets, all new."""
    start = np.concatenate([[0], np.cumsum([len(targets) for targets in shown.values()])]).astype(np.int64)
    target = np.array([target for targets in shown.values() for target in targets], np.int64)
    place = np.array(list(shown), np.int64)
    return PollResults(place, np.ones(len(place), bool), start, target, np.ones(len(target), bool))


def book_of(sources: int) -> PollHistory:
    """Return this many sources of one host, none of them polled yet."""
    return PollHistory(np.zeros(sources, np.int64))


def rows_of(options: Sources, rows: list[int]) -> Sources:
    """Return some of the sources to choose from."""
    names = ("place", "host", "last_poll_s", "failures", "polls", "found", "links", "poll_s", "yields")
    columns = {name: getattr(options, name)[rows] for name in names}
    return replace(options, **columns, shown_start=np.zeros(len(rows) + 1, np.int64))


def test_thompson_learns_each_hour_of_the_day_on_its_own() -> None:
    """Fifty polls with ten finds each at nine say nothing about ten o'clock, and everything about nine the next day."""
    book, policy = book_of(2), Thompson()
    state = policy.start(None)
    for day in range(50):
        now_s = (24 * day + 9) * HOUR_S
        state = policy.observe(
            state, book.record(build_polls({0: [], 1: [*range(10 * day, 10 * day + 10)]}), now_s), now_s
        )
    at_nine = [
        policy.choose(state, book.list_options(), 1, (24 * 60 + 9) * HOUR_S, rng_for(seed, "t")) for seed in range(40)
    ]
    at_ten = [
        policy.choose(state, book.list_options(), 1, (24 * 60 + 10) * HOUR_S, rng_for(seed, "t")) for seed in range(40)
    ]
    assert {int(picks.rows[0]) for picks in at_nine} == {1}
    assert {int(picks.rows[0]) for picks in at_ten} == {0, 1}


def test_thompson_counts_a_failed_look_as_one_that_brought_nothing() -> None:
    """Otherwise a source that is gone would be believed in forever."""
    book, policy = book_of(1), Thompson()
    none = np.zeros(0, np.int64)
    failed = PollResults(np.array([0]), np.array([False]), np.array([0, 0]), none, none.astype(bool))
    state = policy.observe(policy.start(None), book.record(failed, 60.0), 60.0)
    assert (state.found[0, 0], state.polls[0, 0]) == (0.0, 1.0)


def test_thompson_says_how_probable_its_picks_were() -> None:
    """Among equal sources, each is picked about k / n of the time, matching its propensity on average."""
    options = book_of(10).list_options()
    policy = Thompson()
    picks = [policy.choose(policy.start(None), options, 3, 0.0, rng_for(seed, "t")) for seed in range(300)]
    hits = np.bincount(np.concatenate([each.rows for each in picks]), minlength=10) / 300
    assert np.all(np.abs(hits - 0.3) < 0.12)
    # The draw that counts is among those that are counted: 1/16 + 15/16 * 0.3 are expected.
    assert np.mean([each.propensities.mean() for each in picks]) == pytest.approx((1 + 15 * 0.3) / 16, abs=0.03)


def test_pham_tries_every_share_once_before_it_compares() -> None:
    """UCB1 starts by trying each share once; the state determines which one is next."""
    book, policy = book_of(3), Pham()
    state = policy.start(None)
    for hour in range(len(SHARES)):
        assert state.plays.sum() == hour
        state = policy.observe(state, book.record(build_polls({0: [hour]}), hour * HOUR_S), hour * HOUR_S)
    assert state.plays.tolist() == [1.0] * len(SHARES)


def test_pham_exploits_as_many_as_the_share_says_and_explores_the_stalest() -> None:
    """With a share of .6, six of ten picks have the best predictions; the others have waited longest."""
    book, policy = book_of(20), Pham()
    for hour, place in enumerate(range(20)):
        book.record(build_polls({place: []}), hour * HOUR_S)
    weights = np.zeros_like(policy.start(None).weights)
    weights[2] = -1.0  # who waited least is predicted to bring most
    state = policy.start(None)._replace(weights=weights)
    picks = policy.choose(state, book.list_options(), 10, 20 * HOUR_S, RNG)
    assert picks.rows.tolist() == [19, 18, 17, 16, 15, 14, 0, 1, 2, 3]


def test_pham_rewards_a_step_with_each_target_once() -> None:
    """Two sources that show the same three targets have found three, not six."""
    policy = Pham()
    state = policy.observe(policy.start(None), book_of(2).record(build_polls({0: [1, 2, 3], 1: [1, 2, 3]}), 60.0), 60.0)
    assert state.reward.sum() == 3.0


def test_the_scaled_bandit_goes_on_exploring_where_the_printed_one_does_not() -> None:
    """A share that once found 90 when others found 100 is never tried again, unless rewards are at most 1."""
    plays, reward = np.array([50.0, 50, 50, 50, 1]), np.array([5_000.0, 5_000, 5_000, 5_000, 90])
    state = Pham().start(None)._replace(plays=plays, reward=reward, max_yield=100.0)
    assert Pham()._choose_share(state) != 4
    assert PhamScaled()._choose_share(state) == 4


def test_the_yield_model_finds_what_is_linear() -> None:
    """Yields that are twice the previous day's mean are predicted as such."""
    rng = rng_for(3, "test")
    count = 2_000
    report = YieldInputs(
        rng.uniform(0, 1e7, count), rng.uniform(0, 9, count), rng.uniform(0, 3, count), rng.uniform(1, 50, count)
    )
    weights = fit_ridge(build_features(report), 2 * report.mean)
    assert np.allclose(build_features(report) @ weights, 2 * report.mean, atol=0.05)


def test_the_batch_bandit_settles_on_the_largest_outdegree() -> None:
    """Of three sources that always show 5, 3 and 1 of five new pages, it mostly polls the first."""
    book, policy = book_of(3), BatchBandit()
    state = policy.start(None)
    taken = []
    for step in range(200):
        row = int(policy.choose(state, book.list_options(), 1, step, RNG).rows[0])
        taken.append(row)
        # An arm pays by the pages that are known to have come, so the others' pages come up as well.
        shown = {row: [5 * step + page for page in range((5, 3, 1)[row])], (row + 1) % 3: [5 * step, 5 * step + 4]}
        state = policy.observe(state, book.record(build_polls(shown), step), step)
    assert taken.count(0) > 100


def test_the_batch_bandit_is_not_caught_by_sources_that_bring_nothing() -> None:
    """Two of three sources are always empty; with two polls per step, the third is found and kept."""
    book, policy = book_of(3), BatchBandit()
    state = policy.start(None)
    taken = []
    for step in range(30):
        rows = policy.choose(state, book.list_options(), 2, step, RNG).rows.tolist()
        taken.append(2 in rows)
        report = book.record(build_polls({row: [step] if row == 2 else [] for row in rows}), step)
        state = policy.observe(state, report, step)
    assert sum(taken) > 20


CRAWL = {0: [1, 2], 1: [1, 2], 2: [3], 3: []}


def after(policy: Any, *crawls: dict[int, list[int]]) -> list[int]:
    """Return what a policy picks from four sources after full crawls, without a limit."""
    book = book_of(4)
    state = policy.start(None)
    for at, crawl in enumerate(crawls):
        report = book.record(
            build_polls({place: [10 * at + page for page in pages] for place, pages in crawl.items()}), at
        )
        state = policy.observe(state, report, at)
    return [*map(int, policy.choose(state, book.list_options(), 4, 9.0, RNG).rows)]


def test_outdegree_takes_copies_and_clusters_and_covers_do_not() -> None:
    """Sources 0 and 1 lead to the same two pages, 2 leads to another, and 3 to none."""
    assert after(OdWin(), CRAWL) == [0, 1, 2]
    assert after(Cliq1(), CRAWL) == after(Cov(), CRAWL) == [0, 2]


def test_only_those_that_remember_know_older_crawls() -> None:
    """The second crawl only finds news at source 3; a third one without news changes nothing."""
    crawls: tuple[dict[int, list[int]], ...] = (CRAWL, {0: [], 1: [], 2: [], 3: [7]}, {0: [], 1: [], 2: [], 3: []})
    assert after(Od1(), *crawls) == after(Cliq1(), *crawls) == after(Cov(), *crawls) == [3]
    assert after(OdWin(), *crawls) == [3, 0, 1, 2]
    assert after(CliqWin(), *crawls) == [3, 0, 1, 2]


def test_cliq_win_puts_the_clusters_of_the_latest_crawl_before_older_means() -> None:
    """Sources 0 and 1 led to all of two older crawls, 2 to all of the latest: its cluster has 1, the others 2/3."""
    old: dict[int, list[int]] = {0: [1], 1: [1], 2: [], 3: []}
    crawls = (old, old, {0: [], 1: [], 2: [5], 3: []})
    assert after(OdWin(), *crawls) == [0, 1, 2]
    assert after(CliqWin(), *crawls) == [2, 0, 1]


@given(st.lists(st.dictionaries(st.integers(0, 3), st.lists(st.integers(0, 5), unique=True)), min_size=1, max_size=4))
def test_cliq_win_without_a_limit_polls_what_od_win_polls(crawls: list[dict[int, list[int]]]) -> None:
    """Table 3.2 of Pandey08: both reach 69%, with 647.6 and 649.2 polls, because each page is also its own cluster."""
    assume(any(pages for crawl in crawls for pages in crawl.values()))
    whole = [{source: crawl.get(source, []) for source in range(4)} for crawl in crawls]
    assert sorted(after(CliqWin(), *whole)) == sorted(after(OdWin(), *whole))


def test_a_cluster_whose_best_page_is_gone_is_stood_for_by_the_next() -> None:
    """Source 0 is no longer to be chosen from; 1 leads to the same."""
    book, policy = book_of(4), Cliq1()
    state = policy.observe(policy.start(None), book.record(build_polls(CRAWL), 0.0), 0.0)
    options = rows_of(book.list_options(), [1, 2, 3])
    assert policy.choose(state, options, 4, 9.0, RNG).rows.tolist() == [0, 1]


@given(st.lists(st.integers(0, 255), max_size=12), st.sampled_from([0.2, 0.5, 0.8]))
def test_clusters_are_those_of_single_linkage(sets: list[int], likeness: float) -> None:
    """Two sets are in the same cluster if a chain of similar sets connects them."""
    alike = {
        (one, other)
        for one, other in combinations(range(len(sets)), 2)
        if sets[one]
        and sets[other]
        and (sets[one] & sets[other]).bit_count() >= likeness * (sets[one] | sets[other]).bit_count()
    }
    joined = list(range(len(sets)))
    for _ in sets:
        for one, other in sorted(alike):
            joined[one] = joined[other] = min(joined[one], joined[other])
    found = cluster_sets(sets, likeness)
    for one, other in combinations(range(len(sets)), 2):
        if sets[one] and sets[other]:
            assert (found[one] == found[other]) == (joined[one] == joined[other])
