"""``GET /api/v1/budget``: where the fetch budget went, in the numbers of the console's page, for keys of operators."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.api.parameters import parse_int, parse_parameters
from vedette.web.api.responses import error_response, format_iso_time, json_response
from vedette.web.console.ports.monitoring import BudgetReport, Monitoring, SpendingLine

JsonSchema = dict[str, Any]
BUDGET_PATH = "/api/v1/budget"
MAX_DAYS = 31
_NO_CRAWLER = "The budget is known only where the crawler runs: start it with vedette up."
_EXAMPLE_LINE = SpendingLine("refresh", 120.0, 0.4, 2.0, 5_400_000.0, 31.5, 48.0, 9.0, 40.0, 0.0125)


def budget_routes(watch: Monitoring | None) -> list[Route]:
    """The one address. The gate has seen to it that whoever comes here may."""

    async def told(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], ("days", "key"))
        days = parse_int(values, "days", 1, 1, MAX_DAYS)
        if watch is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        found = await run_in_threadpool(watch.get_budget_report, days)
        return json_response(_budget_to_json(found), headers={"cache-control": "no-store"})

    return [Route(BUDGET_PATH, told, methods=["GET"])]


def _budget_to_json(told: BudgetReport) -> dict[str, object]:
    return {
        "budget_per_s": told.per_s,
        "price": told.price,
        "since": format_iso_time(told.since_s),
        "kinds": [{"kind": line.name, **_line_to_json(line)} for line in told.kinds],
        "sites": [{"site": line.name or None, "part": line.part, **_line_to_json(line)} for line in told.sites],
        "not_worth_the_price": {
            "urls": told.held_urls,
            "best": [{"url": one.url, "worth": one.worth, "price": one.price} for one in told.held],
        },
    }


def _line_to_json(line: SpendingLine) -> dict[str, object]:
    return {
        "fetches": int(line.fetches),
        "failed": int(line.failed),
        "bytes": int(line.bytes),
        "seconds": line.seconds,
        "changed": int(line.changed),
        "found": int(line.found),
        "measured": int(line.measured),
        "gain": line.gain if line.measured else None,
        "gain_per_fetch": line.gain_per_fetch,
    }


BUDGET_EXAMPLES: dict[str, JsonSchema] = {
    "Budget": _budget_to_json(
        BudgetReport(
            2.0,
            "2/s",
            410.0,
            1_769_817_600.0,
            (_EXAMPLE_LINE,),
            (_EXAMPLE_LINE._replace(name="https://docs.example.org/"),),
        )
    )
}


def describe_budget_paths(answer: Any, refusals: Any) -> JsonSchema:  # noqa: ANN401 - two functions of the description
    """The path; ``answer`` and ``refusals`` describe what comes back."""
    days = {"type": "integer", "minimum": 1, "maximum": MAX_DAYS, "default": 1}
    operation = {
        "operationId": "budget",
        "summary": "Where the fetch budget went, at what price, and what came of it",
        "description": "By what fetches were for and by site. A key with the scope admin is needed, in the header "
        "Authorization. Gains are null where none was measured.",
        "security": [{"bearer": []}],
        "parameters": [{"name": "days", "in": "query", "description": "Of so many days, by UTC.", "schema": days}],
        "responses": {
            "200": answer("The figures.", "Budget"),
            **refusals("400", "401", "403", "421", "429", "500", "503"),
        },
    }
    return {BUDGET_PATH: {"get": operation}}


def budget_schemas() -> JsonSchema:
    """What is answered."""
    count, amount = {"type": "integer", "minimum": 0}, {"type": "number"}
    maybe = {"type": ["number", "null"]}
    line: JsonSchema = {
        **dict.fromkeys(("fetches", "failed", "bytes", "changed", "found", "measured"), count),
        "seconds": {"type": "number", "minimum": 0},
        "gain": maybe,
        "gain_per_fetch": maybe,
    }
    held = _object_schema({"url": {"type": "string"}, "worth": amount, "price": amount})
    return {
        "Budget": _object_schema(
            {
                "budget_per_s": maybe,
                "price": maybe,
                "since": {"type": "string", "format": "date-time"},
                "kinds": _array_schema(_object_schema({"kind": {"type": "string"}, **line})),
                "sites": _array_schema(_object_schema({"site": {"type": ["string", "null"]}, "part": maybe, **line})),
                "not_worth_the_price": _object_schema({"urls": count, "best": _array_schema(held)}),
            }
        )
    }


def _object_schema(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _array_schema(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}
