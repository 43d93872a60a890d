"""Reader of the ad ledger: counts for ad selection and reports, balances, latest impressions."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from vedette.adapters.ads.ledger_store import IMPRESSION_COLUMNS, LEDGER_FILE, impression_from_row
from vedette.serve.ads.catalog import AdCounts
from vedette.serve.ads.ledger import AdImpression, Balance, SlotTally


class AdTally(NamedTuple):
    """Ad ledger totals of one ad, day and phrase: impressions, clicks, charges, and lost impressions by reason."""

    day: str
    ad: int
    phrase: str
    payer: str
    shown: int
    clicked: int
    charged: Decimal
    lost_budget: int
    lost_rank: int
    lost_reserve: int


class RefusedClicks(NamedTuple):
    """Ad clicks that were not charged, by day, payer (empty if the token was forged) and reason."""

    day: str
    payer: str
    reason: str
    times: int


class LedgerReader:
    """Reader of the ad ledger ``ledger.db``; each query sees one snapshot, empty if no ad was ever shown."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read_counts(self) -> Mapping[tuple[int, str], AdCounts]:
        """Read the counted impressions, views and clicks of each ad and phrase from the ad ledger, over all days."""
        rows = self._query("SELECT ad, phrase, shown, views, clicked FROM learned ORDER BY ad, phrase")
        return {(ad, phrase): AdCounts(*counts) for ad, phrase, *counts in rows}

    def count_queries(self) -> Mapping[str, float]:
        """Count the queries that matched each ad phrase, over all days of the ad ledger."""
        return dict(self._query("SELECT phrase, times FROM phrase ORDER BY phrase"))

    def read_hourly_queries(self, since: date) -> list[tuple[date, int, str, int]]:
        """Read the number of queries per ad phrase and hour from the ad ledger."""
        sql = "SELECT day, hour, phrase, times FROM asked WHERE day >= ? ORDER BY day, hour, phrase"
        rows = self._query(sql, since.isoformat())
        return [(date.fromisoformat(day), hour, phrase, times) for day, hour, phrase, times in rows]

    def read_balances(self, day: date) -> Mapping[str, Balance]:
        """Read the balance of each payer on a day from the ad ledger."""
        sql = "SELECT payer, charged, held, advertiser FROM balance WHERE day = ?"
        rows = self._query(sql, day.isoformat())
        return {payer: Balance(Decimal(charged), Decimal(held), whose) for payer, charged, held, whose in rows}

    def read_charges(self, day: date, since_s: float) -> list[tuple[float, str, Decimal]]:
        """List the ad charges of a day that began at ``since_s``: time of the impression, payer, amount."""
        sql = (
            "SELECT at_s, payer, charged FROM showing "
            "WHERE at_s >= ? AND day = ? AND closed = 'charged' ORDER BY at_s, slot"
        )
        rows = self._query(sql, since_s, day.isoformat())
        return [(at_s, payer, Decimal(amount)) for at_s, payer, amount in rows]

    def tally_by_slot(self, after_s: float, until_s: float) -> list[SlotTally]:
        """Count ad impressions and charged clicks by slot, between two times, from the ad ledger."""
        sql = (
            "SELECT ad, phrase, slot, count(*), count(*) FILTER (WHERE closed = 'charged') FROM showing "
            "WHERE at_s > ? AND at_s <= ? AND counted <> 0 GROUP BY ad, phrase, slot ORDER BY ad, phrase, slot"
        )
        return [SlotTally(*row) for row in self._query(sql, after_s, until_s)]

    def read_tallies(self, since: date) -> list[AdTally]:
        """Read the ad ledger's totals by day, ad and phrase."""
        sql = (
            "SELECT day, ad, phrase, payer, shown, clicked, charged, lost_budget, lost_rank, lost_reserve "
            "FROM tally WHERE day >= ? ORDER BY day, ad, phrase"
        )
        rows = self._query(sql, since.isoformat())
        return [AdTally(*row)._replace(charged=Decimal(row[6])) for row in rows]

    def read_refused_clicks(self, since: date) -> list[RefusedClicks]:
        """Read the ad clicks that were not charged, by reason, from the ad ledger."""
        sql = "SELECT day, payer, reason, times FROM refusal WHERE day >= ? ORDER BY day, payer, reason"
        return [RefusedClicks(*row) for row in self._query(sql, since.isoformat())]

    def read_latest(self, most: int) -> list[AdImpression]:
        """Read the latest ad impressions from the ad ledger, newest first."""
        sql = f"SELECT {IMPRESSION_COLUMNS} FROM showing ORDER BY at_s DESC, slot DESC LIMIT ?"  # noqa: S608 - our columns
        return [impression_from_row(row) for row in self._query(sql, most)]

    def _query(self, sql: str, *values: float | str) -> list[Any]:
        return LEDGER_FILE.query(self._folder, sql, *values)
