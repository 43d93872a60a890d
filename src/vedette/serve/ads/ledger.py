"""Ad ledger: append-only entries of holds and charges in exact decimals, and the balances that follow.

An ad that is shown *holds* the price of a click: money of its advertiser's budget of that day, which is reserved
meanwhile. A click turns the hold into a *charge*; without one it is *let go* after a while. So the sum charged and held
of a day never exceeds the budget of that day, whenever clicks come. A click after midnight is charged to the day on
which its ad was shown: the money was held there.

Everything is keyed by the token of an impression. It is held once, and then either charged, refused or let go, once; a
repeated request returns the existing entry. A ledger that is rebuilt from its entries is in the same state.
"""

from collections.abc import Iterable, Sequence
from datetime import date, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import NamedTuple

ZERO = Decimal("0.00")


class EntryKind(StrEnum):
    """The kind of an ad ledger entry."""

    HELD = "held"
    CHARGED = "charged"
    REFUSED = "refused"
    LET_GO = "let go"


class Entry(NamedTuple):
    """An ad ledger entry: impression token, advertiser, budget day, kind, amount, and reason of a refusal."""

    kind: EntryKind
    token: str
    advertiser: str
    day: date
    amount: Decimal
    at_s: float
    reason: str = ""


class Balance(NamedTuple):
    """The ad ledger balance of one day's budget: what was charged and what is held."""

    charged: Decimal = ZERO
    held: Decimal = ZERO

    @property
    def committed(self) -> Decimal:
        """The part of the day's budget that is charged or held."""
        return self.charged + self.held


def day_of(at_s: float, zone: tzinfo) -> date:
    """Return the budget day of a moment in the operator's time zone.

    >>> from datetime import timedelta, timezone
    >>> str(day_of(1_700_000_000.0, timezone(timedelta(hours=2))))
    '2023-11-15'
    """
    return datetime.fromtimestamp(at_s, zone).date()


class Ledger:
    """Ad ledger: entries, and the balances that follow. Methods return entries to be stored."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries: list[Entry] = []
        self._balances: dict[tuple[str, date], Balance] = {}
        self._open: dict[str, Entry] = {}
        self._closed: dict[str, Entry] = {}
        for entry in entries:
            self.add(entry)

    @property
    def entries(self) -> Sequence[Entry]:
        """All ad ledger entries, in order."""
        return tuple(self._entries)

    def get_balance(self, advertiser: str, day: date) -> Balance:
        """Return the ad ledger balance of an advertiser's budget on a day."""
        return self._balances.get((advertiser, day), Balance())

    def get_remaining(self, advertiser: str, day: date, budget: Decimal) -> Decimal:
        """Return what remains of an ad budget; 0 where it was lowered below what is committed already."""
        return max(budget - self.get_balance(advertiser, day).committed, ZERO)

    def hold(
        self, token: str, advertiser: str, day: date, price: Decimal, budget: Decimal | None, at_s: float
    ) -> Entry | None:
        """Create the entry that holds the price of an impression; None if the budget is too small.

        A known token returns its existing entry: nothing is held twice. A budget of None is unlimited. An invalid price
        gives None, too.
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
        """Create the charge of a click; a closed impression returns its entry, an unknown token None."""
        return self._close(EntryKind.CHARGED, token, at_s)

    def refuse(self, token: str, reason: str, at_s: float) -> Entry | None:
        """Create the entry of a refused click with its reason, which releases what was held."""
        return self._close(EntryKind.REFUSED, token, at_s, reason)

    def expire_holds(self, before_s: float, at_s: float) -> list[Entry]:
        """Create the entries that release what was held before a moment and never clicked."""
        late = [entry.token for entry in self._open.values() if entry.at_s < before_s]
        return [entry for token in late if (entry := self._close(EntryKind.LET_GO, token, at_s))]

    def add(self, entry: Entry) -> Entry:
        """Apply an entry to the ad ledger; one that does not follow from those before it changes nothing."""
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
    """Sum ad ledger balances by advertiser and day from entries alone, to check a ledger against."""
    found: dict[tuple[str, date], Balance] = {}
    for entry in entries:
        key = entry.advertiser, entry.day
        found[key] = _apply_entry(found.get(key, Balance()), entry)
    return found
