"""``POST /api/v1/events``: receives views and clicks on the results of a search.

The signed token of the slate authorizes the event, so no key is needed. Browsers send a beacon as plain text, which
other origins may do without a preflight; programs send JSON as such.
"""

import json
from math import ceil
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.learn.events import EventKind
from vedette.web.api import schema
from vedette.web.api.parameters import MAX_PAGE_ID, ParameterError, parse_struct
from vedette.web.api.responses import error_response
from vedette.web.api.schema import Answer, JsonSchema
from vedette.web.api.search import SLATE_EXAMPLE
from vedette.web.auth.access import EVENTS_PATH
from vedette.web.auth.tokens import TOKEN_PATTERN
from vedette.web.gate import get_media_type
from vedette.web.public.slates import SearchRecorder
from vedette.web.public.visits import parse_visitor

MAX_EVENT_BYTES = 2048
CONTENT_TYPES = frozenset({"application/json", "text/plain"})


class Event(Answer):
    """A view or click on the results of a search."""

    # The pattern is only documentation: another shape is refused with the code of a wrong signature.
    slate: Annotated[
        str,
        Meta(description="The slate from the search response.", extra_json_schema={"pattern": f"^{TOKEN_PATTERN}$"}),
    ]
    kind: EventKind
    page: Annotated[int, Meta(ge=0, le=MAX_PAGE_ID, description="The ID of the opened result, or 0 for a view.")]


def describe_events_path() -> JsonSchema:
    """Describe the path of view and click events for the OpenAPI description."""
    errors = schema.describe_errors("400", "403", "409", "410", "413", "415", "429", "500", "503")
    operation = schema.describe_operation(
        "tell",
        "Report that results were seen or opened",
        {"204": {"description": "Recorded."}, **errors},
        description="No key is needed: the slate authorizes the request. Browsers may send it as text/plain with "
        "sendBeacon. Repeated events count once.",
        **schema.describe_body("Event", Event(SLATE_EXAMPLE, "click", 4711)),
        **schema.NO_KEY,
    )
    return {EVENTS_PATH: {"post": operation}}


def events_route(recording: SearchRecorder) -> Route:
    """Return the route that accepts view and click events, one at a time."""

    async def record_event(request: Request) -> Response:
        if get_media_type(request) not in CONTENT_TYPES:
            return error_response(415, "wrong_type", "Send JSON, as application/json or text/plain.")
        body = await request.body()
        if len(body) > MAX_EVENT_BYTES:
            return error_response(413, "too_large", f"An event can have at most {MAX_EVENT_BYTES} bytes.")
        event = _parse_event(body)
        outcome = recording.record_event(event.slate, event.kind, event.page, parse_visitor(request))
        if outcome.status == 204:
            return Response(status_code=204)
        wait = {"retry-after": str(ceil(outcome.wait_s))} if outcome.wait_s else {}
        return error_response(outcome.status, outcome.code, outcome.message, None, wait)

    return Route(EVENTS_PATH, record_event, methods=["POST"])


def _parse_event(body: bytes) -> Event:
    """Parse the view or click event in a body; an error says what is right."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise ParameterError("", 'Send a JSON object, such as {"slate": "…", "kind": "click", "page": 4711}.')
    event = parse_struct(Event, fields)
    return event if event.kind == "click" else replace(event, page=0)  # a slate is seen once, as a whole
