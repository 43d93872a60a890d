"""Store of the ad ledger ``ledger.db``: impressions, clicks and charges, each one transaction of a server.

An impression *holds* the price of a click of its campaign's budget of the day, or it is not made. So what is charged
and held is never above the budget, however many processes serve clicks. A click is judged and charged at once: a kill
leaves it charged or not clicked, and a second click is answered by what was entered. What nobody clicked is released
when the time in which clicks count is over.

Balances are kept beside the entries, in the same transactions, and added up from the entries alone at each start.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from vedette.adapters.files.sqlite_file import SqliteFile, SqliteStore
from vedette.errors import StoreCorrupt
from vedette.serve.ads.click_validity import DEFAULT_RULES, Click, ClickRejection, ClickRules, check_click
from vedette.serve.ads.ledger import Balance, Entry, EntryKind, sum_balances

# Every commit is on the disk before it is answered. Each server process writes, one at a time. Entries are only ever
# added: the database itself refuses to change or drop one, and to hold or close an impression twice.

LEDGER_NAME = "ledger.db"
# A search waits for it: rather no ad than a slow page.
BUSY_S = 2.0

# Each entry leads from one version to the next.
_STEPS = (
    """
CREATE TABLE entry (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,              -- held, charged, refused, let go
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
)

LEDGER_FILE = SqliteFile(LEDGER_NAME, _STEPS, "restore it, for it says who owes what", busy_s=BUSY_S)


# Released with one impression at most; more waits for the next.
MAX_RELEASED = 500
IMPRESSION_COLUMNS = "token, at_s, day, payer, ad, phrase, slot, score, propensity, price, reason, closed, said"
_ENTRY = "INSERT INTO entry (kind, token, payer, day, amount, at_s, reason) VALUES (?, ?, ?, ?, ?, ?, ?)"
_TALLY = (
    "INSERT INTO tally (day, ad, phrase, payer, shown, views, clicked, charged, lost_budget, lost_rank, lost_reserve) "
    "VALUES (?, ?, ?, ?, 0, 0, 0, '0.00', 0, 0, 0) ON CONFLICT DO NOTHING"
)


class AdImpression(NamedTuple):
    """An ad shown in a slot (from 0); ``closed`` is its outcome, empty while a click may still come."""

    token: str
    at_s: float
    day: date
    payer: str
    ad: int
    phrase: str
    slot: int
    score: float
    propensity: float
    price: Decimal
    reason: str
    closed: str = ""
    said: str = ""


class ImpressionOffer(NamedTuple):
    """A proposed ad impression, its payer's budget for the day, and how visible its slot is."""

    impression: AdImpression
    budget: Decimal
    seen: float


class LostImpression(NamedTuple):
    """An ad that a query could have shown but did not; ``to`` is the cause: budget, rank or reserve."""

    ad: int
    phrase: str
    payer: str
    to: str


class AdQuery(NamedTuple):
    """A search query that matched these ad phrases, in an hour of a day."""

    day: date
    hour: int
    phrases: Sequence[str]
    lost: Sequence[LostImpression] = ()


class ClickContext(NamedTuple):
    """An ad click to be judged: time, visitor hash, whether it is a bot's, whether the ad may still run."""

    at_s: float
    visitor_hash: str
    is_bot: bool
    on_target: bool


class ClickOutcome(NamedTuple):
    """The outcome of an ad click: its impression (None if the token is unknown), and why it was not charged."""

    impression: AdImpression | None
    objection: ClickRejection | None
    charged: Decimal = Decimal("0.00")


