"""Reports for advertisers' programs: whoever has an advertiser's key reads what is his, and nothing else."""

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.access import Reader
from vedette.web.answers import error_answer, json_answer
from vedette.web.market_ports import MarketDesk
from vedette.web.market_report import ad_as_json, campaign_as_json
from vedette.web.parameters import given

__all__ = ["SPONSORED", "market_routes", "with_market"]

SPONSORED = "/api/v1/sponsored"
_NO_KEY = "An advertiser's key is needed: send it in the header Authorization, as Bearer vk_…."
_NOT_HIS = "This key is no advertiser's. The operator names it with vedette sponsor advertiser NAME --key KEY."


def market_routes(desk: MarketDesk) -> list[Route]:
    """The one address. A key with the scope admin reads everybody's."""

    async def told(request: Request) -> Response:
        given(request.scope["query_string"], ("key",))
        reader: Reader = request.state.reader
        if reader.known_by != "key":
            return error_answer(401, "no_key", _NO_KEY, None, {"www-authenticate": "Bearer"})
        advertiser = await run_in_threadpool(desk.advertiser_of_key, reader.name)
        if not advertiser and "admin" not in reader.scopes:
            return error_answer(403, "no_advertiser", _NOT_HIS)
        return json_answer(await run_in_threadpool(_report, desk, advertiser), headers={"cache-control": "no-store"})

    return [Route(SPONSORED, told, methods=["GET"])]


def _report(desk: MarketDesk, advertiser: str) -> dict[str, object]:
    return {
        "advertiser": advertiser or None,
        "campaigns": [campaign_as_json(line) for line in desk.campaigns(advertiser)],
        "ads": [ad_as_json(line) for line in desk.ads(advertiser)],
    }


def with_market(description: dict[str, Any]) -> dict[str, Any]:
    """The API's description with this address in it."""
    listed = {"type": "array", "items": {"type": "object"}}
    schema = {
        "type": "object",
        "required": ["advertiser", "campaigns", "ads"],
        "properties": {"advertiser": {"type": ["string", "null"]}, "campaigns": listed, "ads": listed},
    }
    refused = {"description": "Refused, with a code and words."}
    operation = {
        "operationId": "sponsored",
        "summary": "What an advertiser's campaigns and ads came to in the last 30 days",
        "description": "Of the advertiser whose key is shown. Money is text, so that it stays exact.",
        "responses": {
            "200": {"description": "The figures.", "content": {"application/json": {"schema": schema}}},
            **dict.fromkeys(("400", "401", "403", "429", "500"), refused),
        },
    }
    return {**description, "paths": {**description["paths"], SPONSORED: {"get": operation}}}
