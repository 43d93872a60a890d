"""Bayes-greedy ad policy: rank by the expected revenue of an impression, less if a budget runs short."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from vedette.policy import Floats
from vedette.serve.ads.by_score import (
    NO_PRIORS,
    UNKNOWN_AD_CLICKS,
    AdPriors,
    ScorePolicy,
    estimate_rates,
    look_up,
)
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.click_rates import FIRST_RATE, NEUTRAL_BELIEFS, Beliefs, get_prior, update_beliefs
from vedette.serve.ads.pacing import NO_TRAFFIC, Traffic, compute_discounts, spend_allowance, update_traffic


class AdMemory(NamedTuple):
    """Memory of the Bayes-greedy ad policy: click rate beliefs, traffic plan, bid discounts, and ad priors."""

    beliefs: Beliefs
    traffic: Traffic
    keep: Floats
    ads: AdPriors


@dataclass(frozen=True, slots=True)
class BayesGreedy(ScorePolicy):
    """Bayes-greedy ad policy (ours): rank by optimistic click rate times bid times budget discount.

    score = (expected rate + exploration x sqrt(ln(1 + n_j / (1 + views))) x its standard deviation) x bid x keep

    The rate is an empirical-Bayes posterior over phrase, advertiser and ad (``click_rates``), with impressions weighted
    by the visibility of their slot. Uncertain ads are tried where that pays: the deviation is on the scale of the rate
    itself, and counts more the more often the phrase is searched relative to the views of the ad. ``keep`` is below 1
    only for an advertiser whose budget would not last through the queries that the traffic plan still expects today
    (``pacing``); the first day has no plan, and no discount.

    Useful for: few impressions per ad, new ads, budgets. Not useful for: a single phrase with few ads and no budget,
    where there is nothing to learn from others.
    """

    name: str = "believed"
    exploration: float = 1.0
    paces: bool = True

    def start(self, config: None) -> AdMemory:
        """Return the initial memory of the Bayes-greedy ad policy."""
        return AdMemory(NEUTRAL_BELIEFS, NO_TRAFFIC, np.ones(0), NO_PRIORS)

    def observe(self, state: AdMemory, batch: AdCandidates, now: float) -> AdMemory:
        """Learn from all ads: their counts, how often phrases were searched, and remaining budgets."""
        beliefs = update_beliefs(state.beliefs, batch)
        clicks, views = get_prior(beliefs, batch)
        traffic = update_traffic(state.traffic, _count_queries(batch), now)
        keep = np.ones(len(beliefs.advertiser))
        if self.paces:
            value = batch.bid * estimate_rates(_index_by_ad(batch, clicks, views, keep), batch)[0]
            keep = compute_discounts(traffic, batch, value, state.keep, now)
        return AdMemory(beliefs, traffic, keep, _index_by_ad(batch, clicks, views, keep))

    def set_traffic(self, state: AdMemory, traffic: Traffic) -> AdMemory:
        """Return the memory with a traffic plan built from the ledger."""
        return state._replace(traffic=traffic)

    def get_ad_priors(self, state: AdMemory) -> AdPriors:
        """Return the click rate prior and bid discount of each ad."""
        return state.ads

    def score(self, told: AdPriors, options: AdCandidates) -> Floats:
        """Score each ad by the expected worth of an impression, with an exploration bonus."""
        mean, deviation = estimate_rates(told, options)
        unknown = np.sqrt(np.log1p(options.asked / (1.0 + options.views)))
        return (mean + self.exploration * unknown * deviation) * options.bid * look_up(told.keep, options.ad, 1.0)

    def reason(self, state: AdMemory, batch: AdCandidates, row: int, now: float) -> str:
        """Describe the estimated click rate of an ad, its uncertainty, and how much the bid counts."""
        # For one row only, with plain numbers: this is called for each ad that is shown.
        ad, told = int(batch.ad[row]), state.ads
        clicks, views, keep = UNKNOWN_AD_CLICKS, UNKNOWN_AD_CLICKS / FIRST_RATE, 1.0
        if ad < len(told.clicks):
            clicks, views, keep = told.clicks.item(ad), told.views.item(ad), told.keep.item(ad)
        clicks += batch.clicked.item(row) + batch.prior_clicked.item(row)
        views += batch.views.item(row) + batch.prior_shown.item(row)
        held = f", counts {keep:.2f} as its budget would not last the day" if keep < 1 else ""
        rate = f"{clicks / views:.2%} (+- {sqrt(clicks) / views:.2%}) believed to click"
        shown, bid = batch.shown.item(row), batch.bid.item(row) / 100
        return f"{self.name}: {rate} after {shown:.0f} showings, bid {bid:.2f}{held}"


def _count_queries(ads: AdCandidates) -> Floats:
    asked = np.zeros(int(ads.phrase.max(initial=-1)) + 1)
    asked[ads.phrase] = ads.asked
    return asked


def _index_by_ad(ads: AdCandidates, clicks: Floats, views: Floats, keep: Floats) -> AdPriors:
    """Index priors by ad number; numbers without an ad in the batch get the default prior."""
    size = int(ads.ad.max(initial=-1)) + 1
    spread = AdPriors(np.full(size, UNKNOWN_AD_CLICKS), np.full(size, UNKNOWN_AD_CLICKS / FIRST_RATE), np.ones(size))
    for column, values in zip(spread, (clicks, views, keep[ads.advertiser]), strict=True):
        column[ads.ad] = values
    return spread


@dataclass(frozen=True, slots=True)
class PacedGreedy(BayesGreedy):
    """Ours, as it runs live: ``BayesGreedy`` with budget pacing, so that budgets last through the day.

    A discounted bid keeps an ad from being shown if there are others. If it is alone, its budget would be gone in the
    first hours of a day. So an advertiser that was charged a larger share of the budget than the share of a usual day's
    queries so far, plus ``ahead``, pauses until more queries have come. The first day has no plan, and no pause.

    Useful for: budgets that should last through the day. Not useful for: a day that ends before its usual time.
    """

    name: str = "paced"
    ahead: float = 0.1

    def get_spend_limit(self, state: AdMemory, now: float) -> float:
        """Return the share of the day's budget that the traffic plan allows by now."""
        return spend_allowance(state.traffic, now, self.ahead)
