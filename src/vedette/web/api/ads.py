"""The market for programs: whoever has an advertiser's key reads and orders what is his, and nothing else."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.adapters.ads.campaign_store import AdRow
from vedette.errors import StoreError, UsageError
from vedette.web.ads.ports import MarketDesk
from vedette.web.ads.report import ad_as_json, campaign_as_json, report_csv
from vedette.web.api.parameters import given
from vedette.web.api.responses import error_answer, json_answer
from vedette.web.auth.access import Reader
from vedette.web.commands.ads_commands import KeepAd
from vedette.web.commands.json_commands import Held, read_market_order
from vedette.web.formatting import sentence
from vedette.web.gate import json_value

__all__ = ["MARKET_ORDERS", "REPORT_CSV", "SPONSORED", "market_routes"]

SPONSORED = "/api/v1/sponsored"
MARKET_ORDERS = f"{SPONSORED}/orders"
REPORT_CSV = f"{SPONSORED}/report.csv"
_NO_KEY = "An advertiser's key is needed: send it in the header Authorization, as Bearer vk_…."
_NOT_HIS = "This key is no advertiser's. The operator names it with vedette sponsor advertiser NAME --key KEY."
_NO_STORE = {"cache-control": "no-store"}


def market_routes(desk: MarketDesk) -> list[Route]:
    """What there is, day by day, and orders. A key with the scope admin has everybody's."""

    async def told(request: Request) -> Response:
        given(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_whose, desk, request)
        if isinstance(whose, Response):
            return whose
        return json_answer(await run_in_threadpool(_report, desk, whose), headers=_NO_STORE)

    async def by_day(request: Request) -> Response:
        given(request.scope["query_string"], ("key",))
        whose = await run_in_threadpool(_whose, desk, request)
        if isinstance(whose, Response):
            return whose
        answer = report_csv(await run_in_threadpool(desk.days, whose))
        answer.headers.update(_NO_STORE)
        return answer

    async def ordered(request: Request) -> Response:
        whose = await run_in_threadpool(_whose, desk, request)
        if isinstance(whose, Response):
            return whose
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return error_answer(415, "wrong_type", "Send JSON, as application/json.")
        body = await request.body()
        return await run_in_threadpool(_ordered, desk, whose, body, f"the key {request.state.reader.name}")

    return [
        Route(SPONSORED, told, methods=["GET"]),
        Route(REPORT_CSV, by_day, methods=["GET"]),
        Route(MARKET_ORDERS, ordered, methods=["POST"]),
    ]


def _whose(desk: MarketDesk, request: Request) -> str | Response:
    """The advertiser whose key was shown, empty for an operator's key; or why it opens nothing."""
    reader: Reader = request.state.reader
    if reader.known_by != "key":
        return error_answer(401, "no_key", _NO_KEY, None, {"www-authenticate": "Bearer"})
    advertiser = desk.advertiser_of_key(reader.name)
    if not advertiser and "admin" not in reader.scopes:
        return error_answer(403, "no_advertiser", _NOT_HIS)
    return advertiser


def _report(desk: MarketDesk, advertiser: str) -> dict[str, object]:
    return {
        "advertiser": advertiser or None,
        "campaigns": [campaign_as_json(line) for line in desk.campaigns(advertiser)],
        "ads": [ad_as_json(line) for line in desk.ads(advertiser)],
    }


def _ordered(desk: MarketDesk, advertiser: str, body: bytes, by: str) -> Response:
    order = read_market_order(json_value(body), _held(desk, advertiser))
    if isinstance(order, KeepAd) and (why := desk.refusal(order.ad.url)):
        return error_answer(409, "cannot_be_done", sentence(why), "url")
    try:
        done = desk.order(order, by)
    except UsageError as error:
        return error_answer(409, "cannot_be_done", sentence(str(error)))
    except StoreError as error:
        return error_answer(503, "no_crawler", sentence(str(error)))
    told: dict[str, object] = {"done": done.words, "action": done.action}
    if isinstance(order, KeepAd):
        told["ad"] = order.ad.id or _newest(desk, advertiser, order.ad)
    return json_answer(told, headers=_NO_STORE)


def _held(desk: MarketDesk, advertiser: str) -> Held:
    campaigns = {line.campaign.name: line.campaign for line in desk.campaigns(advertiser)}
    return Held(advertiser, campaigns, {line.ad.id: line.ad for line in desk.ads(advertiser)})


def _newest(desk: MarketDesk, advertiser: str, submitted: AdRow) -> int | None:
    """The number that a new ad was given."""
    alike = (line.ad.id for line in desk.ads(advertiser) if line.ad[1:8] == submitted[1:8])
    return max(alike, default=None)
