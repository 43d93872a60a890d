"""Ad selection: which ads a search shows, what each holds, and what a click on one costs.

The same code decides on the results page and in the lab: a server passes the ledger on disk and the time of day, the
lab a ledger in memory and simulated time (``lab.runs.ads.live_market``). A query goes through ``AdCatalog`` (which ads
match), the budget filter (which can pay), the policy (which is shown) and the ledger (what may be held). A placement
is the policy's choice for one ad, with slot, score, propensity, price and reason.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_UP, Decimal
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from vedette.policy import Choice, Floats
from vedette.serve.ads.auction import CENT, second_price
from vedette.serve.ads.by_score import ScorePolicy, estimate_rates
from vedette.serve.ads.candidates import AdCandidates, RankedPicks
from vedette.serve.ads.catalog import AdCatalog, AdMatch, PayerMoney, RunningAd
from vedette.serve.ads.click_validity import DEFAULT_RULES, ClickRules
from vedette.serve.ads.learning import SlotLearner, build_traffic, to_local_s
from vedette.serve.ads.ledger import (
    AdImpression,
    AdLedger,
    AdQuery,
    ClickContext,
    ClickOutcome,
    ImpressionOffer,
    LedgerView,
    LostImpression,
    PayerBudget,
    budget_lines,
    compute_hold,
)
from vedette.serve.ads.pacing import is_resting


class Placement(NamedTuple):
    """An ad placed in a slot (from 0): ``charge`` is the price of a click in money, never above the bid."""

    ad: int
    slot: int
    score: float
    propensity: float
    charge: Decimal
    reason: str


def place_ads(
    policy: Choice[None, Any, AdCandidates, AdCandidates],
    state: Any,  # noqa: ANN401 - the policy's own
    options: AdCandidates,
    slots: int,
    minimum: Decimal,
    now: float,
    rng: np.random.Generator,
) -> list[Placement]:
    """Place ads for one query. The score that ranks is the one that prices; ``minimum`` is the reserve."""
    picks = policy.choose(state, options, slots, now, rng)
    assert isinstance(picks, RankedPicks), "a policy of ads gives scores"
    charges = _price_clicks(options, picks, minimum)
    return [
        Placement(
            ad=int(options.ad[row]),
            slot=slot,
            score=float(picks.scores[row]),
            propensity=float(picks.propensities[slot]),
            charge=charges[slot],
            reason=policy.reason(state, options, row, now),
        )
        for slot, row in enumerate(picks.rows.tolist())
    ]


def _price_clicks(options: AdCandidates, picks: RankedPicks, minimum: Decimal) -> list[Decimal]:
    """Compute the click prices of placed ads; the best ad that is not shown counts as the last one outbid."""
    rows = [*picks.rows.tolist(), *_runner_up(picks)]
    cents, scores = options.bid[rows].tolist(), picks.scores[rows].tolist()
    bids = [int(each) * CENT for each in cents]
    # An ad shown for the first time may have an infinite score: then nothing below it counts, and it pays the minimum.
    endless = [not isfinite(score) for score in scores]
    weights = [1e9 if endless[at] else scores[at] / cents[at] for at in range(len(rows))]
    prices = second_price(bids, weights, minimum)
    least = [min(minimum, bid) for bid in bids]
    return [least[at] if endless[at] else prices[at] for at in range(len(picks.rows))]


def _runner_up(picks: RankedPicks) -> list[int]:
    left = picks.scores.copy()
    left[picks.rows] = -np.inf
    return [int(left.argmax())] if len(left) > len(picks.rows) and left.max() > 0 else []


LEARN_EVERY_S = 30.0
# How many days make the plan of a usual day's traffic.
PLAN_DAYS = 14


class AdTerms(NamedTuple):
    """Terms of ad selection: ads per page, minimum cost of a click, and the rules for addresses."""

    slots: int
    reserve: Decimal
    rules: ClickRules = DEFAULT_RULES
    learn_every_s: float = LEARN_EVERY_S


class Moment(NamedTuple):
    """A time: in seconds, as local day and hour of the operator, and in seconds whose days begin at local midnight."""

    at_s: float
    day: date
    hour: int
    local_s: float


def moment_of(local: datetime) -> Moment:
    """Return the moment of a local time."""
    return Moment(local.timestamp(), local.date(), local.hour, to_local_s(local))


class Filtered(NamedTuple):
    """The ads that match a query: those that may be shown, and those that may not, with the cause of each.

    A cause is ``reserve`` (the bid is below it), ``spent`` (less than the reserve is left), or ``resting`` (ahead of
    the day's plan).
    """

    may: list[AdMatch]
    not_: list[tuple[AdMatch, str]]


class Proposal(NamedTuple):
    """What a query would show: each ad with its placement and estimated click rate in its slot, and what was lost."""

    shown: list[tuple[AdMatch, Placement, float]]
    filtered: Filtered

    @property
    def lost(self) -> list[LostImpression]:
        """Return the ads that are not shown, by what they lost to."""
        rows = {found.row for found, _, _ in self.shown}
        outranked = [_build_loss(found, "rank") for found in self.filtered.may if found.row not in rows]
        return [_build_loss(found, _LOST_TO[cause]) for found, cause in self.filtered.not_] + outranked


_LOST_TO = {"reserve": "reserve", "spent": "budget", "resting": "budget"}
NOTHING = Proposal([], Filtered([], []))


class Standing(NamedTuple):
    """The position of an ad for a query now: shown in a slot at a price, or why not.

    ``cause`` is empty if it is shown, or one of ``match`` (it does not match the query), those of ``Filtered``,
    ``held`` (everything left is held for recent impressions) and ``rank``: then ``better`` ads are shown, and a bid of
    ``needed`` would be enough.
    """

    cause: str
    phrase: str = ""
    bid: Decimal = Decimal(0)
    slot: int = 0
    price: Decimal = Decimal(0)
    better: int = 0
    needed: Decimal = Decimal(0)


class AdSelection:
    """Select ads from the state of a ledger, by one policy. ``set_market`` says which ads run and who pays."""

    def __init__(self, view: LedgerView, policy: ScorePolicy, terms: AdTerms, rng: np.random.Generator) -> None:
        self._view, self._policy, self._terms, self._rng = view, policy, terms, rng
        self._catalog = AdCatalog()
        self._payers: Mapping[str, PayerBudget] = {}
        self._full: Mapping[str, PayerMoney] = {}
        self._has_advertiser_budgets = False
        self._memory: Any = policy.start(None)
        self._slots = SlotLearner(terms.slots)
        self._learned_s = float("-inf")

    @property
    def slot_factors(self) -> Floats:
        """Return the estimated visibility of each slot, relative to the first."""
        return self._slots.factors

    def use_policy(self, policy: ScorePolicy) -> None:
        """Switch to another policy; it learns from the ledger at the next refresh."""
        self._policy, self._memory, self._learned_s = policy, policy.start(None), float("-inf")

    def set_market(self, running: Sequence[RunningAd], payers: Mapping[str, PayerBudget]) -> None:
        """Set the running ads and the budgets of their payers."""
        self._catalog.set_ads(running)
        if payers != self._payers:
            self._payers = payers
            self._has_advertiser_budgets = any(of.advertiser_budget is not None for of in payers.values())
            self._full = {payer: _full_money(of) for payer, of in payers.items()}

    def refresh(self, now: Moment) -> None:
        """Read counts and balances from the ledger; learn from them periodically."""
        balances = self._view.read_balances(now.day)
        money = dict(self._full)
        for payer in balances.keys() if not self._has_advertiser_budgets else self._payers:
            if payer in money:
                lines = budget_lines(self._payers[payer], payer, balances)
                money[payer] = money[payer]._replace(left=min(_to_cents(line.left) for line in lines))
        self._catalog.set_counts(self._view.read_counts(), self._view.count_queries(), money)
        if not 0 <= now.at_s - self._learned_s < self._terms.learn_every_s:
            self._learn(now)
            self._learned_s = now.at_s

    def is_running(self, ad: int, phrase: str) -> bool:
        """Check whether an ad may be shown for a phrase now."""
        return self._catalog.is_running(ad, phrase)

    def propose(self, query: str, now: Moment) -> Proposal:
        """Propose the ads of a query, from the state at the last refresh."""
        found = self._catalog.find_ads(query)
        if not found:
            return NOTHING
        filtered = self._filter(found, now)
        if not filtered.may:
            return Proposal([], filtered)
        options = self._catalog.get_candidates([each.row for each in filtered.may])
        by_row = {each.row: each for each in filtered.may}
        placed = place_ads(
            self._policy, self._memory, options, self._terms.slots, self._terms.reserve, now.local_s, self._rng
        )
        told = self._policy.get_ad_priors(self._memory)
        rates = dict(zip(options.ad.tolist(), estimate_rates(told, options)[0].tolist(), strict=True))
        factors = self._slots.factors.tolist()
        return Proposal([(by_row[one.ad], one, rates[one.ad] * factors[one.slot]) for one in placed], filtered)

    def explain(self, ad: int, query: str, now: Moment) -> Standing:
        """Explain the position of an ad for a query, without recording anything."""
        proposed = self.propose(query, now)
        for found, cause in proposed.filtered.not_:
            if found.ad == ad:
                return Standing(cause, found.phrase, found.bid * CENT)
        own = next((found for found in proposed.filtered.may if found.ad == ad), None)
        if own is None:
            return Standing("match")
        for found, placed, rate in proposed.shown:
            if found.ad == ad:
                offer = self._build_offer(found, placed, rate, now, "")
                lines = budget_lines(offer.budget, found.payer, self._view.read_balances(now.day))
                cause = "held" if compute_hold(offer, lines, counted=True) is None else ""
                return Standing(cause, found.phrase, found.bid * CENT, placed.slot, placed.charge)
        # Every score is a bid times a weight.
        options = self._catalog.get_candidates([own.row])
        score = float(self._policy.score(self._policy.get_ad_priors(self._memory), options)[0])
        ratio = proposed.shown[-1][1].score / score if score > 0 else float("inf")
        needed = (Decimal(own.bid * ratio).quantize(Decimal(1), ROUND_UP) + 1) * CENT if isfinite(ratio) else Decimal(0)
        return Standing("rank", own.phrase, own.bid * CENT, better=len(proposed.shown), needed=needed)

    def show(
        self, query: str, visitor: str, now: Moment, ledger: AdLedger, create_token: Callable[[], str]
    ) -> list[AdImpression]:
        """Choose the ads of a search and record them; return those that the ledger could hold."""
        proposed = self.propose(query, now)
        matching = [*proposed.filtered.may, *(found for found, _ in proposed.filtered.not_)]
        if not matching:
            return []
        offered = [self._build_offer(*one, now, create_token()) for one in proposed.shown]
        phrases = tuple(dict.fromkeys(each.phrase for each in sorted(matching, key=lambda each: each.ad)))
        asked = AdQuery(now.at_s, now.day, now.hour, visitor, phrases, proposed.lost)
        return ledger.record_impressions(offered, asked, self._terms.rules)

    def click(
        self, showing: AdImpression, visitor: str, now: Moment, ledger: AdLedger, *, is_bot: bool
    ) -> ClickOutcome:
        """Charge a click on an impression, or say why it is free. Without a campaign there is no budget to charge."""
        budget = self._payers.get(showing.payer, PayerBudget(Decimal(0)))
        clicking = ClickContext(now.at_s, visitor, is_bot, self.is_running(showing.ad, showing.phrase), budget)
        return ledger.record_click(showing.token, clicking, self._terms.rules)

    def _filter(self, found: Sequence[AdMatch], now: Moment) -> Filtered:
        money = self._catalog.get_candidates([each.row for each in found])
        allowed = self._policy.get_spend_limit(self._memory, now.local_s)
        resting = is_resting(money.remaining, money.budget, allowed).tolist()
        least = _to_cents(self._terms.reserve)
        filtered = Filtered([], [])
        for each, cents, rests in zip(found, money.remaining.tolist(), resting, strict=True):
            if each.bid < least:
                filtered.not_.append((each, "reserve"))
            elif cents < least:
                filtered.not_.append((each, "spent"))
            elif rests:
                filtered.not_.append((each, "resting"))
            else:
                filtered.may.append(each)
        return filtered

    def _build_offer(self, found: AdMatch, placed: Placement, rate: float, now: Moment, token: str) -> ImpressionOffer:
        showing = AdImpression(
            token=token,
            at_s=now.at_s,
            day=now.day,
            payer=found.payer,
            ad=found.ad,
            phrase=found.phrase,
            slot=placed.slot,
            score=placed.score,
            propensity=placed.propensity,
            price=placed.charge,
            reason=placed.reason,
        )
        return ImpressionOffer(showing, self._payers[found.payer], float(self._slots.factors[placed.slot]), rate)

    def _learn(self, now: Moment) -> None:
        """Update the policy from the outcomes of all ads.

        The traffic plan is built from the hours of past days, so a restart loses nothing.
        """
        ads = self._catalog.all_ads()
        if not len(ads):
            return
        numbers = self._catalog.get_phrase_numbers()
        hours = self._view.read_hourly_queries(now.day - timedelta(days=PLAN_DAYS))
        asked = np.zeros(len(numbers))
        asked[ads.phrase] = ads.asked
        # All queries until now are in the plan, so none of them is new.
        traffic = build_traffic(hours, numbers, now.local_s)._replace(asked=asked)
        memory = self._policy.set_traffic(self._memory, traffic)
        self._memory = self._policy.observe(memory, ads, now.local_s)
        told = self._policy.get_ad_priors(self._memory)
        self._slots.learn(self._view, self._catalog, told, now.at_s - self._terms.rules.max_delay_s)


def _to_cents(amount: Decimal) -> int:
    return int(amount * 100)


def _full_money(of: PayerBudget) -> PayerMoney:
    budget = of.budget if of.advertiser_budget is None else min(of.budget, of.advertiser_budget)
    return PayerMoney(_to_cents(budget), _to_cents(budget))


def _build_loss(found: AdMatch, to: str) -> LostImpression:
    return LostImpression(found.ad, found.phrase, found.payer, to)
