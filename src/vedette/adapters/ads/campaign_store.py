"""Store of advertisers, campaigns and ads, in tables of ``state.db``, or of PostgreSQL in a cluster.

Money is the text of an exact decimal. The caller commits.
"""

import json
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from vedette.adapters.files.sqlite_file import SqlConnection

AdStatus = Literal["submitted", "approved", "revoked"]

AD_SCHEMA = """
CREATE TABLE IF NOT EXISTS advertiser (
  name TEXT PRIMARY KEY,
  reader_key TEXT NOT NULL,        -- the key with which its reports are read; empty for none
  key_digest TEXT NOT NULL,        -- of that key's secret: another key of the same name is not his
  added_s REAL NOT NULL,
  budget TEXT NOT NULL DEFAULT ''  -- of a day, over all campaigns; empty for none
) STRICT;
CREATE TABLE IF NOT EXISTS campaign (
  name TEXT PRIMARY KEY,
  advertiser TEXT NOT NULL,
  budget TEXT NOT NULL,            -- of a day
  starts TEXT NOT NULL,            -- its first day, as 2026-01-31; empty where it has none
  ends TEXT NOT NULL,              -- its last day, likewise
  paused INTEGER NOT NULL,
  added_s REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS ad (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  campaign TEXT NOT NULL,
  title TEXT NOT NULL,
  text TEXT NOT NULL,
  url TEXT NOT NULL,
  targets TEXT NOT NULL,           -- a way, a phrase, and perhaps a bid for it, as JSON
  negatives TEXT NOT NULL,         -- phrases that keep it away, as JSON
  bid TEXT NOT NULL,               -- for a click, where the phrase has none of its own
  standing TEXT NOT NULL,          -- submitted, approved, revoked
  added_s REAL NOT NULL
) STRICT
"""
_AD_COLUMNS = ("campaign", "title", "text", "url", "targets", "negatives", "bid", "standing", "added_s")
_AD = f"id, {', '.join(_AD_COLUMNS)}"


class AdvertiserRow(NamedTuple):
    """An advertiser as stored; ``key`` names the user key that may read its ad reports, ``digest`` is its digest.

    ``budget`` is what all campaigns together may cost on a day; empty for no limit.
    """

    name: str
    key: str = ""
    digest: str = ""
    added_s: float = 0.0
    budget: str = ""

    @property
    def daily_budget(self) -> Decimal | None:
        """The budget of one day over all campaigns; None if there is none."""
        return Decimal(self.budget) if self.budget else None


class CampaignRow(NamedTuple):
    """A stored ad campaign with a daily budget; ``starts`` and ``ends`` are inclusive days, empty for no limit."""

    name: str
    advertiser: str
    budget: str
    starts: str = ""
    ends: str = ""
    paused: bool = False
    added_s: float = 0.0

    def runs_on(self, day: date) -> bool:
        """Check whether the ads of this campaign may be shown on a day.

        >>> CampaignRow("spring", "ann", "5.00", "2026-03-01", "2026-05-31").runs_on(date(2026, 5, 31))
        True
        """
        return not self.paused and (self.starts or "0") <= day.isoformat() <= (self.ends or "9999-12-31")

    @property
    def daily_budget(self) -> Decimal:
        """The campaign's budget for one day."""
        return Decimal(self.budget)


class AdTarget(NamedTuple):
    """A stored target of an ad: match type (exact, phrase, broad), phrase, and the bid for it if it has its own."""

    way: str
    phrase: str
    bid: str = ""


class AdRow(NamedTuple):
    """A stored ad; ``bid`` is for targets without a bid of their own; ``id`` is 0 until saved."""

    id: int
    campaign: str
    title: str
    text: str
    url: str
    targets: tuple[AdTarget, ...]
    negatives: tuple[str, ...]
    bid: str
    standing: AdStatus = "submitted"
    added_s: float = 0.0


class CampaignStore:
    """Store of advertisers, campaigns and ads, over a connection to ``state.db`` or to a cluster's PostgreSQL."""

    def __init__(self, db: SqlConnection) -> None:
        self._db = db

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List all stored advertisers, by name."""
        sql = "SELECT name, reader_key, key_digest, added_s, budget FROM advertiser ORDER BY name"
        return [AdvertiserRow(*row) for row in self._db.execute(sql)]

    def save_advertiser(self, row: AdvertiserRow) -> None:
        """Save an advertiser, new or with another key."""
        self._db.execute(_build_upsert("advertiser", "name", ("reader_key", "key_digest", "added_s", "budget")), row)

    def delete_advertiser(self, name: str) -> None:
        """Delete an advertiser from the campaign store."""
        self._db.execute("DELETE FROM advertiser WHERE name = ?", (name,))

    def list_campaigns(self) -> list[CampaignRow]:
        """List all stored ad campaigns, by name."""
        sql = "SELECT name, advertiser, budget, starts, ends, paused, added_s FROM campaign ORDER BY name"
        return [CampaignRow(*row)._replace(paused=bool(row[5])) for row in self._db.execute(sql)]

    def save_campaign(self, row: CampaignRow) -> None:
        """Save an ad campaign, new or changed."""
        columns = ("advertiser", "budget", "starts", "ends", "paused", "added_s")
        values = (*row[:5], int(row.paused), row.added_s)
        self._db.execute(_build_upsert("campaign", "name", columns), values)

    def delete_campaign(self, name: str) -> None:
        """Delete an ad campaign from the campaign store; its charges stay in the ledger."""
        self._db.execute("DELETE FROM campaign WHERE name = ?", (name,))

    def list_ads(self) -> list[AdRow]:
        """List all stored ads by number, including revoked ones."""
        return [_parse_ad(row) for row in self._db.execute(f"SELECT {_AD} FROM ad ORDER BY id")]  # noqa: S608 - our columns

    def save_ad(self, row: AdRow) -> int:
        """Save an ad in the campaign store and return its number, a new one if it was 0; numbers are never reused."""
        values = (*row[1:5], _to_json(row.targets), _to_json(row.negatives), *row[7:])
        if row.id:
            self._db.execute(_build_upsert("ad", "id", _AD_COLUMNS), (row.id, *values))
            return row.id
        sql = f"INSERT INTO ad ({', '.join(_AD_COLUMNS)}) VALUES ({', '.join('?' * len(values))}) RETURNING id"  # noqa: S608 - our columns
        return int(self._db.execute(sql, values).fetchone()[0])


def _build_upsert(table: str, key: str, columns: Sequence[str]) -> str:
    """Build a statement that inserts a row, or replaces the one with this key."""
    every, marks = ", ".join((key, *columns)), ", ".join("?" * (len(columns) + 1))
    changes = ", ".join(f"{name} = excluded.{name}" for name in columns)
    return f"INSERT INTO {table} ({every}) VALUES ({marks}) ON CONFLICT ({key}) DO UPDATE SET {changes}"  # noqa: S608 - our columns


def _to_json(values: Sequence[object]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _parse_ad(row: Sequence[Any]) -> AdRow:
    ad = AdRow(*row)
    targets = tuple(AdTarget(*target) for target in json.loads(row[5]))
    return ad._replace(targets=targets, negatives=tuple(json.loads(row[6])))
