"""The server process: pages, API and console over a data folder. It goes on while the others restart."""

import os

from vedette.adapters.event_store.search_log import SlateLog, day_salt
from vedette.runtime.ads.selection import FolderSponsor, terms_of
from vedette.runtime.ads.service import FolderMarketDesk
from vedette.runtime.alerts.service import FolderNewPages, FolderWatchDesk
from vedette.runtime.commands.operator import FolderOperator
from vedette.runtime.commands.search_commands import key_of
from vedette.runtime.monitoring.console import FolderWatch
from vedette.runtime.monitoring.lab_reports import FolderReports
from vedette.runtime.monitoring.sites import FolderSiteDesk
from vedette.runtime.processes.settings import LiveSettings
from vedette.runtime.push.receiver import FolderPush
from vedette.runtime.search.searcher import FolderSearch
from vedette.web.app import make_app
from vedette.web.auth.keys import Key
from vedette.web.branding import Look
from vedette.web.console.routes import ConsoleParts
from vedette.web.public.ads import NOTHING_SPONSORED, Sponsored
from vedette.web.public.slates import Recording
from vedette.web.server import run_server as run_app

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
