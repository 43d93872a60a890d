"""The part of the API's description that is about push: pings of sites, and what hubs send."""

from typing import Any

JsonSchema = dict[str, Any]

_STRING: JsonSchema = {"type": "string"}
_KEY: JsonSchema = {"type": "string", "pattern": "^[A-Za-z0-9-]{8,128}$", "description": "It stands in the key file."}
_PING_EXAMPLE = {
    "host": "example.org",
    "key": "0123456789abcdef",
    "urlList": ["https://example.org/new", "https://example.org/changed"],
}
_PING_ERRORS = ("400", "403", "413", "422", "429", "500", "503")
_NEEDS_NO_KEY: JsonSchema = {"security": [{}]}


def describe_push_paths(refusals: Any) -> JsonSchema:  # noqa: ANN401 - a function of the description
    """The paths; ``refusals`` describes what is answered to what is not taken."""
    taken = {
        "200": _text_response("Taken."),
        "202": _text_response("Taken; the key is being looked up."),
        **refusals(*_PING_ERRORS),
    }
    about = "As IndexNow has it. No key of ours is needed: the site's own stands in a file on its host, /KEY.txt."
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Ping"}, "example": _PING_EXAMPLE}}
    return {
        "/indexnow": {
            "get": {
                "operationId": "ping",
                "summary": "A site tells that one of its URLs is new, changed or gone",
                "description": about,
                **_NEEDS_NO_KEY,
                "parameters": [
                    _query_parameter(
                        "url", "The URL, of a site that is crawled here.", _STRING, _PING_EXAMPLE["urlList"][0]
                    ),
                    _query_parameter("key", "The site's key.", _KEY, "0123456789abcdef"),
                    _query_parameter("keyLocation", "Where the key file is, if it is elsewhere.", _STRING),
                ],
                "responses": taken,
            },
            "post": {
                "operationId": "pings",
                "summary": "The same of up to 10 000 URLs",
                "description": about,
                **_NEEDS_NO_KEY,
                "requestBody": {"required": True, "content": content},
                "responses": taken,
            },
        },
        "/push/{token}": {"get": _describe_verify(refusals), "post": _describe_deliver(refusals)},
    }


def push_schemas() -> JsonSchema:
    """What is sent."""
    urls = {"type": "array", "items": _STRING, "minItems": 1, "maxItems": 10_000}
    fields = {"host": _STRING, "key": _KEY, "keyLocation": _STRING, "urlList": urls}
    return {"Ping": {"type": "object", "required": ["host", "key", "urlList"], "properties": fields}}


def _describe_verify(refusals: Any) -> JsonSchema:  # noqa: ANN401 - a function of the description
    return {
        "operationId": "verify",
        "summary": "A hub asks whether a subscription was meant (WebSub)",
        **_NEEDS_NO_KEY,
        "parameters": [
            _token_parameter(),
            *(_query_parameter(f"hub.{name}", "As WebSub has it.", _STRING) for name in _HUB_PARAMETERS),
        ],
        "responses": {
            "200": _text_response("It was: the challenge."),
            "404": _text_response("It was not."),
            **refusals("429", "503"),
        },
    }


def _describe_deliver(refusals: Any) -> JsonSchema:  # noqa: ANN401 - a function of the description
    signature = {"name": "X-Hub-Signature", "in": "header", "description": "Of the body.", "schema": _STRING}
    answers = {
        "202": _text_response("Taken, whatever becomes of it."),
        "404": _text_response("Nothing was subscribed to at this address."),
        "410": _text_response("It is not any more."),
        "413": _text_response("More was sent than is read."),
    }
    return {
        "operationId": "deliver",
        "summary": "A hub sends a feed that has changed (WebSub)",
        **_NEEDS_NO_KEY,
        "parameters": [_token_parameter(), signature],
        "requestBody": {"required": True, "content": {"application/atom+xml": {"schema": _STRING}}},
        "responses": {**answers, **refusals("429", "503")},
    }


_HUB_PARAMETERS = ("mode", "topic", "challenge", "lease_seconds", "reason")


def _token_parameter() -> JsonSchema:
    schema = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$"}
    return {"name": "token", "in": "path", "required": True, "description": "Of one subscription.", "schema": schema}


def _query_parameter(name: str, description: str, schema: JsonSchema, example: str | None = None) -> JsonSchema:
    shown = {} if example is None else {"example": example}
    needed = {"required": True} if example is not None else {}
    return {"name": name, "in": "query", "description": description, **needed, "schema": schema, **shown}


def _text_response(description: str) -> JsonSchema:
    return {"description": description, "content": {"text/plain": {"schema": _STRING}}}
