"""Server process: search pages, API and console over a data folder; it keeps serving while others restart."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from vedette.adapters.event_store.search_log import EventLog, get_day_salt
from vedette.adapters.net.http import ConnectionSettings
from vedette.runtime.ads.selection import LiveAdServer, build_settings
from vedette.runtime.ads.service import LiveAdService
from vedette.runtime.ads.storage import AdStorage, FolderAdStorage
from vedette.runtime.alerts.service import FolderAlertService, FolderNewPages
from vedette.runtime.commands.operator import FolderOperator
from vedette.runtime.commands.search_commands import key_from_row
from vedette.runtime.monitoring.console import FolderMonitor
from vedette.runtime.monitoring.lab_reports import FolderReports
from vedette.runtime.monitoring.sites import FolderSiteService
from vedette.runtime.observers.service import FolderObserverService
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.runtime.push.receiver import FolderPushService
from vedette.runtime.search.answers import ModelAnswerWriter
from vedette.runtime.search.searcher import FolderSearch
from vedette.web.app import create_app
from vedette.web.auth.keys import Key
from vedette.web.console.ports.alerts import AlertService
from vedette.web.console.ports.cluster import ClusterService
from vedette.web.console.ports.sites import SiteService
from vedette.web.console.routes import ConsoleServices
from vedette.web.public.ads import NO_ADS, AdLinks
from vedette.web.public.new_page_ports import NewPages
from vedette.web.public.slates import SearchRecorder
from vedette.web.rendering import Branding
from vedette.web.server import run_server as run_app

if TYPE_CHECKING:  # one machine imports nothing of a cluster
    from vedette.runtime.cluster.cluster_search import ClusterSearch
    from vedette.runtime.cluster.gateway import GatewaySettings


class _Services(NamedTuple):
    """What a server shows: one data folder, or all shards of a cluster."""

    search: "FolderSearch | ClusterSearch"
    operator: FolderOperator
    monitoring: FolderMonitor
    sites: SiteService
    alerts: AlertService
    news: NewPages
    ads: AdStorage
    get_salt: Callable[[str], bytes]
    cluster: ClusterService | None = None
    get_gap: Callable[[], str] = str


def _open_folder(settings: RuntimeSettings) -> _Services:
    serve = settings.config.serve
    search = FolderSearch(
        settings.folder,
        settings.clock,
        demo=settings.demo,
        learn=serve.learn,
        promotion=serve.promotion,
        embedding_model=serve.embedding_model,
    )
    monitoring = FolderMonitor(settings.folder, settings.clock, settings.config)
    return _Services(
        search,
        FolderOperator(settings.folder),
        monitoring,
        FolderSiteService(settings),
        FolderAlertService(settings),
        FolderNewPages(settings.folder),
        FolderAdStorage(settings.folder),
        lambda day: get_day_salt(settings.folder, day),
    )


def _open_cluster(settings: RuntimeSettings, gateway: "GatewaySettings") -> _Services:
    from vedette.runtime.cluster.ads import ClusterAdStorage
    from vedette.runtime.cluster.click_learning import LEARNED_DIR
    from vedette.runtime.cluster.console import ClusterAlerts, ClusterMonitor, ClusterSites, ConsoleShards
    from vedette.runtime.cluster.gateway import ClusterDirectory, open_cluster_search
    from vedette.runtime.cluster.new_pages import ClusterNewPages
    from vedette.runtime.cluster.operator import ClusterOperator

    directory = ClusterDirectory(gateway.dsn)
    shards = ConsoleShards(directory)
    monitoring, alerts = ClusterMonitor(settings, gateway.dsn, shards), ClusterAlerts(settings, shards)
    search = open_cluster_search(
        directory, settings.clock, settings.folder / LEARNED_DIR, monitoring.get_runtime_settings
    )
    ads = ClusterAdStorage(gateway.dsn, search.list_keys, monitoring.get_ad_policy)
    return _Services(
        search,
        ClusterOperator(settings.folder, gateway.dsn),
        monitoring,
        ClusterSites(shards),
        alerts,
        ClusterNewPages(shards.ask, shards.list_numbers, alerts.has_alert),
        ads,
        ads.get_salt,
        monitoring,
        shards.describe_missing,
    )


def run_server(settings: RuntimeSettings) -> int:
    """Run the server process until SIGTERM."""
    assert settings.listener is not None
    serve, folder = settings.config.serve, settings.folder
    services = _open_folder(settings) if settings.gateway is None else _open_cluster(settings, settings.gateway)
    search, operator, watch = services.search, services.operator, services.monitoring
    look = Branding(
        name=serve.name,
        address=serve.address,
        embed_origins=serve.embed_origins,
        contact=lambda: watch.get_runtime_settings().contact,
        demo=settings.demo,
    )
    recording = SearchRecorder(
        EventLog(folder, f"server-{os.getpid()}"),
        operator.get_signing_secret(),
        services.get_salt,
        search.now_s,
        keep_days=serve.keep_slates_days,
    )
    console = ConsoleServices(
        operator,
        watch,
        services.sites,
        reports=FolderReports(folder),
        alerts=services.alerts,
        push=FolderPushService(folder, serve.public_url),
        ads=LiveAdService(services.ads, build_settings(serve)) if serve.sponsored else None,
        cluster=services.cluster,
        get_gap=services.get_gap,
        observers=FolderObserverService(folder) if settings.has_observers else None,
    )

    def keys() -> list[Key]:
        return [key_from_row(row) for row in search.list_keys()]

    sponsored = NO_ADS
    if serve.sponsored:
        sponsor = LiveAdServer(services.ads, build_settings(serve), services.get_salt)
        sponsored = AdLinks(sponsor, operator.get_signing_secret())
    way = ConnectionSettings(ca_file=settings.config.crawl.ca_file)  # the proxy is for crawling
    answers = ModelAnswerWriter(serve, way) if serve.answer_endpoint else None
    app = create_app(
        search,
        serve,
        look,
        keys,
        recording=recording,
        console=console,
        news=services.news,
        sponsored=sponsored,
        answers=answers,
    )
    run_app(app, settings.listener, serve.trusted_proxies)
    return 0
