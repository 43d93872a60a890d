"""Routes of the console: every page and every POST handler under ``/console``, behind one session guard."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from vedette.web.ads.ports import AdService
from vedette.web.auth.access import CONSOLE_PATH, AccessControl
from vedette.web.console.admin.activity import ActivityPage
from vedette.web.console.admin.cluster import ClusterPage
from vedette.web.console.admin.guard import HOME_URL, SessionGuard
from vedette.web.console.admin.lab_reports import LabPages
from vedette.web.console.admin.storage import StoragePage
from vedette.web.console.ads.campaigns import AdsPage
from vedette.web.console.ads.forms import AdForms
from vedette.web.console.alerts.alerts import AlertsPage
from vedette.web.console.crawl.add_site import AddSitePages
from vedette.web.console.crawl.budget import BudgetPage
from vedette.web.console.crawl.discovery import DiscoveryPage
from vedette.web.console.crawl.observers import ObserversPage
from vedette.web.console.crawl.overview import OverviewPage
from vedette.web.console.crawl.push import PushPage
from vedette.web.console.crawl.queue import LiveStreams, QueuePage
from vedette.web.console.crawl.refresh import RefreshPage
from vedette.web.console.crawl.sites import SitePages
from vedette.web.console.crawl.unlisted_hosts import UnlistedHostsPage
from vedette.web.console.crawl.url_list import UrlListPage
from vedette.web.console.explain.page import ExplainPage
from vedette.web.console.ports.alerts import NO_ALERTS, AlertService
from vedette.web.console.ports.cluster import ClusterService
from vedette.web.console.ports.lab_reports import NO_REPORTS, ReportStore
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ports.sites import AdminService, SiteService
from vedette.web.console.search.queries import SearchesPage
from vedette.web.console.search.ranking import RankingPage
from vedette.web.console.search.rules import RulesPage
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.console.ui.time_series import SeriesExport
from vedette.web.observers.ports import ObserverService
from vedette.web.ports import SearchService
from vedette.web.push.ports import PushService
from vedette.web.rendering import Branding


class ConsoleServices(NamedTuple):
    """The services (ports) that the console's routes need; sessions expire by ``wall_clock``."""

    admin: AdminService
    monitoring: Monitoring
    sites: SiteService
    wall_clock: Callable[[], float] = time.time
    reports: ReportStore = NO_REPORTS
    alerts: AlertService = NO_ALERTS
    push: PushService | None = None
    ads: AdService | None = None
    cluster: ClusterService | None = None
    get_gap: Callable[[], str] = str
    observers: ObserverService | None = None


def console_routes(
    parts: ConsoleServices, look: Branding, access: AccessControl, search: SearchService, clock: Callable[[], float]
) -> list[BaseRoute]:
    """Return the console's routes, mounted under ``/console`` behind the session guard."""
    shows = frozenset(name for name, part in (("sponsored", parts.ads), ("cluster", parts.cluster)) if part is not None)
    shell = ConsoleShell(parts.admin, look, access, search.now_s, parts.reports, shows, parts.get_gap)
    if parts.observers is not None:
        shell = replace(shell, has_observers=parts.observers.has_any)
    pages = Router(list_routes(shell, parts, search), redirect_slashes=False)
    return [
        Route(CONSOLE_PATH, _redirect_home),
        Mount(CONSOLE_PATH, app=SessionGuard(pages, shell, parts.wall_clock, clock)),
    ]


