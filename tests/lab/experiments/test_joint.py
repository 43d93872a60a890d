"""One budget for all kinds of fetches: calculated by hand, never exceeded, blind to the future, and cut to a window."""

from functools import cache, partial
from math import inf

import numpy as np
import pytest
from tests.lab.altered_worlds import alter_future
from tests.lab.histories import P, V, web
from tests.lab.leaks import LoggedDecision, find_first_leak

from vedette.lab.experiments.joint import EXPERIMENT, PERIODS, SPLITS, JointMonitor, build_rows
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import build_queries
from vedette.lab.quality.scoring import BooleanScoring
from vedette.lab.quality.workload import FROM_PAGES, QuerySet, build_workload
from vedette.lab.runs.joint import Batch, JointGame, Split, find_crawled, run_joint
from vedette.lab.worlds.history import History
from vedette.lab.worlds.history_views import cut_window
from vedette.policy import rng_for

DAY_S = 86_400.0
HOME = "http://host0/"
SPLIT_NAMES = ("default", *SPLITS)


def asking(history: History) -> QuerySet:
    """Return queries for some words; each page has them or not."""
    queries = build_queries([("word0", 4.0), ("word1", 3.0), ("word2", 2.0), ("word3", 1.0)])
    return QuerySet(build_workload(load_corpus(history), queries, BooleanScoring()), FROM_PAGES)


def chain() -> History:
    """Return a home page that links to a page that links to another one, and after two days to one more."""
    return web(
        [
            P([V(-9.0, (1,), text="word0"), V(2 * DAY_S, (1, 3), text="word0 more")], url=HOME),
            P([V(-8.0, (2,), text="word1")]),
            P([V(-7.0, (), text="word2")]),
            P([V(2 * DAY_S, (), text="word3")]),
        ],
        end_s=10 * DAY_S,
    )


@cache
def busy(days: int = 12) -> History:
    """Return forty pages that appear, change and disappear, and a home page that links to new ones."""
    rng = rng_for(5, "tests/joint")
    born = [-1.0 - 40 + n for n in range(40)] + [n * DAY_S / 4 + 7.0 for n in range(1, 4 * days - 8)]
    old = tuple(range(1, 40))
    home = [V(-60.0, old, text="word0")]
    home += [V(at_s, (*old, *range(40, 41 + n)), text=f"word0 news{n}") for n, at_s in enumerate(born[40:])]
    pages = [P(home, url=HOME)]
    for number, at_s in enumerate(born[1:], 1):
        changes = np.sort(rng.uniform(max(at_s, 0.0), days * DAY_S, rng.poisson(2 if number % 3 else 0))).tolist()
        says = [f"word{rng.integers(0, 5)} other{number}" for _ in range(len(changes) + 1)]
        versions = [V(when, (0,), text=text) for when, text in zip([at_s, *changes], says, strict=True)]
        pages.append(P(versions, died_s=days * DAY_S * 0.7 if number % 11 == 5 else inf))
    return web(pages, end_s=days * DAY_S)


def batches(history: History, game: JointGame, split: Split | None) -> list[Batch]:
    """Return the decisions of a simulation."""
    report: list[Batch] = []
    run_joint(history, asking(history), game, split, report.append)
    return report


def test_a_page_is_fetched_only_after_a_link_to_it_was_fetched() -> None:
    """With one fetch per batch, a chain is fetched in the order of its links, then known pages again.

    The home page links to the new page from the second day on, so the new page is fetched after that.
    """
    game = JointGame(0.0, 10 * DAY_S, budget=2.0, crawled_share=0.0)
    order = [int(page) for batch in batches(chain(), game, None) for page in batch.pages]
    assert order[:2] == [1, 2]
    home = next(at for at, page in enumerate(order) if page == 0 and at >= 4)
    assert home < order.index(3) <= home + 1


def test_who_only_refreshes_finds_nothing_and_who_only_discovers_fetches_what_is_named() -> None:
    """Pages without a copy stay without one if no share of the budget is for them."""
    history, game = chain(), JointGame(0.0, 10 * DAY_S, budget=2.0, crawled_share=0.0)
    fetched = {
        name: {int(page) for batch in batches(history, game, SPLITS[name]) for page in batch.pages}
        for name in ("refresh-only", "discover-only")
    }
    assert fetched == {"refresh-only": {0}, "discover-only": {0, 1, 2, 3}}


