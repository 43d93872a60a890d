"""The crawl order experiment: the split web, what policies know about it, and what their orders are worth."""

import numpy as np
import pytest
from tests.frontier.stumps import stump
from tests.lab.histories import Life, small_history

from vedette.attention import step_visibility
from vedette.errors import UsageError
from vedette.lab.core.experiment import Cell, Span
from vedette.lab.core.registry import list_experiments, load_policies
from vedette.lab.experiments import order_sketches
from vedette.lab.experiments.order_sketches import build_buckets, restrict_queries, run_with_sketches, split_queries
from vedette.lab.quality.query_files import build_queries
from vedette.lab.runs.order import run as order_run
from vedette.lab.runs.order.crawl_split import (
    Anchor,
    CrawlSplit,
    Site,
    build_site,
    compute_impacts,
    parse_markdown_anchors,
    split_site,
)
from vedette.lab.runs.order.run import DEFAULT_POLICY, Case, compute_worths, impact_share, parse_fetch_count
from vedette.lab.runs.web_snapshot import WebSnapshot, take_snapshot
from vedette.policy import rng_for

PAGES = 120
TOPICS = ("tide", "moon", "ferry", "rope")
ASKED = build_queries([("tide", 9.0), ("moon", 4.0), ("ferry", 2.0), ("rope", 1.0), ("low tide", 3.0), ("zebra", 50.0)])


def web_of(changed: tuple[int, ...] = ()) -> WebSnapshot:
    """Return pages on four topics, in folders by topic; some have a misleading text."""
    rng = rng_for(5, "tests/order")
    lives = []
    for page in range(PAGES):
        topic = "zebra" if page in changed else TOPICS[page % 4]
        says = f"{topic} " * int(rng.integers(1, 6)) + "low water " * int(rng.integers(0, 3)) + f"page {page}"
        lives.append(Life([(0.0, says)], links=tuple(rng.integers(0, PAGES, 4).tolist())))
    history = small_history(lives)
    urls = [f"https://small.test/{TOPICS[page % 4]}/{page}" for page in range(PAGES)]
    object.__setattr__(history, "urls", urls)
    return take_snapshot(history, 10.0)


def site(changed: tuple[int, ...] = ()) -> Site:
    """Return the same pages with links that name the topic, and queries."""
    seen = web_of(changed)
    pairs = zip(seen.source.tolist(), seen.target.tolist(), strict=True)
    anchors = [Anchor(source, target, f"on {TOPICS[target % 4]}") for source, target in pairs]
    return build_site(seen, anchors, ASKED)


def cut(of: Site, dataset: int = 1) -> CrawlSplit:
    """Return its cut, with all queries known."""
    return split_site(of, dataset, 1, step_visibility(10), of.workload.frequency)


