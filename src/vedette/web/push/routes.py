"""Push endpoints: the callback of WebSub hubs, and IndexNow pings of sites.

Neither needs a user's key: a hub's callback URL cannot be guessed and its messages are signed, and a ping has a key
that its host confirms. Requests are passed on; nothing is decided here.
"""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from vedette.discover.push.indexnow import Ping, PingRejection, parse_ping, parse_ping_body
from vedette.web.api import schema
from vedette.web.api.responses import error_response
from vedette.web.api.schema import JsonSchema
from vedette.web.auth.rate_limits import to_network
from vedette.web.push.ports import HubDelivery, PushReply, PushService

WEBSUB_PREFIX = "/push/"
INDEXNOW_PATH = "/indexnow"
MAX_PUSH_BYTES = 2 << 20
MAX_LINKS = 16
_ERROR_CODES = {400: "wrong_request", 403: "wrong_key", 422: "not_ours", 429: "too_many_requests", 503: "no_crawler"}


def is_push_path(path: str) -> bool:
    """Check whether a path is a push endpoint, where bodies may be ``MAX_PUSH_BYTES`` long."""
    return path == INDEXNOW_PATH or path.startswith(WEBSUB_PREFIX)


def push_routes(push: PushService) -> list[Route]:
    """Return the routes of the push endpoints: WebSub callbacks and IndexNow pings."""

    async def verify(request: Request) -> Response:
        reply = await run_in_threadpool(push.verify_intent, request.path_params["token"], dict(request.query_params))
        return _hub_response(reply)

    async def deliver(request: Request) -> Response:
        headers = request.headers
        delivery = HubDelivery(
            await request.body(),
            headers.get("content-type", ""),
            headers.get("x-hub-signature", ""),
            tuple(headers.getlist("link")[:MAX_LINKS]),
        )
        return _hub_response(await run_in_threadpool(push.accept_delivery, request.path_params["token"], delivery))

    async def accept_ping(request: Request) -> Response:
        if request.method == "POST":
            ping = await run_in_threadpool(parse_ping_body, await request.body())
        else:
            ping = parse_ping(dict(request.query_params))
        return _ping_response(await run_in_threadpool(_accept_ping, push, ping, _get_client(request)))

    return [
        Route(f"{WEBSUB_PREFIX}{{token}}", verify, methods=["GET"]),
        Route(f"{WEBSUB_PREFIX}{{token}}", deliver, methods=["POST"]),
        Route(INDEXNOW_PATH, accept_ping, methods=["GET", "POST"]),
    ]


# The fields of a ping are parsed by ``discover.push.indexnow``, as leniently as the protocol requires.
_KEY: JsonSchema = {"type": "string", "pattern": "^[A-Za-z0-9-]{8,128}$", "description": "The key, as in the key file."}
_URLS: JsonSchema = {"type": "array", "items": schema.STRING, "minItems": 1, "maxItems": 10_000}
PUSH_SCHEMAS: JsonSchema = {
    "Ping": {
        "type": "object",
        "required": ["host", "key", "urlList"],
        "properties": {"host": schema.STRING, "key": _KEY, "keyLocation": schema.STRING, "urlList": _URLS},
    }
}
_PING_EXAMPLE = {
    "host": "example.org",
    "key": "0123456789abcdef",
    "urlList": ["https://example.org/new", "https://example.org/changed"],
}


def describe_push_paths() -> JsonSchema:
    """Describe the paths of the push endpoints for the OpenAPI description."""
    return {INDEXNOW_PATH: _describe_pings(), f"{WEBSUB_PREFIX}{{token}}": _describe_hub_calls()}


def _describe_pings() -> JsonSchema:
    responses = {
        "200": schema.describe_text("Accepted."),
        "202": schema.describe_text("Accepted; the key is being verified."),
        **schema.describe_errors("400", "403", "413", "422", "429", "500", "503"),
    }
    about = "Follows IndexNow. No API key is needed: the site's own key is in a file on its host, /KEY.txt."
    url = "URL on a site that is crawled here."
    one = schema.describe_operation(
        "ping",
        "Report that a URL is new, changed or gone (IndexNow)",
        responses,
        schema.query_parameter("url", url, schema.STRING, "https://example.org/new", required=True),
        schema.query_parameter("key", "The site's key.", _KEY, "0123456789abcdef", required=True),
        schema.query_parameter("keyLocation", "Location of the key file, if not the default.", schema.STRING),
        description=about,
        **schema.NO_KEY,
    )
    body, summary = schema.describe_body("Ping", _PING_EXAMPLE), "Report up to 10 000 URLs (IndexNow)"
    return {
        "get": one,
        "post": schema.describe_operation("pings", summary, responses, description=about, **body, **schema.NO_KEY),
    }


def _describe_hub_calls() -> JsonSchema:
    shape = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$"}
    token = {
        "name": "token",
        "in": "path",
        "required": True,
        "description": "Token of one subscription.",
        "schema": shape,
    }
    signature = {
        "name": "X-Hub-Signature",
        "in": "header",
        "description": "Signature of the body.",
        "schema": schema.STRING,
    }
    hub_parameters = (
        schema.query_parameter(f"hub.{name}", "Follows WebSub.", schema.STRING)
        for name in ("mode", "topic", "challenge", "lease_seconds", "reason")
    )
    verified = {
        "200": schema.describe_text("The subscription was requested; the response is the challenge."),
        "404": schema.describe_text("The subscription was not requested."),
    }
    delivered = {
        "202": schema.describe_text("Accepted; it may still be ignored."),
        "404": schema.describe_text("There is no subscription at this URL."),
        "410": schema.describe_text("The subscription has ended."),
        "413": schema.describe_text("The request body is too large."),
    }
    errors = schema.describe_errors("429", "503")
    verify_summary, sent = (
        "Verify the intent of a subscription, for hubs (WebSub)",
        "Push a changed feed, for hubs (WebSub)",
    )
    body = {"required": True, "content": {"application/atom+xml": {"schema": schema.STRING}}}
    return {
        "get": schema.describe_operation(
            "verify", verify_summary, {**verified, **errors}, token, *hub_parameters, **schema.NO_KEY
        ),
        "post": schema.describe_operation(
            "deliver", sent, {**delivered, **errors}, token, signature, requestBody=body, **schema.NO_KEY
        ),
    }


def _get_client(request: Request) -> str:
    """Return the network that a push request came from, as the gate found it behind proxies."""
    return to_network(getattr(request.state, "address", ""))


def _accept_ping(push: PushService, ping: Ping | PingRejection, client: str) -> PushReply:
    return PushReply(ping.status, ping.message) if isinstance(ping, PingRejection) else push.accept_ping(ping, client)


def _hub_response(reply: PushReply) -> Response:
    """Return the push service's reply to a WebSub hub, its challenge or a word, always as plain text."""
    headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
    return PlainTextResponse(reply.words, reply.status, headers | _build_retry_header(reply))


def _ping_response(reply: PushReply) -> Response:
    if reply.status < 300:
        return PlainTextResponse(reply.words, reply.status, {"cache-control": "no-store"})
    return error_response(
        reply.status, _ERROR_CODES.get(reply.status, "refused"), reply.words, None, _build_retry_header(reply)
    )


def _build_retry_header(reply: PushReply) -> dict[str, str]:
    return {"retry-after": str(reply.wait_s)} if reply.wait_s else {}
