"""Where others tell of news: the address that hubs call (WebSub), and the one that sites ping (IndexNow).

Neither needs a reader's key: a hub's address cannot be guessed and what it sends is signed, and a ping shows a key that
its host vouches for. What is said is handed on; nothing is decided here.
"""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vedette.discover.push.indexnow import Ping, WrongPing, read_ping, read_pings
from vedette.web.api.responses import error_answer
from vedette.web.push.ports import Delivery, Push, Told

__all__ = ["CALLED", "LONGEST_PUSH", "PINGED", "is_pushed", "push_routes"]

CALLED = "/push/"
PINGED = "/indexnow"
LONGEST_PUSH = 2 << 20
MOST_LINKS = 16
_CODES = {400: "wrong_request", 403: "wrong_key", 422: "not_ours", 429: "too_many_requests", 503: "no_crawler"}


def is_pushed(path: str) -> bool:
    """Whether a path is one of these, for whoever guards the others: bodies may be ``LONGEST_PUSH`` long there."""
    return path == PINGED or path.startswith(CALLED)


def push_routes(push: Push) -> list[Route]:
    """The addresses."""

    async def asked_back(request: Request) -> Response:
        told = await run_in_threadpool(push.asked_back, request.path_params["token"], dict(request.query_params))
        return _answer(told)

    async def delivered(request: Request) -> Response:
        headers = request.headers
        delivery = Delivery(
            await request.body(),
            headers.get("content-type", ""),
            headers.get("x-hub-signature", ""),
            tuple(headers.getlist("link")[:MOST_LINKS]),
        )
        return _answer(await run_in_threadpool(push.delivered, request.path_params["token"], delivery))

    async def pinged(request: Request) -> Response:
        if request.method == "POST":
            ping = await run_in_threadpool(read_pings, await request.body())
        else:
            ping = read_ping(dict(request.query_params))
        return _ping_answer(await run_in_threadpool(_pinged, push, ping))

    return [
        Route(f"{CALLED}{{token}}", asked_back, methods=["GET"]),
        Route(f"{CALLED}{{token}}", delivered, methods=["POST"]),
        Route(PINGED, pinged, methods=["GET", "POST"]),
    ]


def _pinged(push: Push, ping: Ping | WrongPing) -> Told:
    return Told(ping.status, ping.words) if isinstance(ping, WrongPing) else push.pinged(ping)


def _answer(told: Told) -> Response:
    """For a hub: its challenge, or a word that nobody reads. It is shown as text, whatever the challenge says."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return PlainTextResponse(told.words, told.status, headers | _wait(told))


def _ping_answer(told: Told) -> Response:
    if told.status < 300:
        return PlainTextResponse(told.words, told.status, {"cache-control": "no-store"})
    return error_answer(told.status, _CODES.get(told.status, "refused"), told.words, None, _wait(told))


def _wait(told: Told) -> dict[str, str]:
    return {"retry-after": str(told.wait_s)} if told.wait_s else {}
