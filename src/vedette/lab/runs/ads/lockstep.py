"""Ad markets of many seeds in lockstep: one step answers a query in each, so 20 seeds take little longer than one.

It does what ``runs.ads.run`` does one by one, for policies that rank by a score of elements (``ScorePolicy``): the
policy computes its score for a table with a row for each market. Ties are drawn for all of them together.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from vedette.lab.runs.ads.run import PERIODS_PER_DAY, MarketOutcome, split_periods
from vedette.lab.worlds.ads_market import AdMarketDay
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.ads.by_score import NO_PRIORS, AdPriors, ScorePolicy
from vedette.serve.ads.candidates import AdCandidates
from vedette.serve.ads.pacing import is_resting
from vedette.serve.ads.slot_factors import FIRST_FACTORS, SlotCounts

Bools = npt.NDArray[np.bool_]

_COUNT_COLUMNS = ("shown", "views", "clicked")
_OFFER_COLUMNS = ("phrase", "advertiser", "cluster", "bid", "prior_clicked", "prior_shown")


class _CandidateTable:
    """Candidates in the shape of a table; a column is fetched when a score asks for it."""

    __slots__ = ("_columns", "ad", "asked")

    def __init__(self, columns: dict[str, Any], ad: Ints, asked: Floats) -> None:
        self._columns, self.ad, self.asked = columns, ad, asked

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a column
        return self._columns[name][self.ad]


class _Markets:
    """The ads of all markets, numbered through; the last number is an ad that is nobody's and is never shown."""

    def __init__(self, first: Sequence[AdMarketDay], slots: int) -> None:
        self._size = len(first[0].rate)
        # By market: how much each slot is believed to be seen.
        self.slot_factors = np.tile(FIRST_FACTORS[:slots], (len(first), 1))
        self._counts = SlotCounts(self._size * len(first) + 1, slots)
        self._pacing_share = np.full(self._size * len(first) + 1, np.inf)
        self._ads = self._size * len(first)
        self.columns: dict[str, Any] = {name: np.zeros(self._ads + 1) for name in _COUNT_COLUMNS}
        self._table = _build_ad_table(first)
        self.asked = np.zeros(self._table.shape[:2])
        self._rows = np.arange(len(first))

    def open_day(self, days: Sequence[AdMarketDay]) -> None:
        """A new day in each market: new ads, whole budgets."""
        for name in _OFFER_COLUMNS:
            self.columns[name] = _concat_padded([getattr(day.offers, name) for day in days])
        new = np.concatenate([day.new + self._size * number for number, day in enumerate(days)])
        for name in _COUNT_COLUMNS:
            self.columns[name][new] = 0.0
        self._counts.forget(new)
        self.columns["budget"] = _concat_padded([day.budget[day.offers.advertiser] for day in days])
        self.columns["remaining"] = self.columns["budget"].copy()
        self.columns["may"] = self.columns["remaining"] >= self.columns["bid"]
        self.columns["bid"][-1] = 1.0  # so that nothing infinite is multiplied by 0
        self.columns["may"][-1] = False
        self.columns["rate"] = _concat_padded([day.rate for day in days])
        self.columns["place"] = _concat_padded([day.position for day in days])

    def candidates(self, phrase: Ints) -> AdCandidates:
        """The ads of one phrase of each market, as a table."""
        found = _CandidateTable(self.columns, self._table[self._rows, phrase], self.asked[self._rows, phrase, None])
        return cast("AdCandidates", found)

    def all_ads(self, market: int) -> AdCandidates:
        """Every ad of a market, under the numbers that it has there."""
        span = slice(self._size * market, self._size * (market + 1))
        columns = {name: self.columns[name][span] for name in (*_OFFER_COLUMNS, *_COUNT_COLUMNS, "budget", "remaining")}
        zeros = np.zeros(self._size)
        asked = self.asked[market][columns["phrase"]]
        return AdCandidates(
            ad=np.arange(self._size), asked=asked, asked_then=zeros, shown_then=zeros, clicked_then=zeros, **columns
        )

    def set_pacing(self, shares: Sequence[float]) -> None:
        """By market: from now on an advertiser that was charged this share of the day's budget rests."""
        self._pacing_share[:-1] = np.repeat(shares, self._size)

    def can_show(self, ad: Ints) -> Bools:
        """Which ads may be shown."""
        found: Bools = self.columns["may"][ad]
        if self._pacing_share[0] < np.inf:
            found = found & ~is_resting(
                self.columns["remaining"][ad], self.columns["budget"][ad], self._pacing_share[ad]
            )
        return found

    def draw_clicks(self, ad: Ints, luck: Floats, factor: float) -> Bools:
        """Which are clicked, one in each market."""
        found: Bools = (luck[self._rows, self.columns["place"][ad]] < self.columns["rate"][ad] * factor) & (ad >= 0)
        return found

    def record_shown(self, phrase: Ints, shown: Ints, slot: int, hit: Bools) -> None:
        """An ad was shown in some slot of each market, and perhaps clicked; nobody's where none could be."""
        if self.slot_factors.shape[1] > 1:
            self._counts.add(shown, np.full(len(shown), slot), np.ones(len(shown)), hit.astype(np.float64))
        self.columns["shown"][shown] += 1.0
        self.columns["views"][shown] += self.slot_factors[:, slot]
        if slot == 0:
            self.asked[self._rows, phrase] += 1.0

    def learn_slot_factors(self, market: int, told: AdPriors) -> None:
        """Learn how much slots are seen in a market."""
        found = self._counts.estimate_factors(told, self.all_ads(market), self._size * market)
        if found is not None:
            self.slot_factors[market] = found

    def charge(self, market: int, ad: int) -> tuple[int, float]:
        """A click: who pays, and how much."""
        columns, begin = self.columns, self._size * market
        columns["clicked"][ad] += 1.0
        advertiser, bid = int(columns["advertiser"][ad]), float(columns["bid"][ad])
        own = begin + np.flatnonzero(columns["advertiser"][begin : begin + self._size] == advertiser)
        columns["remaining"][own] -= bid
        columns["may"][own] = columns["remaining"][own] >= columns["bid"][own]
        return advertiser, bid


