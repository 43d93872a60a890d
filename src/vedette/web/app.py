"""The server's application: pages, API and sign-in behind one gate."""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette import __version__
from vedette.config import Serve
from vedette.web.api.ads import market_routes
from vedette.web.api.budget import budget_routes
from vedette.web.api.commands import write_routes
from vedette.web.api.openapi import described
from vedette.web.api.openapi_ads import with_market
from vedette.web.api.parameters import WrongParameter
from vedette.web.api.reference import reference_route
from vedette.web.api.responses import error_answer, json_answer
from vedette.web.api.search import api_routes
from vedette.web.auth.access import Access, Refused
from vedette.web.auth.keys import Key
from vedette.web.auth.rate_limits import Limits
from vedette.web.auth.signin import signin_route
from vedette.web.branding import Look
from vedette.web.console.ports.alerts import NO_WATCHES
from vedette.web.console.routes import ConsoleParts, console_routes
from vedette.web.console.ui.chart_metrics import amounts_by_reason
from vedette.web.gate import Gate, Rules, told_refusal
from vedette.web.mcp.endpoint import mcp_route
from vedette.web.metrics import Metrics, TimedSearch
from vedette.web.ports import Search
from vedette.web.public.ads import NOTHING_SPONSORED, Sponsored, sponsored_route
from vedette.web.public.events import events_route
from vedette.web.public.new_page_ports import NO_NEW_PAGES, NewPages
from vedette.web.public.new_pages import new_routes
from vedette.web.public.pages import page_routes
from vedette.web.public.slates import Recording, not_recording
from vedette.web.public.visits import Trials
from vedette.web.push.routes import push_routes

__all__ = ["make_app"]


def make_app(  # noqa: PLR0913, PLR0917 - one for each thing that is served
    search: Search,
    serve: Serve,
    look: Look,
    keys: Callable[[], Sequence[Key]] = tuple,
    clock: Callable[[], float] = monotonic,
    recording: Recording | None = None,
    console: ConsoleParts | None = None,
    news: NewPages = NO_NEW_PAGES,
    sponsored: Sponsored = NOTHING_SPONSORED,
) -> Starlette:
    """Everything that is served. ``keys`` is asked anew for each request, so a revoked key ends at once.

    ``recording`` writes searches down; without it nothing is. Without ``console`` there is none. ``news`` has the new
    pages, ``sponsored`` what is shown beside results; without it nothing is.
    """
    metrics = Metrics()
    recorded = (recording or not_recording()).counted_by(metrics)
    access = Access(serve, keys)
    timed = TimedSearch(search, metrics)
    rules = Rules(access, Limits(clock), metrics, search.sites, look)
    description = described(look.name, look.address, __version__)
    market = console.market if console else None
    trials = Trials(serve.unproven, serve.first_place)
    if market:
        description = with_market(description)
    app = Starlette(
        routes=[
            *page_routes(timed, look, recorded, trials, sponsored),
            *([sponsored_route(sponsored, look)] if sponsored is not NOTHING_SPONSORED else ()),
            *api_routes(timed, recorded),
            *(market_routes(market) if market else ()),
            *new_routes(news, look, search.now_s),
            events_route(recorded),
            *write_routes(console.operator if console else None, (console.watches if console else NO_WATCHES).refusal),
            *budget_routes(console.watch if console else None),
            *(push_routes(console.push) if console and console.push else ()),
            _description_route(description),
            reference_route(description, look),
            _health_route(search),
            _metrics_route(metrics, search, console),
            mcp_route(timed, serve, look, metrics.called, recorded),
            signin_route(access, look),
            *(console_routes(console, look, access, search, clock) if console else ()),
        ],
        middleware=[Middleware(Gate, rules)],
        exception_handlers={HTTPException: _unrouted(look), WrongParameter: _wrong},
    )
    app.router.redirect_slashes = False
    return app


def _description_route(description: dict[str, object]) -> Route:
    async def shown(_request: Request) -> Response:
        return json_answer(description)

    return Route("/api/openapi.json", shown)


def _metrics_route(metrics: Metrics, search: Search, console: ConsoleParts | None) -> Route:
    if console is None:
        return metrics.route(search)
    return metrics.route(search, console.watch.latest, partial(amounts_by_reason, console.watch))


def _health_route(search: Search) -> Route:
    """Whether searching works, told to anybody: so it counts no private page and tells no reason of a failure."""

    async def asked(_request: Request) -> Response:
        kept = {"cache-control": "no-store"}
        try:
            told = {"status": "ok", "pages": search.overview(()).pages, "behind": search.is_behind()}
        except Exception as error:  # noqa: BLE001 - that it fails is the answer
            reason = f"the index cannot be asked ({type(error).__name__})"
            return json_answer({"status": "failing", "pages": 0, "behind": reason}, 503, kept)
        return json_answer(told, 200, kept)

    return Route("/healthz", asked)


def _unrouted(look: Look) -> Callable[[Request, Exception], Response]:
    def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        missing = Refused(404, "not_found", "There is nothing at this address.")
        method = Refused(405, "wrong_method", "This address answers other methods, which the header Allow names.")
        other = Refused(error.status_code, "refused", str(error.detail))
        refused = {404: missing, 405: method}.get(error.status_code, other)
        return told_refusal(request, look, refused, dict(error.headers or {}))

    return told


def _wrong(_request: Request, error: Exception) -> Response:
    assert isinstance(error, WrongParameter)
    return error_answer(400, "wrong_parameter", error.words, error.parameter or None)
