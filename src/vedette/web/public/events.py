"""Where pages tell what people did with a slate: that it was seen, and which results were opened.

The signed token of the slate is the right to tell, so no key is needed. Browsers send a beacon as plain text, which
other origins may do without asking first; programs send JSON as such.
"""

import json
from math import ceil
from typing import Any, NamedTuple, cast

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.learn.events import EventKind
from vedette.web.api.openapi import MAX_PAGE_ID
from vedette.web.api.parameters import ParameterError
from vedette.web.api.responses import error_response
from vedette.web.auth.access import EVENTS_PATH
from vedette.web.public.slates import SearchRecorder
from vedette.web.public.visits import parse_visitor

MAX_EVENT_BYTES = 2048
EVENT_KINDS = ("view", "click")
CONTENT_TYPES = frozenset({"application/json", "text/plain"})


class _EventBody(NamedTuple):
    slate: str
    kind: EventKind
    page: int


def events_route(recording: SearchRecorder) -> Route:
    """The route that takes events, one at a time."""

    async def told(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in CONTENT_TYPES:
            return error_response(415, "wrong_type", "Send JSON, as application/json or text/plain.")
        body = await request.body()
        if len(body) > MAX_EVENT_BYTES:
            return error_response(413, "too_large", f"An event has at most {MAX_EVENT_BYTES} bytes.")
        said = _parse_event(body)
        came = recording.record_event(said.slate, said.kind, said.page, parse_visitor(request))
        if came.status == 204:
            return Response(status_code=204)
        wait = {"retry-after": str(ceil(came.wait_s))} if came.wait_s else {}
        return error_response(came.status, came.code, came.message, None, wait)

    return Route(EVENTS_PATH, told, methods=["POST"])


def _parse_event(body: bytes) -> _EventBody:
    """The event in a body; what is none raises with words on what is right."""
    fields = _parse_object(body)
    unknown = [name for name in fields if name not in _EventBody._fields]
    if unknown:
        raise ParameterError(unknown[0][:100], f"There is no such field; known are {', '.join(_EventBody._fields)}.")
    slate, kind, page = fields.get("slate"), fields.get("kind"), _to_int(fields.get("page"))
    if not isinstance(slate, str):
        raise ParameterError("slate", "Send as slate the text that the search answered.")
    if kind not in EVENT_KINDS:
        raise ParameterError("kind", f"kind is one of {', '.join(EVENT_KINDS)}.")
    if page is None or not 0 <= page <= MAX_PAGE_ID:
        raise ParameterError("page", "page is the id of the result that was opened, and 0 for a view.")
    return _EventBody(
        slate, cast("EventKind", kind), page if kind == "click" else 0
    )  # a slate is seen once, as a whole


def _to_int(value: object) -> int | None:
    """A whole number, which JSON may also write as 7.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ParameterError("", 'Send an object as JSON, such as {"slate": "…", "kind": "click", "page": 4711}.')
    return fields