class LedgerStore(SqliteStore):
    """Writer of the ad ledger ``ledger.db``; opening it checks that its balances follow from its entries."""

    FILE = LEDGER_FILE

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        try:
            self._verify_balances()
        except BaseException:
            self._db.close()
            raise

    def record_impressions(
        self, offered: Sequence[ImpressionOffer], asked: AdQuery, rules: ClickRules = DEFAULT_RULES
    ) -> list[AdImpression]:
        """Record a query in the ad ledger, hold the cost of its impressions, and return those within budget."""
        with self._transaction() as db:
            for phrase in asked.phrases:
                sql = "INSERT INTO asked VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
                db.execute(sql, (asked.day.isoformat(), asked.hour, phrase))
            if offered:
                self._release_expired(offered[0].impression.at_s, rules.max_delay_s)
            held = [one for one in offered if self._hold(one)]
            lost = [
                LostImpression(one.impression.ad, one.impression.phrase, one.impression.payer, "budget")
                for one in offered
                if one not in held
            ]
            self._count_lost(asked.day, (*asked.lost, *lost))
        return [one.impression for one in held]

    def record_click(self, token: str, clicking: ClickContext, rules: ClickRules = DEFAULT_RULES) -> ClickOutcome:
        """Charge an ad click in the ledger, or return why it is free; only an impression's first click counts."""
        with self._transaction() as db:
            showing = _find_impression(db, token)
            if showing is None:
                return ClickOutcome(None, ClickRejection.FORGED)
            why_not = check_click(self._build_click(showing, clicking), rules)
            if not showing.closed:
                self._settle_click(
                    showing, EntryKind.REFUSED if why_not else EntryKind.CHARGED, clicking, why_not or ""
                )
            if why_not:
                self._count_refused(showing.day, showing.payer, why_not)
                return ClickOutcome(showing, why_not)
            return ClickOutcome(showing, None, showing.price)

    def count_refused_click(self, day: date, reason: str) -> None:
        """Count an ad click without a valid token in the ledger."""
        with self._transaction():
            self._count_refused(day, "", reason)

    def release_expired(self, at_s: float, rules: ClickRules = DEFAULT_RULES) -> None:
        """Release the amounts held in the ad ledger for impressions that were not clicked in time."""
        with self._transaction():
            self._release_expired(at_s, rules.max_delay_s)

    def find_impression(self, token: str) -> AdImpression | None:
        """Find an ad impression in the ledger by its token."""
        with LEDGER_FILE.explain_errors(self._folder):
            return _find_impression(self._db, token)

    def _verify_balances(self) -> None:
        with LEDGER_FILE.explain_errors(self._folder):
            self._db.execute("BEGIN")
            try:
                added = sum_balances(load_entries(self._db))
                kept = {(payer, date.fromisoformat(day)): balance for payer, day, balance in _load_balances(self._db)}
            finally:
                self._db.execute("ROLLBACK")
        if added != kept:
            wrong = next(key for key in (*added, *kept) if added.get(key) != kept.get(key))
            raise StoreCorrupt(
                f"the ledger's balance of {wrong[0]} on {wrong[1]} does not follow from its entries: restore ledger.db"
            )

    def _hold(self, offered: ImpressionOffer) -> bool:
        showing = offered.impression
        if _find_impression(self._db, showing.token) is not None:
            return True  # held before: nothing is held twice
        balance = self._read_balance(showing.payer, showing.day)
        if not 0 < showing.price <= offered.budget - balance.committed:
            return False
        day = showing.day.isoformat()
        self._db.execute(
            f"INSERT INTO showing ({IMPRESSION_COLUMNS}, mark) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', '')",  # noqa: S608 - our columns
            (*showing[:2], day, *showing[3:9], str(showing.price), showing.reason),
        )
        self._append_entry(
            Entry(EntryKind.HELD, showing.token, showing.payer, showing.day, showing.price, showing.at_s)
        )
        self._db.execute(_TALLY, (day, showing.ad, showing.phrase, showing.payer))
        self._db.execute(
            "UPDATE tally SET shown = shown + 1, views = views + ? WHERE day = ? AND ad = ? AND phrase = ?",
            (offered.seen, day, showing.ad, showing.phrase),
        )
        return True

    def _build_click(self, showing: AdImpression, clicking: ClickContext) -> Click:
        sql = "SELECT count(*) FROM showing WHERE payer = ? AND day = ? AND mark = ? AND closed = 'charged'"
        key = (showing.payer, showing.day.isoformat(), clicking.visitor_hash)
        (before,) = self._db.execute(sql, key).fetchone() if clicking.visitor_hash else (0,)
        return Click(
            known_token=True,
            clicked_before=showing.closed in {EntryKind.CHARGED, EntryKind.REFUSED},
            # What was let go was late, however the clock was set since.
            waited_s=float("inf") if showing.closed else clicking.at_s - showing.at_s,
            is_bot=clicking.is_bot,
            clicks_from_address=before,
            on_target=clicking.on_target,
        )

    def _settle_click(self, showing: AdImpression, kind: EntryKind, clicking: ClickContext, why: str) -> None:
        self._close_impression(showing, kind, clicking.at_s, why, clicking.visitor_hash)
        if kind is not EntryKind.CHARGED:
            return
        key = (showing.day.isoformat(), showing.ad, showing.phrase)
        where = "WHERE day = ? AND ad = ? AND phrase = ?"
        (charged,) = self._db.execute(f"SELECT charged FROM tally {where}", key).fetchone()  # noqa: S608 - our words
        sql = f"UPDATE tally SET clicked = clicked + 1, charged = ? {where}"  # noqa: S608 - our words
        self._db.execute(sql, (str(Decimal(charged) + showing.price), *key))

    def _close_impression(
        self, showing: AdImpression, kind: EntryKind, at_s: float, why: str = "", mark: str = ""
    ) -> None:
        self._append_entry(Entry(kind, showing.token, showing.payer, showing.day, showing.price, at_s, why))
        sql = "UPDATE showing SET closed = ?, said = ?, mark = ? WHERE token = ?"
        self._db.execute(sql, (kind.value, str(why), mark, showing.token))

    def _release_expired(self, at_s: float, latest_s: float) -> None:
        sql = f"SELECT {IMPRESSION_COLUMNS} FROM showing WHERE closed = '' AND at_s < ? ORDER BY at_s LIMIT ?"  # noqa: S608 - our columns
        for row in self._db.execute(sql, (at_s - latest_s, MAX_RELEASED)).fetchall():
            self._close_impression(impression_from_row(row), EntryKind.LET_GO, at_s)

    def _append_entry(self, entry: Entry) -> None:
        """Append an entry to the ad ledger and update the payer's balance."""
        day = entry.day.isoformat()
        key = (entry.kind.value, entry.token, entry.advertiser, day)
        self._db.execute(_ENTRY, (*key, str(entry.amount), entry.at_s, str(entry.reason)))
        balance = self._read_balance(entry.advertiser, entry.day)
        if entry.kind is EntryKind.HELD:
            balance = balance._replace(held=balance.held + entry.amount)
        else:
            charged = entry.amount if entry.kind is EntryKind.CHARGED else Decimal(0)
            balance = Balance(balance.charged + charged, balance.held - entry.amount)
        row = (entry.advertiser, day, str(balance.charged), str(balance.held))
        self._db.execute("INSERT OR REPLACE INTO balance VALUES (?, ?, ?, ?)", row)

    def _read_balance(self, payer: str, day: date) -> Balance:
        sql = "SELECT charged, held FROM balance WHERE payer = ? AND day = ?"
        row = self._db.execute(sql, (payer, day.isoformat())).fetchone()
        return Balance(*map(Decimal, row)) if row else Balance()

    def _count_lost(self, day: date, lost: Iterable[LostImpression]) -> None:
        for one in lost:
            key = (day.isoformat(), one.ad, one.phrase)
            self._db.execute(_TALLY, (*key, one.payer))
            column = {"budget": "lost_budget", "rank": "lost_rank", "reserve": "lost_reserve"}[one.to]
            sql = f"UPDATE tally SET {column} = {column} + 1 WHERE day = ? AND ad = ? AND phrase = ?"  # noqa: S608 - one of three words
            self._db.execute(sql, key)

    def _count_refused(self, day: date, payer: str, reason: str) -> None:
        sql = "INSERT INTO refusal VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET times = times + 1"
        self._db.execute(sql, (day.isoformat(), payer, str(reason)))


