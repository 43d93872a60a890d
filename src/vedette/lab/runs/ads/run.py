"""A market day by day: whoever chooses is asked query by query, and told what was shown, clicked and charged.

A policy is handed what was counted, and nothing of the world: neither true rates nor what is asked next. Clicks are
charged at once and at the bid, as Pandey08 does; live, a click costs the second price. ``BEATS`` times a day the policy
learns from all ads together, and how much lower slots are seen is learned from their clicks.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from vedette.lab.baselines.ads.ad_statistics import AdBook, Offers
from vedette.lab.worlds.ads_market import MarketDay
from vedette.policy import Choice, Floats, rng_for
from vedette.serve.ads.by_score import ByScore
from vedette.serve.ads.candidates import Candidates
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts

__all__ = ["BEATS", "Desk", "MarketPolicy", "Outcome", "beats_of", "knowing", "run_market"]

BEATS = 24
KNOWN = 1e12
MarketPolicy = Choice[None, Any, Candidates, Candidates]


class Outcome(NamedTuple):
    """What was earned, in cents.

    ``spent`` has what each advertiser had paid by the end of each beat of each day (day, beat, advertiser), ``budget``
    what it may pay (day, advertiser). ``shown`` and ``clicked`` are counts of each day. ``seen`` is how much each slot
    is believed to be seen in the end.
    """

    spent: Floats
    budget: Floats
    shown: Floats
    clicked: Floats
    seen: Floats

    @property
    def revenue(self) -> Floats:
        """What was charged each day."""
        found: Floats = self.spent[:, -1, :].sum(axis=1)
        return found

    @property
    def overspend(self) -> float:
        """What was charged beyond any budget of any day; 0 unless something is wrong."""
        return float(np.maximum(self.spent[:, -1, :] - self.budget, 0.0).sum())


def knowing(days: Sequence[MarketDay]) -> list[MarketDay]:
    """The same days, with true rates told beforehand: as priors that no count can move."""
    return [day._replace(offers=_told(day)) for day in days]


def _told(day: MarketDay) -> Offers:
    return day.offers._replace(prior_clicked=day.rate * KNOWN, prior_shown=np.full(len(day.rate), KNOWN))


def beats_of(queries: int) -> list[range]:
    """The queries of each beat of a day."""
    cuts = np.linspace(0, queries, BEATS + 1).astype(int).tolist()
    return [range(*ends) for ends in pairwise(cuts)]


def run_market(days: Sequence[MarketDay], policy: MarketPolicy, slots: int, factors: Floats, seed: int) -> Outcome:
    """Run any policy through all days, with the book that is used live."""
    desk = Desk(days[0], policy, slots, factors, seed)
    spent = np.zeros((len(days), BEATS, len(days[0].budget)))
    counts = np.zeros((2, len(days)))
    for number, day in enumerate(days):
        desk.open(day)
        for step, beat in enumerate(beats_of(len(day.query))):
            desk.learn(float(day.at_s[beat.start]))
            paid = spent[number, step]
            paid += spent[number, step - 1] if step else 0.0
            for query in beat:
                counts[:, number] += desk.answer(query, paid)
    return Outcome(spent, np.array([day.budget for day in days]), counts[0], counts[1], desk.seen)


class Desk:
    """Where queries are answered, one after the other."""

    def __init__(self, first: MarketDay, policy: MarketPolicy, slots: int, factors: Floats, seed: int) -> None:
        # Clicks follow the true factors; how much a slot is seen is a guess until it is learned.
        self.seen: Floats = FIRST_FACTORS[:slots]
        self._book = AdBook(first.offers, first.budget, self.seen)
        self._counts = SlotCounts(len(first.rate), slots)
        self._policy, self._slots, self._factors = policy, slots, factors
        self._rng = rng_for(seed, f"serve/sponsor/{policy.name}")
        self._state = policy.start(None)
        self._day, self._luck = first, first.luck()

    @property
    def book(self) -> AdBook:
        """What was counted."""
        return self._book

    def open(self, day: MarketDay) -> None:
        """A new day, with its ads."""
        self._day, self._luck = day, day.luck()
        self._book.begin_day(day.budget)
        self._book.replace(day.new, day.offers)
        self._counts.forget(day.new)

    def learn(self, now: float) -> None:
        """The policy is shown all ads."""
        ads = self._book.all_ads()
        self._state = self._policy.observe(self._state, ads, now)
        if not isinstance(self._policy, ByScore):
            return
        self._book.allow(self._policy.allowed(self._state, now))
        if self._slots > 1:
            found = self._counts.factors(self._policy.told(self._state), ads)
            self.seen = self.seen if found is None else found
            self._book.see(self.seen)

    def answer(self, query: int, paid: Floats) -> tuple[int, int]:
        """Show, see what is clicked, charge; how many were shown and clicked."""
        day, phrase = self._day, int(self._day.query[query])
        options = self._book.options(phrase)
        rows = self._policy.choose(self._state, options, self._slots, float(day.at_s[query]), self._rng).rows
        ads = options.ad[rows]
        hits = self._luck[query, day.place[ads]] < day.rate[ads] * self._factors[: len(rows)]
        bids = options.bid[rows]
        paid[options.advertiser[rows[hits]]] += bids[hits]
        if self._slots > 1:
            self._counts.enter(ads, np.arange(len(rows)), np.ones(len(rows)), hits.astype(np.float64))
        self._book.enter(phrase, rows, hits, bids)
        return len(rows), int(np.count_nonzero(hits))
