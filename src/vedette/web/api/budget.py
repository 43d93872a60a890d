"""``GET /api/v1/budget``: where the fetch budget went, in the numbers of the console's page, for keys of operators."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.api.parameters import given, whole
from vedette.web.api.responses import error_answer, iso_time, json_answer
from vedette.web.console.ports.monitoring import BudgetTold, SpentLine, Watch

__all__ = ["BUDGET", "BUDGET_EXAMPLES", "budget_operations", "budget_routes", "budget_schemas"]

Described = dict[str, Any]
BUDGET = "/api/v1/budget"
MOST_DAYS = 31
_NOT_HERE = "The budget is known only where the crawler runs: start it with vedette up."
_LINE = SpentLine("refresh", 120.0, 0.4, 2.0, 5_400_000.0, 31.5, 48.0, 9.0, 40.0, 0.0125)


def budget_routes(watch: Watch | None) -> list[Route]:
    """The one address. The gate has seen to it that whoever comes here may."""

    async def told(request: Request) -> Response:
        values = given(request.scope["query_string"], ("days", "key"))
        days = whole(values, "days", 1, 1, MOST_DAYS)
        if watch is None:
            return error_answer(503, "no_crawler", _NOT_HERE)
        found = await run_in_threadpool(watch.budget, days)
        return json_answer(_as_json(found), headers={"cache-control": "no-store"})

    return [Route(BUDGET, told, methods=["GET"])]


def _as_json(told: BudgetTold) -> dict[str, object]:
    return {
        "budget_per_s": told.per_s,
        "price": told.price,
        "since": iso_time(told.since_s),
        "kinds": [{"kind": line.name, **_line(line)} for line in told.kinds],
        "sites": [{"site": line.name or None, "part": line.part, **_line(line)} for line in told.sites],
        "not_worth_the_price": {
            "urls": told.held_urls,
            "best": [{"url": one.url, "worth": one.worth, "price": one.price} for one in told.held],
        },
    }


def _line(line: SpentLine) -> dict[str, object]:
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


BUDGET_EXAMPLES: dict[str, Described] = {
    "Budget": _as_json(
        BudgetTold(2.0, "2/s", 410.0, 1_769_817_600.0, (_LINE,), (_LINE._replace(name="https://docs.example.org/"),))
    )
}


def budget_operations(answer: Any, refusals: Any) -> Described:  # noqa: ANN401 - two functions of the description
    """The path; ``answer`` and ``refusals`` describe what comes back."""
    days = {"type": "integer", "minimum": 1, "maximum": MOST_DAYS, "default": 1}
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
    return {BUDGET: {"get": operation}}


def budget_schemas() -> Described:
    """What is answered."""
    count, amount = {"type": "integer", "minimum": 0}, {"type": "number"}
    maybe = {"type": ["number", "null"]}
    line: Described = {
        **dict.fromkeys(("fetches", "failed", "bytes", "changed", "found", "measured"), count),
        "seconds": {"type": "number", "minimum": 0},
        "gain": maybe,
        "gain_per_fetch": maybe,
    }
    held = _whole({"url": {"type": "string"}, "worth": amount, "price": amount})
    return {
        "Budget": _whole(
            {
                "budget_per_s": maybe,
                "price": maybe,
                "since": {"type": "string", "format": "date-time"},
                "kinds": _list(_whole({"kind": {"type": "string"}, **line})),
                "sites": _list(_whole({"site": {"type": ["string", "null"]}, "part": maybe, **line})),
                "not_worth_the_price": _whole({"urls": count, "best": _list(held)}),
            }
        )
    }


def _whole(properties: Described) -> Described:
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _list(items: Described) -> Described:
    return {"type": "array", "items": items}
