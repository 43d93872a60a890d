"""Synthetic ad markets, simulations of them, and bounds."""

from dataclasses import replace

import numpy as np
import pytest

from vedette.errors import UsageError
from vedette.lab.bounds.ads_lp import solve_days, solve_lp_revenue
from vedette.lab.core.experiment import Cell, Span
from vedette.lab.core.plan import RunRequest, build_plan
from vedette.lab.core.registry import load_policies
from vedette.lab.experiments.ads import EXPERIMENT
from vedette.lab.experiments.ads_promises import GUARANTEES, build_guarantee_rows
from vedette.lab.runs.ads.live_market import ATTACKS, Attack, run_live_market
from vedette.lab.runs.ads.lockstep import run_lockstep
from vedette.lab.runs.ads.run import PERIODS_PER_DAY, MarketOutcome, run_market, with_known_rates
from vedette.lab.worlds.ads_market import (
    AD_MARKETS,
    SLOTS,
    AdMarketDay,
    AdMarketSetting,
    check_ad_market,
    draw_beta_priors,
    draw_market_days,
    parse_ad_market,
)
from vedette.policy import Floats, rng_for
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.policies.bayes_greedy import BayesGreedy, PacedGreedy
from vedette.serve.ads.policies.greedy import Greedy
from vedette.serve.ads.slot_factors import FIRST_FACTORS

SMALL = AdMarketSetting(days=2, queries=300, budget_share=0.3, new_share=0.1)
POLICIES = load_policies("ads")


def days_of(seed: int = 1, setting: AdMarketSetting = SMALL) -> list[AdMarketDay]:
    """Return a small market."""
    return draw_market_days(setting, seed)


def test_the_four_markets_are_as_described() -> None:
    """Days, queries, share of budgets, new ads and shifts are as described."""
    report = {
        name: (each.days, each.queries, each.budget_share, each.new_share, each.shifts)
        for name, each in AD_MARKETS.items()
    }
    assert report == {
        "few": (8, 3_000, 0.5, 0.0, False),
        "new-ads": (8, 3_000, 0.5, 0.1, False),
        "tight": (10, 10_000, 0.15, 0.1, False),
        "shift": (8, 6_000, 0.5, 0.0, True),
    }


def test_a_market_has_what_it_says() -> None:
    """Sixty advertisers are on six of forty phrases each, six in ten with budgets that add up to the share."""
    day = days_of()[0]
    assert np.bincount(day.offers.advertiser).tolist() == [6] * 60
    assert len(np.unique(day.offers.phrase * 60 + day.offers.advertiser)) == 360
    limited = np.isfinite(day.budget)
    assert limited.sum() == 36
    popularity = np.arange(1, 41) ** -0.8 / (np.arange(1, 41) ** -0.8).sum()
    best = [float((day.offers.bid * day.rate)[day.offers.phrase == phrase].max(initial=0)) for phrase in range(40)]
    assert day.budget[limited].sum() == pytest.approx(0.3 * 300 * (popularity @ best), abs=36)


def test_rates_and_bids_have_the_stated_quantiles() -> None:
    """Over many ads, the median rate is 2.2%, and the median bid 6.25."""
    days = [days_of(seed, replace(SMALL, days=1))[0] for seed in range(20)]
    rate, bid = np.concatenate([day.rate for day in days]), np.concatenate([day.offers.bid for day in days])
    assert np.quantile(rate, [0.25, 0.5, 0.75]) == pytest.approx([0.0084, 0.022, 0.046], rel=0.2)
    assert np.quantile(bid / 100, [0.1, 0.5, 0.9]) == pytest.approx([0.24, 6.25, 8.75], rel=0.1)


def test_a_tenth_is_new_each_day() -> None:
    """The others keep their bids and rates."""
    first, second = days_of()
    changed = np.flatnonzero((first.rate != second.rate) | (first.offers.bid != second.offers.bid))
    assert len(second.new) == 36
    assert set(changed) <= set(second.new)


def test_what_is_asked_shifts_only_where_it_should() -> None:
    """In a shifting market, the mornings of some phrase differ from its evenings, on both days alike."""
    shifting = days_of(1, replace(SMALL, queries=6_000, shifts=True))
    halves = [[np.bincount(part, minlength=40)[0] for part in np.array_split(day.query, 2)] for day in shifting]
    steady = [
        np.bincount(part, minlength=40)[0]
        for part in np.array_split(days_of(1, replace(SMALL, queries=6_000))[0].query, 2)
    ]
    assert max(halves[0]) > 1.3 * min(halves[0])
    assert np.argmax(halves[0]) == np.argmax(halves[1])
    assert max(steady) < 1.3 * min(steady)


def test_markets_follow_from_their_seed() -> None:
    """The same seed gives the same days and luck; another one gives others."""
    one, same, other = days_of(3), days_of(3), days_of(4)
    assert np.array_equal(one[1].query, same[1].query)
    assert np.array_equal(one[1].click_draws(), same[1].click_draws())
    assert not np.array_equal(one[1].query, other[1].query)


