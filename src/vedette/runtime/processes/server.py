"""Server process: search pages, API and console over a data folder; it keeps serving while others restart."""

import os

from vedette.adapters.event_store.search_log import EventLog, get_day_salt
from vedette.runtime.ads.selection import FolderAdServer, build_settings
from vedette.runtime.ads.service import FolderAdService
from vedette.runtime.alerts.service import FolderAlertService, FolderNewPages
from vedette.runtime.commands.operator import FolderOperator
from vedette.runtime.commands.search_commands import key_from_row
from vedette.runtime.monitoring.console import FolderMonitor
from vedette.runtime.monitoring.lab_reports import FolderReports
from vedette.runtime.monitoring.sites import FolderSiteService
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.push.receiver import FolderPushService
from vedette.runtime.search.searcher import FolderSearch
from vedette.web.app import create_app
from vedette.web.auth.keys import Key
from vedette.web.console.routes import ConsoleServices
from vedette.web.public.ads import NO_ADS, AdLinks
from vedette.web.public.slates import SearchRecorder
from vedette.web.rendering import Branding
from vedette.web.server import run_server as run_app


def run_server(settings: RuntimeSettings) -> int:
    """Run the server process until SIGTERM."""
    assert settings.listener is not None
    serve, folder = settings.config.serve, settings.folder
    search = FolderSearch(folder, settings.clock, demo=settings.demo, learn=serve.learn, promotion=serve.promotion)
    watch = FolderMonitor(folder, settings.clock, settings.config)
    look = Branding(
        name=serve.name,
        address=serve.address,
        embed_origins=serve.embed_origins,
        contact=lambda: watch.get_runtime_settings().contact,
        demo=settings.demo,
    )
    operator = FolderOperator(folder)
    recording = SearchRecorder(
        EventLog(folder, f"server-{os.getpid()}"),
        operator.get_signing_secret(),
        lambda day: get_day_salt(folder, day),
        search.now_s,
        keep_days=serve.keep_slates_days,
    )
    console = ConsoleServices(
        operator,
        watch,
        FolderSiteService(settings),
        reports=FolderReports(folder),
        alerts=FolderAlertService(settings),
        push=FolderPushService(folder, serve.public_url),
        ads=FolderAdService(folder, build_settings(serve)) if serve.sponsored else None,
    )

    def keys() -> list[Key]:
        return [key_from_row(row) for row in search.list_keys()]

    sponsored = NO_ADS
    if serve.sponsored:
        sponsor = FolderAdServer(folder, build_settings(serve), lambda day: get_day_salt(folder, day))
        sponsored = AdLinks(sponsor, operator.get_signing_secret())
    news = FolderNewPages(folder)
    app = create_app(search, serve, look, keys, recording=recording, console=console, news=news, sponsored=sponsored)
    run_app(app, settings.listener, serve.trusted_proxies)
    return 0
