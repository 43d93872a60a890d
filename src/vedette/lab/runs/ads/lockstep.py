"""Ad markets of many seeds simulated in lockstep: one step answers a query in each, so 20 seeds cost little extra.

It does what ``runs.ads.run`` does one by one, for policies that rank by a score of elements (``ScorePolicy``): the
policy computes its score for a table with one row per market. Ties are drawn for all of them together.
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
    """Ad candidates of all lockstep markets as a table; a column is gathered when a score needs it."""

    __slots__ = ("_columns", "ad", "asked")

    def __init__(self, columns: dict[str, Any], ad: Ints, asked: Floats) -> None:
        self._columns, self.ad, self.asked = columns, ad, asked

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a column
        return self._columns[name][self.ad]


class _Markets:
    """Ads of all lockstep markets, numbered consecutively; the last number is a dummy ad that is never shown."""

    def __init__(self, first: Sequence[AdMarketDay], slots: int) -> None:
        self._size = len(first[0].rate)
        # By market: the estimated visibility of each slot.
        self.slot_factors = np.tile(FIRST_FACTORS[:slots], (len(first), 1))
        self._counts = SlotCounts(self._size * len(first) + 1, slots)
        self._pacing_share = np.full(self._size * len(first) + 1, np.inf)
        self._ads = self._size * len(first)
        self.columns: dict[str, Any] = {name: np.zeros(self._ads + 1) for name in _COUNT_COLUMNS}
        self._table = _build_ad_table(first)
        self.asked = np.zeros(self._table.shape[:2])
        self._rows = np.arange(len(first))

    def open_day(self, days: Sequence[AdMarketDay]) -> None:
        """Open a new day in each lockstep ad market: new ads, full budgets."""
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
        """Return the ad candidates for one phrase of each lockstep market, as a table."""
        found = _CandidateTable(self.columns, self._table[self._rows, phrase], self.asked[self._rows, phrase, None])
        return cast("AdCandidates", found)

    def all_ads(self, market: int) -> AdCandidates:
        """Return every ad of one lockstep market, under the numbers that it has there."""
        span = slice(self._size * market, self._size * (market + 1))
        columns = {name: self.columns[name][span] for name in (*_OFFER_COLUMNS, *_COUNT_COLUMNS, "budget", "remaining")}
        zeros = np.zeros(self._size)
        asked = self.asked[market][columns["phrase"]]
        return AdCandidates(
            ad=np.arange(self._size), asked=asked, asked_then=zeros, shown_then=zeros, clicked_then=zeros, **columns
        )

    def set_pacing(self, shares: Sequence[float]) -> None:
        """Set the pacing of each lockstep market: an advertiser charged this share of the day's budget pauses."""
        self._pacing_share[:-1] = np.repeat(shares, self._size)

    def can_show(self, ad: Ints) -> Bools:
        """Check which ads of the lockstep markets may be shown."""
        found: Bools = self.columns["may"][ad]
        if self._pacing_share[0] < np.inf:
            found = found & ~is_resting(
                self.columns["remaining"][ad], self.columns["budget"][ad], self._pacing_share[ad]
            )
        return found

    def draw_clicks(self, ad: Ints, luck: Floats, factor: float) -> Bools:
        """Draw which of the shown ads are clicked, one in each lockstep market."""
        found: Bools = (luck[self._rows, self.columns["place"][ad]] < self.columns["rate"][ad] * factor) & (ad >= 0)
        return found

    def record_shown(self, phrase: Ints, shown: Ints, slot: int, hit: Bools) -> None:
        """Record the ad shown in a slot of each lockstep market, and its click; the dummy ad if none was shown."""
        if self.slot_factors.shape[1] > 1:
            self._counts.add(shown, np.full(len(shown), slot), np.ones(len(shown)), hit.astype(np.float64))
        self.columns["shown"][shown] += 1.0
        self.columns["views"][shown] += self.slot_factors[:, slot]
        if slot == 0:
            self.asked[self._rows, phrase] += 1.0

    def learn_slot_factors(self, market: int, told: AdPriors) -> None:
        """Learn how visible the ad slots of a lockstep market are from their clicks."""
        found = self._counts.estimate_factors(told, self.all_ads(market), self._size * market)
        if found is not None:
            self.slot_factors[market] = found

    def charge(self, market: int, ad: int) -> tuple[int, float]:
        """Charge a click in a lockstep ad market; return the advertiser that pays, and how much."""
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
    """Run an ad policy through all days of all markets in lockstep; the markets must be of one setting."""
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
    """Ad server of all lockstep markets, which answers one query of each at a time."""

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
        """Return the estimated visibility of each ad slot, by lockstep market."""
        return self._markets.slot_factors

    def open_day(self, days: Sequence[AdMarketDay]) -> Ints:
        """Open a new day in all lockstep ad markets; return the searched phrases, by moment and market."""
        self._markets.open_day(days)
        self._luck = _stack_luck(days)
        return np.stack([day.query for day in days], 1)

    def learn(self, now: Sequence[float]) -> None:
        """Let the ad policy learn from all ads of each lockstep market."""
        policy, all_ads = self._policy, self._markets.all_ads
        self._states = [policy.observe(state, all_ads(at), now[at]) for at, state in enumerate(self._states)]
        told = [policy.get_ad_priors(state) for state in self._states]
        if self._slots > 1:
            for market, each in enumerate(told):
                self._markets.learn_slot_factors(market, each)
        self._estimates = _concat_estimates(told)
        self._markets.set_pacing([policy.get_spend_limit(state, now[at]) for at, state in enumerate(self._states)])

    def answer(self, phrase: Ints, moment: int, paid: Floats, counts: Floats) -> None:
        """Answer a query in each lockstep market: show ads, draw clicks, charge after all slots are filled."""
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
        """Choose the ad of each slot in each lockstep market, -1 for none; ties are broken at random."""
        options = self._markets.candidates(phrase)
        # Ads that cannot pay are scored with the rest: infinity times zero is NaN, and is masked at once.
        with np.errstate(invalid="ignore"):
            score = np.where(self._markets.can_show(options.ad), self._policy.score(self._estimates, options), -np.inf)
        for _ in range(self._slots):
            best = score.max(axis=1)
            place = ((score == best[:, None]) * self._rng.random(score.shape, np.float32)).argmax(axis=1)
            yield np.where(best > -np.inf, options.ad[self._rows, place], -1)
            score[self._rows, place] = -np.inf


