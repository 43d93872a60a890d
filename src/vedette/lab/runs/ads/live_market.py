"""Simulated ad markets as served by a server: ``AdSelection``, with second prices, holds, late clicks and caps.

Some addresses search far more than others, as those of proxies do: the weight of each of PEOPLE falls with the root of
its rank. PEOPLE_PER_NETWORK of them are in one network, the busiest together. A click comes some seconds after its
impression, and is charged to the day of the impression. An attack adds visitors who search for the phrases of one
advertiser, the victim:

    flood    each address searches FLOOD_SEARCHES times a day, and never clicks
    replay   each address clicks what it is shown of the victim, and sends each click REPLAYS times
    drain    each address searches and clicks DRAIN_SEARCHES times a day, as a person would
    subnet   as drain, with all addresses in one network
    swarm    each address searches once a day, and clicks

The addresses of other attacks are in a network each.
"""

import heapq
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import NamedTuple

import numpy as np

from vedette.lab.worlds.ads_market import AdMarketDay
from vedette.policy import Floats, Ints, rng_for
from vedette.serve.ads.by_score import ScorePolicy
from vedette.serve.ads.catalog import AdCounts, RunningAd
from vedette.serve.ads.click_validity import DEFAULT_RULES, ClickRejection, ClickRules
from vedette.serve.ads.ledger import (
    NETWORK_DIGITS,
    ZERO,
    AdImpression,
    AdQuery,
    Balance,
    ClickContext,
    ClickOutcome,
    Entry,
    EntryKind,
    ImpressionOffer,
    PastClick,
    PayerBudget,
    SlotTally,
    apply_entry,
    budget_lines,
    compute_hold,
    settle_click,
)
from vedette.serve.ads.matching import MatchType
from vedette.serve.ads.selection import AdSelection, AdTerms, moment_of
from vedette.timeutil import DAY_S

# A policy learns this often here, to save time; live it does so every 30 s.
LEARN_EVERY_S = 900.0
# Half of the clicks come within this many seconds of the impression; the logarithm of the delay is normal.
MEDIAN_DELAY_S, DELAY_SIGMA = 15.0, 1.0
# The budget of an advertiser without one: the largest that a campaign can have.
NO_BUDGET = Decimal(1_000_000)
FLOOD_SEARCHES, DRAIN_SEARCHES, REPLAYS = 500, 50, 20
ATTACKS = {"flood": FLOOD_SEARCHES, **dict.fromkeys(("replay", "drain", "subnet"), DRAIN_SEARCHES), "swarm": 1}
PEOPLE, PEOPLE_PER_NETWORK = 1_000, 4
# Without holds, and without limits on what clicks cost: a yardstick.
NO_LIMITS = ClickRules(max_per_address=10**9, max_network_share=Decimal(10**9))


class Attack(NamedTuple):
    """An attack on one advertiser of a simulated market, by this many addresses, from a day on (from 0)."""

    kind: str
    addresses: int
    victim: int
    first_day: int = 0


class LiveOutcome(NamedTuple):
    """Outcome of a market served as live: money in cents by day and advertiser, impressions of honest visitors.

    ``budget`` is infinite if there is none. ``attacked`` is what attackers' clicks were charged, ``shown`` counts
    impressions of honest visitors by advertiser, ``clicked`` their clicks, and ``free`` those that found nothing left
    of a budget.
    """

    spent: Floats
    budget: Floats
    attacked: Floats
    shown: Floats
    clicked: int
    free: int

    @property
    def overspend(self) -> float:
        """Return the sum charged beyond advertisers' daily budgets; 0 unless something is wrong."""
        return float(np.maximum(self.spent - self.budget, 0.0).sum())


class _Search(NamedTuple):
    at_s: float
    phrase: int
    visitor: str
    query: int  # -1 for an attacker's


class _Pending(NamedTuple):
    at_s: float
    token: str
    visitor: str
    advertiser: int
    day: int
    hostile: bool


def find_victim(day: AdMarketDay) -> int:
    """Return the victim of an attack: of the advertisers with a budget, the one with most to win by true rates.

    The advertiser shown most in one run was lucky there, and would be shown less in any other.
    """
    asked = np.bincount(day.query, minlength=int(day.offers.phrase.max()) + 1)
    worth = np.bincount(day.offers.advertiser, asked[day.offers.phrase] * day.offers.bid * day.rate, len(day.budget))
    return int(np.where(np.isfinite(day.budget), worth, -1.0).argmax())


