"""``/api/v1/sponsored``: the ads API. An advertiser's key reads and changes only their own campaigns and ads."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import AdRow
from vedette.web.ads.ports import AdService
from vedette.web.ads.report import ad_to_json, campaign_to_json, report_csv_response
from vedette.web.api import schema
from vedette.web.api.commands import read_command_id
from vedette.web.api.parameters import ParameterError, parse_int, parse_parameters
from vedette.web.api.responses import JSON_TYPE, ApiError, error_response, json_response, refuse_failures
from vedette.web.api.schema import Answer, JsonSchema
from vedette.web.auth.access import Identity
from vedette.web.commands.ads_commands import SaveAd
from vedette.web.commands.json_commands import ADMIN_COMMANDS, MAX_AD_NUMBER, Holdings, parse_ad_command
from vedette.web.formatting import sentence
from vedette.web.gate import get_media_type, parse_json

ADS_PATH = "/api/v1/sponsored"
AD_COMMANDS_PATH = f"{ADS_PATH}/orders"
REPORT_CSV_PATH = f"{ADS_PATH}/report.csv"
WHY_PATH = f"{ADS_PATH}/why"
MAX_QUERY_LENGTH = 500
_NO_KEY = "An advertiser's key is required: send it in the Authorization header, as Bearer vk_…."
_NOT_AN_ADVERTISER = (
    "This key belongs to no advertiser. The operator assigns it with vedette sponsor advertiser NAME --key KEY."
)
_NO_STORE = {"cache-control": "no-store"}


class AdsReport(Answer):
    """The campaigns and ads of an advertiser, with their figures."""

    advertiser: str | None
    campaigns: list[dict[str, Any]]
    ads: list[dict[str, Any]]


class AdWhy(Answer):
    """Why an ad is shown for a search now, or not."""

    ad: int
    query: str
    shown: bool
    reason: str
    advice: str
    history: str


class AdCommandDone(Answer):
    """A command on ads that was executed, and its number in the log."""

    done: str
    action: int
    ad: Annotated[int | UnsetType | None, Meta(description="Number of the submitted or edited ad.")] = UNSET


_EXAMPLE = {
    "order": "submit_ad",
    "campaign": "spring",
    "title": "Red shoes",
    "text": "Made here",
    "url": "https://shop.example.org/",
    "bid": "0.40",
    "phrases": [{"way": "broad", "phrase": "red shoes"}],
    "negatives": ["free"],
}


_WHY_EXAMPLE = AdWhy(
    *(3, "red shoes", False),
    reason="Its bid of 0.04 is below 0.05, the minimum price per click here.",
    advice="Bid 0.05 or more.",
    history="In the last 30 days 20 searches matched it, and it was shown 0 times.",
)


def describe_ad_paths() -> JsonSchema:
    """Describe the paths of the ads API for the OpenAPI description."""
    errors = schema.describe_errors("400", "401", "403", "429", "500")
    report = schema.describe_operation(
        "sponsored",
        "Report on an advertiser's campaigns and ads over the last 30 days",
        {"200": schema.describe_answer("The figures.", AdsReport("ann", [], [])), **errors},
        description="For the advertiser whose key is sent. Money is text, so that it stays exact.",
        **schema.BEARER_ONLY,
    )
    table = schema.describe_operation(
        "sponsored_report",
        "The same report by day, ad and phrase, as CSV",
        {"200": schema.describe_text("The table.", "text/csv"), **errors},
        **schema.BEARER_ONLY,
    )
    command = schema.describe_operation(
        "sponsored_order",
        "Submit, edit and revoke ads; create and pause campaigns",
        {
            "200": schema.describe_answer("Done.", AdCommandDone("submitted an ad", 12, 3)),
            **errors,
            **schema.describe_errors("409", "413", "415", "503"),
        },
        description="An advertiser's key controls its own campaigns and ads; submitted and edited ads wait for the "
        "operator's approval. A key with the admin scope controls all of them; "
        f"{' and '.join(ADMIN_COMMANDS)} require one.",
        **schema.describe_body("AdOrder", _EXAMPLE),
        **schema.BEARER_ONLY,
    )
    why = schema.describe_operation(
        "sponsored_why",
        "Explain why an ad is or is not shown for a search",
        {
            "200": schema.describe_answer("The reason in words.", _WHY_EXAMPLE),
            **errors,
            **schema.describe_errors("404"),
        },
        schema.query_parameter("ad", "The number of the ad.", schema.integer_schema(1, MAX_AD_NUMBER), required=True),
        schema.query_parameter("q", "The query.", schema.STRING, "red shoes", required=True),
        **schema.BEARER_ONLY,
    )
    return {
        ADS_PATH: {"get": report},
        REPORT_CSV_PATH: {"get": table},
        WHY_PATH: {"get": why},
        AD_COMMANDS_PATH: {"post": command},
    }


def ad_api_routes(desk: AdService) -> list[Route]:
    """Return the routes of the ads API: report, daily report, commands. The admin scope sees all advertisers."""

    async def show_report(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        return json_response(await run_in_threadpool(_build_report, desk, whose), headers=_NO_STORE)

    async def export_report(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        answer = report_csv_response(await run_in_threadpool(desk.load_daily_report, whose))
        answer.headers.update(_NO_STORE)
        return answer

    async def explain_ad(request: Request) -> Response:
        given = parse_parameters(request.scope["query_string"], ("ad", "q", "key"))
        if not given.get("ad") or not given.get("q"):
            raise ParameterError("q" if given.get("ad") else "ad", "Set ad to the number of an ad and q to a query.")
        number = parse_int(given, "ad", 0, 1, MAX_AD_NUMBER)
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        explanation = await run_in_threadpool(desk.explain_ad, number, given.get("q", "")[:MAX_QUERY_LENGTH], whose)
        if explanation is None:
            return error_response(404, "no_such_ad", "There is no ad with this number.", "ad")
        return json_response(AdWhy(*explanation), headers=_NO_STORE)

    async def run_command(request: Request) -> Response:
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        if get_media_type(request) != JSON_TYPE:
            return error_response(415, "wrong_type", "Send JSON, as application/json.")
        body = await request.body()
        sent = f"the key {request.state.reader.name}", read_command_id(request)
        return await run_in_threadpool(_run_command, desk, whose, body, *sent)

    return [
        Route(ADS_PATH, show_report, methods=["GET"]),
        Route(REPORT_CSV_PATH, export_report, methods=["GET"]),
        Route(WHY_PATH, explain_ad, methods=["GET"]),
        Route(AD_COMMANDS_PATH, run_command, methods=["POST"]),
    ]


def _identify_advertiser(desk: AdService, request: Request) -> str:
    """Return the advertiser whose key a request to the ads API has; empty for an operator's key."""
    reader: Identity = request.state.reader
    if reader.auth_method != "key":
        raise ApiError(401, "no_key", _NO_KEY, None, {"www-authenticate": "Bearer"})
    advertiser = desk.find_advertiser(reader.name)
    if not advertiser and "admin" not in reader.scopes:
        raise ApiError(403, "no_advertiser", _NOT_AN_ADVERTISER)
    return advertiser


