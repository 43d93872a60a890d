"""The part of the API that changes something: orders of the operator, for whoever has a key with the scope admin."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.errors import StoreError, UsageError
from vedette.web.api.parameters import parse_int, parse_parameters
from vedette.web.api.responses import error_response, format_iso_time, json_response
from vedette.web.commands.commands import AddWatch
from vedette.web.commands.json_commands import parse_command
from vedette.web.console.ports.sites import ActionLine, AdminService
from vedette.web.formatting import sentence
from vedette.web.gate import parse_json

COMMANDS_PATH = "/api/v1/orders"
ACTIONS_PATH = "/api/v1/actions"
MAX_ACTIONS = 100
_NO_CRAWLER = "Orders are taken only where the crawler runs: start it with vedette up."


def command_routes(operator: AdminService | None, refusal: Callable[[str], str]) -> list[Route]:
    """Orders, and the log of what was done. The gate has seen to it that whoever comes here may.

    ``refusal`` says why nothing may be sent to a webhook; it is empty where it may.
    """

    async def ordered(request: Request) -> Response:
        if operator is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return error_response(415, "wrong_type", "Send JSON, as application/json.")
        order = parse_command(parse_json(await request.body()))
        if isinstance(order, AddWatch) and order.watch.webhook:
            why_not = await run_in_threadpool(refusal, order.watch.webhook)
            if why_not:
                return error_response(409, "cannot_be_done", sentence(why_not), "webhook")
        try:
            done = await run_in_threadpool(operator.run_command, order, f"the key {request.state.reader.name}")
        except UsageError as error:
            return error_response(409, "cannot_be_done", sentence(str(error)))
        except StoreError as error:
            return error_response(503, "no_crawler", sentence(str(error)))
        return json_response({"done": done.words, "action": done.action})

    async def acted(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], ("n", "before", "key"))
        most = parse_int(values, "n", 20, 1, MAX_ACTIONS)
        before = parse_int(values, "before", 0, 1, 10**9 - 1) or None
        if operator is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        lines = await run_in_threadpool(operator.list_actions, most, before)
        return json_response({"actions": [_action_to_json(line) for line in lines]})

    return [Route(COMMANDS_PATH, ordered, methods=["POST"]), Route(ACTIONS_PATH, acted, methods=["GET"])]


def _action_to_json(line: ActionLine) -> dict[str, object]:
    return {
        "action": line.id,
        "at": format_iso_time(line.at_s),
        "what": line.what,
        "by": line.by,
        "can_be_undone": line.can_be_undone,
        "undone_at": None if line.undone_s is None else format_iso_time(line.undone_s),
    }
