"""The experiment "ranking": its rows, its policies, and the joke study with made-up votes."""

from pathlib import Path

import numpy as np
import pytest
from bench.clicks import compare_likelihoods, evaluate_reranking

from vedette.errors import UsageError
from vedette.lab.baselines.ranking.popularity import Popularity
from vedette.lab.core.experiment import Cell
from vedette.lab.experiments.ranking import EXPERIMENT, list_policy_names
from vedette.lab.runs.ranking.jester import run_study
from vedette.lab.visitors.recorded_clicks import read_grades, read_log
from vedette.lab.worlds.catalog import register_world
from vedette.lab.worlds.community import parse_community
from vedette.lab.worlds.jester import draw_items, load_ratings
from vedette.policy import rng_for
from vedette.serve.rank.explore.prospect import Prospect


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """Return ratings of twenty jokes by two hundred people, from hardly to mostly funny, some missing."""
    rng = rng_for(1, "test/jokes")
    user, joke = (each.ravel() for each in np.mgrid[:200, :20])
    rating = np.where(rng.random(len(joke)) < joke / 25, 8.0, -3.0)
    kept = rng.random(len(joke)) < 0.8
    path = tmp_path / "jokes.npz"
    np.savez(path, user=user[kept], joke=joke[kept], rating=rating[kept])
    return path


@pytest.mark.parametrize("policy", ["default", "popularity", "uniform", "thompson", "selective-r0.50-k6"])
def test_a_cell_gives_the_same_row_again(policy: str) -> None:
    """All announced numbers of a row are there, finite, and the same when computed again."""
    cell = Cell("ranking", "community:small", policy, 0.01, 1)
    first, again = EXPERIMENT.run(cell), EXPERIMENT.run(cell)
    assert first == again
    assert set(first[0]) <= set(EXPERIMENT.metrics)
    assert 0 < first[0]["qpc_share"] <= 1.05


def test_every_policy_of_the_experiment_can_be_asked_for() -> None:
    """Each name is a policy; other names get an error."""
    assert len(frozenset(list_policy_names())) == len(list_policy_names())
    with pytest.raises(UsageError, match="no rank policy"):
        EXPERIMENT.run(Cell("ranking", "community:small", "selectiv", 0.1, 1))
    with pytest.raises(UsageError, match="did you mean quiet"):
        parse_community("quit")


def test_items_of_the_study_have_the_quality_that_is_said(ratings: Path) -> None:
    """Jokes are at least as funny as their items, and the best item is the funniest joke."""
    jokes = load_ratings(ratings)
    shelf = draw_items(jokes, 1)
    assert np.all(shelf.accept_rate <= 1 + 1e-9)
    assert np.allclose(jokes.share[shelf.joke] * shelf.accept_rate, shelf.quality)
    assert shelf.quality.max() == jokes.share.max()


def test_the_study_repeats_itself_and_learning_pays(ratings: Path) -> None:
    """The same seed gives the same votes; a learning policy gets more laughs than ordering by votes alone."""
    jokes = load_ratings(ratings)
    popular, again = (run_study(jokes, Popularity(older_first=True), 1) for _ in range(2))
    assert popular.qpc == again.qpc
    assert run_study(jokes, Prospect(), 1).qpc > popular.qpc
    assert np.all(popular.tbp_days <= 15.0)


def test_votes_are_found_where_they_were_said_to_be(ratings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path is enough to find the file, and rows do not reveal it."""
    monkeypatch.delenv("VEDETTE_DATA", raising=False)
    label = register_world(f"jester:{ratings}")
    assert label == "jester:jokes.npz"
    assert EXPERIMENT.run(Cell("ranking", label, "popularity", 1.5, 1))[0]["qpc"] > 0


def test_a_file_that_holds_no_ratings_is_refused(tmp_path: Path) -> None:
    """The error for a wrong file says what is expected."""
    path = tmp_path / "other.npz"
    np.savez(path, other=np.zeros(3))
    with pytest.raises(UsageError, match="user, joke and rating"):
        load_ratings(path)


@pytest.fixture
def searches(tmp_path: Path) -> tuple[Path, Path]:
    """Return a log in which the results of each query are in a poor order, and people click on good ones."""
    rng = rng_for(2, "test/log")
    lines, grades = [], ["query\turl\trelevance"]
    good = {query: int(rng.integers(1, 4)) for query in range(20)}
    for query, best in good.items():
        grades += [f"{query + 7}\t{100 * query + place}\t{5 if place == best else 2}" for place in range(10)]
    for session in range(3_000):
        query = int(rng.integers(0, 20))
        shown = [str(100 * query + place) for place in range(10)]
        lines.append("\t".join([str(session), "0", "Q", str(query), "0.0", *shown]))
        lure = np.where(np.arange(10) == good[query], 0.72, 0.09) / np.arange(1, 11)
        lines += [f"{session}\t9\tC\t{shown[place]}" for place in np.flatnonzero(rng.random(10) < lure)]
    lines.append("broken line")
    log, graded = tmp_path / "log.tsv", tmp_path / "grades.tsv"
    log.write_text("\n".join(lines), encoding="utf-8")
    graded.write_text("\n".join(grades), encoding="utf-8")
    return log, graded


def test_learned_orders_are_better_where_clicks_tell_something(searches: tuple[Path, Path]) -> None:
    """Queries are matched by their results; models beat click rates by position, and good results move up."""
    with searches[1].open(encoding="utf-8") as lines:
        log = read_log(searches[0], read_grades(lines))
    assert not np.isnan(log.grade).any()
    assert compare_likelihoods(log)["position"].low > 0
    assert evaluate_reranking(log)["difference"].low > 0.05