def list_routes(shell: ConsoleShell, parts: ConsoleServices, search: SearchService) -> list[BaseRoute]:
    """List the console's routes: its pages and POST handlers.

    Synchronous handlers may block: Starlette runs them in threads.
    """
    monitoring, wall_clock = parts.monitoring, parts.wall_clock
    sites, new_site = SitePages(shell, parts.sites, monitoring), AddSitePages(shell, parts.sites)
    hosts, explain = UnlistedHostsPage(shell, parts.sites), ExplainPage(shell, parts.sites)
    refresh, ranking = RefreshPage(shell, monitoring), RankingPage(shell, search, monitoring)
    discovery = DiscoveryPage(shell, monitoring)
    rules, alerts = RulesPage(shell, parts.sites), AlertsPage(shell, parts.alerts, wall_clock)
    pages = UrlListPage(shell, parts.sites)
    lab, activity = LabPages(shell, parts.reports, wall_clock), ActivityPage(shell)
    return [
        # crawl
        Route("/", OverviewPage(shell, monitoring, search).show),
        Route("/series.csv", SeriesExport(shell, monitoring).show),
        Route("/queue", QueuePage(shell, monitoring).show),
        Route("/live", LiveStreams(monitoring).stream),
        Route("/sites", sites.show_list),
        Route("/sites/add", new_site.show_start),
        Route("/sites/add", new_site.add, methods=["POST"]),
        Route("/sites/preview", new_site.preview, methods=["POST"]),
        Route("/sites/contact", sites.set_contact, methods=["POST"]),
        Route("/sites/pause", sites.pause, methods=["POST"]),
        Route("/sites/fetch-held", sites.fetch_held, methods=["POST"]),
        Route("/sites/edit", sites.edit, methods=["GET", "POST"]),
        Route("/sites/remove", sites.remove, methods=["GET", "POST"]),
        Route("/pages", pages.show),
        Route("/pages/retry", pages.retry, methods=["POST"]),
        Route("/discover", hosts.show),
        Route("/discover/dismiss", hosts.dismiss, methods=["POST"]),
        Route("/discovery", discovery.show),
        Route("/discovery/set", discovery.change_settings, methods=["POST"]),
        Route("/refresh", refresh.show),
        Route("/refresh/set", refresh.change_settings, methods=["POST"]),
        Route("/budget", BudgetPage(shell, monitoring).show),
        *([Route("/observers", ObserversPage(shell, parts.observers).show)] if parts.observers else ()),
        *([Route("/push", PushPage(shell, parts.push).show)] if parts.push else ()),
        Route("/explain", explain.show),
        Route("/explain/fetch", explain.fetch_now, methods=["POST"]),
        Route("/explain/robots", explain.read_robots, methods=["POST"]),
        Route("/explain/hide", explain.hide, methods=["POST"]),
        # search
        Route("/searches", SearchesPage(shell, monitoring).show),
        Route("/ranking", ranking.show),
        Route("/ranking/set", ranking.set_learning, methods=["POST"]),
        Route("/results", rules.show),
        Route("/results/add", rules.add, methods=["POST"]),
        Route("/results/remove", rules.remove, methods=["POST"]),
        # alerts
        Route("/watches", alerts.show),
        Route("/watches/add", alerts.add, methods=["POST"]),
        Route("/watches/remove", alerts.remove, methods=["POST"]),
        Route("/watches/test", alerts.send_test, methods=["POST"]),
        # ads
        *(_list_ad_routes(shell, parts.ads, monitoring, wall_clock) if parts.ads else ()),
        # admin
        *([Route("/cluster", ClusterPage(shell, parts.cluster).show)] if parts.cluster else ()),
        Route("/storage", StoragePage(shell, monitoring).show),
        Route("/lab", lab.show_list),
        Route("/lab/{name}", lab.show_report),
        Route("/lab/{name}/{file}", lab.show_plot),
        Route("/actions", activity.show),
        Route("/undo", activity.undo, methods=["POST"]),
    ]


def _list_ad_routes(
    shell: ConsoleShell, ads: AdService, monitoring: Monitoring, wall_clock: Callable[[], float]
) -> list[BaseRoute]:
    page, forms = AdsPage(shell, ads, monitoring, wall_clock), AdForms(shell, ads)
    return [
        Route("/sponsored", page.show),
        Route("/sponsored/set", page.change_settings, methods=["POST"]),
        Route("/sponsored/why", page.explain_ad),
        Route("/sponsored/judge", page.review_ad, methods=["POST"]),
        Route("/sponsored/pause", page.pause_campaign, methods=["POST"]),
        Route("/sponsored/advertiser", forms.show_advertiser),
        Route("/sponsored/advertiser", forms.save_advertiser, methods=["POST"]),
        Route("/sponsored/campaign", forms.show_campaign),
        Route("/sponsored/campaign", forms.save_campaign, methods=["POST"]),
        Route("/sponsored/ad", forms.show_ad),
        Route("/sponsored/ad", forms.save_ad, methods=["POST"]),
    ]


async def _redirect_home(_request: Request) -> Response:
    return RedirectResponse(HOME_URL, 308)