def _build_report(desk: AdService, advertiser: str) -> AdsReport:
    campaigns = [campaign_to_json(line) for line in desk.list_campaigns(advertiser)]
    return AdsReport(advertiser or None, campaigns, [ad_to_json(line) for line in desk.list_ads(advertiser)])


def _run_command(desk: AdService, advertiser: str, body: bytes, by: str, id_: str) -> Response:
    order = parse_ad_command(parse_json(body), _load_holdings(desk, advertiser))
    if isinstance(order, SaveAd) and (why := desk.check_landing_url(order.ad.url)):
        return error_response(409, "cannot_be_done", sentence(why), "url")
    with refuse_failures():
        done = desk.run_command(order, by, id_)
    ad = (order.ad.id or _find_new_ad(desk, advertiser, order.ad)) if isinstance(order, SaveAd) else UNSET
    return json_response(AdCommandDone(done.words, done.action, ad), headers=_NO_STORE)


def _load_holdings(desk: AdService, advertiser: str) -> Holdings:
    campaigns = {line.campaign.name: line.campaign for line in desk.list_campaigns(advertiser)}
    ads = {line.ad.id: line.ad for line in desk.list_ads(advertiser)}
    return Holdings(
        advertiser, campaigns, ads, {} if advertiser else {row.name: row for row in desk.list_advertisers()}
    )


def _find_new_ad(desk: AdService, advertiser: str, submitted: AdRow) -> int | None:
    """Find the number that a new ad submitted through the API was given."""
    alike = (line.ad.id for line in desk.list_ads(advertiser) if line.ad[1:8] == submitted[1:8])
    return max(alike, default=None)