def test_names_that_no_market_has_are_refused() -> None:
    """Names with variants can be parsed."""
    assert parse_ad_market("few+flat").factors[:3] == (1.0, 1.0, 1.0)
    assert parse_ad_market("tight+prior-50-90").accuracy == 0.9
    assert parse_ad_market("new-ads+life-3").life_days == 3.0
    for name in ("cells", "few+alone", "shift+clusters"):
        check_ad_market(name)
    for name in ("fewer", "few+", "few+life-", "few+prior-5"):
        with pytest.raises(UsageError, match="there is no market"):
            parse_ad_market(name)


def test_priors_have_the_corrected_spread() -> None:
    """For c = .2 and v = .9 the mean is between .1 and .3 with probability .49; 0.58 is a misprint."""
    alpha, both = draw_beta_priors(np.full(40_000, 0.2), 0.9, rng_for(1, "tests/priors"))
    mean = alpha / both
    assert np.mean((mean > 0.1) & (mean < 0.3)) == pytest.approx(0.49, abs=0.01)
    assert (mean * (1 - mean) / (both + 1))[:5] == pytest.approx(mean[:5] * 0.1)


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_exceeds_a_budget(name: str) -> None:
    """This is true to the cent, with one slot or three."""
    days = days_of(1, replace(SMALL, days=1))
    for slots in (1, 3):
        found = run_market(days, POLICIES[name], slots, SLOTS, 1)
        assert found.overspend == 0.0
        assert found.shown.sum() <= slots * 300


@pytest.mark.parametrize("slots", [1, 2])
def test_side_by_side_is_as_one_by_one(slots: int) -> None:
    """Ours has no ties, so both ways of running show, earn and spend exactly the same."""
    markets = [days_of(seed, replace(SMALL, queries=120)) for seed in (1, 2, 3)]
    together = run_lockstep(markets, BayesGreedy(), slots, SLOTS, 1)
    for days, found in zip(markets, together, strict=True):
        alone = run_market(days, BayesGreedy(), slots, SLOTS, 1)
        assert np.array_equal(alone.spent, found.spent)
        assert np.array_equal(alone.shown, found.shown)


@pytest.mark.parametrize(
    "name", [name for name, each in POLICIES.items() if isinstance(each, ScorePolicy) and name != "two-level"]
)
def test_the_future_does_not_leak(name: str) -> None:
    """Queries and clicks of the second day change nothing on the first."""
    short = replace(SMALL, queries=120)
    first, second = days_of(1, short)
    other = days_of(9, short)[1]
    changed = second._replace(query=other.query, rate=other.rate, offers=second.offers, seed=99)
    runs = [run_lockstep([[first, day]], POLICIES[name], 1, SLOTS, 1)[0] for day in (second, changed)]
    assert np.array_equal(runs[0].spent[0], runs[1].spent[0])


def test_true_rates_are_not_seen_but_through_clicks() -> None:
    """With the same clicks, other rates change nothing."""
    days = days_of(1, replace(SMALL, days=1))
    never = [day._replace(rate=day.rate * 1e-12) for day in days]
    other = [day._replace(rate=day.rate[::-1] * 1e-12) for day in days]
    runs = [run_market(each, BayesGreedy(), 1, SLOTS, 1) for each in (never, other)]
    assert runs[0].clicked.sum() == runs[1].clicked.sum() == 0
    assert np.array_equal(runs[0].shown, runs[1].shown)


def test_the_linear_programme_on_an_example() -> None:
    """Two phrases with ten queries each; the best ad can pay for five of them, so the other one takes the rest."""
    value, phrase, advertiser = np.array([2.0, 1.0, 1.0]), np.array([0, 0, 1]), np.array([0, 1, 1])
    found = solve_lp_revenue(value, phrase, advertiser, np.array([10.0, 10.0]), np.array([10.0, np.inf]), np.ones(1))
    assert found == pytest.approx(5 * 2 + 5 + 10)


def test_nobody_earns_more_than_the_bound_on_average() -> None:
    """Known rates without budgets come close to it, over many markets."""
    setting = replace(SMALL, days=1, queries=1_000)
    markets = [[day._replace(budget=np.full(60, np.inf)) for day in days_of(seed, setting)] for seed in range(12)]
    bound = sum(float(solve_days(days, 1, SLOTS).sum()) for days in markets)
    found = run_lockstep([with_known_rates(days) for days in markets], Greedy(), 1, SLOTS, 1)
    assert sum(each.revenue.sum() for each in found) == pytest.approx(bound, rel=0.1)


