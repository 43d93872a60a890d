"""Store of advertisers, campaigns and ads, in tables of ``state.db``.

Money is the text of an exact decimal. The caller commits.
"""

import json
import sqlite3
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any, Literal, NamedTuple

AdStatus = Literal["submitted", "approved", "revoked"]

AD_SCHEMA = """
CREATE TABLE IF NOT EXISTS advertiser (
  name TEXT PRIMARY KEY,
  reader_key TEXT NOT NULL,        -- the key with which its reports are read; empty for none
  key_digest TEXT NOT NULL,        -- of that key's secret: another key of the same name is not his
  added_s REAL NOT NULL
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
  targets TEXT NOT NULL,           -- pairs of a way and a phrase, as JSON
  negatives TEXT NOT NULL,         -- phrases that keep it away, as JSON
  bid TEXT NOT NULL,               -- for a click
  standing TEXT NOT NULL,          -- submitted, approved, revoked
  added_s REAL NOT NULL
) STRICT
"""
_AD = "id, campaign, title, text, url, targets, negatives, bid, standing, added_s"


class AdvertiserRow(NamedTuple):
    """An advertiser. ``key`` names the user key that may read its reports, ``digest`` is that key's."""

    name: str
    key: str = ""
    digest: str = ""
    added_s: float = 0.0


class CampaignRow(NamedTuple):
    """Ads with one budget a day; ``starts`` and ``ends`` are days that belong to it, empty where it has no limit."""

    name: str
    advertiser: str
    budget: str
    starts: str = ""
    ends: str = ""
    paused: bool = False
    added_s: float = 0.0

    def runs_on(self, day: date) -> bool:
        """Whether its ads may be shown on a day.

        >>> CampaignRow("spring", "ann", "5.00", "2026-03-01", "2026-05-31").runs_on(date(2026, 5, 31))
        True
        """
        return not self.paused and (self.starts or "0") <= day.isoformat() <= (self.ends or "9999-12-31")

    @property
    def daily_budget(self) -> Decimal:
        """The budget of a day."""
        return Decimal(self.budget)


class AdRow(NamedTuple):
    """An ad. ``targets`` are pairs of a way (exact, phrase, broad) and a phrase; its number is 0 before it has one."""

    id: int
    campaign: str
    title: str
    text: str
    url: str
    targets: tuple[tuple[str, str], ...]
    negatives: tuple[str, ...]
    bid: str
    standing: AdStatus = "submitted"
    added_s: float = 0.0


class CampaignStore:
    """Advertisers, campaigns and ads, over the connection of a state."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def list_advertisers(self) -> list[AdvertiserRow]:
        """List all advertisers, by name."""
        sql = "SELECT name, reader_key, key_digest, added_s FROM advertiser ORDER BY name"
        return [AdvertiserRow(*row) for row in self._db.execute(sql)]

    def save_advertiser(self, row: AdvertiserRow) -> None:
        """Add an advertiser, or change its key."""
        self._db.execute("INSERT OR REPLACE INTO advertiser VALUES (?, ?, ?, ?)", row)

    def delete_advertiser(self, name: str) -> None:
        """Delete an advertiser."""
        self._db.execute("DELETE FROM advertiser WHERE name = ?", (name,))

    def list_campaigns(self) -> list[CampaignRow]:
        """List all campaigns, by name."""
        sql = "SELECT name, advertiser, budget, starts, ends, paused, added_s FROM campaign ORDER BY name"
        return [CampaignRow(*row)._replace(paused=bool(row[5])) for row in self._db.execute(sql)]

    def save_campaign(self, row: CampaignRow) -> None:
        """Add or change a campaign."""
        self._db.execute("INSERT OR REPLACE INTO campaign VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def delete_campaign(self, name: str) -> None:
        """Delete a campaign; what it owes stays in the ledger."""
        self._db.execute("DELETE FROM campaign WHERE name = ?", (name,))

    def list_ads(self) -> list[AdRow]:
        """List all ads, revoked ones too, by number."""
        return [_parse_ad(row) for row in self._db.execute(f"SELECT {_AD} FROM ad ORDER BY id")]  # noqa: S608 - our columns

    def save_ad(self, row: AdRow) -> int:
        """Save an ad and return its number, a new one where it was 0. A number is never given again."""
        values = (row.id or None, *row[1:5], _to_json(row.targets), _to_json(row.negatives), *row[7:])
        sql = f"INSERT OR REPLACE INTO ad ({_AD}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"  # noqa: S608 - our columns
        return int(self._db.execute(sql, values).fetchone()[0])


def _to_json(values: Sequence[object]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _parse_ad(row: Sequence[Any]) -> AdRow:
    kept = AdRow(*row)
    targets = tuple((way, phrase) for way, phrase in json.loads(row[5]))
    return kept._replace(targets=targets, negatives=tuple(json.loads(row[6])))
