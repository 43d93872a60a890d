"""The ASGI application (Starlette): routes of public pages, API, console and sign-in behind one gate."""

from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.config import Serve
from vedette.version import __version__
from vedette.web.api.ads import ad_api_routes
from vedette.web.api.budget import budget_routes
from vedette.web.api.commands import command_routes
from vedette.web.api.openapi import Health, api_docs_route, build_openapi
from vedette.web.api.parameters import ParameterError
from vedette.web.api.responses import ApiError, error_response, json_response
from vedette.web.api.search import api_routes
from vedette.web.auth.access import AccessControl, Refusal
from vedette.web.auth.keys import Key
from vedette.web.auth.rate_limits import RateLimiter
from vedette.web.auth.signin import signin_route
from vedette.web.console.ports.alerts import NO_ALERTS
from vedette.web.console.routes import ConsoleServices, console_routes
from vedette.web.console.ui.chart_metrics import export_reason_counts
from vedette.web.gate import GateConfig, GateMiddleware, refusal_response
from vedette.web.mcp.endpoint import mcp_route
from vedette.web.metrics import Metrics
from vedette.web.observers.routes import observer_routes
from vedette.web.ports import SearchService
from vedette.web.public.ads import NO_ADS, AdLinks, ad_click_route
from vedette.web.public.answers import AnswerBox, AnswerWriter, answer_route
from vedette.web.public.events import events_route
from vedette.web.public.new_page_ports import NO_NEW_PAGES, NewPages
from vedette.web.public.new_pages import new_page_routes
from vedette.web.public.pages import page_routes
from vedette.web.public.slates import SearchRecorder, create_null_recorder
from vedette.web.public.visits import TrialQuota
from vedette.web.push.routes import push_routes
from vedette.web.rendering import Branding


def create_app(  # noqa: PLR0913, PLR0917 - one for each service
    search: SearchService,
    serve: Serve,
    look: Branding,
    keys: Callable[[], Sequence[Key]] = tuple,
    clock: Callable[[], float] = monotonic,
    recording: SearchRecorder | None = None,
    console: ConsoleServices | None = None,
    news: NewPages = NO_NEW_PAGES,
    sponsored: AdLinks = NO_ADS,
    answers: AnswerWriter | None = None,
) -> Starlette:
    """Create the ASGI application. ``keys`` is called for each request, so a revoked key stops working at once.

    ``recording`` records searches; without it nothing is recorded. Without ``console`` there is none. ``news`` lists
    new pages, ``sponsored`` chooses the ads beside results, ``answers`` writes those above them; without it there are
    none.
    """
    metrics = Metrics()
    recorded = (recording or create_null_recorder()).with_metrics(metrics)
    access = AccessControl(serve, keys)
    rules = GateConfig(access, RateLimiter(clock), metrics, search.list_sites, look)
    market = console.ads if console else None
    description = build_openapi(look.name, look.address, __version__, with_ads=bool(market))
    trials = TrialQuota(serve.unproven, serve.first_place)
    app = Starlette(
        routes=[
            *page_routes(search, look, recorded, trials, sponsored, has_answers=answers is not None),
            *([answer_route(AnswerBox(search, answers, serve.answer_rate), look)] if answers else ()),
            *([ad_click_route(sponsored, look)] if sponsored is not NO_ADS else ()),
            *api_routes(search, recorded),
            *(ad_api_routes(market) if market else ()),
            *new_page_routes(news, look, search.now_s),
            events_route(recorded),
            *command_routes(
                console.admin if console else None, (console.alerts if console else NO_ALERTS).check_webhook
            ),
            *budget_routes(console.monitoring if console else None),
            *(push_routes(console.push) if console and console.push else ()),
            *observer_routes(console.observers if console else None),
            _openapi_route(description),
            api_docs_route(description, look),
            _health_route(search),
            _metrics_route(metrics, search, console),
            mcp_route(search, serve, look, metrics.count_tool_call, recorded),
            signin_route(access, look),
            *(console_routes(console, look, access, search, clock) if console else ()),
        ],
        middleware=[Middleware(GateMiddleware, rules)],
        exception_handlers={
            HTTPException: _handle_http_error(look),
            ParameterError: _handle_bad_parameter,
            ApiError: lambda _request, error: error_response(*error.args),
        },
    )
    app.router.redirect_slashes = False
    return app


def _openapi_route(description: dict[str, object]) -> Route:
    async def show_openapi(_request: Request) -> Response:
        return json_response(description)

    return Route("/api/openapi.json", show_openapi)


def _metrics_route(metrics: Metrics, search: SearchService, console: ConsoleServices | None) -> Route:
    if console is None:
        return metrics.metrics_route(search)
    return metrics.metrics_route(
        search, console.monitoring.get_latest_values, partial(export_reason_counts, console.monitoring)
    )


def _health_route(search: SearchService) -> Route:
    """Return the public health check route; it counts no private page and quotes no error."""

    async def check_health(_request: Request) -> Response:
        headers = {"cache-control": "no-store"}
        try:
            failing, behind = tuple(one.role for one in search.list_failing()), search.get_incomplete_reason()
            exceeded = search.count_exceeded()
            is_sound = not failing and not exceeded and "damaged" not in behind
            pages = search.get_overview(()).pages
            health = Health("ok" if is_sound else "degraded", pages, behind, failing, exceeded)
        except Exception as error:  # noqa: BLE001 - the failure is the result
            reason = f"the index is not available ({type(error).__name__})"
            return json_response(Health("failing", 0, reason), 503, headers)
        return json_response(health, 200, headers)

    return Route("/healthz", check_health)


def _handle_http_error(look: Branding) -> Callable[[Request, Exception], Response]:
    def handle(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        missing = Refusal(404, "not_found", "There is nothing at this URL.")
        method = Refusal(405, "wrong_method", "This URL supports other methods; see the Allow header.")
        other = Refusal(error.status_code, "refused", str(error.detail))
        refused = {404: missing, 405: method}.get(error.status_code, other)
        return refusal_response(request, look, refused, dict(error.headers or {}))

    return handle


def _handle_bad_parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ParameterError)
    return error_response(400, "wrong_parameter", error.message, error.parameter or None)
