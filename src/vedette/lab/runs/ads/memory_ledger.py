"""Ad ledger in memory: what ``adapters.ads.ledger_store`` stores on disk, by the same rules, for simulated markets."""

from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.click_validity import ClickRejection, ClickRules
from vedette.serve.ads.ledger import (
    ZERO,
    AddressSpend,
    AdImpression,
    AdQuery,
    Balance,
    ClickContext,
    ClickOutcome,
    Entry,
    EntryKind,
    ImpressionOffer,
    SlotTally,
    apply_entry,
    budget_lines,
    compute_hold,
    settle_click,
)


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
        self._addresses: dict[tuple[str, date, str], AddressSpend] = {}

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
        address = showing.payer, showing.day, clicking.visitor
        before = self._addresses.get(address, AddressSpend()) if clicking.visitor else AddressSpend()
        why_not, amount = settle_click(showing, clicking, before, lines, rules)
        if not showing.closed:
            kind = EntryKind.REFUSED if why_not else EntryKind.CHARGED
            self._close(showing, kind, showing.held if why_not else amount, clicking.at_s)
            self._showings[token] = self._showings[token]._replace(charged=amount, said=str(why_not or ""))
            if not why_not:
                self._addresses[address] = AddressSpend(before.clicks + 1, before.charged + amount)
                if showing.counted:
                    counts = self._counts[showing.ad, showing.phrase]
                    self._counts[showing.ad, showing.phrase] = counts._replace(clicked=counts.clicked + 1)
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