def test_lower_slots_are_learned_from_their_clicks() -> None:
    """This is the same one by one and side by side: if all slots are seen alike, the initial guess is replaced."""
    setting = replace(parse_ad_market("few+flat"), days=4, queries=2_000)
    days = [draw_market_days(setting, seed) for seed in (1, 2)]
    factors = np.array(setting.factors)
    alone = run_market(days[0], BayesGreedy(), 3, factors, 1)
    together = run_lockstep(days, BayesGreedy(), 3, factors, 1)
    for outcome in (alone, *together):
        assert outcome.slot_factors[0] == 1.0
        assert all(outcome.slot_factors[1:] > FIRST_FACTORS[1:3] + 0.1)
        assert all(np.diff(outcome.slot_factors) <= 0)


def test_overspending_would_be_seen() -> None:
    """The number that must be 0 is not always 0."""
    spent: Floats = np.zeros((1, PERIODS_PER_DAY, 2))
    spent[0, -1] = [7.0, 3.0]
    assert MarketOutcome(spent, np.array([[5.0, np.inf]]), *np.zeros((3, 1))).overspend == 2.0


@pytest.mark.parametrize(
    ("world", "policy"), [(world, policy) for world, each in GUARANTEES.items() for policy in each]
)
def test_what_is_proven_is_kept(world: str, policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is checked in three small markets, one of each kind."""
    monkeypatch.setattr("vedette.lab.experiments.ads_promises.REPEATS", 1)
    for seed in (1, 2, 3):
        assert all(row["kept"] == 1.0 for row in build_guarantee_rows(world, policy, 1, seed))


def test_rows_of_a_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is one for the whole and one per day; the bound is compared with itself.

    Odd numbers of slots are refused.
    """
    monkeypatch.setitem(AD_MARKETS, "few", replace(SMALL, queries=120))
    monkeypatch.setattr("vedette.lab.experiments.ads.BLOCK_SIZE", 2)
    rows = {
        name: EXPERIMENT.run(Cell("sponsor", "market:few", name, 1.0, 2))
        for name in ("default", "bound-lp", "bound-known")
    }
    assert [row.get("day") for row in rows["default"]] == [None, 1.0, 2.0]
    assert rows["default"][0]["overspend"] == 0.0
    assert sum(row["revenue"] for row in rows["default"][1:]) == pytest.approx(rows["default"][0]["revenue"])
    assert rows["bound-lp"][0]["of_lp"] == rows["bound-known"][0]["of_known"] == 1.0
    assert set(rows) <= set(EXPERIMENT.policies)
    with pytest.raises(UsageError, match="number of slots"):
        EXPERIMENT.run(Cell("sponsor", "market:few", "default", 1.5, 2))


TINY = replace(SMALL, queries=150)


def test_a_live_market_is_charged_second_prices_within_budgets() -> None:
    """Charges are at most the bids on the same days, and never beyond a budget; limits cost little."""
    days = draw_market_days(TINY, 3)
    found = run_live_market(days, PacedGreedy(), 1, SLOTS, 1)
    free = run_live_market(days, PacedGreedy(), 1, SLOTS, 1, limits=False)
    assert found.overspend == free.overspend == 0.0
    assert 0 < found.spent.sum() <= 1.5 * free.spent.sum()
    highest = max(float(day.offers.bid.max()) for day in days)
    assert found.spent.sum() <= found.clicked * highest


@pytest.mark.parametrize("kind", ATTACKS)
def test_an_attack_is_bounded(kind: str) -> None:
    """Each network costs at most a click per day or a fifth of the victim's budget, for any number of clicks."""
    days = draw_market_days(TINY, 3)
    usual = run_live_market(days, PacedGreedy(), 1, SLOTS, 1)
    victim = int(np.where(np.isfinite(usual.budget[0]), usual.shown.sum(axis=0), -1.0).argmax())
    found = run_live_market(days, PacedGreedy(), 1, SLOTS, 1, Attack(kind, 2, victim))
    assert found.overspend == 0.0
    others = np.arange(found.attacked.shape[1]) != victim
    assert found.attacked[:, others].sum() == 0.0
    offers = days[0].offers
    click = float(offers.bid[offers.advertiser == victim].max())
    networks = 1 if kind == "subnet" else 2
    most = networks * np.maximum(click, 0.2 * found.budget[:, victim])
    assert (found.attacked[:, victim] <= most).all()
    assert kind != "flood" or found.attacked.sum() == 0.0


def test_live_charging_is_asked_for_by_name() -> None:
    """It is an option of a run, or follows the market's name.

    An attack is always live, and bounds have no rows there.
    """
    plan = build_plan(RunRequest(["sponsor"], ["market:few"], ["default"], seeds=1, charge="live"))
    assert [cell.world for cell in plan.cells] == ["market:few+live"]
    assert parse_ad_market("few+live").live
    assert (parse_ad_market("tight+drain-20").attack, parse_ad_market("tight+drain-20").addresses) == ("drain", 20)
    assert EXPERIMENT.run(Cell("sponsor", "market:few+live", "bound-lp", 1.0, 1)) == []
    with pytest.raises(UsageError, match="number of days"):
        EXPERIMENT.run(Cell("sponsor", "market:few+live", "default", 1.0, 1, Span("", "2024-01-01")))
