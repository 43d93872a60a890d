"""The market of a data folder, as console, API and command line see it: rows of the state, figures of the ledger."""

import time
from collections.abc import Callable
from datetime import date, datetime, timedelta
from datetime import time as clock
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

from vedette.adapters.ads.campaign_store import AdRow, AdvertiserRow, CampaignRow, MarketBook
from vedette.adapters.ads.ledger_reader import LedgerView, Refused
from vedette.adapters.ads.ledger_store import Showing
from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.store import StateBook
from vedette.adapters.net.dns import look_up
from vedette.adapters.net.ipc import Gone
from vedette.errors import StoreError, UsageError
from vedette.fetch.address_guard import is_public
from vedette.model import Failure, origin_of
from vedette.runtime.ads.learning import HOUR_S, share_by_now
from vedette.runtime.commands.rpc import Call
from vedette.runtime.processes.supervisor import ask_keeper
from vedette.serve.ads.ledger import Balance
from vedette.web.ads.ports import DAYS, AdLine, CampaignLine, DayLine, Figures, Today
from vedette.web.commands.ads_commands import MarketOrder
from vedette.web.commands.ads_text import landing_refusal
from vedette.web.commands.commands import Done

__all__ = ["FolderMarketDesk"]


class _Market(NamedTuple):
    """The market at one moment, of one advertiser or of all."""

    campaigns: dict[str, CampaignRow]
    ads: list[AdRow]


class FolderMarketDesk:
    """A ``web.market_ports.MarketDesk`` over one data folder; it reads beside those who write."""

    def __init__(self, folder: Path, zone: ZoneInfo, wall: Callable[[], float] = time.time) -> None:
        self._folder, self._zone, self._wall = folder, zone, wall
        self._view = LedgerView(folder)

    def advertisers(self) -> list[AdvertiserRow]:
        """As the state has them."""
        with read_state(self._folder) as db:
            return MarketBook(db).advertisers()

    def campaigns(self, advertiser: str = "") -> list[CampaignLine]:
        """With what they spent, and how evenly."""
        found, today = self._market(advertiser), self._today()
        figures = dict.fromkeys(found.campaigns, Figures())
        for tally in self._view.tallies(self._since()):
            if tally.payer in figures:
                figures[tally.payer] = figures[tally.payer].and_of(tally)
        refused = self._view.refused(self._since())
        balances, share = self._view.balances(today), self._share()
        return [
            CampaignLine(
                row,
                figures[name],
                balance := balances.get(name, Balance()),
                _pace(balance.charged, row.most, share),
                sum(one.times for one in refused if one.payer == name),
            )
            for name, row in found.campaigns.items()
        ]

    def ads(self, advertiser: str = "") -> list[AdLine]:
        """With what became of them."""
        found, today = self._market(advertiser), self._today()
        figures = {ad.id: Figures() for ad in found.ads}
        for tally in self._view.tallies(self._since()):
            if tally.ad in figures:
                figures[tally.ad] = figures[tally.ad].and_of(tally)
        return [
            AdLine(
                ad,
                found.campaigns[ad.campaign].advertiser if ad.campaign in found.campaigns else "",
                _state(ad, found.campaigns.get(ad.campaign), today),
                figures[ad.id],
            )
            for ad in found.ads
        ]

    def days(self, advertiser: str = "") -> list[DayLine]:
        """Each day, ad and phrase; of ads that are still known."""
        found = self._market(advertiser)
        known = {ad.id: ad for ad in found.ads}
        return [
            DayLine(tally, owner.advertiser, known[tally.ad].title)
            for tally in self._view.tallies(self._since())
            if tally.ad in known and (owner := found.campaigns.get(tally.payer))
        ]

    def today(self) -> Today:
        """Hour by hour where the operator is, also on the days that have 23 or 25."""
        local = self._local()
        began = datetime.combine(local.date(), clock.min, self._zone)
        hours = self._view.hours(self._since())
        marks = [began.timestamp() + HOUR_S * hour for hour in range(26)]
        marks = [*(at_s for at_s in marks if at_s < local.timestamp()), local.timestamp()]
        shares = [(at_s, share_by_now(hours, self._by_clock(at_s))) for at_s in marks]
        plan = [(at_s, share) for at_s, share in shares if share is not None]
        charges = self._view.charges(local.date(), began.timestamp())
        return Today(local.date(), began.timestamp(), local.timestamp(), charges, plan)

    def showings(self, most: int) -> list[Showing]:
        """As the ledger has them."""
        return self._view.latest(most)

    def refused(self) -> list[Refused]:
        """Of the last days."""
        return self._view.refused(self._since())

    def advertiser_of_key(self, name: str) -> str:
        """By name and secret: a key that was revoked and made anew under its name is another one."""
        with read_state(self._folder) as db:
            keys = {key.name: key.digest for key in StateBook(db).reader_keys() if key.revoked_s is None}
            rows = MarketBook(db).advertisers()
        return next((row.name for row in rows if row.key and row.key == name and keys.get(name) == row.digest), "")

    def refusal(self, url: str) -> str:
        """By its spelling, then by what name servers say of it today."""
        if why := landing_refusal(url):
            return why
        host = origin_of(url).host
        found = look_up(host)
        if found.failure is Failure.NAME:
            return f"{host}: {found.failure}"
        private = next((address for address in found.addresses if not is_public(address)), "")
        return f"{host} is at {private}, a private address: an ad leads to a public one" if private else ""

    def order(self, order: MarketOrder, by: str) -> Done:
        """Through the keeper, which commits before it answers."""
        try:
            reply = ask_keeper(self._folder, Call("order", {"order": order, "who": by}))
        except (OSError, Gone):
            words = "the crawler does not answer: it is being started again; try once more in a moment"
            raise StoreError(words) from None
        if "error" in reply:
            raise UsageError(str(reply["error"]))
        action = reply["action"]
        assert isinstance(action, int)
        return Done(str(reply["done"]), action)

    def _market(self, advertiser: str) -> _Market:
        with read_state(self._folder) as db:
            book = MarketBook(db)
            campaigns, ads = book.campaigns(), book.ads()
        mine = {row.name: row for row in campaigns if advertiser in {"", row.advertiser}}
        return _Market(mine, [ad for ad in ads if not advertiser or ad.campaign in mine])

    def _local(self) -> datetime:
        return datetime.fromtimestamp(self._wall(), self._zone)

    def _today(self) -> date:
        return self._local().date()

    def _since(self) -> date:
        return self._today() - timedelta(days=DAYS - 1)

    def _share(self) -> float | None:
        return share_by_now(self._view.hours(self._since()), self._by_clock(self._wall()))

    def _by_clock(self, at_s: float) -> float:
        """Seconds of which whole days begin at midnight where the operator is."""
        offset = datetime.fromtimestamp(at_s, self._zone).utcoffset() or timedelta()
        return at_s + offset.total_seconds()


def _pace(charged: Decimal, budget: Decimal, share: float | None) -> float | None:
    return float(charged / budget) / share if share else None


def _state(ad: AdRow, campaign: CampaignRow | None, today: date) -> str:
    """Whether it is shown, in a few words."""
    if ad.standing != "approved":
        return "waits to be approved" if ad.standing == "submitted" else "revoked"
    if campaign is None:
        return "its campaign is gone"
    if campaign.paused:
        return "its campaign is paused"
    return "shown" if campaign.runs_on(today) else "not on these days"
