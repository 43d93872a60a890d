"""Simulation of one ad market: a policy chooses ads query by query, and learns what was shown, clicked and charged.

A policy gets counts, and nothing else about the world: neither true rates nor future queries. Clicks are charged at
once and at the bid, as in Pandey08; live, a click costs the second price. ``PERIODS_PER_DAY`` times a day the policy
learns from all ads together, and the visibility of lower slots is learned from their clicks.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from vedette.lab.baselines.ads.ad_statistics import AdOffers, AdStats
from vedette.lab.worlds.ads_market import AdMarketDay
from vedette.policy import Choice, Floats, rng_for
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts

PERIODS_PER_DAY = 24
KNOWN_WEIGHT = 1e12
AdPolicy = Choice[None, Any, AdCandidates, AdCandidates]


class MarketOutcome(NamedTuple):
    """Outcome of an ad market simulation: the revenue, in cents.

    ``spent`` is what each advertiser had paid by the end of each period of a day (day, period, advertiser), ``budget``
    what it may pay (day, advertiser). ``shown`` and ``clicked`` are counts of each day. ``slot_factors`` is the final
    estimate of each slot's visibility.
    """

    spent: Floats
    budget: Floats
    shown: Floats
    clicked: Floats
    slot_factors: Floats

    @property
    def revenue(self) -> Floats:
        """Return the ad market's revenue of each day."""
        found: Floats = self.spent[:, -1, :].sum(axis=1)
        return found

    @property
    def overspend(self) -> float:
        """Return the sum charged beyond advertisers' daily budgets; 0 unless something is wrong."""
        return float(np.maximum(self.spent[:, -1, :] - self.budget, 0.0).sum())


def with_known_rates(days: Sequence[AdMarketDay]) -> list[AdMarketDay]:
    """Return the ad market days with true click rates known in advance, as priors that no count can move."""
    return [day._replace(offers=_with_true_priors(day)) for day in days]


def _with_true_priors(day: AdMarketDay) -> AdOffers:
    return day.offers._replace(prior_clicked=day.rate * KNOWN_WEIGHT, prior_shown=np.full(len(day.rate), KNOWN_WEIGHT))


def split_periods(queries: int) -> list[range]:
    """Split the queries of an ad market day into periods; the policy learns at the start of each."""
    cuts = np.linspace(0, queries, PERIODS_PER_DAY + 1).astype(int).tolist()
    return [range(*ends) for ends in pairwise(cuts)]


def run_market(days: Sequence[AdMarketDay], policy: AdPolicy, slots: int, factors: Floats, seed: int) -> MarketOutcome:
    """Run an ad policy through all days of an ad market, with the ad statistics of a server."""
    desk = AdServer(days[0], policy, slots, factors, seed)
    spent = np.zeros((len(days), PERIODS_PER_DAY, len(days[0].budget)))
    counts = np.zeros((2, len(days)))
    for number, day in enumerate(days):
        desk.open_day(day)
        for step, beat in enumerate(split_periods(len(day.query))):
            desk.learn(float(day.at_s[beat.start]))
            paid = spent[number, step]
            paid += spent[number, step - 1] if step else 0.0
            for query in beat:
                counts[:, number] += desk.answer(query, paid)
    return MarketOutcome(spent, np.array([day.budget for day in days]), counts[0], counts[1], desk.slot_factors)


class AdServer:
    """Ad server of a simulated market, which answers queries one after the other."""

    def __init__(self, first: AdMarketDay, policy: AdPolicy, slots: int, factors: Floats, seed: int) -> None:
        # Clicks follow the true factors; the visibility of a slot is a guess until it is learned.
        self.slot_factors: Floats = FIRST_FACTORS[:slots]
        self.ad_store = AdStats(first.offers, first.budget, self.slot_factors)
        self._counts = SlotCounts(len(first.rate), slots)
        self._policy, self._slots, self._factors = policy, slots, factors
        self._rng = rng_for(seed, f"serve/sponsor/{policy.name}")
        self._state = policy.start(None)
        self._day, self._luck = first, first.click_draws()

    def open_day(self, day: AdMarketDay) -> None:
        """Open a new day in the simulated ad market, with its ads."""
        self._day, self._luck = day, day.click_draws()
        self.ad_store.begin_day(day.budget)
        self.ad_store.replace_ads(day.new, day.offers)
        self._counts.forget(day.new)

    def learn(self, now: float) -> None:
        """Let the ad policy learn from all ads of the simulated market."""
        ads = self.ad_store.all_ads()
        self._state = self._policy.observe(self._state, ads, now)
        if not isinstance(self._policy, ScorePolicy):
            return
        self.ad_store.set_spend_limit(self._policy.get_spend_limit(self._state, now))
        if self._slots > 1:
            found = self._counts.estimate_factors(self._policy.get_ad_priors(self._state), ads)
            self.slot_factors = self.slot_factors if found is None else found
            self.ad_store.set_slot_factors(self.slot_factors)

    def answer(self, query: int, paid: Floats) -> tuple[int, int]:
        """Answer a query of the ad market: show ads, draw clicks, charge; return how many were shown and clicked."""
        day, phrase = self._day, int(self._day.query[query])
        options = self.ad_store.get_options(phrase)
        rows = self._policy.choose(self._state, options, self._slots, float(day.at_s[query]), self._rng).rows
        ads = options.ad[rows]
        hits = self._luck[query, day.position[ads]] < day.rate[ads] * self._factors[: len(rows)]
        bids = options.bid[rows]
        paid[options.advertiser[rows[hits]]] += bids[hits]
        if self._slots > 1:
            self._counts.add(ads, np.arange(len(rows)), np.ones(len(rows)), hits.astype(np.float64))
        self.ad_store.record_query(phrase, rows, hits, bids)
        return len(rows), int(np.count_nonzero(hits))
