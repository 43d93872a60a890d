"""Quality during refreshing: calculated by hand, equal to the whole computation, and below its bound."""

from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.altered_worlds import alter_future
from tests.lab.histories import Life, small_history
from tests.lab.leaks import LoggedDecision, find_first_leak

from vedette.errors import UsageError
from vedette.lab.bounds.delta_q import BoundDeltaQ
from vedette.lab.experiments.refresh import EXPERIMENT, build_rows, build_setup
from vedette.lab.quality.corpus import load_corpus
from vedette.lab.quality.query_files import QUERY_FILES, build_queries
from vedette.lab.quality.scoring import BooleanScoring, build_tfidf
from vedette.lab.quality.search_quality import QualityMonitor, measuring_times, relative_quality
from vedette.lab.quality.workload import (
    FROM_FILE,
    FROM_PAGES,
    MAX_QUERIES,
    QuerySet,
    Workload,
    build_workload,
    load_query_set,
)
from vedette.lab.runs.refresh.run import RefreshGame, RefreshSetup, run_refresh
from vedette.lab.worlds.history import History
from vedette.lab.worlds.synthetic.history import build_synthetic_history
from vedette.policy import Ints, rng_for
from vedette.refresh.policies.uniform import Uniform
from vedette.timeutil import DAY_S, HOUR_S

FIRST, SECOND = 1.0, 2**-1.5  # how likely the results at these ranks are viewed
WORDS = tuple(f"word{at}" for at in range(12))
QUERIES = build_queries([("word0", 4.0), ("word1 word2", 3.0), ("word3", 2.0), ("word4", 1.0), ("word5 word0", 1.0)])


class ByTable(NamedTuple):
    """Fetch given pages in given hours, regardless of observations."""

    pages: dict[float, list[int]]

    def choose(self, copies: Ints, now_s: float, most: int) -> Ints:
        """Choose by the table."""
        del copies, most
        return np.array(self.pages.get(now_s / HOUR_S, []), np.int64)


def test_three_pages_and_two_queries_by_hand() -> None:
    """Boolean scores, "tide" searched twice and "ebb" once; three measurements, at the end of each day.

    Page 0 has "ebb" and dies at 36 h; page 1 has "tide", and from 12 h on "ebb"; page 2 has "tide". Day 1, nothing is
    fetched: for "tide", page 1 is before page 2 and is worth nothing; for "ebb", page 1 is not listed. Day 2, page 1 is
    fetched at 30 h: "tide" is right; for "ebb", page 0 is first and dead. Day 3, page 0 is fetched at 60 h: everything
    is correct.
    """
    lives = [Life([(0, "ebb")], 36 * HOUR_S), Life([(0, "tide"), (12 * HOUR_S, "ebb")]), Life([(0, "tide")])]
    history = small_history(lives, end_s=3 * DAY_S)
    workload = build_workload(load_corpus(history), build_queries([("tide", 2.0), ("ebb", 1.0)]), BooleanScoring())
    watch = QualityMonitor(history, workload, 0.0, 3 * DAY_S)
    plan = RefreshSetup(Uniform(), oracle=ByTable({30.0: [1], 60.0: [0]}))
    run_refresh(history, plan, RefreshGame(0.0, 3 * DAY_S, 24.0), watch.on_batch)
    day_1 = (2 * SECOND + FIRST) / (2 * FIRST + FIRST + SECOND)
    day_2 = (2 * FIRST + SECOND) / (2 * FIRST + FIRST)
    assert watch.compute_mean() == pytest.approx((day_1 + day_2 + 1) / 3)
    assert watch.shares == pytest.approx([day_1, day_2, 1])


@cache
def generate_pages(seed: int, pages: int, days: int = 4) -> History:
    """Return pages that appear, change and disappear within some days; those with small numbers change most."""
    rng = rng_for(seed, "test/refresh-quality")
    lives = []
    births = np.sort(np.where(rng.random(pages) < 0.7, 0.0, rng.uniform(0, days * DAY_S, pages)))
    for page, born_s in enumerate(births.tolist()):
        times = [born_s, *sorted(rng.uniform(born_s, days * DAY_S, rng.poisson(0.5 + 6 / (1 + page))).tolist())]
        says = [(at_s, " ".join(rng.choice(WORDS, 5))) for at_s in times]
        died_s = float(rng.uniform(times[-1], days * DAY_S)) if rng.random() < 0.2 else inf
        lives.append(Life(says, died_s + 1.0))
    return small_history(lives, end_s=days * DAY_S)


