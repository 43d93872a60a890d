"""The part of the API's description that is about sponsored results: an advertiser's reports and orders."""

from typing import Any

from vedette.web.api.ads import MARKET_ORDERS, REPORT_CSV, SPONSORED
from vedette.web.commands.ads_text import LONGEST_PHRASE, LONGEST_TEXT, LONGEST_TITLE, LONGEST_URL, MOST_TARGETS
from vedette.web.commands.json_commands import MARKET_FIELDS, OF_OPERATOR

__all__ = ["with_market"]

Described = dict[str, Any]

_NAME = {"type": "string", "minLength": 1, "maxLength": 64}
_AMOUNT = {"type": "string", "description": "Money as text, such as 2.50, so that it stays exact."}
_DAY = {"type": "string", "description": "A day where the operator is, such as 2026-01-31; empty for no limit."}
_PHRASE = {"type": "string", "minLength": 1, "maxLength": LONGEST_PHRASE}
_TARGET = {
    "type": "object",
    "required": ["way", "phrase"],
    "properties": {"way": {"enum": ["exact", "phrase", "broad"]}, "phrase": _PHRASE},
    "additionalProperties": False,
}
_FIELDS: Described = {
    "campaign": _NAME,
    "advertiser": _NAME,
    "key": {"type": "string", "maxLength": 100, "description": "The name of a key."},
    "budget": {**_AMOUNT, "description": f"What a day may cost. {_AMOUNT['description']}"},
    "starts": _DAY,
    "ends": _DAY,
    "ad": {"type": "integer", "minimum": 1},
    "title": {"type": "string", "minLength": 1, "maxLength": LONGEST_TITLE},
    "text": {"type": "string", "minLength": 1, "maxLength": LONGEST_TEXT},
    "url": {"type": "string", "minLength": 1, "maxLength": LONGEST_URL},
    "bid": {**_AMOUNT, "description": f"What a click may cost. {_AMOUNT['description']}"},
    "phrases": {"type": "array", "items": _TARGET, "minItems": 1, "maxItems": MOST_TARGETS},
    "negatives": {"type": "array", "items": _PHRASE, "maxItems": MOST_TARGETS},
}
_NEEDED: Described = {
    "keep_campaign": ("campaign",),
    "submit_ad": ("campaign", "title", "text", "url", "bid", "phrases"),
    "edit_ad": ("ad",),
    "keep_advertiser": ("advertiser",),
}
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


def with_market(description: Described) -> Described:
    """The API's description with these addresses in it."""
    paths = {
        SPONSORED: {"get": _reading("sponsored", "What an advertiser's campaigns and ads came to in the last 30 days")},
        REPORT_CSV: {"get": _by_day()},
        MARKET_ORDERS: {"post": _ordering()},
    }
    return {**description, "paths": {**description["paths"], **paths}}


def _reading(name: str, summary: str) -> Described:
    listed = {"type": "array", "items": {"type": "object"}}
    schema = {
        "type": "object",
        "required": ["advertiser", "campaigns", "ads"],
        "properties": {"advertiser": {"type": ["string", "null"]}, "campaigns": listed, "ads": listed},
    }
    return {
        "operationId": name,
        "summary": summary,
        "description": "Of the advertiser whose key is shown. Money is text, so that it stays exact.",
        "security": [{"bearer": []}],
        "responses": {
            "200": {"description": "The figures.", "content": {"application/json": {"schema": schema}}},
            **_refused("400", "401", "403", "429", "500"),
        },
    }


def _by_day() -> Described:
    return {
        "operationId": "sponsored_report",
        "summary": "The same day by day, ad by ad and phrase by phrase, as CSV",
        "security": [{"bearer": []}],
        "responses": {
            "200": {"description": "The table.", "content": {"text/csv": {"schema": {"type": "string"}}}},
            **_refused("400", "401", "403", "429", "500"),
        },
    }


def _ordering() -> Described:
    done = {
        "type": "object",
        "required": ["done", "action"],
        "properties": {
            "done": {"type": "string"},
            "action": {"type": "integer"},
            "ad": {"type": ["integer", "null"], "description": "The number of the ad that was submitted or edited."},
        },
    }
    content = {"schema": {"oneOf": [_order(name) for name in MARKET_FIELDS]}, "example": _EXAMPLE}
    of_operator = " and ".join(sorted(OF_OPERATOR))
    return {
        "operationId": "sponsored_order",
        "summary": "Submit, edit and revoke ads, make and pause campaigns",
        "description": "An advertiser's key orders of what is his; an ad that is submitted or edited waits until the "
        f"operator approves it. A key with the scope admin orders of everybody's; {of_operator} need one.",
        "security": [{"bearer": []}],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "200": {"description": "It is done.", "content": {"application/json": {"schema": done}}},
            **_refused("400", "401", "403", "409", "413", "415", "429", "500", "503"),
        },
    }


def _order(name: str) -> Described:
    fields = MARKET_FIELDS[name]
    return {
        "type": "object",
        "required": ["order", *_NEEDED.get(name, fields)],
        "properties": {"order": {"const": name}, **{field: _FIELDS[field] for field in fields}},
        "additionalProperties": False,
    }


def _refused(*statuses: str) -> Described:
    return {status: {"description": "Refused, with a code and words."} for status in statuses}
