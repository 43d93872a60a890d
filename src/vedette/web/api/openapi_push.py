"""The part of the API's description that is about push: pings of sites, and what hubs send."""

from typing import Any

__all__ = ["push_operations", "push_schemas"]

Described = dict[str, Any]

_TEXT: Described = {"type": "string"}
_KEY: Described = {"type": "string", "pattern": "^[A-Za-z0-9-]{8,128}$", "description": "It stands in the key file."}
_PING = {
    "host": "example.org",
    "key": "0123456789abcdef",
    "urlList": ["https://example.org/new", "https://example.org/changed"],
}
_PINGED = ("400", "403", "413", "422", "429", "500", "503")
_NEEDS_NO_KEY: Described = {"security": [{}]}


def push_operations(refusals: Any) -> Described:  # noqa: ANN401 - a function of the description
    """The paths; ``refusals`` describes what is answered to what is not taken."""
    taken = {"200": _said("Taken."), "202": _said("Taken; the key is being looked up."), **refusals(*_PINGED)}
    about = "As IndexNow has it. No key of ours is needed: the site's own stands in a file on its host, /KEY.txt."
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Ping"}, "example": _PING}}
    return {
        "/indexnow": {
            "get": {
                "operationId": "ping",
                "summary": "A site tells that one of its URLs is new, changed or gone",
                "description": about,
                **_NEEDS_NO_KEY,
                "parameters": [
                    _query("url", "The URL, of a site that is crawled here.", _TEXT, _PING["urlList"][0]),
                    _query("key", "The site's key.", _KEY, "0123456789abcdef"),
                    _query("keyLocation", "Where the key file is, if it is elsewhere.", _TEXT),
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
        "/push/{token}": {"get": _asked_back(refusals), "post": _delivered(refusals)},
    }


def push_schemas() -> Described:
    """What is sent."""
    urls = {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": 10_000}
    fields = {"host": _TEXT, "key": _KEY, "keyLocation": _TEXT, "urlList": urls}
    return {"Ping": {"type": "object", "required": ["host", "key", "urlList"], "properties": fields}}


def _asked_back(refusals: Any) -> Described:  # noqa: ANN401 - a function of the description
    return {
        "operationId": "verify",
        "summary": "A hub asks whether a subscription was meant (WebSub)",
        **_NEEDS_NO_KEY,
        "parameters": [_token(), *(_query(f"hub.{name}", "As WebSub has it.", _TEXT) for name in _OF_HUBS)],
        "responses": {"200": _said("It was: the challenge."), "404": _said("It was not."), **refusals("429", "503")},
    }


def _delivered(refusals: Any) -> Described:  # noqa: ANN401 - a function of the description
    signature = {"name": "X-Hub-Signature", "in": "header", "description": "Of the body.", "schema": _TEXT}
    answers = {
        "202": _said("Taken, whatever becomes of it."),
        "404": _said("Nothing was subscribed to at this address."),
        "410": _said("It is not any more."),
        "413": _said("More was sent than is read."),
    }
    return {
        "operationId": "deliver",
        "summary": "A hub sends a feed that has changed (WebSub)",
        **_NEEDS_NO_KEY,
        "parameters": [_token(), signature],
        "requestBody": {"required": True, "content": {"application/atom+xml": {"schema": _TEXT}}},
        "responses": {**answers, **refusals("429", "503")},
    }


_OF_HUBS = ("mode", "topic", "challenge", "lease_seconds", "reason")


def _token() -> Described:
    schema = {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9_-]+$"}
    return {"name": "token", "in": "path", "required": True, "description": "Of one subscription.", "schema": schema}


def _query(name: str, description: str, schema: Described, example: str | None = None) -> Described:
    shown = {} if example is None else {"example": example}
    needed = {"required": True} if example is not None else {}
    return {"name": name, "in": "query", "description": description, **needed, "schema": schema, **shown}


def _said(description: str) -> Described:
    return {"description": description, "content": {"text/plain": {"schema": _TEXT}}}
