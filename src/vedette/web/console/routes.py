"""The console as routes: all its pages behind one guard."""

import time
from collections.abc import Callable
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router

from vedette.errors import VedetteError
from vedette.web.ads.ports import MarketDesk
from vedette.web.auth.access import CONSOLE, Access
from vedette.web.branding import Look
from vedette.web.commands.commands import Undo
from vedette.web.console.admin.guard import HOME, Guard, kept_place
from vedette.web.console.admin.lab_reports import reporting_routes
from vedette.web.console.ads.campaigns import sponsoring_routes
from vedette.web.console.alerts.alerts import watch_routes
from vedette.web.console.crawl.add_site import adding_routes
from vedette.web.console.crawl.overview import watching_routes
from vedette.web.console.crawl.push import push_page_routes
from vedette.web.console.crawl.sites import site_routes
from vedette.web.console.crawl.url_list import listing_routes
from vedette.web.console.explain.page import explain_routes
from vedette.web.console.ports.alerts import NO_WATCHES, WatchDesk
from vedette.web.console.ports.lab_reports import NO_REPORTS, Reports
from vedette.web.console.ports.monitoring import Watch
from vedette.web.console.ports.sites import Operator, SiteDesk
from vedette.web.console.search.ranking import ranking_routes
from vedette.web.console.search.rules import result_routes
from vedette.web.console.ui.layout import Shell
from vedette.web.ports import Search
from vedette.web.push.ports import Push

__all__ = ["ConsoleParts", "console_routes", "operating_routes"]


def operating_routes(shell: Shell, desk: SiteDesk) -> list[BaseRoute]:
    """All of them, to be mounted behind the guard."""
    return [
        *site_routes(shell, desk),
        *adding_routes(shell, desk),
        *listing_routes(shell, desk),
        *explain_routes(shell, desk),
        *result_routes(shell, desk),
    ]


class ConsoleParts(NamedTuple):
    """What the console stands on. ``wall`` is the wall's clock, by which sessions end."""

    operator: Operator
    watch: Watch
    desk: SiteDesk
    wall: Callable[[], float] = time.time
    reports: Reports = NO_REPORTS
    watches: WatchDesk = NO_WATCHES
    push: Push | None = None
    market: MarketDesk | None = None


def console_routes(
    parts: ConsoleParts, look: Look, access: Access, search: Search, clock: Callable[[], float]
) -> list[BaseRoute]:
    """Everything under ``/console``."""
    shell = Shell(parts.operator, look, access, search.now_s, parts.reports, parts.market is not None)
    pages = Router(
        [
            *watching_routes(shell, parts.watch, search),
            *ranking_routes(shell, search, parts.watch),
            *reporting_routes(shell, parts.reports, parts.wall),
            *operating_routes(shell, parts.desk),
            *(push_page_routes(shell, parts.push) if parts.push else ()),
            *watch_routes(shell, parts.watches, parts.wall),
            *(sponsoring_routes(shell, parts.market, parts.wall) if parts.market else ()),
            _undo_route(shell),
        ],
        redirect_slashes=False,
    )
    return [Route(CONSOLE, _home), Mount(CONSOLE, app=Guard(pages, shell, parts.wall, clock))]


async def _home(_request: Request) -> Response:
    return RedirectResponse(HOME, 308)


def _undo_route(shell: Shell) -> Route:
    async def undone(request: Request) -> Response:
        form = await shell.form(request)
        action, back = form.get("action", ""), kept_place(form.get("back", ""))
        if not (action.isascii() and action.isdigit() and len(action) < 16):
            return _not_undone(shell, request, "This names no action.", back)
        try:
            return await shell.ordered(request, Undo(int(action)), back)
        except VedetteError as error:
            return _not_undone(shell, request, str(error), back)

    return Route("/undo", undone, methods=["POST"])


def _not_undone(shell: Shell, request: Request, said: str, back: str) -> Response:
    title = "It was not undone"
    return shell.page("undone.html", request, here="actions", title=title, status=422, said=said, back=back)
