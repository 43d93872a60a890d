"""Ad statistics: counts, which ads may be shown, and when a budget is limiting."""

import numpy as np
import pytest
from tests.serve.ads.ad_batches import ads

from vedette.lab.baselines.ads.ad_statistics import AdOffers, AdStats
from vedette.policy import rng_for
from vedette.serve.ads.by_score import NO_PRIORS, AdPriors
from vedette.serve.ads.click_rates import NEUTRAL_BELIEFS, get_prior, update_beliefs
from vedette.serve.ads.count_scores import msvv_discount
from vedette.serve.ads.pacing import (
    NO_TRAFFIC,
    Traffic,
    compute_discounts,
    expected_queries,
    spend_allowance,
    update_traffic,
)
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts, fit_slot_factors

FACTORS = np.array([1.0, 0.5])
HOUR_S = 3_600.0


def book_of(budget: list[float], reserve: float = 0.0) -> AdStats:
    """Return two phrases with two advertisers each; the first bids 2.00, the second 1.00."""
    offers = AdOffers(
        np.array([0, 0, 1, 1]),
        np.array([0, 1, 0, 1]),
        np.zeros(4, np.int64),
        np.array([200.0, 100, 200, 100]),
        *np.zeros((2, 4)),
    )
    return AdStats(offers, np.array(budget), FACTORS, reserve)


def test_counts_are_by_ad_and_slot() -> None:
    """An ad in a lower slot counts as less than a view; its phrase is counted once per query."""
    book = book_of([np.inf, np.inf])
    for clicked in ([True, False], [False, True]):
        book.record_query(0, np.array([1, 0]), np.array(clicked), np.array([100.0, 200.0]))
    every = book.all_ads()
    assert every.asked.tolist() == [2, 2, 0, 0]
    assert every.shown.tolist() == [2, 2, 0, 0]
    assert every.views.tolist() == [1.0, 2.0, 0, 0]
    assert every.clicked.tolist() == [1, 1, 0, 0]


def test_an_ad_takes_part_while_what_is_left_is_no_less_than_its_bid() -> None:
    """A remaining budget equal to the bid is enough, a cent less isn't; a new day restores budgets."""
    book = book_of([400.0, np.inf])
    for left in (200.0, 0.0):
        book.record_query(0, np.array([0]), np.array([True]), np.array([200.0]))
        assert book.remaining[0] == left
        assert book.get_options(1).advertiser.tolist() == ([0, 1] if left else [1])
    book.begin_day(np.array([199.0, np.inf]))
    assert book.get_options(0).advertiser.tolist() == [1]
    book.begin_day(np.array([200.0, np.inf]))
    assert book.get_options(0).advertiser.tolist() == [0, 1]


def test_bids_below_the_reserve_take_no_part() -> None:
    """An ad that bids less than the reserve is not passed to any policy."""
    assert book_of([np.inf, np.inf], reserve=150.0).get_options(0).advertiser.tolist() == [0]


def test_a_phrase_without_ads_has_no_options() -> None:
    """No arguments make a call fail."""
    assert len(book_of([1.0, 1.0]).get_options(0)) == 0
    assert len(book_of([np.inf, np.inf]).get_options(7)) == 0


def test_a_replaced_ad_starts_from_nothing() -> None:
    """A new ad doesn't inherit the counts of the one it replaces; the phrase keeps its count."""
    book = book_of([np.inf, np.inf])
    book.record_query(0, np.array([0]), np.array([True]), np.array([200.0]))
    book.replace_ads(np.array([0]), book_of([1, 1])._offers)
    every = book.all_ads()
    assert every.shown.tolist() == [0, 0, 0, 0]
    assert every.asked.tolist() == [1, 1, 0, 0]


def test_the_book_remembers_when_the_set_of_ads_changed() -> None:
    """Counts since then are what a bandit that starts again may know."""
    book = book_of([200.0, np.inf])
    book.record_query(0, np.array([1]), np.array([False]), np.array([100.0]))
    book.record_query(0, np.array([0]), np.array([True]), np.array([200.0]))
    options = book.get_options(0)
    assert (options.asked - options.asked_then).tolist() == [0]
    assert (options.shown - options.shown_then).tolist() == [0]
    book.record_query(0, np.array([0]), np.array([False]), np.array([100.0]))
    assert (options.shown - options.shown_then).tolist() == [1]


def test_the_discount_is_that_of_msvv() -> None:
    """1 - exp(x - 1), where x is the share already spent."""
    spent = np.linspace(0, 1, 11)
    assert msvv_discount((1 - spent) * 500, np.full(11, 500.0)) == pytest.approx(1 - np.exp(spent - 1))