def _build_ad_table(first: Sequence[AdMarketDay]) -> Ints:
    """Build the table of the ads of each phrase of each lockstep market; padded with -1."""
    size, phrases = len(first[0].rate), int(max(day.offers.phrase.max() for day in first)) + 1
    table = np.full((len(first), phrases, int(max(day.position.max() for day in first)) + 1), -1)
    for number, day in enumerate(first):
        table[number, day.offers.phrase, day.position] = np.arange(size) + size * number
    return table


def _concat_padded(parts: Sequence[Any]) -> Any:  # noqa: ANN401 - columns of any type
    """Concatenate the ad columns of lockstep markets, with an element for the dummy ad."""
    return np.concatenate([*parts, np.zeros(1, parts[0].dtype)])


def _concat_estimates(told: Sequence[AdPriors]) -> AdPriors:
    # Ones for the dummy ad: nothing is divided by 0.
    columns = [list(column) for column in zip(*told, strict=True)]
    return AdPriors(*(np.concatenate([*column, np.ones(1)]) if len(column[0]) else column[0] for column in columns))


def _stack_luck(days: Sequence[AdMarketDay]) -> Floats:
    """Stack the click draws of lockstep market days by query, market and slot."""
    drawn = [day.click_draws() for day in days]
    width = max(each.shape[1] for each in drawn)
    whole = np.ones((len(drawn[0]), len(days), width), np.float32)
    for number, each in enumerate(drawn):
        whole[:, number, : each.shape[1]] = each
    return cast("Floats", whole)
