"""The part of the API that changes something: orders of the operator, for whoever has a key with the scope admin."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import StoreError, UsageError
from vedette.web.api.parameters import given, whole
from vedette.web.api.responses import error_answer, iso_time, json_answer
from vedette.web.commands.commands import AddWatch
from vedette.web.commands.json_commands import read_order
from vedette.web.console.ports.sites import ActionLine, Operator
from vedette.web.formatting import sentence
from vedette.web.gate import json_value

__all__ = ["ACTIONS", "ORDERS", "write_routes"]

ORDERS = "/api/v1/orders"
ACTIONS = "/api/v1/actions"
MOST_ACTIONS = 100
_NOT_HERE = "Orders are taken only where the crawler runs: start it with vedette up."


def write_routes(operator: Operator | None, refusal: Callable[[str], str]) -> list[Route]:
    """Orders, and the log of what was done. The gate has seen to it that whoever comes here may.

    ``refusal`` says why nothing may be sent to a webhook; it is empty where it may.
    """

    async def ordered(request: Request) -> Response:
        if operator is None:
            return error_answer(503, "no_crawler", _NOT_HERE)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return error_answer(415, "wrong_type", "Send JSON, as application/json.")
        order = read_order(json_value(await request.body()))
        if isinstance(order, AddWatch) and order.watch.webhook:
            why_not = await run_in_threadpool(refusal, order.watch.webhook)
            if why_not:
                return error_answer(409, "cannot_be_done", sentence(why_not), "webhook")
        try:
            done = await run_in_threadpool(operator.order, order, f"the key {request.state.reader.name}")
        except UsageError as error:
            return error_answer(409, "cannot_be_done", sentence(str(error)))
        except StoreError as error:
            return error_answer(503, "no_crawler", sentence(str(error)))
        return json_answer({"done": done.words, "action": done.action})

    async def acted(request: Request) -> Response:
        values = given(request.scope["query_string"], ("n", "before", "key"))
        most = whole(values, "n", 20, 1, MOST_ACTIONS)
        before = whole(values, "before", 0, 1, 10**9 - 1) or None
        if operator is None:
            return error_answer(503, "no_crawler", _NOT_HERE)
        lines = await run_in_threadpool(operator.actions, most, before)
        return json_answer({"actions": [_action(line) for line in lines]})

    return [Route(ORDERS, ordered, methods=["POST"]), Route(ACTIONS, acted, methods=["GET"])]


def _action(line: ActionLine) -> dict[str, object]:
    return {
        "action": line.id,
        "at": iso_time(line.at_s),
        "what": line.what,
        "by": line.by,
        "can_be_undone": line.can_be_undone,
        "undone_at": None if line.undone_s is None else iso_time(line.undone_s),
    }