def run_lockstep(
    markets: Sequence[Sequence[AdMarketDay]], policy: ScorePolicy, slots: int, factors: Floats, seed: int
) -> list[MarketOutcome]:
    """Run a policy through all days of all markets, which must be of one setting."""
    desk = _LockstepServer([days[0] for days in markets], policy, slots, factors, seed)
    length, advertisers = len(markets[0]), len(markets[0][0].budget)
    spent = np.zeros((len(markets), length, PERIODS_PER_DAY, advertisers))
    counts = np.zeros((len(markets), 2, length))
    for number in range(length):
        days = [each[number] for each in markets]
        query = desk.open_day(days)
        for step, beat in enumerate(split_periods(len(query))):
            desk.learn([float(day.at_s[beat.start]) for day in days])
            paid = spent[:, number, step]
            paid += spent[:, number, step - 1] if step else 0.0
            for moment in beat:
                desk.answer(query[moment], moment, paid, counts[:, :, number])
    budget = np.array([[day.budget for day in days] for days in markets])
    return [
        MarketOutcome(spent[at], budget[at], counts[at, 0], counts[at, 1], desk.slot_factors[at])
        for at in range(len(markets))
    ]


class _LockstepServer:
    """Where a query of each market is answered at a time."""

    def __init__(
        self, first: Sequence[AdMarketDay], policy: ScorePolicy, slots: int, factors: Floats, seed: int
    ) -> None:
        self._markets = _Markets(first, slots)
        self._policy, self._slots, self._factors = policy, slots, factors
        self._rng = rng_for(seed, f"serve/sponsor/{policy.name}/lockstep")
        self._states = [policy.start(None) for _ in first]
        self._estimates = NO_PRIORS
        self._rows = np.arange(len(first))
        self._luck = np.zeros((0, 0, 0))

    @property
    def slot_factors(self) -> Floats:
        """How much each slot is believed to be seen, by market."""
        return self._markets.slot_factors

    def open_day(self, days: Sequence[AdMarketDay]) -> Ints:
        """A new day; what is asked in it, by moment and market."""
        self._markets.open_day(days)
        self._luck = _stack_luck(days)
        return np.stack([day.query for day in days], 1)

    def learn(self, now: Sequence[float]) -> None:
        """The policy is shown all ads of each market."""
        policy, all_ads = self._policy, self._markets.all_ads
        self._states = [policy.observe(state, all_ads(at), now[at]) for at, state in enumerate(self._states)]
        told = [policy.get_ad_priors(state) for state in self._states]
        if self._slots > 1:
            for market, each in enumerate(told):
                self._markets.learn_slot_factors(market, each)
        self._estimates = _concat_estimates(told)
        self._markets.set_pacing([policy.get_spend_limit(state, now[at]) for at, state in enumerate(self._states)])

    def answer(self, phrase: Ints, moment: int, paid: Floats, counts: Floats) -> None:
        """Show, see what is clicked, charge. Nobody is charged before all slots are filled."""
        shown = [*self._choose_ads(phrase)]
        for slot, ads in enumerate(shown):
            hit = self._markets.draw_clicks(ads, self._luck[moment], self._factors[slot])
            self._markets.record_shown(phrase, ads, slot, hit)
            counts[:, 0] += ads >= 0
            for market in hit.nonzero()[0].tolist():
                advertiser, bid = self._markets.charge(market, int(ads[market]))
                paid[market, advertiser] += bid
                counts[market, 1] += 1

    def _choose_ads(self, phrase: Ints) -> Iterator[Ints]:
        """The ad of each slot in each market, -1 where there is none; ties by lot."""
        options = self._markets.candidates(phrase)
        # Ads that cannot pay are scored with the rest: infinity times nothing is no number, and is masked at once.
        with np.errstate(invalid="ignore"):
            score = np.where(self._markets.can_show(options.ad), self._policy.score(self._estimates, options), -np.inf)
        for _ in range(self._slots):
            best = score.max(axis=1)
            place = ((score == best[:, None]) * self._rng.random(score.shape, np.float32)).argmax(axis=1)
            yield np.where(best > -np.inf, options.ad[self._rows, place], -1)
            score[self._rows, place] = -np.inf