def load_entries(db: sqlite3.Connection) -> Iterator[Entry]:
    """Yield all entries of the ad ledger, in order."""
    sql = "SELECT kind, token, payer, day, amount, at_s, reason FROM entry ORDER BY seq"
    for kind, token, payer, day, amount, at_s, reason in db.execute(sql):
        yield Entry(EntryKind(kind), token, payer, date.fromisoformat(day), Decimal(amount), at_s, reason)


def _load_balances(db: sqlite3.Connection) -> Iterator[tuple[str, str, Balance]]:
    for payer, day, charged, held in db.execute("SELECT payer, day, charged, held FROM balance"):
        yield payer, day, Balance(Decimal(charged), Decimal(held))


def _find_impression(db: sqlite3.Connection, token: str) -> AdImpression | None:
    row = db.execute(f"SELECT {IMPRESSION_COLUMNS} FROM showing WHERE token = ?", (token,)).fetchone()  # noqa: S608 - our columns
    return impression_from_row(row) if row else None


def impression_from_row(row: Sequence[object]) -> AdImpression:
    """Build an ad impression from a ledger row of ``IMPRESSION_COLUMNS``."""
    made = AdImpression(*row)  # type: ignore[arg-type]  # as the table has them
    return made._replace(day=date.fromisoformat(str(made.day)), price=Decimal(str(made.price)))
