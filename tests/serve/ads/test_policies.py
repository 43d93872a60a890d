"""Which ads are shown: the published priorities, ours, and the contract of every policy."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.serve.ads.ad_batches import ads, drawn_ads

from vedette.lab.baselines.ads.bpol import Bpol
from vedette.lab.core.conformance import CHECKS, Trial
from vedette.lab.core.registry import load_policies
from vedette.policy import rng_for
from vedette.serve.ads.by_score import NO_PRIORS
from vedette.serve.ads.candidates import rank_top
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy
from vedette.serve.ads.policies.bmix import Bmix, BmixE, BmixEt, BmixT
from vedette.serve.ads.policies.greedy import Greedy, Msvv
from vedette.serve.ads.policies.linear import LinearRates
from vedette.serve.ads.policies.two_level import TwoLevel

POLICIES = load_policies("ads")
ONE = ads(1, bid=[250], asked=[100], shown=[20], clicked=[3], remaining=[500], budget=[2_000])


def test_all_the_named_policies_are_there() -> None:
    """All published names are found."""
    printed = {"greedy", "msvv", "mix", "bmix", "bmix-e", "bmix-t", "bmix-et", "bpol", "two-level", "linear"}
    assert printed | {"believed", "paced"} == set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=8)  # ten policies, five checks each
@given(seed=st.integers(0, 10_000), rows=st.sampled_from([0, 1, 2, 30]), k=st.integers(0, 4))
def test_a_policy_owes_its_callers(name: str, seed: int, rows: int, k: int) -> None:
    """Input is unchanged, there are k distinct rows with propensities, and it is deterministic and can be saved."""
    rng = rng_for(seed, "tests/sponsor")
    trial = Trial(POLICIES[name], "choose", drawn_ads(rng, 12), drawn_ads(rng, rows), k, seed)
    assert [wrong for check in CHECKS if (wrong := check(trial))] == []


def test_the_printed_priorities() -> None:
    """Calculated by hand: c = 3/20, n = 100, a quarter of the budget left."""
    rate, logs = 3 / 20, math.log(100) / 20
    plain, tuned = math.sqrt(2 * logs), math.sqrt(logs * min(0.25, rate * (1 - rate) + math.sqrt(2 * logs)))
    spared = 1 - math.exp(-1 / 4)
    expected = {
        Greedy: rate * 250,
        Msvv: rate * 250 * spared,
        Bmix: (rate + plain) * 250,
        BmixE: (rate + tuned) * 250,
        BmixT: (rate + plain) * 250 * spared,
        BmixEt: (rate + tuned) * 250 * spared,
    }
    for kind, score in expected.items():
        assert kind().score(NO_PRIORS, ONE)[0] == pytest.approx(score)


@pytest.mark.parametrize("name", ["greedy", "msvv", "mix", "bmix", "bmix-e", "bmix-t", "bmix-et", "two-level"])
def test_what_was_never_shown_comes_first_by_lot(name: str) -> None:
    """Without a prior, it counts as infinitely good; of two such ads, either may be shown."""
    options = ads(3, asked=[9] * 3, shown=[9, 0, 0], clicked=[9, 0, 0])
    drawn = [POLICIES[name].choose((), options, 1, 0.0, rng_for(seed, "lot")) for seed in range(20)]
    assert {int(picks.rows[0]) for picks in drawn} == {1, 2}


def test_a_prior_counts_as_clicks_and_showings() -> None:
    """With alpha = 2 and alpha + beta = 10 nothing is infinite, and the rate is (3 + 2) / (20 + 10)."""
    report = ads(1, bid=[250], asked=[100], shown=[20], clicked=[3], prior_clicked=[2], prior_shown=[10])
    bonus = math.sqrt(2 * math.log(100) / 30)
    assert Bmix().score(NO_PRIORS, report)[0] == pytest.approx((5 / 30 + bonus) * 250)
    assert np.isfinite(Bmix().score(NO_PRIORS, ads(1, asked=[3], prior_clicked=[2], prior_shown=[10]))).all()


def test_who_has_no_budget_is_discounted_like_a_full_one() -> None:
    """Otherwise, setting no limit would be an advantage."""
    two = ads(2, asked=[9] * 2, shown=[5, 5], clicked=[1, 1], remaining=[300, np.inf], budget=[300, np.inf])
    one, other = Msvv().score(NO_PRIORS, two)
    assert one == other


def test_bpol_forgets_when_the_set_of_ads_changes() -> None:
    """Earlier counts are gone, so an ad that looked bad is tried again; with ``keeps``, they stay."""
    options = ads(2, asked=[50] * 2, shown=[40, 10], clicked=[20, 0], asked_then=[50] * 2, shown_then=[40, 10])
    assert np.isinf(Bpol().choose((), options, 1, 0.0, rng_for(1, "b")).scores).all()
    kept = Bpol(keeps=True).choose((), options, 1, 0.0, rng_for(1, "b")).scores
    assert kept.tolist() == Bmix().score(NO_PRIORS, options).tolist()


def test_two_levels_learn_from_the_cluster() -> None:
    """Of two ads with equal clicks, the one in the better cluster is shown first."""
    options = ads(
        4,
        cluster=[0, 0, 1, 1],
        asked=[4_000] * 4,
        shown=[900, 90, 900, 90],
        clicked=[270, 9, 9, 9],
        bid=[50, 100, 100, 100],
    )
    first = TwoLevel().choose((), options, 1, 0.0, rng_for(1, "c")).rows[0]
    assert options.cluster[first] == 0


def test_features_stand_for_ads_that_share_them() -> None:
    """A new ad is worth more if its phrase and advertiser get clicks."""
    seen = ads(
        6,
        phrase=[0, 0, 1, 1, 0, 1],
        advertiser=[0, 1, 0, 1, 0, 1],
        shown=[900, 900, 900, 900, 0, 0],
        clicked=[180, 90, 90, 9, 0, 0],
    )
    policy = LinearRates(exploration=0.0)
    report = policy.get_ad_priors(policy.observe(policy.start(None), seen, 0.0))
    score = policy.score(report, seen)
    assert score[4] == pytest.approx(score[0])
    assert score[5] == pytest.approx(score[3])
    assert score[0] > score[1] > score[3]
    assert (LinearRates().score(report, seen) > score).all()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=7), st.integers(0, 8), st.integers(0, 99))
def test_propensities_are_those_of_the_lot(scores: list[int], k: int, seed: int) -> None:
    """The k highest are shown, and those tied for the last places share them."""
    picks = rank_top(np.array(scores, float), k, rng_for(seed, "ties"))
    k = min(k, len(scores))
    best = sorted(scores, reverse=True)[:k]
    assert [scores[row] for row in picks.rows] == best
    for row, propensity in zip(picks.rows.tolist(), picks.propensities.tolist(), strict=True):
        above, tied = sum(one > scores[row] for one in scores), scores.count(scores[row])
        assert propensity == pytest.approx(min(1.0, (k - above) / tied))


def test_ours_believes_a_stranger_by_its_phrase() -> None:
    """A new ad is worth more if people click on ads of its phrase."""
    seen = ads(4, phrase=[0, 0, 1, 1], shown=[500, 500, 500, 500], clicked=[60, 50, 3, 4])
    policy = BayesGreedy()
    state = policy.observe(policy.start(None), seen, 0.0)
    known = policy.observe(
        state, ads(6, phrase=[0, 0, 1, 1, 0, 1], shown=[500] * 4 + [0] * 2, clicked=[60, 50, 3, 4, 0, 0]), 1.0
    )
    good, bad = (
        policy.score(policy.get_ad_priors(known), ads(1, ad=[ad], phrase=[phrase]))[0]
        for ad, phrase in ((4, 0), (5, 1))
    )
    assert good > 2 * bad


def test_ours_believes_counts_more_the_more_there_are() -> None:
    """One click of two has less weight than a hundred of two hundred."""
    policy = BayesGreedy(exploration=0.0)
    few, many = (ads(1, shown=[times], clicked=[times / 2]) for times in (2, 200))
    assert policy.score(NO_PRIORS, few)[0] < policy.score(NO_PRIORS, many)[0] < 0.5 * 100


def test_ours_says_why() -> None:
    """The line has the rate, its certainty, the bid and the discount."""
    text = BayesGreedy().reason(BayesGreedy().start(None), ONE, 0, 0.0)
    assert "believed to click" in text
    assert "bid 2.50" in text
