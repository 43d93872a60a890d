"""``GET /api/v1/budget``: the API of the console's budget page, on where the fetch budget went; for operators' keys."""

from typing import Annotated, Any

from msgspec import Meta
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.api import schema
from vedette.web.api.parameters import parse_int, parse_parameters
from vedette.web.api.responses import error_response, format_iso_time, json_response
from vedette.web.api.schema import Answer, Count, JsonSchema, Time
from vedette.web.console.ports.monitoring import BudgetReport, Monitoring, SpendingLine

BUDGET_PATH = "/api/v1/budget"
MAX_DAYS = 31
_NO_CRAWLER = "The budget is available only while the crawler runs: start it with vedette up."


class Spending(Answer, kw_only=True):
    """The cost and results of fetches."""

    fetches: Count
    failed: Count
    bytes: Count
    changed: Count
    found: Count
    measured: Count
    seconds: Annotated[float, Meta(ge=0)]
    gain: float | None
    gain_per_fetch: float | None


class KindSpending(Spending, kw_only=True):
    """Spending by the purpose of fetches."""

    kind: str


class SiteSpending(Spending, kw_only=True):
    """Spending by site."""

    site: str | None
    part: float | None


class HeldUrl(Answer):
    """A URL that is worth less than the price of a fetch."""

    url: str
    worth: float
    price: float


class HeldUrls(Answer):
    """The number of URLs worth less than the price of a fetch, and the best of them."""

    urls: Count
    best: list[HeldUrl]


class Budget(Answer):
    """Where the fetch budget went."""

    budget_per_s: float | None
    price: float | None
    since: Time
    kinds: list[KindSpending]
    sites: list[SiteSpending]
    not_worth_the_price: HeldUrls


def budget_routes(watch: Monitoring | None) -> list[Route]:
    """Return the route of the budget API. The gate has already checked for an operator's key."""

    async def show_budget(request: Request) -> Response:
        values = parse_parameters(request.scope["query_string"], ("days", "key"))
        days = parse_int(values, "days", 1, 1, MAX_DAYS)
        if watch is None:
            return error_response(503, "no_crawler", _NO_CRAWLER)
        found = await run_in_threadpool(watch.get_budget_report, days)
        return json_response(_describe_budget(found), headers={"cache-control": "no-store"})

    return [Route(BUDGET_PATH, show_budget, methods=["GET"])]


def _describe_budget(report: BudgetReport) -> Budget:
    return Budget(
        budget_per_s=report.per_s,
        price=report.price,
        since=format_iso_time(report.since_s),
        kinds=[KindSpending(kind=line.name, **_line_to_dict(line)) for line in report.kinds],
        sites=[SiteSpending(site=line.name or None, part=line.part, **_line_to_dict(line)) for line in report.sites],
        not_worth_the_price=HeldUrls(report.held_urls, [HeldUrl(one.url, one.worth, one.price) for one in report.held]),
    )


def _line_to_dict(line: SpendingLine) -> dict[str, Any]:
    counts = {name: int(getattr(line, name)) for name in ("fetches", "failed", "bytes", "changed", "found", "measured")}
    gain = line.gain if line.measured else None
    return {**counts, "seconds": line.seconds, "gain": gain, "gain_per_fetch": line.gain_per_fetch}


def describe_budget_path() -> JsonSchema:
    """Describe the path of the budget API for the OpenAPI description."""
    line = SpendingLine("refresh", 120.0, 0.4, 2.0, 5_400_000.0, 31.5, 48.0, 9.0, 40.0, 0.0125)
    site = line._replace(name="https://docs.example.org/")
    example = BudgetReport(2.0, "2/s", 410.0, 1_769_817_600.0, (line,), (site,))
    errors = schema.describe_errors("400", "401", "403", "421", "429", "500", "503")
    operation = schema.describe_operation(
        "budget",
        "How the fetch budget was spent, at what price, and what it gained",
        {"200": schema.describe_answer("The figures.", _describe_budget(example)), **errors},
        schema.query_parameter("days", "Number of days (UTC).", schema.integer_schema(1, MAX_DAYS, 1)),
        description="By purpose and by site. Requires a key with the admin scope in the Authorization header. "
        "Gains are null if none was measured.",
        **schema.BEARER_ONLY,
    )
    return {BUDGET_PATH: {"get": operation}}
