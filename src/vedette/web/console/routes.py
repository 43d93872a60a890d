"""The console as routes: all its pages behind one guard."""

import time
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from vedette.errors import VedetteError
from vedette.web.ads.ports import AdService
from vedette.web.auth.access import CONSOLE_PATH, AccessControl
from vedette.web.commands.commands import Undo
from vedette.web.console.admin.guard import HOME_URL, SessionGuard, safe_redirect
from vedette.web.console.admin.lab_reports import report_routes
from vedette.web.console.ads.campaigns import ad_routes
from vedette.web.console.alerts.alerts import alert_routes
from vedette.web.console.crawl.add_site import add_site_routes
from vedette.web.console.crawl.overview import monitoring_routes
from vedette.web.console.crawl.push import push_page_routes
from vedette.web.console.crawl.sites import site_routes
from vedette.web.console.crawl.url_list import url_list_routes
from vedette.web.console.explain.page import explain_routes
from vedette.web.console.ports.alerts import NO_ALERTS, AlertService
from vedette.web.console.ports.lab_reports import NO_REPORTS, ReportStore
from vedette.web.console.ports.monitoring import Monitoring
from vedette.web.console.ports.sites import AdminService, SiteService
from vedette.web.console.search.ranking import ranking_routes
from vedette.web.console.search.rules import rule_routes
from vedette.web.console.ui.layout import ConsoleShell
from vedette.web.ports import SearchService
from vedette.web.push.ports import PushService
from vedette.web.rendering import Branding


def admin_routes(shell: ConsoleShell, desk: SiteService) -> list[BaseRoute]:
    """All of them, to be mounted behind the guard."""
    return [
        *site_routes(shell, desk),
        *add_site_routes(shell, desk),
        *url_list_routes(shell, desk),
        *explain_routes(shell, desk),
        *rule_routes(shell, desk),
    ]


class ConsoleServices(NamedTuple):
    """What the console stands on. ``wall_clock`` is the wall's clock, by which sessions end."""

    admin: AdminService
    monitoring: Monitoring
    sites: SiteService
    wall_clock: Callable[[], float] = time.time
    reports: ReportStore = NO_REPORTS
    alerts: AlertService = NO_ALERTS
    push: PushService | None = None
    ads: AdService | None = None


def console_routes(
    parts: ConsoleServices, look: Branding, access: AccessControl, search: SearchService, clock: Callable[[], float]
) -> list[BaseRoute]:
    """Everything under ``/console``."""
    shell = ConsoleShell(parts.admin, look, access, search.now_s, parts.reports, parts.ads is not None)
    pages = Router(
        [
            *monitoring_routes(shell, parts.monitoring, search),
            *ranking_routes(shell, search, parts.monitoring),
            *report_routes(shell, parts.reports, parts.wall_clock),
            *admin_routes(shell, parts.sites),
            *(push_page_routes(shell, parts.push) if parts.push else ()),
            *alert_routes(shell, parts.alerts, parts.wall_clock),
            *(ad_routes(shell, parts.ads, parts.wall_clock) if parts.ads else ()),
            _undo_route(shell),
        ],
        redirect_slashes=False,
    )
    return [
        Route(CONSOLE_PATH, _redirect_home),
        Mount(CONSOLE_PATH, app=SessionGuard(pages, shell, parts.wall_clock, clock)),
    ]


async def _redirect_home(_request: Request) -> Response:
    return RedirectResponse(HOME_URL, 308)


def _undo_route(shell: ConsoleShell) -> Route:
    async def undone(request: Request) -> Response:
        form = await shell.read_form(request)
        action, back = form.get("action", ""), safe_redirect(form.get("back", ""))
        if not (action.isascii() and action.isdigit() and len(action) < 16):
            return _undo_failed(shell, request, "This names no action.", back)
        try:
            return await shell.run_command(request, Undo(int(action)), back)
        except VedetteError as error:
            return _undo_failed(shell, request, str(error), back)

    return Route("/undo", undone, methods=["POST"])


def _undo_failed(shell: ConsoleShell, request: Request, said: str, back: str) -> Response:
    title = "It was not undone"
    return shell.render_page("undone.html", request, here="actions", title=title, status=422, said=said, back=back)
