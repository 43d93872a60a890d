"""Who owes what: entries that are only ever added, in exact decimals, and balances that follow from them.

An ad that is shown *holds* the price of a click: money of its advertiser's budget of that day, which nobody else can
have meanwhile. A click turns the hold into a *charge*; without one it is *let go* after a while. So what is charged and
held of a day is never above the budget of that day, whoever clicks when. A click after midnight is charged to the day
on which its ad was shown: there the money was held.

Everything hangs on the token of a showing. It is held once, and then either charged, refused or let go, once; whoever
comes again is answered by what was entered before. A ledger that is made anew from its entries stands where it stood.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

ZERO = Decimal("0.00")


class EntryKind(StrEnum):
    """What an entry says."""

    HELD = "held"
    CHARGED = "charged"
    REFUSED = "refused"
    LET_GO = "let go"


class Entry(NamedTuple):
    """One line: of which showing, whose, of which day's budget, what, how much, and why where a click was refused."""

    kind: EntryKind
    token: str
    advertiser: str
    day: date
    amount: Decimal
    at_s: float
    reason: str = ""


class Balance(NamedTuple):
    """What was charged and what is held of one day's budget."""

    charged: Decimal = ZERO
    held: Decimal = ZERO

    @property
    def committed(self) -> Decimal:
        """What can no longer be promised to anybody."""
        return self.charged + self.held


def day_of(at_s: float, zone: tzinfo) -> date:
    """The day of a moment where the operator is.

    >>> from datetime import timedelta, timezone
    >>> str(day_of(1_700_000_000.0, timezone(timedelta(hours=2))))
    '2023-11-15'
    """
    return datetime.fromtimestamp(at_s, zone).date()


class Ledger:
    """Entries, and what follows from them. It hands out entries to be written; what is written is ``added``."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._balances: dict[tuple[str, date], Balance] = {}
        self._open: dict[str, Entry] = {}
        self._closed: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    @property
    def entries(self) -> Sequence[Entry]:
        """All lines, in order."""
        return tuple(self._entries)

    def get_balance(self, advertiser: str, day: date) -> Balance:
        """Where a budget of a day stands."""
        return self._balances.get((advertiser, day), Balance())

    def get_remaining(self, advertiser: str, day: date, budget: Decimal) -> Decimal:
        """What is still to be promised of a budget; nothing where it was lowered below what is bound already."""
        return max(budget - self.get_balance(advertiser, day).committed, ZERO)

    def hold(
        self, token: str, advertiser: str, day: date, price: Decimal, budget: Decimal | None, at_s: float
    ) -> Entry | None:
        """The entry that holds a price for a showing; none where the budget does not have it, or it is no price.

        A token that is known gives the entry that it has: nothing is held twice. Without a budget it is none.
        """
        if known := self._open.get(token) or self._closed.get(token):
            return known
        if (
            not price.is_finite()
            or price <= 0
            or (budget is not None and price > self.get_remaining(advertiser, day, budget))
        ):
            return None
        return self.add(Entry(EntryKind.HELD, token, advertiser, day, price, at_s))

    def charge(self, token: str, at_s: float) -> Entry | None:
        """The charge of a click; the entry that closed the showing before, if one did; none for an unknown token."""
        return self._close(EntryKind.CHARGED, token, at_s)

    def refuse(self, token: str, reason: str, at_s: float) -> Entry | None:
        """A click that is not charged, with its reason; what was held is free again."""
        return self._close(EntryKind.REFUSED, token, at_s, reason)

    def expire_holds(self, before_s: float, at_s: float) -> list[Entry]:
        """Free what was held before a moment and never clicked."""
        late = [entry.token for entry in self._open.values() if entry.at_s < before_s]
        return [entry for token in late if (entry := self._close(EntryKind.LET_GO, token, at_s))]

    def add(self, entry: Entry) -> Entry:
        """Take an entry in. One that does not follow from those before it changes nothing: it was there already."""
        if entry.kind is EntryKind.HELD:
            if entry.token not in self._open and entry.token not in self._closed:
                self._open[entry.token] = entry
                self._append(entry)
        elif entry.token in self._open:
            del self._open[entry.token]
            self._closed[entry.token] = entry
            self._append(entry)
        return entry

    def _close(self, kind: EntryKind, token: str, at_s: float, reason: str = "") -> Entry | None:
        held = self._open.get(token)
        if held is None:
            return self._closed.get(token)
        return self.add(held._replace(kind=kind, at_s=at_s, reason=reason))

    def _append(self, entry: Entry) -> None:
        self._entries.append(entry)
        key = entry.advertiser, entry.day
        self._balances[key] = _apply_entry(self._balances.get(key, Balance()), entry)


def _apply_entry(balance: Balance, entry: Entry) -> Balance:
    if entry.kind is EntryKind.HELD:
        return balance._replace(held=balance.held + entry.amount)
    charged = entry.amount if entry.kind is EntryKind.CHARGED else ZERO
    return Balance(balance.charged + charged, balance.held - entry.amount)


def sum_balances(entries: Iterable[Entry]) -> dict[tuple[str, date], Balance]:
    """The balances by advertiser and day, added up from entries alone: what a ledger must agree with at any moment."""
    found: dict[tuple[str, date], Balance] = {}
    for entry in entries:
        key = entry.advertiser, entry.day
        found[key] = _apply_entry(found.get(key, Balance()), entry)
    return found
