"""The ranking experiment uses the live modules: with the same history, both decide alike for each promotion."""

from pathlib import Path

import numpy as np
import pytest

from vedette.engine.search.ports import PageSignals
from vedette.engine.search.scoring import (
    ALL_FEATURES,
    LearnedOrder,
    ScoredCandidates,
    build_reputation,
    hash_query,
    order_by_learning,
)
from vedette.lab.experiments.ranking import find_policy
from vedette.lab.runs.ranking.live import QUERY, LiveRanking
from vedette.learn.clicks.impressions import Impressions
from vedette.learn.clicks.reputations import MIN_CLICKS, learn_reputations
from vedette.policy import Floats, Ints, rng_for
from vedette.runtime.search.reputation_store import ReputationFile, save_reputation
from vedette.serve.rank.explore.candidates import Candidates, UserPopulation
from vedette.serve.rank.reputation import Reputation
from vedette.serve.rank.reranking import DEFAULT_PROMOTION, PROMOTIONS
from vedette.serve.slate import Audience

PAGES, PEOPLE, DAY = 60, 90, 500.0


def visits_of(people: int) -> tuple[Ints, Ints, Floats]:
    """Return who saw and liked which page: each page once per person, the first by many, the last ten by no one."""
    rng = np.random.default_rng(7)
    sees = rng.random((PEOPLE, PAGES)) < np.append(np.geomspace(0.9, 0.02, PAGES - 10), np.zeros(10))
    likes = rng.random((PEOPLE, PAGES)) < rng.permutation(np.geomspace(0.9, 0.05, PAGES))
    person, page = np.nonzero(sees[:people])
    return person, page, likes[person, page].astype(np.float64)


def learn_live(people: int, folder: Path) -> Reputation | None:
    """Learn from logged views as click learning does, and save it in the file that searches read."""
    person, page, liked = visits_of(people)
    at_days, slates = np.full(len(page), DAY), np.arange(len(page))
    zeros = np.zeros(len(page), np.int64)
    seen = Impressions(page, zeros, person, person, slates, zeros, zeros == 0, liked, at_days, groups=(QUERY,))
    taught = learn_reputations(seen._replace(propensity=np.ones(len(page))), dict.fromkeys(range(PAGES), 0), DAY)
    if taught is not None:
        save_reputation(folder, build_reputation(taught, seen.groups))
    file = ReputationFile(folder)
    file.refresh()
    return file.reputation


def order_live(known: Reputation | None, relevance: Floats, audience: Audience) -> LearnedOrder:
    """Answer a search that all pages match, the best first."""
    none, rows = np.zeros(PAGES), np.arange(PAGES)
    signals = PageSignals(rows * 0, rows, none, none, none, rows * 0, rows * 0, none, none, none, none)
    features = np.zeros((PAGES, len(ALL_FEATURES)))
    weighed = ScoredCandidates(rows, signals, features, features, np.log(relevance))
    return order_by_learning(rows, weighed, QUERY, known, audience)


def candidates_of(people: int, relevance: Floats) -> Candidates:
    """Return the lab's counts of the same visits."""
    person, page, liked = visits_of(people)
    aware, likes = np.bincount(page, minlength=PAGES), np.bincount(page, liked, PAGES).astype(np.float64)
    crowd = UserPopulation(float(len(np.unique(person))), float(len(page)), 365.0)
    return Candidates(relevance, likes, aware.astype(np.float64), aware.astype(np.float64), np.ones(PAGES), crowd)


@pytest.mark.parametrize("promotion", PROMOTIONS)
@pytest.mark.parametrize("people", [60, PEOPLE])
@pytest.mark.parametrize("flat", [True, False])
def test_lab_and_live_decide_alike_which_pages_are_tried(
    people: int,
    flat: bool,  # noqa: FBT001 - a case
    promotion: str,
    tmp_path: Path,
) -> None:
    """For many visitors, the order, the trials and the propensities are the same, bit for bit."""
    relevance = np.ones(PAGES) if flat else np.exp(np.linspace(2.0, 0.0, PAGES))
    policy = find_policy("default" if promotion == DEFAULT_PROMOTION else f"live-{promotion}")
    assert isinstance(policy, LiveRanking)
    batch = candidates_of(people, relevance)
    plan = policy.plan(policy.observe(policy.start(None), batch, DAY), batch, DAY)
    known, tried = learn_live(people, tmp_path), set[int]()
    assert known is not None
    for seed in range(20):
        audience = Audience(unproven=policy.most, first=policy.first, seed=seed, promotion=promotion)
        live = order_live(known, relevance, audience)
        lab = plan.draw(rng_for(seed, f"rank/{hash_query(QUERY)}"))
        assert lab.rows.tolist() == live.rows.tolist()
        assert lab.rows[lab.is_tried].tolist() == list(live.unproven)
        assert lab.propensities.tolist() == live.propensity[live.rows].tolist()
        tried.update(live.unproven)
    assert len(tried) > 1, "some of the unproven had their chance"


def test_too_few_clicks_teach_neither(tmp_path: Path) -> None:
    """Below the number of clicks that live learning requires, both order by relevance alone."""
    relevance = np.exp(np.linspace(2.0, 0.0, PAGES))
    batch = candidates_of(5, relevance)
    assert 0 < batch.aware.sum() < MIN_CLICKS
    policy = LiveRanking()
    found = policy.plan(policy.observe(policy.start(None), batch, DAY), batch, DAY).draw(rng_for(1, "rank"))
    live = order_live(learn_live(5, tmp_path), relevance, Audience(unproven=2))
    assert found.rows.tolist() == live.rows.tolist()
    assert not found.is_tried.any()
