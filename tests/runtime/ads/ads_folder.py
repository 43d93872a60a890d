"""A data folder with a market, and the real application over it: ads are shown, clicked and charged."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.applications import Starlette
from tests.data_folders import NOW_S, opened
from tests.web.small_search import SmallSearch

from vedette.adapters.ads.campaign_store import AdRow
from vedette.config import Rate, Serve
from vedette.runtime.ads.selection import FolderSponsor, terms_of
from vedette.runtime.commands.executor import carry_out
from vedette.web.app import make_app
from vedette.web.branding import Look
from vedette.web.commands.ads_commands import JudgeAd, KeepAd, KeepAdvertiser, KeepCampaign, MarketOrder
from vedette.web.commands.ads_text import ad_of, advertiser_of, campaign_of
from vedette.web.public.ads import Sponsored
from vedette.web.server import bind, server_of

SECRET = b"a secret of this server"
BROWSER = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
SERVE = Serve(rate=Rate(0, 1.0), sponsored=True)


def ad(campaign: str, bid: str, phrase: str = "red shoes", title: str = "", way: str = "broad") -> AdRow:
    """An ad for a phrase."""
    name = title or f"Shoes of {campaign}"
    return ad_of(campaign, name, "Red ones, today", f"https://{campaign}.example.org/shoes", bid, [(way, phrase)])


def ordered(folder: Path, *orders: MarketOrder) -> None:
    """Carried out while nothing runs."""
    with opened(folder) as state:
        for order in orders:
            carry_out(order, state, NOW_S, "a test")


def market(folder: Path, *ads: tuple[AdRow, str]) -> None:
    """Ads with the budgets of their campaigns, all of one advertiser, all approved."""
    orders: list[MarketOrder] = [KeepAdvertiser(advertiser_of("ann"))]
    for number, (row, budget) in enumerate(ads, 1):
        orders += [KeepCampaign(campaign_of(row.campaign, "ann", budget)), KeepAd(row), JudgeAd(number, "approved")]
    ordered(folder, *orders)


def sponsor(folder: Path, wall: Callable[[], float], serve: Serve = SERVE) -> FolderSponsor:
    """Whoever chooses, by a clock of the test's."""
    return FolderSponsor(folder, terms_of(serve), lambda _day: b"salt", wall)


def app(folder: Path, wall: Callable[[], float], serve: Serve = SERVE) -> Starlette:
    """The application around it."""
    return make_app(SmallSearch(), serve, Look(), sponsored=Sponsored(sponsor(folder, wall, serve), SECRET))


@contextmanager
def serving(made: Starlette) -> Iterator[int]:
    """A real server of an application on a free port of loopback, which is told."""
    listening = bind("127.0.0.1:0")
    server = server_of(made)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
