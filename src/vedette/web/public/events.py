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
from vedette.web.api.openapi import MOST_PAGE
from vedette.web.api.parameters import WrongParameter
from vedette.web.api.responses import error_answer
from vedette.web.auth.access import EVENTS
from vedette.web.public.slates import Recording
from vedette.web.public.visits import visit_of

__all__ = ["events_route"]

LONGEST_EVENT = 2048
KINDS = ("view", "click")
TYPES = frozenset({"application/json", "text/plain"})


class _Said(NamedTuple):
    slate: str
    kind: EventKind
    page: int


def events_route(recording: Recording) -> Route:
    """The route that takes events, one at a time."""

    async def told(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in TYPES:
            return error_answer(415, "wrong_type", "Send JSON, as application/json or text/plain.")
        body = await request.body()
        if len(body) > LONGEST_EVENT:
            return error_answer(413, "too_large", f"An event has at most {LONGEST_EVENT} bytes.")
        said = _read(body)
        came = recording.told(said.slate, said.kind, said.page, visit_of(request))
        if came.status == 204:
            return Response(status_code=204)
        wait = {"retry-after": str(ceil(came.wait_s))} if came.wait_s else {}
        return error_answer(came.status, came.code, came.words, None, wait)

    return Route(EVENTS, told, methods=["POST"])


def _read(body: bytes) -> _Said:
    """The event in a body; what is none raises with words on what is right."""
    fields = _object(body)
    unknown = [name for name in fields if name not in _Said._fields]
    if unknown:
        raise WrongParameter(unknown[0][:100], f"There is no such field; known are {', '.join(_Said._fields)}.")
    slate, kind, page = fields.get("slate"), fields.get("kind"), _whole(fields.get("page"))
    if not isinstance(slate, str):
        raise WrongParameter("slate", "Send as slate the text that the search answered.")
    if kind not in KINDS:
        raise WrongParameter("kind", f"kind is one of {', '.join(KINDS)}.")
    if page is None or not 0 <= page <= MOST_PAGE:
        raise WrongParameter("page", "page is the id of the result that was opened, and 0 for a view.")
    return _Said(slate, cast("EventKind", kind), page if kind == "click" else 0)  # a slate is seen once, as a whole


def _whole(value: object) -> int | None:
    """A whole number, which JSON may also write as 7.0; None for anything else."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise WrongParameter("", 'Send an object as JSON, such as {"slate": "…", "kind": "click", "page": 4711}.')
    return fields
