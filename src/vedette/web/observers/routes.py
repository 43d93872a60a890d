"""The endpoint of remote observers: one path, which exchanges a signed report for signed orders.

It decides nothing. Both ends are part of Vedette, so it is not part of the documented API.
"""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vedette.engine.observers.messages import (
    CONTENT_TYPE,
    EXCHANGE_PATH,
    MAX_REPORT_BYTES,
    NAME_HEADER,
    SIGNATURE_HEADER,
)
from vedette.web.observers.ports import ObserverService

__all__ = ["MAX_REPORT_BYTES", "is_observer_path", "observer_routes"]

_MAX_NAME = 64
_NO_OBSERVERS = "Observers can only report to a single-machine vedette up, not to a cluster or a server of its own\n"


def is_observer_path(path: str) -> bool:
    """Check whether a path is the observers' endpoint, where bodies may be ``MAX_REPORT_BYTES`` long."""
    return path == EXCHANGE_PATH


def observer_routes(observers: ObserverService | None) -> list[Route]:
    """Return the route of the endpoint of observers; without a service for them, it says so."""

    async def exchange(request: Request) -> Response:
        if observers is None:
            return PlainTextResponse(_NO_OBSERVERS, 501)
        name, signature = request.headers.get(NAME_HEADER, "")[:_MAX_NAME], request.headers.get(SIGNATURE_HEADER, "")
        reply = await run_in_threadpool(observers.exchange, name, signature, await request.body())
        headers = {"cache-control": "no-store"}
        if reply.status != 200:
            return PlainTextResponse(reply.words, reply.status, headers)
        return Response(reply.body, 200, headers | {SIGNATURE_HEADER: reply.signature}, CONTENT_TYPE)

    return [Route(EXCHANGE_PATH, exchange, methods=["POST"])]
