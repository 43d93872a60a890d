"""A data folder with ads, with the real application: ads are shown, clicked and charged."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.applications import Starlette
from tests.data_folders import NOW_S, opened
from tests.web.small_search import SmallSearch

from vedette.adapters.ads.campaign_store import AdRow, AdTarget
from vedette.config import Rate, Serve
from vedette.runtime.ads.selection import LiveAdServer, build_settings
from vedette.runtime.ads.storage import FolderAdStorage
from vedette.runtime.commands.executor import execute_command
from vedette.web.app import create_app
from vedette.web.commands.ads_commands import AdCommand, ReviewAd, SaveAd, SaveAdvertiser, SaveCampaign
from vedette.web.commands.ads_text import parse_ad, parse_advertiser, parse_campaign
from vedette.web.public.ads import AdLinks
from vedette.web.rendering import Branding
from vedette.web.server import bind, create_server

SECRET = b"a secret of this server"
BROWSER = {"user-agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}
SERVE = Serve(rate=Rate(0, 1.0), sponsored=True)


def ad(campaign: str, bid: str, phrase: str = "red shoes", title: str = "", way: str = "broad") -> AdRow:
    """Return an ad for a phrase."""
    name = title or f"Shoes of {campaign}"
    url = f"https://{campaign}.example.org/shoes"
    return parse_ad(campaign, name, "Red ones, today", url, bid, [AdTarget(way, phrase)])


def ordered(folder: Path, *orders: AdCommand) -> None:
    """Run a command without a running process."""
    with opened(folder) as state:
        for order in orders:
            execute_command(order, state, NOW_S, "a test")


def market(folder: Path, *ads: tuple[AdRow, str]) -> None:
    """Return ads with the budgets of their campaigns, all approved and of one advertiser."""
    orders: list[AdCommand] = [SaveAdvertiser(parse_advertiser("ann"))]
    for number, (row, budget) in enumerate(ads, 1):
        orders += [SaveCampaign(parse_campaign(row.campaign, "ann", budget)), SaveAd(row), ReviewAd(number, "approved")]
    ordered(folder, *orders)


def sponsor(folder: Path, wall: Callable[[], float], serve: Serve = SERVE, seed: int | None = None) -> LiveAdServer:
    """The selection with the test's clock."""
    return LiveAdServer(FolderAdStorage(folder), build_settings(serve), lambda _day: b"salt", wall, seed)


def app(folder: Path, wall: Callable[[], float], serve: Serve = SERVE) -> Starlette:
    """The application around it."""
    return create_app(SmallSearch(), serve, Branding(), sponsored=AdLinks(sponsor(folder, wall, serve), SECRET))


@contextmanager
def serving(made: Starlette) -> Iterator[int]:
    """Run a real server of an application on a free loopback port, and return the port."""
    listening = bind("127.0.0.1:0")
    server = create_server(made)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join()
