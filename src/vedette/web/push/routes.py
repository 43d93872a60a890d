"""Where others tell of news: the address that hubs call (WebSub), and the one that sites ping (IndexNow).

Neither needs a reader's key: a hub's address cannot be guessed and what it sends is signed, and a ping shows a key that
its host vouches for. What is said is handed on; nothing is decided here.
"""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vedette.discover.push.indexnow import Ping, PingRejection, parse_ping, parse_ping_body
from vedette.web.api.responses import error_response
from vedette.web.push.ports import HubDelivery, PushReply, PushService

WEBSUB_PREFIX = "/push/"
INDEXNOW_PATH = "/indexnow"
MAX_PUSH_BYTES = 2 << 20
MAX_LINKS = 16
_ERROR_CODES = {400: "wrong_request", 403: "wrong_key", 422: "not_ours", 429: "too_many_requests", 503: "no_crawler"}


def is_push_path(path: str) -> bool:
    """Whether a path is one of these, for whoever guards the others: bodies may be ``MAX_PUSH_BYTES`` long there."""
    return path == INDEXNOW_PATH or path.startswith(WEBSUB_PREFIX)


def push_routes(push: PushService) -> list[Route]:
    """The addresses."""

    async def asked_back(request: Request) -> Response:
        told = await run_in_threadpool(push.verify_intent, request.path_params["token"], dict(request.query_params))
        return _hub_response(told)

    async def delivered(request: Request) -> Response:
        headers = request.headers
        delivery = HubDelivery(
            await request.body(),
            headers.get("content-type", ""),
            headers.get("x-hub-signature", ""),
            tuple(headers.getlist("link")[:MAX_LINKS]),
        )
        return _hub_response(await run_in_threadpool(push.accept_delivery, request.path_params["token"], delivery))

    async def pinged(request: Request) -> Response:
        if request.method == "POST":
            ping = await run_in_threadpool(parse_ping_body, await request.body())
        else:
            ping = parse_ping(dict(request.query_params))
        return _ping_response(await run_in_threadpool(_accept_ping, push, ping))

    return [
        Route(f"{WEBSUB_PREFIX}{{token}}", asked_back, methods=["GET"]),
        Route(f"{WEBSUB_PREFIX}{{token}}", delivered, methods=["POST"]),
        Route(INDEXNOW_PATH, pinged, methods=["GET", "POST"]),
    ]


def _accept_ping(push: PushService, ping: Ping | PingRejection) -> PushReply:
    return PushReply(ping.status, ping.message) if isinstance(ping, PingRejection) else push.accept_ping(ping)


def _hub_response(told: PushReply) -> Response:
    """For a hub: its challenge, or a word that nobody reads. It is shown as text, whatever the challenge says."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return PlainTextResponse(told.words, told.status, headers | _build_retry_header(told))


def _ping_response(told: PushReply) -> Response:
    if told.status < 300:
        return PlainTextResponse(told.words, told.status, {"cache-control": "no-store"})
    return error_response(
        told.status, _ERROR_CODES.get(told.status, "refused"), told.words, None, _build_retry_header(told)
    )


def _build_retry_header(told: PushReply) -> dict[str, str]:
    return {"retry-after": str(told.wait_s)} if told.wait_s else {}