def asked_of(history: History) -> Workload:
    """Return a few queries with TF-IDF scores, based on each page's first version."""
    corpus = load_corpus(history)
    return build_workload(corpus, QUERIES, build_tfidf(corpus, history.first_version))


TOLD = st.builds(generate_pages, st.integers(0, 30), st.sampled_from((1, 5, 20)))


def copies_at(history: History, log: list[tuple[float, list[int]]], now_s: float) -> Ints:
    """Return the repository's copies by the rules of the game, from the fetch log alone."""
    held_s = np.maximum(history.born_s, 0.0)
    for at_s, pages in log:
        held_s[pages] = at_s if at_s <= now_s else held_s[pages]
    alone = [int(history.version_at(np.array([page]), held_s[page])[0]) for page in range(history.pages)]
    return np.where(history.born_s <= now_s, alone, -1)


@settings(max_examples=25)
@given(TOLD, st.floats(1.0, 100.0), st.sampled_from((1.0, 5.0)))
def test_quality_of_a_run_is_the_whole_computation_at_each_look(history: History, budget: float, step_h: float) -> None:
    """The running value always equals eq. 4.5 over all copies and all pages."""
    workload, log = asked_of(history), list[tuple[float, list[int]]]()
    watch = QualityMonitor(history, workload, 0.0, history.end_s)

    def decided(now_s: float, pages: Ints) -> None:
        log.append((now_s, pages.tolist()))
        watch.on_batch(now_s, pages)

    run_refresh(history, RefreshSetup(Uniform()), RefreshGame(0.0, history.end_s, budget, step_h * HOUR_S), decided)
    watch.compute_mean()
    whole = [
        relative_quality(copies_at(history, log, now_s), history.version_at(np.arange(history.pages), now_s), workload)
        for now_s in measuring_times(0.0, history.end_s)
    ]
    assert watch.shares == pytest.approx(whole)


@settings(max_examples=10)
@given(TOLD, st.sampled_from(("uniform", "bound-delta-q")))
def test_who_fetches_everything_has_quality_1(history: History, policy: str) -> None:
    """With a budget for every page in every hour, all relevant copies are always current."""
    game = RefreshGame(0.0, history.end_s, 24.0 * history.pages)
    (row,) = build_rows(history, policy, game, QuerySet(asked_of(history), FROM_PAGES))
    assert row["quality"] == pytest.approx(1)


@settings(max_examples=10)
@given(TOLD, st.floats(0.5, 60.0))
def test_the_bound_keeps_to_its_budget_and_fetches_changes_only(history: History, budget: float) -> None:
    """It never fetches more than was saved up, no page twice at a time, and no page whose copy is current."""
    spent: list[int] = []
    game = RefreshGame(0.0, history.end_s, budget)

    def decided(_now_s: float, pages: Ints) -> None:
        assert len(np.unique(pages)) == len(pages)
        spent.append(len(pages))

    outcome = run_refresh(
        history, RefreshSetup(Uniform(), oracle=BoundDeltaQ(history, asked_of(history))), game, decided
    )
    assert all(np.cumsum(spent) <= np.arange(1, len(spent) + 1) * budget / 24 + 1e-6)
    assert outcome.changed == outcome.fetches


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_bound_is_better_than_lots(seed: int) -> None:
    """With six fetches a day for sixty pages, it is far better than random fetches."""
    history = generate_pages(seed, 60, days=10)
    game, asking = RefreshGame(0.0, history.end_s, 6.0, seed=seed), QuerySet(asked_of(history), FROM_PAGES)
    quality = {name: build_rows(history, name, game, asking)[0]["quality"] for name in ("bound-delta-q", "random")}
    assert 1 >= quality["bound-delta-q"] > quality["random"]


def test_the_bound_sees_the_present_and_no_more() -> None:
    """Given the queries and word frequencies, another future changes no earlier choice."""
    history = generate_pages(1, 40, days=6)
    rarity = build_tfidf(load_corpus(history), history.first_version)

    def played(world: History) -> list[LoggedDecision]:
        log: list[LoggedDecision] = []
        bound = BoundDeltaQ(world, build_workload(load_corpus(world), QUERIES, rarity))
        game = RefreshGame(0.0, 6 * DAY_S, 4.0)
        run_refresh(
            world,
            RefreshSetup(Uniform(), oracle=bound),
            game,
            lambda now_s, pages: log.append(LoggedDecision(now_s, pages.tolist())),
        )
        return log

    assert any(len(one.values) for one in played(history))
    assert find_first_leak(played, history, alter_future, 3.3 * DAY_S, [1, 2]) is None


