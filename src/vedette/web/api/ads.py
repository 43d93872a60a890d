"""The market for programs: whoever has an advertiser's key reads and orders what is his, and nothing else."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import AdRow
from vedette.errors import StoreError, UsageError
from vedette.web.ads.ports import AdService
from vedette.web.ads.report import ad_to_json, campaign_to_json, report_csv_response
from vedette.web.api.parameters import parse_parameters
from vedette.web.api.responses import error_response, json_response
from vedette.web.auth.access import Identity
from vedette.web.commands.ads_commands import KeepAd
from vedette.web.commands.json_commands import Holdings, parse_ad_command
from vedette.web.formatting import sentence
from vedette.web.gate import parse_json

ADS_PATH = "/api/v1/sponsored"
AD_COMMANDS_PATH = f"{ADS_PATH}/orders"
REPORT_CSV_PATH = f"{ADS_PATH}/report.csv"
_NO_KEY = "An advertiser's key is needed: send it in the header Authorization, as Bearer vk_…."
_NOT_AN_ADVERTISER = (
    "This key is no advertiser's. The operator names it with vedette sponsor advertiser NAME --key KEY."
)
_NO_STORE = {"cache-control": "no-store"}


def ad_api_routes(desk: AdService) -> list[Route]:
    """What there is, day by day, and orders. A key with the scope admin has everybody's."""

    async def told(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        if isinstance(whose, Response):
            return whose
        return json_response(await run_in_threadpool(_build_report, desk, whose), headers=_NO_STORE)

    async def by_day(request: Request) -> Response:
        parse_parameters(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        if isinstance(whose, Response):
            return whose
        answer = report_csv_response(await run_in_threadpool(desk.load_daily_report, whose))
        answer.headers.update(_NO_STORE)
        return answer

    async def ordered(request: Request) -> Response:
        whose = await run_in_threadpool(_identify_advertiser, desk, request)
        if isinstance(whose, Response):
            return whose
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return error_response(415, "wrong_type", "Send JSON, as application/json.")
        body = await request.body()
        return await run_in_threadpool(_run_command, desk, whose, body, f"the key {request.state.reader.name}")

    return [
        Route(ADS_PATH, told, methods=["GET"]),
        Route(REPORT_CSV_PATH, by_day, methods=["GET"]),
        Route(AD_COMMANDS_PATH, ordered, methods=["POST"]),
    ]


def _identify_advertiser(desk: AdService, request: Request) -> str | Response:
    """The advertiser whose key was shown, empty for an operator's key; or why it opens nothing."""
    reader: Identity = request.state.reader
    if reader.auth_method != "key":
        return error_response(401, "no_key", _NO_KEY, None, {"www-authenticate": "Bearer"})
    advertiser = desk.find_advertiser(reader.name)
    if not advertiser and "admin" not in reader.scopes:
        return error_response(403, "no_advertiser", _NOT_AN_ADVERTISER)
    return advertiser


def _build_report(desk: AdService, advertiser: str) -> dict[str, object]:
    return {
        "advertiser": advertiser or None,
        "campaigns": [campaign_to_json(line) for line in desk.list_campaigns(advertiser)],
        "ads": [ad_to_json(line) for line in desk.list_ads(advertiser)],
    }


def _run_command(desk: AdService, advertiser: str, body: bytes, by: str) -> Response:
    order = parse_ad_command(parse_json(body), _load_holdings(desk, advertiser))
    if isinstance(order, KeepAd) and (why := desk.check_landing_url(order.ad.url)):
        return error_response(409, "cannot_be_done", sentence(why), "url")
    try:
        done = desk.run_command(order, by)
    except UsageError as error:
        return error_response(409, "cannot_be_done", sentence(str(error)))
    except StoreError as error:
        return error_response(503, "no_crawler", sentence(str(error)))
    told: dict[str, object] = {"done": done.words, "action": done.action}
    if isinstance(order, KeepAd):
        told["ad"] = order.ad.id or _find_new_ad(desk, advertiser, order.ad)
    return json_response(told, headers=_NO_STORE)


def _load_holdings(desk: AdService, advertiser: str) -> Holdings:
    campaigns = {line.campaign.name: line.campaign for line in desk.list_campaigns(advertiser)}
    return Holdings(advertiser, campaigns, {line.ad.id: line.ad for line in desk.list_ads(advertiser)})


def _find_new_ad(desk: AdService, advertiser: str, submitted: AdRow) -> int | None:
    """The number that a new ad was given."""
    alike = (line.ad.id for line in desk.list_ads(advertiser) if line.ad[1:8] == submitted[1:8])
    return max(alike, default=None)
