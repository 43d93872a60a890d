"""Store of the ad ledger: impressions, clicks and charges, each one transaction of a server.

``Ledger`` applies the rules of ``serve.ads.ledger`` in SQL that SQLite and PostgreSQL both understand: ``LedgerStore``
stores it in ``ledger.db``, ``adapters.ads.postgres_ledger`` in a cluster's PostgreSQL. A click is judged, capped at
what is left of the day's budgets and charged in one transaction, so charges never exceed a budget, however many
processes serve clicks: after a kill a click is either charged or not clicked, and a second click gets the recorded
result. Each search releases expired holds.

Balances are stored with the entries, in the same transactions, and summed up from the entries alone at each start.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from vedette.adapters.files.sqlite_file import SqlConnection, SqliteFile, SqliteStore
from vedette.errors import StoreCorrupt
from vedette.serve.ads.click_validity import DEFAULT_RULES, ClickRejection, ClickRules
from vedette.serve.ads.ledger import (
    ZERO,
    AdImpression,
    AdQuery,
    Balance,
    BudgetLine,
    ClickContext,
    ClickOutcome,
    Entry,
    EntryKind,
    ImpressionOffer,
    LostImpression,
    PastClick,
    PayerBudget,
    apply_entry,
    budget_lines,
    compute_hold,
    settle_click,
    sum_balances,
)

# Every commit is on disk before it is acknowledged. Each server process writes, one at a time. Entries are only ever
# added: the database itself refuses to change or drop one, and to hold, close or refund an impression twice.

LEDGER_NAME = "ledger.db"
# A search waits for it: better no ad than a slow page.
BUSY_S = 2.0

# Each entry migrates from one version to the next.
_STEPS = (
    """
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,              -- held, charged, refused, let go, refunded
  token TEXT NOT NULL,             -- of the showing
  payer TEXT NOT NULL,             -- the campaign
  day TEXT NOT NULL,               -- whose budget it is of
  amount TEXT NOT NULL,            -- exact
  at_s REAL NOT NULL,              -- wall time, as all times here
  reason TEXT NOT NULL             -- why a click was refused
) STRICT;
-- Held once, and then closed once.
CREATE UNIQUE INDEX entry_once ON entry (token, kind = 'held');
CREATE TRIGGER entry_stays BEFORE UPDATE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TRIGGER entry_lasts BEFORE DELETE ON entry BEGIN SELECT raise(ABORT, 'entries are only added'); END;
CREATE TABLE balance (
  payer TEXT NOT NULL,
  day TEXT NOT NULL,
  charged TEXT NOT NULL,           -- what all entries add up to
  held TEXT NOT NULL,
  PRIMARY KEY (payer, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE showing (
  token TEXT PRIMARY KEY,
  at_s REAL NOT NULL,
  day TEXT NOT NULL,
  payer TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,            -- the target that took the query
  slot INTEGER NOT NULL,           -- from 0
  score REAL NOT NULL,
  propensity REAL NOT NULL,
  price TEXT NOT NULL,             -- of a click
  reason TEXT NOT NULL,            -- why it was chosen
  closed TEXT NOT NULL,            -- what became of it; empty while it is open
  said TEXT NOT NULL,              -- why its click was refused
  mark TEXT NOT NULL               -- of the address that clicked, good for one day
) STRICT, WITHOUT ROWID;
CREATE INDEX showing_open ON showing (at_s) WHERE closed = '';
CREATE INDEX showing_at ON showing (at_s);
CREATE INDEX showing_mark ON showing (payer, day, mark) WHERE mark <> '';
CREATE TABLE tally (
  day TEXT NOT NULL,
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,
  payer TEXT NOT NULL,
  shown INTEGER NOT NULL,
  views REAL NOT NULL,             -- showings by how much their slots are seen
  clicked INTEGER NOT NULL,        -- and charged
  charged TEXT NOT NULL,
  lost_budget INTEGER NOT NULL,    -- queries that it would have taken part in with more money
  lost_rank INTEGER NOT NULL,
  lost_reserve INTEGER NOT NULL,
  PRIMARY KEY (day, ad, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE asked (
  day TEXT NOT NULL,
  hour INTEGER NOT NULL,           -- where the operator is
  phrase TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, hour, phrase)
) STRICT, WITHOUT ROWID;
CREATE TABLE refusal (
  day TEXT NOT NULL,
  payer TEXT NOT NULL,             -- empty where nobody's token was shown
  reason TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, payer, reason)
) STRICT, WITHOUT ROWID
""",
    # Until version 1 an impression held the whole price of a click.
    """
ALTER TABLE showing ADD COLUMN held TEXT NOT NULL DEFAULT '0.00';     -- what it was expected to cost
ALTER TABLE showing ADD COLUMN counted INTEGER NOT NULL DEFAULT 1;    -- whether it held money and is learned from
ALTER TABLE showing ADD COLUMN charged TEXT NOT NULL DEFAULT '0.00';  -- what its click cost
UPDATE showing SET held = price, charged = iif(closed = 'charged', price, '0.00');
ALTER TABLE balance ADD COLUMN advertiser TEXT NOT NULL DEFAULT '';   -- whose campaign the payer was
CREATE TABLE learned (             -- what is counted of an ad, over all days
  ad INTEGER NOT NULL,
  phrase TEXT NOT NULL,
  shown INTEGER NOT NULL,
  views REAL NOT NULL,
  clicked INTEGER NOT NULL,
  PRIMARY KEY (ad, phrase)
) STRICT, WITHOUT ROWID;
INSERT INTO learned SELECT ad, phrase, sum(shown), sum(views), sum(clicked) FROM tally GROUP BY ad, phrase;
CREATE TABLE phrase (phrase TEXT PRIMARY KEY, times INTEGER NOT NULL) STRICT, WITHOUT ROWID;  -- all of asked
INSERT INTO phrase SELECT phrase, sum(times) FROM asked GROUP BY phrase;
CREATE TABLE quota (               -- how often an address was counted, for a campaign or a phrase; kept for two days
  day TEXT NOT NULL,
  mark TEXT NOT NULL,
  topic TEXT NOT NULL,
  times INTEGER NOT NULL,
  PRIMARY KEY (day, mark, topic)
) STRICT, WITHOUT ROWID
""",
    # Charges can be refunded.
    """
DROP INDEX entry_once;
CREATE UNIQUE INDEX entry_once ON entry (token, kind = 'held', kind = 'refunded');
DROP INDEX showing_mark;
CREATE INDEX showing_clicked ON showing (payer, day) WHERE closed IN ('charged', 'refused', 'refunded')
""",
)

LEDGER_FILE = SqliteFile(
    LEDGER_NAME, _STEPS, "restore a backup; it records what advertisers owe", busy_s=BUSY_S, is_irreplaceable=True
)


# Maximum number released with one search; the rest waits for the next.
MAX_RELEASED = 5000
IMPRESSION_COLUMNS = (
    "token, at_s, day, payer, ad, phrase, slot, score, propensity, price, reason, closed, said, held, counted, charged"
)
_ENTRY = "INSERT INTO entry (kind, token, payer, day, amount, at_s, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"
_LOST = ("lost_budget", "lost_rank", "lost_reserve")
_TALLY = (
    "INSERT INTO tally (day, ad, phrase, payer, shown, views, clicked, charged, lost_budget, lost_rank, lost_reserve) "
    "VALUES (?, ?, ?, ?, ?, ?, 0, '0.00', ?, ?, ?) ON CONFLICT (day, ad, phrase) DO UPDATE SET "
    "shown = tally.shown + excluded.shown, views = tally.views + excluded.views, "
    "lost_budget = tally.lost_budget + excluded.lost_budget, lost_rank = tally.lost_rank + excluded.lost_rank, "
    "lost_reserve = tally.lost_reserve + excluded.lost_reserve"
)
_LEARNED = (
    "INSERT INTO learned VALUES (?, ?, 1, ?, 0) "
    "ON CONFLICT (ad, phrase) DO UPDATE SET shown = learned.shown + 1, views = learned.views + excluded.views"
)


class Ledger(ABC):
    """Writer of an ad ledger; each of its methods is one transaction over ``_db``."""

    _db: Any

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[SqlConnection]:
        """Begin a transaction, alone among all writers."""

    def record_impressions(
        self, offered: Sequence[ImpressionOffer], query: AdQuery, rules: ClickRules = DEFAULT_RULES
    ) -> list[AdImpression]:
        """Record a query in the ad ledger, hold the cost of its impressions, and return those within budget."""
        with self._transaction() as db:
            self._release_expired(query.at_s, rules.max_delay_s)
            db.execute("DELETE FROM quota WHERE day < ?", ((query.day - timedelta(days=1)).isoformat(),))
            for phrase in query.phrases:
                if self._count_visitor(query, f"phrase {phrase}", rules):
                    sql = f"INSERT INTO asked VALUES (?, ?, ?, 1) {_count_again('asked', 'day, hour, phrase')}"  # noqa: S608 - our columns
                    db.execute(sql, (query.day.isoformat(), query.hour, phrase))
                    sql = f"INSERT INTO phrase VALUES (?, 1) {_count_again('phrase', 'phrase')}"  # noqa: S608 - our columns
                    db.execute(sql, (phrase,))
            found = [(one, self._hold(one, query, rules)) for one in offered]
            lost = [
                LostImpression(one.impression.ad, one.impression.phrase, one.impression.payer, "budget")
                for one, held in found
                if held is None
            ]
            self._count_lost(query.day, (*query.lost, *lost))
        return [held for _, held in found if held is not None]

    def record_click(self, token: str, clicking: ClickContext, rules: ClickRules = DEFAULT_RULES) -> ClickOutcome:
        """Charge an ad click in the ledger, or return why it is free; only an impression's first click counts."""
        with self._transaction() as db:
            showing = _find_impression(db, token)
            if showing is None:
                return ClickOutcome(None, ClickRejection.FORGED)
            lines = self._read_lines(clicking.budget, showing)
            why_not, amount, refunds = settle_click(showing, clicking, self._read_clicks(showing), lines, rules)
            if not showing.closed:
                self._close_impression(showing, clicking, why_not, amount)
            for each in refunds:
                self._refund(each, clicking.at_s, str(why_not))
            if why_not:
                self._count_refused(showing.day, showing.payer, why_not)
                return ClickOutcome(showing, why_not)
            return ClickOutcome(showing, None, amount)

    def count_refused_click(self, day: date, reason: str) -> None:
        """Count an ad click without a valid token in the ledger."""
        with self._transaction():
            self._count_refused(day, "", reason)

    def find_impression(self, token: str) -> AdImpression | None:
        """Find an ad impression in the ledger by its token."""
        with self._transaction() as db:
            return _find_impression(db, token)

    def _hold(self, offered: ImpressionOffer, query: AdQuery, rules: ClickRules) -> AdImpression | None:
        showing = offered.impression
        if existing := _find_impression(self._db, showing.token):
            return existing  # nothing is held twice
        counted = self._count_visitor(query, f"campaign {showing.payer}", rules)
        lines = self._read_lines(offered.budget, showing)
        held = compute_hold(offered, lines, counted=counted)
        if held is None:
            return None
        showing = showing._replace(held=held, counted=counted)
        day = showing.day.isoformat()
        self._db.execute(
            f"INSERT INTO showing ({IMPRESSION_COLUMNS}, mark) VALUES ({'?, ' * 16}'')",  # noqa: S608 - our columns
            (*showing[:2], day, *showing[3:9], str(showing.price), *showing[10:13], str(held), int(counted), "0.00"),
        )
        entry = Entry(EntryKind.HELD, showing.token, showing.payer, showing.day, held, showing.at_s)
        self._append_entries([(entry, ZERO)], offered.budget.advertiser)
        views = offered.seen if counted else 0.0
        self._db.execute(_TALLY, (day, showing.ad, showing.phrase, showing.payer, 1, views, 0, 0, 0))
        if counted:
            self._db.execute(_LEARNED, (showing.ad, showing.phrase, views))
        return showing

    def _count_visitor(self, query: AdQuery, topic: str, rules: ClickRules) -> bool:
        """Count a visitor's search or impression; return whether it is within the limits of one address."""
        if not query.visitor:
            return True
        again = _count_again("quota", "day, mark, topic")
        sql = f"INSERT INTO quota VALUES (?, ?, ?, 1) {again} RETURNING times"  # noqa: S608 - our columns
        (times,) = self._db.execute(sql, (query.day.isoformat(), query.visitor, topic)).fetchone()
        return bool(times <= rules.max_showings)

    def _read_clicks(self, showing: AdImpression) -> list[PastClick]:
        sql = (
            "SELECT token, mark, charged FROM showing "
            "WHERE payer = ? AND day = ? AND closed IN ('charged', 'refused', 'refunded') ORDER BY token"
        )
        rows = self._db.execute(sql, (showing.payer, showing.day.isoformat()))
        return [PastClick(token, mark, Decimal(amount)) for token, mark, amount in rows]

    def _close_impression(
        self, showing: AdImpression, clicking: ClickContext, why_not: ClickRejection | None, amount: Decimal
    ) -> None:
        kind = EntryKind.REFUSED if why_not else EntryKind.CHARGED
        entered = showing.held if why_not else amount
        entry = Entry(kind, showing.token, showing.payer, showing.day, entered, clicking.at_s, str(why_not or ""))
        self._append_entries([(entry, showing.held)], clicking.budget.advertiser)
        sql = "UPDATE showing SET closed = ?, said = ?, mark = ?, charged = ? WHERE token = ?"
        self._db.execute(sql, (kind.value, entry.reason, clicking.visitor, str(amount), showing.token))
        if not why_not:
            self._count_click(showing, 1, amount)

    def _refund(self, token: str, at_s: float, reason: str) -> None:
        """Refund what an impression's click was charged; the click still counts for the learned click rate."""
        showing = _find_impression(self._db, token)
        assert showing is not None, "it was charged"
        entry = Entry(EntryKind.REFUNDED, token, showing.payer, showing.day, showing.charged, at_s, reason)
        self._append_entries([(entry, ZERO)])
        sql = "UPDATE showing SET closed = ?, said = ?, charged = '0.00' WHERE token = ?"
        self._db.execute(sql, (entry.kind.value, reason, token))
        self._count_click(showing, -1, -showing.charged)
        self._count_refused(showing.day, showing.payer, reason)

    def _count_click(self, showing: AdImpression, clicks: int, amount: Decimal) -> None:
        key = (showing.day.isoformat(), showing.ad, showing.phrase)
        where = "WHERE day = ? AND ad = ? AND phrase = ?"
        (charged,) = self._db.execute(f"SELECT charged FROM tally {where}", key).fetchone()  # noqa: S608 - our words
        sql = f"UPDATE tally SET clicked = clicked + ?, charged = ? {where}"  # noqa: S608 - our words
        self._db.execute(sql, (clicks, str(Decimal(charged) + amount), *key))
        if showing.counted and clicks > 0:
            self._db.execute("UPDATE learned SET clicked = clicked + 1 WHERE ad = ? AND phrase = ?", key[1:])

    def _release_expired(self, at_s: float, latest_s: float) -> None:
        sql = f"SELECT {IMPRESSION_COLUMNS} FROM showing WHERE closed = '' AND at_s < ? ORDER BY at_s LIMIT ?"  # noqa: S608 - our columns
        late = [impression_from_row(row) for row in self._db.execute(sql, (at_s - latest_s, MAX_RELEASED))]
        if not late:
            return
        self._append_entries(
            [(Entry(EntryKind.LET_GO, one.token, one.payer, one.day, one.held, at_s), one.held) for one in late]
        )
        self._db.executemany(
            "UPDATE showing SET closed = ? WHERE token = ?", [(EntryKind.LET_GO.value, one.token) for one in late]
        )

    def _append_entries(self, entries: Sequence[tuple[Entry, Decimal]], advertiser: str = "") -> None:
        """Append entries to the ad ledger, each with what its impression had held, and update the balances."""
        rows = [
            (one.kind.value, one.token, one.payer, one.day.isoformat(), str(one.amount), one.at_s, one.reason)
            for one, _ in entries
        ]
        self._db.executemany(_ENTRY, rows)
        balances: dict[tuple[str, date], Balance] = {}
        for entry, released in entries:
            key = entry.payer, entry.day
            before = balances.get(key) or self._read_balance(*key)
            balances[key] = apply_entry(before, entry, released)
        sql = (
            "INSERT INTO balance (payer, day, charged, held, advertiser) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (payer, day) DO UPDATE SET charged = excluded.charged, held = excluded.held, "
            "advertiser = CASE WHEN balance.advertiser = '' THEN excluded.advertiser ELSE balance.advertiser END"
        )
        for (payer, day), balance in balances.items():
            row = (payer, day.isoformat(), str(balance.charged), str(balance.held), balance.advertiser or advertiser)
            self._db.execute(sql, row)

    def _read_balance(self, payer: str, day: date) -> Balance:
        sql = "SELECT charged, held, advertiser FROM balance WHERE payer = ? AND day = ?"
        row = self._db.execute(sql, (payer, day.isoformat())).fetchone()
        return Balance(Decimal(row[0]), Decimal(row[1]), row[2]) if row else Balance()

    def _read_lines(self, of: PayerBudget, showing: AdImpression) -> list[BudgetLine]:
        """Read the budgets that limit an impression; all payers of the day only if the advertiser has a budget."""
        if of.advertiser_budget is None:
            return budget_lines(of, showing.payer, {showing.payer: self._read_balance(showing.payer, showing.day)})
        return budget_lines(of, showing.payer, self._read_balances(showing.day))

    def _read_balances(self, day: date) -> dict[str, Balance]:
        sql = "SELECT payer, charged, held, advertiser FROM balance WHERE day = ?"
        rows = self._db.execute(sql, (day.isoformat(),))
        return {payer: Balance(Decimal(charged), Decimal(held), whose) for payer, charged, held, whose in rows}

    def _count_lost(self, day: date, lost: Iterable[LostImpression]) -> None:
        rows = [
            (day.isoformat(), one.ad, one.phrase, one.payer, 0, 0.0, *(int(f"lost_{one.to}" == name) for name in _LOST))
            for one in lost
        ]
        self._db.executemany(_TALLY, rows)

    def _count_refused(self, day: date, payer: str, reason: str) -> None:
        sql = f"INSERT INTO refusal VALUES (?, ?, ?, 1) {_count_again('refusal', 'day, payer, reason')}"  # noqa: S608 - our columns
        self._db.execute(sql, (day.isoformat(), payer, str(reason)))


class LedgerStore(SqliteStore, Ledger):
    """Writer of the ad ledger ``ledger.db``; opening it checks that its balances follow from its entries."""

    FILE = LEDGER_FILE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        try:
            with LEDGER_FILE.explain_errors(self._folder):
                self._db.execute("BEGIN")
                try:
                    verify_balances(self._db, f"restore {LEDGER_NAME}")
                finally:
                    self._db.execute("ROLLBACK")
        except BaseException:
            self._db.close()
            raise

    def find_impression(self, token: str) -> AdImpression | None:
        """Find an ad impression in the ledger by its token, without waiting for writers."""
        with LEDGER_FILE.explain_errors(self._folder):
            return _find_impression(self._db, token)


def verify_balances(db: SqlConnection, repair_hint: str) -> None:
    """Check that the balances of a ledger follow from its entries; raise ``StoreCorrupt`` if not."""
    added = sum_balances(load_entries(db))
    stored = {(payer, date.fromisoformat(day)): balance for payer, day, balance in _load_balances(db)}
    if added != stored:
        wrong = next(key for key in (*added, *stored) if added.get(key) != stored.get(key))
        raise StoreCorrupt(
            f"the ledger's balance of {wrong[0]} on {wrong[1]} does not match its entries: {repair_hint}"
        )


def _count_again(table: str, key: str) -> str:
    """Return the end of an INSERT that counts one more if there is a row already."""
    return f"ON CONFLICT ({key}) DO UPDATE SET times = {table}.times + 1"


def load_entries(db: SqlConnection) -> Iterator[Entry]:
    """Yield all entries of the ad ledger, in order."""
    sql = "SELECT kind, token, payer, day, amount, at_s, reason FROM entry ORDER BY seq"
    for kind, token, payer, day, amount, at_s, reason in db.execute(sql):
        yield Entry(EntryKind(kind), token, payer, date.fromisoformat(day), Decimal(amount), at_s, reason)


def _load_balances(db: SqlConnection) -> Iterator[tuple[str, str, Balance]]:
    for payer, day, charged, held in db.execute("SELECT payer, day, charged, held FROM balance"):
        yield payer, day, Balance(Decimal(charged), Decimal(held))


def _find_impression(db: SqlConnection, token: str) -> AdImpression | None:
    row = db.execute(f"SELECT {IMPRESSION_COLUMNS} FROM showing WHERE token = ?", (token,)).fetchone()  # noqa: S608 - our columns
    return impression_from_row(row) if row else None


def impression_from_row(row: Sequence[object]) -> AdImpression:
    """Build an ad impression from a ledger row of ``IMPRESSION_COLUMNS``."""
    impression = AdImpression(*row)  # type: ignore[arg-type]  # as the table has them
    return impression._replace(
        day=date.fromisoformat(str(impression.day)),
        price=Decimal(str(impression.price)),
        held=Decimal(str(impression.held)),
        counted=bool(impression.counted),
        charged=Decimal(str(impression.charged)),
    )