def test_the_bound_is_refused_where_pages_have_no_texts() -> None:
    """A synthetic web has no texts; the error says what is missing, and what to do instead."""
    history = build_synthetic_history("tiny", 1)
    game = RefreshGame(history.begin_s, history.end_s, 10.0)
    asking = load_query_set(history, game.begin_s, game.end_s, 1)
    assert asking is None
    with pytest.raises(UsageError, match=r"needs page text.*git:"):
        build_setup("bound-delta-q", history, game, asking)


def test_rows_have_quality_where_pages_have_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this case, a row has every metric, but the crawler's estimate only if a policy has probabilities.

    Without a file, queries are taken from the pages.
    """
    monkeypatch.delenv("VEDETTE_DATA", raising=False)
    history = generate_pages(2, 20)
    game = RefreshGame(0.0, history.end_s, 5.0)
    rows = [build_rows(history, "uniform", game, load_query_set(history, 0.0, history.end_s, 1))[0] for _ in (1, 2)]
    estimated = {"quality_said", "quality_error"}
    assert set(rows[0]) == {name for name in EXPERIMENT.metrics if not name.endswith("_calm")} - estimated
    assert rows[0] == rows[1]
    assert rows[0]["queries_from"] == FROM_PAGES
    assert 0 < rows[0]["quality"] <= 1


def test_queries_of_the_file_that_something_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries from a file are used if a version in the span matches them; here, one, and a second one later."""
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / QUERY_FILES[0]).write_text("low tide\nebb\nno such words\ntide ebb\n")
    monkeypatch.setenv("VEDETTE_DATA", str(tmp_path))
    history = small_history([Life([(0, "low tide today"), (60.0, "ebb today")])], end_s=100.0)
    early, late = (load_query_set(history, *span, 1) for span in ((0.0, 50.0), (10.0, 100.0)))
    assert early is not None
    assert late is not None
    assert (early.workload.queries, late.workload.queries, early.source) == (1, 2, FROM_FILE)


def test_no_more_queries_than_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a file of any length, at most the sample size is used."""
    (tmp_path / "queries").mkdir()
    words = [f"shell{at}" for at in range(MAX_QUERIES + 50)]
    (tmp_path / "queries" / QUERY_FILES[0]).write_text("\n".join(words))
    monkeypatch.setenv("VEDETTE_DATA", str(tmp_path))
    history = small_history([Life([(0, " ".join(words))])])
    asking = load_query_set(history, 0.0, 100.0, 1)
    assert asking is not None
    assert asking.workload.queries == MAX_QUERIES


def test_the_crawlers_own_estimate_is_near_the_truth() -> None:
    """It only uses its fetches, and is closer to the truth than the share of current pages."""
    rng = rng_for(5, "lives")
    lives = []
    for number in range(60):
        gaps_s = rng.exponential((3.0, 20.0, 90.0)[number % 3] * DAY_S, 40)
        times_s = [0.0, *(time_s for time_s in np.cumsum(gaps_s).tolist() if time_s < 60 * DAY_S)]
        texts = [" ".join(rng.choice(WORDS, 8)) for _ in times_s]
        # Most of a page stays as it is when it changes.
        lives.append(Life([(at_s, f"{texts[0]} {texts[0]} {text}") for at_s, text in zip(times_s, texts, strict=True)]))
    history = small_history(lives, end_s=60 * DAY_S)
    corpus = load_corpus(history)
    asking = QuerySet(build_workload(corpus, QUERIES, build_tfidf(corpus, history.first_version)), FROM_PAGES)
    game = RefreshGame(0.0, 60 * DAY_S, 4.0, step_s=DAY_S, warm_up=0.25, parts=3)
    rows = build_rows(history, "default", game, asking)
    message, truth, fresh = (np.array([row[name] for row in rows]) for name in ("quality_said", "quality", "freshness"))
    assert np.abs(message - truth).mean() < 0.02
    assert np.abs(message - truth).mean() < np.abs(fresh - truth).mean() / 4
