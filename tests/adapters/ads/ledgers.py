"""Ledgers under test, in a file and in PostgreSQL, with impressions and clicks to put into them."""

import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Protocol

import psycopg

from vedette.adapters.ads.ledger_reader import LedgerReader
from vedette.adapters.ads.ledger_store import LEDGER_FILE, Ledger, LedgerStore, load_entries
from vedette.adapters.ads.postgres_ledger import AdDatabase, PostgresLedger, PostgresLedgerReader
from vedette.serve.ads.ledger import (
    AdImpression,
    AdQuery,
    Balance,
    ClickContext,
    Entry,
    ImpressionOffer,
    PayerBudget,
    sum_balances,
)

__all__ = [
    "ASKED",
    "CENTS",
    "DAY",
    "NOW_S",
    "ONE",
    "Books",
    "FileBooks",
    "PostgresBooks",
    "balance",
    "offered",
    "person",
]

NOW_S = 1_800_000_000.0
DAY = date(2027, 1, 15)
ASKED = AdQuery(NOW_S, DAY, 8, "", ("red shoes",))
CENTS = Decimal("0.01")
ONE = PayerBudget(Decimal("1.00"), "ann")


def offered(
    token: str, price: str = "0.40", budget: str = "1.00", at_s: float = NOW_S, payer: str = "spring"
) -> ImpressionOffer:
    """Return a requested impression with a click probability of one in ten."""
    reason = "believed: because"
    showing = AdImpression(token, at_s, DAY, payer, 1, "red shoes", 0, 2.5, 1.0, Decimal(price), reason)
    return ImpressionOffer(showing, PayerBudget(Decimal(budget), "ann"), 1.0, 0.1)


def person(after_s: float = 5.0, mark: str = "ab", budget: PayerBudget = ONE) -> ClickContext:
    """Return a click by someone."""
    return ClickContext(NOW_S + after_s, mark, is_bot=False, on_target=True, budget=budget)


class Books(Protocol):
    """An empty ledger under test; ``refusals`` are the errors with which its database refuses a change."""

    refusals: tuple[type[Exception], ...]

    @property
    def ledger(self) -> Ledger:
        """The ledger."""

    @property
    def reader(self) -> LedgerReader:
        """Its reader."""

    def open_another(self) -> AbstractContextManager[Ledger]:
        """Open the same ledger again, as another process would."""

    def load_entries(self) -> list[Entry]:
        """Load all entries."""

    def execute(self, sql: str) -> None:
        """Execute a statement on the database."""

    def close(self) -> None:
        """Close the ledger."""

    def balance(self, payer: str = "spring") -> Balance:
        """Compute the balance from the entries alone, and compare it with the stored one."""
        with self.open_another():
            return sum_balances(self.load_entries()).get((payer, DAY), Balance())


class FileBooks(Books):
    """A ledger in a file."""

    refusals = (sqlite3.IntegrityError,)

    def __init__(self, folder: Path) -> None:
        self._folder, self._ledger = folder, LedgerStore(folder)

    @property
    def ledger(self) -> LedgerStore:
        """The ledger."""
        return self._ledger

    @property
    def reader(self) -> LedgerReader:
        """Its reader."""
        return LedgerReader(self._folder)

    def open_another(self) -> AbstractContextManager[LedgerStore]:
        """Open the same ledger again."""
        return closing(LedgerStore(self._folder))

    def load_entries(self) -> list[Entry]:
        """Load all entries."""
        with LEDGER_FILE.read(self._folder) as db:
            assert db is not None
            return list(load_entries(db))

    def execute(self, sql: str) -> None:
        """Execute a statement on the file."""
        with closing(LEDGER_FILE.open(self._folder)) as db:
            db.execute(sql)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()


class PostgresBooks(Books):
    """A ledger in PostgreSQL."""

    refusals = (psycopg.errors.RaiseException, psycopg.errors.UniqueViolation)

    def __init__(self, dsn: str) -> None:
        self._dsn, self._database = dsn, AdDatabase(dsn)
        self._ledger = PostgresLedger(self._database)

    @property
    def ledger(self) -> PostgresLedger:
        """The ledger."""
        return self._ledger

    @property
    def reader(self) -> LedgerReader:
        """Its reader."""
        return PostgresLedgerReader(self._database)

    @contextmanager
    def open_another(self) -> Iterator[PostgresLedger]:
        """Open the same ledger over another connection."""
        with closing(AdDatabase(self._dsn)) as database:
            yield PostgresLedger(database)

    def load_entries(self) -> list[Entry]:
        """Load all entries."""
        with self._database.read() as db:
            return list(load_entries(db))

    def execute(self, sql: str) -> None:
        """Execute a statement on the database."""
        with self._database.write() as db:
            db.execute(sql)

    def close(self) -> None:
        """Close the ledger."""
        self._database.close()


def balance(folder: Path, payer: str = "spring") -> Balance:
    """Compute the balance from the entries alone, and compare it with a new ledger."""
    LedgerStore(folder).close()
    with LEDGER_FILE.read(folder) as db:
        assert db is not None
        entries = list(load_entries(db))
    return sum_balances(entries).get((payer, DAY), Balance())
