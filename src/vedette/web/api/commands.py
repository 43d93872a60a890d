"""``/api/v1/orders`` and ``/api/v1/actions``: the API for an operator's commands and their log, for operators' keys."""

from collections.abc import Callable
from hashlib import sha256
from typing import Annotated

from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.api import schema
from vedette.web.api.parameters import parse_int, parse_parameters
from vedette.web.api.responses import JSON_TYPE, error_response, format_iso_time, json_response, refuse_failures
from vedette.web.api.schema import Answer, Count, JsonSchema, Time
from vedette.web.commands.commands import AddAlert
from vedette.web.commands.json_commands import parse_command
from vedette.web.console.ports.sites import ActionLine, AdminService
from vedette.web.formatting import sentence
from vedette.web.gate import get_media_type, parse_json

COMMANDS_PATH = "/api/v1/orders"
ACTIONS_PATH = "/api/v1/actions"
MAX_ACTIONS = 100
MAX_ACTION = 10**9 - 1
_NO_CRAWLER = "Commands are accepted only while the crawler runs: start it with vedette up."


class Done(Answer):
    """A command that was executed, and its number in the log of actions."""

    done: str
    action: Count


class Action(Answer):
    """An action in the log of an operator's commands."""

    action: Annotated[int, Meta(ge=1)]
    at: Time
    what: str
    by: str
    can_be_undone: bool
    undone_at: Time | None


class Actions(Answer):
    """The log of actions."""

    actions: list[Action]


_DONE_EXAMPLE = Done("paused https://docs.example.org/", 12)
_LOG_EXAMPLE = Actions([
    Action(12, "2026-01-31T09:26:53Z", "paused https://docs.example.org/", "the key wiki", True, None)
])  # fmt: skip


def read_command_id(request: Request) -> str:
    """Return the id of a command sent to the API, from its ``Idempotency-Key``; empty without one.

    A program that got no response sends the command again with the same key, and it is executed once.
    """
    key, name = request.headers.get("idempotency-key", ""), request.state.reader.name
    return sha256(f"{name} {key}".encode("utf-8", "replace")).hexdigest() if key else ""


def describe_command_paths() -> JsonSchema:
    """Describe the paths of the operator's commands and actions API for the OpenAPI description."""
    errors = schema.describe_errors("400", "401", "403", "409", "413", "415", "421", "429", "500", "503")
    order = schema.describe_operation(
        "order",
        "Run a command: change sites, rules or watches, fetch pages now, or undo an action",
        {"200": schema.describe_answer("Done.", _DONE_EXAMPLE), **errors},
        description="Requires a key with the admin scope in the Authorization header. Commands are logged as actions, "
        "and most can be undone. If the response is not_yet, the command is waiting for the crawler; if you send it "
        "again with the same Idempotency-Key header within ten minutes, it runs only once.",
        **schema.describe_body("Order", {"order": "undo", "action": 12}),
        **schema.BEARER_ONLY,
    )
    errors = schema.describe_errors("400", "401", "403", "421", "429", "500", "503")
    actions = schema.describe_operation(
        "actions",
        "List recent actions, latest first",
        {"200": schema.describe_answer("The actions.", _LOG_EXAMPLE), **errors},
        schema.query_parameter("n", "Number of actions.", schema.integer_schema(1, MAX_ACTIONS, 20)),
        schema.query_parameter("before", "Only actions before this one.", schema.integer_schema(1, MAX_ACTION)),
        **schema.BEARER_ONLY,
    )
    return {COMMANDS_PATH: {"post": order}, ACTIONS_PATH: {"get": actions}}


def command_routes(operator: AdminService | None, refusal: Callable[[str], str]) -> list[Route]:
    """Return the API routes for an operator's commands and the log of actions. The gate has checked the key.

    ``refusal`` returns why nothing may be sent to a webhook URL, or an empty text if it may.
    """

    async def run_command(request: Request) -> Response:
        if operator is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        if get_media_type(request) != JSON_TYPE:
            return error_response(415, "wrong_type", "Send JSON, as application/json.")
        order = parse_command(parse_json(await request.body()))
        if isinstance(order, AddAlert) and order.watch.webhook:
            why_not = await run_in_threadpool(refusal, order.watch.webhook)
            if why_not:
                return error_response(409, "cannot_be_done", sentence(why_not), "webhook")
        with refuse_failures():
            by, id_ = f"the key {request.state.reader.name}", read_command_id(request)
            done = await run_in_threadpool(operator.run_command, order, by, id_)
        return json_response(Done(done.words, done.action))

    async def list_actions(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], ("n", "before", "key"))
        most = parse_int(values, "n", 20, 1, MAX_ACTIONS)
        before = parse_int(values, "before", 0, 1, MAX_ACTION) or None
        if operator is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        lines = await run_in_threadpool(operator.list_actions, most, before)
        return json_response(Actions([_describe_action(line) for line in lines]))

    return [Route(COMMANDS_PATH, run_command, methods=["POST"]), Route(ACTIONS_PATH, list_actions, methods=["GET"])]


def _describe_action(line: ActionLine) -> Action:
    undone_at = None if line.undone_s is None else format_iso_time(line.undone_s)
    return Action(line.id, format_iso_time(line.at_s), line.what, line.by, line.can_be_undone, undone_at)