def run_live_market(
    days: Sequence[AdMarketDay],
    policy: ScorePolicy,
    slots: int,
    factors: Floats,
    seed: int,
    attack: Attack | None = None,
    *,
    limits: bool = True,
) -> LiveOutcome:
    """Serve all days of an ad market; without ``limits`` all clicks are charged and nothing is held, as a reference."""
    server = _LiveServer(days, policy, slots, factors, seed, limits=limits)
    for number, day in enumerate(days):
        server.open_day(number, day)
        for search in sorted([*_honest_searches(number, day, seed), *_hostile_searches(number, day, attack, seed)]):
            server.answer(search, attack)
    return server.close()


def _honest_searches(number: int, day: AdMarketDay, seed: int) -> Iterator[_Search]:
    weight = 1 / np.sqrt(np.arange(1.0, PEOPLE + 1))
    people = rng_for(seed, f"lab/market/people/{number}").choice(PEOPLE, len(day.query), p=weight / weight.sum())
    for query, row in enumerate(zip(day.at_s.tolist(), day.query.tolist(), people.tolist(), strict=True)):
        yield _Search(*row[:2], _visitor(row[2] // PEOPLE_PER_NETWORK, row[2]), query)


def _hostile_searches(number: int, day: AdMarketDay, attack: Attack | None, seed: int) -> Iterator[_Search]:
    if attack is None or number < attack.first_day:
        return
    rng = rng_for(seed, f"lab/market/attack/{number}")
    phrases = np.unique(day.offers.phrase[day.offers.advertiser == attack.victim])
    for address in range(PEOPLE, PEOPLE + attack.addresses):
        visitor = _visitor(PEOPLE if attack.kind == "subnet" else address, address)
        for at in np.sort(rng.random(ATTACKS[attack.kind])).tolist():
            yield _Search((number + at) * DAY_S, int(rng.choice(phrases)), visitor, -1)


def _visitor(network: int, address: int) -> str:
    return f"{network:0{NETWORK_DIGITS}x}{address:x}"


class _LiveServer:
    """A simulated ad server: the selection of a live one, a ledger in memory, and people who click."""

    def __init__(
        self,
        days: Sequence[AdMarketDay],
        policy: ScorePolicy,
        slots: int,
        factors: Floats,
        seed: int,
        *,
        limits: bool,
    ) -> None:
        self._ledger = MemoryLedger(holds=limits)
        rules = DEFAULT_RULES if limits else NO_LIMITS
        terms = AdTerms(slots, Decimal("0.01"), rules, LEARN_EVERY_S)
        self._selection = AdSelection(self._ledger, policy, terms, rng_for(seed, f"serve/sponsor/{policy.name}/live"))
        self._factors, self._delays = factors, rng_for(seed, "lab/market/delays")
        self._tokens = count()
        # Ads that are replaced get a new number, as a new ad does.
        self._numbers: Ints = np.arange(len(days[0].rate))
        self._next_number = len(days[0].rate)
        self._index: dict[int, int] = {}
        self._pending: list[_Pending] = []
        self._clicks: dict[str, _Pending] = {}
        size = (len(days), len(days[0].budget))
        budget = np.array([day.budget for day in days])
        self._outcome = LiveOutcome(np.zeros(size), budget, np.zeros(size), np.zeros(size), 0, 0)

    def open_day(self, number: int, day: AdMarketDay) -> None:
        """Open a day: new ads, and their budgets."""
        self._number, self._day, self._luck = number, day, day.click_draws()
        self._numbers[day.new] = self._next_number + np.arange(len(day.new))
        self._next_number += len(day.new)
        self._index = {ad: index for index, ad in enumerate(self._numbers.tolist())}
        offers = day.offers
        running = [
            RunningAd(ad, _payer(advertiser), ((MatchType.EXACT, _phrase(phrase), int(bid)),))
            for ad, advertiser, phrase, bid in zip(
                *(each.tolist() for each in (self._numbers, offers.advertiser, offers.phrase, offers.bid)), strict=True
            )
        ]
        budgets = {
            _payer(number): PayerBudget(Decimal(int(cents)) / 100 if np.isfinite(cents) else NO_BUDGET)
            for number, cents in enumerate(day.budget.tolist())
        }
        self._selection.set_market(running, budgets)

    def answer(self, search: _Search, attack: Attack | None) -> None:
        """Answer a search, after the clicks that came before it."""
        self.settle(search.at_s)
        now = moment_of(datetime.fromtimestamp(search.at_s, UTC))
        self._selection.refresh(now)
        shown = self._selection.show(
            _phrase(search.phrase), search.visitor, now, self._ledger, lambda: str(next(self._tokens))
        )
        for showing in shown:
            self._react(showing, search, attack)

    def settle(self, until_s: float) -> None:
        """Charge the clicks that came until a time."""
        while self._pending and self._pending[0].at_s <= until_s:
            click = heapq.heappop(self._pending)
            showing = self._ledger.find_impression(click.token)
            assert showing is not None, "what is clicked was shown"
            now = moment_of(datetime.fromtimestamp(click.at_s, UTC))
            found = self._selection.click(showing, click.visitor, now, self._ledger, is_bot=False)
            self._clicks[click.token] = click
            if not click.hostile:
                clicked, free = (
                    self._outcome.clicked + 1,
                    self._outcome.free + (found.objection is ClickRejection.SPENT),
                )
                self._outcome = self._outcome._replace(clicked=clicked, free=free)

    def close(self) -> LiveOutcome:
        """Charge the clicks that are left, and return the outcome: what was charged and not refunded."""
        self.settle(float("inf"))
        for token, click in self._clicks.items():
            showing = self._ledger.find_impression(token)
            cents = float(showing.charged * 100) if showing else 0.0
            self._outcome.spent[click.day, click.advertiser] += cents
            self._outcome.attacked[click.day, click.advertiser] += cents * click.hostile
        return self._outcome

    def _react(self, showing: AdImpression, search: _Search, attack: Attack | None) -> None:
        index = self._index[showing.ad]
        advertiser = int(self._day.offers.advertiser[index])
        if search.query < 0:
            if attack and attack.kind != "flood" and advertiser == attack.victim:
                for turn in range(REPLAYS if attack.kind == "replay" else 1):
                    self._click(showing, search, advertiser, 5.0 + turn, hostile=True)
            return
        self._outcome.shown[self._number, advertiser] += 1
        chance = self._day.rate[index] * self._factors[showing.slot]
        if self._luck[search.query, self._day.position[index]] < chance:
            delay_s = float(MEDIAN_DELAY_S * np.exp(DELAY_SIGMA * self._delays.standard_normal()))
            self._click(showing, search, advertiser, max(delay_s, 1.0), hostile=False)

    def _click(self, showing: AdImpression, search: _Search, advertiser: int, after_s: float, *, hostile: bool) -> None:
        at_s = search.at_s + after_s
        click = _Pending(at_s, showing.token, search.visitor, advertiser, self._number, hostile)
        heapq.heappush(self._pending, click)


def _payer(advertiser: int) -> str:
    return f"c{advertiser}"


def _phrase(phrase: int) -> str:
    return f"p{phrase}"


class MemoryLedger:
    """An ``AdLedger`` and its ``LedgerView`` in memory; with ``holds=False`` impressions hold nothing.

    ``lost`` counts the lost impressions of each payer, by cause, and ``refused`` clicks that cost nothing.
    """

    def __init__(self, *, holds: bool = True) -> None:
        self._holds = holds
        self.lost: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[ClickRejection] = Counter()
        self._showings: dict[str, AdImpression] = {}
        self._times: list[float] = []
        self._tokens: list[str] = []
        self._open: deque[str] = deque()
        self._balances: defaultdict[date, dict[str, Balance]] = defaultdict(dict)
        self._counts: dict[tuple[int, str], AdCounts] = {}
        self._queries: Counter[str] = Counter()
        self._hours: Counter[tuple[date, int, str]] = Counter()
        self._quota: Counter[tuple[date, str, str]] = Counter()
        self._clicks: defaultdict[tuple[str, date], dict[str, PastClick]] = defaultdict(dict)

    def record_impressions(
        self, offered: Sequence[ImpressionOffer], asked: AdQuery, rules: ClickRules
    ) -> list[AdImpression]:
        """Release expired holds, record a query, and hold its impressions; return those within budget."""
        self._release_expired(asked.at_s, rules.max_delay_s)
        for phrase in asked.phrases:
            if self._count_visitor(asked, f"phrase {phrase}", rules):
                self._hours[asked.day, asked.hour, phrase] += 1
                self._queries[phrase] += 1
        found = [held for one in offered if (held := self._hold(one, asked, rules)) is not None]
        kept = {one.token for one in found}
        self.lost.update((one.payer, one.to) for one in asked.lost)
        self.lost.update((one.impression.payer, "budget") for one in offered if one.impression.token not in kept)
        return found

    def record_click(self, token: str, clicking: ClickContext, rules: ClickRules) -> ClickOutcome:
        """Charge a click or say why it is free; only an impression's first click counts."""
        showing = self._showings.get(token)
        if showing is None:
            return ClickOutcome(None, ClickRejection.FORGED)
        lines = budget_lines(clicking.budget, showing.payer, self._balances[showing.day])
        key = showing.payer, showing.day
        clicks = self._clicks[key]
        why_not, amount, refunds = settle_click(showing, clicking, list(clicks.values()), lines, rules)
        if not showing.closed:
            kind = EntryKind.REFUSED if why_not else EntryKind.CHARGED
            self._close(showing, kind, showing.held if why_not else amount, clicking.at_s)
            self._showings[token] = self._showings[token]._replace(charged=amount, said=str(why_not or ""))
            clicks[token] = PastClick(token, clicking.visitor, amount)
            if showing.counted and not why_not:
                counts = self._counts[showing.ad, showing.phrase]
                self._counts[showing.ad, showing.phrase] = counts._replace(clicked=counts.clicked + 1)
        for each in refunds:
            self._refund(each, clicking.at_s, str(why_not))
            self.refused[ClickRejection.SAME_ADDRESS] += 1
        if why_not:
            self.refused[why_not] += 1
            return ClickOutcome(showing, why_not)
        return ClickOutcome(showing, None, amount)

    def read_counts(self) -> Mapping[tuple[int, str], AdCounts]:
        """Return the counted impressions, views and clicks of each ad and phrase."""
        return self._counts

    def count_queries(self) -> Mapping[str, float]:
        """Return the counted queries for each phrase."""
        return self._queries

    def read_hourly_queries(self, since: date) -> list[tuple[date, int, str, int]]:
        """Return the counted queries by day, hour and phrase."""
        return sorted((*key, times) for key, times in self._hours.items() if key[0] >= since)

    def read_balances(self, day: date) -> Mapping[str, Balance]:
        """Return the balance of each payer on a day."""
        return self._balances[day]

    def tally_by_slot(self, after_s: float, until_s: float) -> list[SlotTally]:
        """Return counted impressions and clicks by ad, phrase and slot, between two times."""
        shown: Counter[tuple[int, str, int]] = Counter()
        clicked: Counter[tuple[int, str, int]] = Counter()
        begin, end = bisect_right(self._times, after_s), bisect_right(self._times, until_s)
        for one in (self._showings[token] for token in self._tokens[begin:end]):
            if one.counted:
                shown[one.ad, one.phrase, one.slot] += 1
                clicked[one.ad, one.phrase, one.slot] += one.closed == EntryKind.CHARGED
        return [SlotTally(*key, times, clicked[key]) for key, times in sorted(shown.items())]

    def find_impression(self, token: str) -> AdImpression | None:
        """Return an impression by its token."""
        return self._showings.get(token)

    def _hold(self, offered: ImpressionOffer, asked: AdQuery, rules: ClickRules) -> AdImpression | None:
        counted = self._count_visitor(asked, f"campaign {offered.impression.payer}", rules)
        day, payer = offered.impression.day, offered.impression.payer
        lines = budget_lines(offered.budget, payer, self._balances[day])
        held = compute_hold(offered if self._holds else offered._replace(rate=0.0), lines, counted=counted)
        if held is None:
            return None
        showing = offered.impression._replace(held=held, counted=counted)
        self._showings[showing.token] = showing
        self._open.append(showing.token)
        self._times.append(showing.at_s)
        self._tokens.append(showing.token)
        self._apply(Entry(EntryKind.HELD, showing.token, payer, day, held, showing.at_s), ZERO)
        self._balances[day][payer] = self._balances[day][payer]._replace(advertiser=offered.budget.advertiser)
        if counted:
            before = self._counts.get((showing.ad, showing.phrase), AdCounts(0, 0.0, 0))
            after = AdCounts(before.shown + 1, before.views + offered.seen, before.clicked)
            self._counts[showing.ad, showing.phrase] = after
        return showing

    def _refund(self, token: str, at_s: float, reason: str) -> None:
        showing = self._showings[token]
        self._apply(Entry(EntryKind.REFUNDED, token, showing.payer, showing.day, showing.charged, at_s, reason), ZERO)
        self._showings[token] = showing._replace(closed=EntryKind.REFUNDED.value, charged=ZERO, said=reason)
        clicks = self._clicks[showing.payer, showing.day]
        clicks[token] = clicks[token]._replace(charged=ZERO)

    def _count_visitor(self, asked: AdQuery, topic: str, rules: ClickRules) -> bool:
        if not asked.visitor:
            return True
        self._quota[asked.day, asked.visitor, topic] += 1
        return self._quota[asked.day, asked.visitor, topic] <= rules.max_showings

    def _release_expired(self, at_s: float, latest_s: float) -> None:
        while self._open and (showing := self._showings[self._open[0]]).at_s < at_s - latest_s:
            self._open.popleft()
            if not showing.closed:
                self._close(showing, EntryKind.LET_GO, showing.held, at_s)

    def _close(self, showing: AdImpression, kind: EntryKind, amount: Decimal, at_s: float) -> None:
        self._apply(Entry(kind, showing.token, showing.payer, showing.day, amount, at_s), showing.held)
        self._showings[showing.token] = showing._replace(closed=kind.value)

    def _apply(self, entry: Entry, released: Decimal) -> None:
        balances = self._balances[entry.day]
        balances[entry.payer] = apply_entry(balances.get(entry.payer, Balance()), entry, released)