def test_quality_counts_what_is_not_discovered_as_missing() -> None:
    """With the home page alone, 40% of what people search for is found on the first day."""
    history, game = chain(), JointGame(0.0, DAY_S, budget=2.0, crawled_share=0.0)
    watch = JointMonitor(history, asking(history), game)
    nothing = np.zeros(0, np.int64)
    watch.on_batch(Batch(DAY_S, nothing, nothing, 0.0, (0, 0, 0)))
    (part,) = watch.compute_periods(1)
    assert part["quality"] == pytest.approx(4 / 9)
    assert part["found"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("name", SPLIT_NAMES)
def test_no_more_is_fetched_than_the_budget_allows_and_each_page_once_a_batch(name: str) -> None:
    """Over any time from the begin on; and where there is enough to do, nothing is left."""
    game = JointGame(0.0, 12 * DAY_S, budget=5.0)
    report = batches(busy(), game, SPLITS.get(name))
    counts = np.cumsum([len(batch.pages) for batch in report])
    assert (counts <= 5.0 * (np.arange(len(counts)) + 1) / 2 + 1e-9).all()
    assert counts[-1] >= 5 * 12 - 1
    assert all(len(np.unique(batch.pages)) == len(batch.pages) == sum(batch.kinds) for batch in report)


@pytest.mark.parametrize("name", ["default", "thirds"])
def test_the_future_does_not_leak(name: str) -> None:
    """Before the futures diverge, all decisions are the same."""
    game = JointGame(0.0, 12 * DAY_S, budget=4.0)

    def run(history: History) -> list[LoggedDecision]:
        return [LoggedDecision(batch.now_s, batch.pages.tolist()) for batch in batches(history, game, SPLITS.get(name))]

    assert find_first_leak(run, busy(), partial(alter_future), 6 * DAY_S, seeds=(1,)) is None


def test_the_rows_of_a_bound_are_those_of_a_split_that_is_as_good_as_thirds() -> None:
    """It tries thirds, too; the same simulation gives the same rows."""
    history, game = busy(), JointGame(0.0, 4 * DAY_S, budget=3.0)
    asked = asking(history)
    thirds, bound = (build_rows(history, asked, name, game) for name in ("thirds", "bound-split"))
    means = [np.mean([row["quality"] for row in rows]) for rows in (thirds, bound)]
    assert len(thirds) == 4 < PERIODS
    assert means[1] >= means[0]
    assert thirds == build_rows(history, asked, "thirds", game)


def test_a_crawl_begins_with_what_it_was_told_of_and_a_part_of_the_rest() -> None:
    """It begins with home pages and unlinked pages, then continues breadth first."""
    history = chain()
    assert find_crawled(history, 0.0, 0.0).tolist() == [0]
    assert find_crawled(history, 0.0, 0.5).tolist() == [0, 1]
    assert find_crawled(history, 0.0, 1.0).tolist() == [0, 1, 2]


@pytest.mark.parametrize("begin_d", [0.0, 3.0, 9.5])
def test_a_window_answers_as_the_whole_does(begin_d: float) -> None:
    """At any time in it, the same URLs exist with the same text and links, although their numbers differ."""
    history = busy()
    begin_s, end_s = begin_d * DAY_S, min(begin_d + 4.0, 12.0) * DAY_S
    part = cut_window(history, begin_s, end_s)
    for at_s in np.linspace(begin_s, end_s - 1.0, 7).tolist():
        assert _answers(part, at_s) == _answers(history, at_s)


def _answers(history: History, at_s: float) -> dict[str, tuple[str, int, list[str]]]:
    alive = history.live_pages_at(at_s)
    pairs = zip(alive.tolist(), history.version_at(alive, at_s).tolist(), strict=True)
    return {
        history.urls[page]: (
            history.texts.text(version),
            int(history.digest[version]),
            [history.urls[to] for to in history.links_of(version).tolist() if history.born_s[to] <= at_s],
        )
        for page, version in pairs
    }


def test_the_experiment_names_all_that_can_be_compared() -> None:
    """It lists all policies of the question, the default one first."""
    assert set(EXPERIMENT.policies) == {"default", "thirds", "refresh-only", "discover-only", "bound-split"}
    assert EXPERIMENT.policies[0] == "default"