def test_beliefs_find_the_rate_of_everybody_and_of_phrases() -> None:
    """After many views, the estimate for an unknown ad is near the true rate of its phrase."""
    rng = rng_for(1, "tests/beliefs")
    phrase = np.repeat(np.arange(20), 10)
    truth = np.where(phrase < 10, 0.02, 0.08)
    shown = np.full(200, 400.0)
    seen = ads(200, phrase=phrase, advertiser=np.arange(200) % 10, shown=shown, clicked=rng.binomial(400, truth))
    beliefs = NEUTRAL_BELIEFS
    for _ in range(20):
        beliefs = update_beliefs(beliefs, seen)
    clicks, views = get_prior(beliefs, seen)
    assert (clicks / views)[phrase < 10].mean() == pytest.approx(0.02, rel=0.15)
    assert (clicks / views)[phrase >= 10].mean() == pytest.approx(0.08, rel=0.15)


def test_who_is_shown_most_does_not_speak_for_all() -> None:
    """The estimate for an unknown ad averages over ads, not over views."""
    shown, clicked = np.full(30, 200.0), np.full(30, 4.0)
    shown[0], clicked[0] = 100_000.0, 10_000.0
    beliefs = NEUTRAL_BELIEFS
    for _ in range(50):
        beliefs = update_beliefs(beliefs, ads(30, phrase=np.arange(30), shown=shown, clicked=clicked))
    assert beliefs.rate < 0.04


def usual(per_bin: float) -> Traffic:
    """Return a past day on which the only phrase was searched equally often every hour."""
    traffic = NO_TRAFFIC
    for hour in range(25):
        traffic = update_traffic(traffic, np.array([hour * per_bin]), hour * HOUR_S)
    return traffic


def test_a_plan_is_learned_from_the_day_before() -> None:
    """After a day of ten queries per hour, ten are expected in each hour."""
    traffic = usual(10.0)
    assert traffic.days == 1
    assert expected_queries(traffic, 86_400.0 + 18 * HOUR_S).tolist() == [60.0]
    assert spend_allowance(traffic, 86_400.0 + 6 * HOUR_S, ahead=0.0) == pytest.approx(0.25)


def test_a_bid_counts_less_only_where_its_budget_would_not_last() -> None:
    """Of two equal ads, the one whose advertiser runs short yields; without a plan, none does."""
    traffic = usual(100.0)
    two = ads(2, remaining=[500, np.inf], budget=[500, np.inf])
    value = np.array([5.0, 4.0])
    short, free = compute_discounts(traffic, two, value, np.ones(2), 86_400.0)
    assert short < 0.9
    assert free == 1.0
    assert compute_discounts(NO_TRAFFIC, two, value, np.ones(2), 0.0).tolist() == [1.0, 1.0]
    rich = ads(2, remaining=[1e9, np.inf], budget=[1e9, np.inf])
    assert compute_discounts(traffic, rich, value, np.ones(2), 86_400.0).tolist() == [1.0, 1.0]


def test_slots_are_counted_by_ad_and_forgotten_with_it() -> None:
    """An ad with a high click rate is expected to get more clicks in lower slots; a replaced ad leaves no trace."""
    counts, rows = SlotCounts(0, 2), np.array([0, 0, 1, 1])
    counts.add(rows, np.array([0, 1, 0, 1]), np.full(4, 1e4), np.array([1_000.0, 300.0, 100.0, 30.0]))
    report = AdPriors(np.full(2, 1.0), np.full(2, 20.0), np.ones(2))
    batch = ads(2, clicked=np.array([1_300.0, 130.0]), views=np.full(2, 13_000.0))
    found = counts.estimate_factors(report, batch)
    assert found is not None
    assert found == pytest.approx([1.0, 0.3], abs=0.05)
    assert counts.estimate_factors(NO_PRIORS, batch) is None
    counts.forget(np.arange(2))
    assert counts.estimate_factors(report, batch) == pytest.approx(FIRST_FACTORS[:2])


def test_slots_are_learned_from_clicks_and_never_rise() -> None:
    """Without clicks, the prior remains; many clicks replace it. A lower slot is never seen more than a higher one."""
    none = np.zeros(3)
    assert fit_slot_factors(none, none) == pytest.approx(FIRST_FACTORS[:3])
    expected = np.full(3, 1e6)
    assert fit_slot_factors(np.array([1.0, 0.7, 0.2]) * 1e6, expected) == pytest.approx([1.0, 0.7, 0.2], rel=1e-3)
    turned = fit_slot_factors(np.array([1.0, 0.3, 0.6]) * 1e6, expected)
    assert turned == pytest.approx([1.0, 0.45, 0.45], rel=1e-3)
    assert len(fit_slot_factors(none[:0], none[:0])) == 0
