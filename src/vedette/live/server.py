"""The server process: pages, API and console over a data folder. It goes on while the others restart."""

import os

from vedette.edges.slate_log import SlateLog, day_salt
from vedette.live.market_desk import FolderMarketDesk
from vedette.live.new_pages import FolderNewPages
from vedette.live.operating import FolderOperator
from vedette.live.push_desk import FolderPush
from vedette.live.reports import FolderReports
from vedette.live.search_orders import key_of
from vedette.live.searching import FolderSearch
from vedette.live.settings import LiveSettings
from vedette.live.site_desk import FolderSiteDesk
from vedette.live.sponsoring import FolderSponsor, terms_of
from vedette.live.watch_desk import FolderWatchDesk
from vedette.live.watching import FolderWatch
from vedette.web.app import make_app
from vedette.web.console.routes import ConsoleParts
from vedette.web.keys import Key
from vedette.web.look import Look
from vedette.web.serving import run_server as run_app
from vedette.web.slates import Recording
from vedette.web.sponsored import NOTHING_SPONSORED, Sponsored

__all__ = ["run_server"]


def run_server(settings: LiveSettings) -> int:
    """The life of the server process; it ends when it is told to."""
    assert settings.listener is not None
    serve, folder = settings.config.serve, settings.folder
    search = FolderSearch(folder, settings.clock, demo=settings.demo, learn=settings.config.serve.learn)
    look = Look(
        name=serve.name,
        address=serve.address,
        embed_origins=serve.embed_origins,
        contact=settings.config.crawl.contact,
        demo=settings.demo,
    )
    operator = FolderOperator(folder)
    recording = Recording(
        SlateLog(folder, f"server-{os.getpid()}"),
        operator.secret(),
        lambda day: day_salt(folder, day),
        search.now_s,
        keep_days=serve.keep_slates_days,
    )
    watch = FolderWatch(folder, settings.clock, settings.config)
    console = ConsoleParts(
        operator,
        watch,
        FolderSiteDesk(settings),
        reports=FolderReports(folder),
        watches=FolderWatchDesk(settings),
        push=FolderPush(folder, serve.public_url),
        market=FolderMarketDesk(folder, terms_of(serve).zone) if serve.sponsored else None,
    )

    def keys() -> list[Key]:
        return [key_of(row) for row in search.reader_keys()]

    sponsored = NOTHING_SPONSORED
    if serve.sponsored:
        sponsor = FolderSponsor(folder, terms_of(serve), lambda day: day_salt(folder, day))
        sponsored = Sponsored(sponsor, operator.secret())
    news = FolderNewPages(folder)
    app = make_app(search, serve, look, keys, recording=recording, console=console, news=news, sponsored=sponsored)
    run_app(app, settings.listener, serve.trusted_proxies)
    return 0