def _build_ad_table(first: Sequence[AdMarketDay]) -> Ints:
    """The ads of each phrase of each market, in numbers that go through; -1 where there are no more."""
    size, phrases = len(first[0].rate), int(max(day.offers.phrase.max() for day in first)) + 1
    table = np.full((len(first), phrases, int(max(day.position.max() for day in first)) + 1), -1)
    for number, day in enumerate(first):
        table[number, day.offers.phrase, day.position] = np.arange(size) + size * number
    return table


def _concat_padded(parts: Sequence[Any]) -> Any:  # noqa: ANN401 - columns of any type
    """Columns one after the other, and an element for the ad that is nobody's."""
    return np.concatenate([*parts, np.zeros(1, parts[0].dtype)])


def _concat_estimates(told: Sequence[AdPriors]) -> AdPriors:
    # Ones for the ad that is nobody's: nothing is divided by 0.
    columns = [list(column) for column in zip(*told, strict=True)]
    return AdPriors(*(np.concatenate([*column, np.ones(1)]) if len(column[0]) else column[0] for column in columns))


def _stack_luck(days: Sequence[AdMarketDay]) -> Floats:
    """By query, market and place."""
    drawn = [day.click_draws() for day in days]
    width = max(each.shape[1] for each in drawn)
    whole = np.ones((len(drawn[0]), len(days), width), np.float32)
    for number, each in enumerate(drawn):
        whole[:, number, : each.shape[1]] = each
    return cast("Floats", whole)