@pytest.fixture
def small_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a single tree instead of a forest, which is faster."""
    monkeypatch.setattr(order_run, "fit_forest", stump)


def test_datasets_are_cut_as_printed() -> None:
    """Half of the pages are uncrawled; Dataset 2 leaves out the most important fifth of them."""
    one, two = cut(site()), cut(site(), dataset=2)
    assert len(one.uncrawled) == PAGES // 2
    assert np.union1d(one.uncrawled, one.crawled).tolist() == list(range(PAGES))
    promoted = np.setdiff1d(one.uncrawled, two.uncrawled)
    assert len(promoted) == PAGES // 10
    importance = dict(zip(one.uncrawled.tolist(), one.unseen.importance.tolist(), strict=True))
    assert min(importance[page] for page in promoted.tolist()) >= max(
        importance[page] for page in two.uncrawled.tolist()
    )


@pytest.mark.usefixtures("small_trees")
def test_what_uncrawled_pages_say_is_not_known() -> None:
    """If texts of uncrawled pages change, no policy decides differently."""
    before = cut(site())
    after = cut(site(tuple(before.uncrawled.tolist())))
    every = list(load_policies("order").values())
    report, changed = compute_worths(every, before, 1), compute_worths(every, after, 1)
    assert list(report) == list(load_policies("order"))
    for name, worth in report.items():
        np.testing.assert_array_equal(worth, changed[name], err_msg=name)


@pytest.mark.usefixtures("small_trees")
def test_what_people_ask_for_comes_first() -> None:
    """If URLs and links reveal the topic, our order and the query-driven one find more early than a random order."""
    of = site()
    two = cut(of)
    truth = compute_impacts(of, np.arange(PAGES), step_visibility(10))[two.uncrawled]
    worths = compute_worths([load_policies("order")[name] for name in (DEFAULT_POLICY, "query-driven")], two, 1)
    for worth in worths.values():
        assert impact_share(np.argsort(-worth, kind="stable"), truth, PAGES // 8) > 0.25


@pytest.mark.usefixtures("small_trees")
def test_the_printed_hybrid_is_nine_parts_to_one() -> None:
    """Its worth is the weighted average of the two policies that it is made of."""
    names = ("hybrid", "query-driven", "query-independent")
    hybrid, by_queries, by_importance = compute_worths(
        [load_policies("order")[name] for name in names], cut(site()), 1
    ).values()
    np.testing.assert_allclose(hybrid, 0.9 * by_queries + 0.1 * by_importance)


@pytest.mark.usefixtures("small_trees")
def test_without_sketches_only_importance_and_places_count() -> None:
    """With a sketch of a query that no one page can answer, the query-driven estimate is zero for all."""
    few = restrict_queries(cut(site()), np.array([5]))
    assert len(few.query_terms) == 1
    assert len(few.crawled_facts.found_query) == 0
    assert compute_worths([load_policies("order")["query-driven"]], few, 1)["query-driven"].tolist() == [0.0] * (
        PAGES // 2
    )


@pytest.mark.usefixtures("small_trees")
def test_few_sketches_are_those_of_the_neediest(monkeypatch: pytest.MonkeyPatch) -> None:
    """With or without a limit on sketches, all pages are ordered once.

    The limit keeps the queries that need them most.
    """
    monkeypatch.setattr(order_sketches, "_load_case_site", lambda _case: site())
    case = Case("small", Span(), 2, 1, 1)
    train, test = split_queries(case)
    assert sorted([*train.queries.tolist(), *test.queries.tolist()]) == list(range(len(ASKED)))
    whole, few = run_with_sketches(case, 1.0), run_with_sketches(case, 1e-6)
    assert (whole.sketches, few.sketches) == (len(test.queries), 1)
    for kept in (whole, few):
        assert all(np.sort(order).tolist() == list(range(PAGES // 2)) for order in kept.orders.values())
    assert all(bucket.improved > 0 and bucket.expected > 0 for bucket in build_buckets(case, 0.5))


def test_impact_counts_the_first_ten_among_all_pages() -> None:
    """Each query with at least ten matching pages counts ten times its frequency."""
    of = site()
    total = compute_impacts(of, np.arange(PAGES), step_visibility(10)).sum()
    found = np.minimum(np.diff(of.workload.slot_start), 10)
    assert total == pytest.approx(float((found * of.workload.frequency).sum()))


@pytest.mark.parametrize("budget", [0.0, 1.5])
def test_a_budget_is_a_share(budget: float) -> None:
    """For a number of pages, the error says what to write."""
    with pytest.raises(UsageError, match="share"):
        parse_fetch_count(Cell("order", "w", "default", budget, 1), 100)


def test_both_questions_are_found_with_all_policies() -> None:
    """The experiments are listed, and ``order`` knows every policy of its stage, ours as ``default``."""
    assert {"order", "order-sketches"} <= set(list_experiments())
    assert {"default", "bound-impact", *load_policies("order")} == set(list_experiments()["order"].policies)


def test_pictures_are_no_links() -> None:
    """Anchor texts are read as written, but not those of images."""
    assert parse_markdown_anchors("![a](b.png) [c d](e.md) [f](</g> 'h')") == [("e.md", "c d"), ("/g", "f")]
