"""The part of the API's description that is about sponsored results: an advertiser's reports and orders."""

from typing import Any

from vedette.web.api.ads import AD_COMMANDS_PATH, ADS_PATH, REPORT_CSV_PATH
from vedette.web.commands.ads_text import MAX_PHRASE, MAX_PHRASES, MAX_TEXT, MAX_TITLE, MAX_URL
from vedette.web.commands.json_commands import ADMIN_COMMANDS, MARKET_FIELDS

JsonSchema = dict[str, Any]

_NAME = {"type": "string", "minLength": 1, "maxLength": 64}
_AMOUNT = {"type": "string", "description": "Money as text, such as 2.50, so that it stays exact."}
_DAY = {"type": "string", "description": "A day where the operator is, such as 2026-01-31; empty for no limit."}
_PHRASE = {"type": "string", "minLength": 1, "maxLength": MAX_PHRASE}
_TARGET = {
    "type": "object",
    "required": ["way", "phrase"],
    "properties": {"way": {"enum": ["exact", "phrase", "broad"]}, "phrase": _PHRASE},
    "additionalProperties": False,
}
_FIELDS: JsonSchema = {
    "campaign": _NAME,
    "advertiser": _NAME,
    "key": {"type": "string", "maxLength": 100, "description": "The name of a key."},
    "budget": {**_AMOUNT, "description": f"What a day may cost. {_AMOUNT['description']}"},
    "starts": _DAY,
    "ends": _DAY,
    "ad": {"type": "integer", "minimum": 1},
    "title": {"type": "string", "minLength": 1, "maxLength": MAX_TITLE},
    "text": {"type": "string", "minLength": 1, "maxLength": MAX_TEXT},
    "url": {"type": "string", "minLength": 1, "maxLength": MAX_URL},
    "bid": {**_AMOUNT, "description": f"What a click may cost. {_AMOUNT['description']}"},
    "phrases": {"type": "array", "items": _TARGET, "minItems": 1, "maxItems": MAX_PHRASES},
    "negatives": {"type": "array", "items": _PHRASE, "maxItems": MAX_PHRASES},
}
_REQUIRED: JsonSchema = {
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


def add_ad_paths(description: JsonSchema) -> JsonSchema:
    """The API's description with these addresses in it."""
    paths = {
        ADS_PATH: {
            "get": _describe_report("sponsored", "What an advertiser's campaigns and ads came to in the last 30 days")
        },
        REPORT_CSV_PATH: {"get": _describe_csv()},
        AD_COMMANDS_PATH: {"post": _describe_commands()},
    }
    return {**description, "paths": {**description["paths"], **paths}}


def _describe_report(name: str, summary: str) -> JsonSchema:
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
            **_error_responses("400", "401", "403", "429", "500"),
        },
    }


def _describe_csv() -> JsonSchema:
    return {
        "operationId": "sponsored_report",
        "summary": "The same day by day, ad by ad and phrase by phrase, as CSV",
        "security": [{"bearer": []}],
        "responses": {
            "200": {"description": "The table.", "content": {"text/csv": {"schema": {"type": "string"}}}},
            **_error_responses("400", "401", "403", "429", "500"),
        },
    }


def _describe_commands() -> JsonSchema:
    done = {
        "type": "object",
        "required": ["done", "action"],
        "properties": {
            "done": {"type": "string"},
            "action": {"type": "integer"},
            "ad": {"type": ["integer", "null"], "description": "The number of the ad that was submitted or edited."},
        },
    }
    content = {"schema": {"oneOf": [_command_schema(name) for name in MARKET_FIELDS]}, "example": _EXAMPLE}
    of_operator = " and ".join(sorted(ADMIN_COMMANDS))
    return {
        "operationId": "sponsored_order",
        "summary": "Submit, edit and revoke ads, make and pause campaigns",
        "description": "An advertiser's key orders of what is his; an ad that is submitted or edited waits until the "
        f"operator approves it. A key with the scope admin orders of everybody's; {of_operator} need one.",
        "security": [{"bearer": []}],
        "requestBody": {"required": True, "content": {"application/json": content}},
        "responses": {
            "200": {"description": "It is done.", "content": {"application/json": {"schema": done}}},
            **_error_responses("400", "401", "403", "409", "413", "415", "429", "500", "503"),
        },
    }


def _command_schema(name: str) -> JsonSchema:
    fields = MARKET_FIELDS[name]
    return {
        "type": "object",
        "required": ["order", *_REQUIRED.get(name, fields)],
        "properties": {"order": {"const": name}, **{field: _FIELDS[field] for field in fields}},
        "additionalProperties": False,
    }


def _error_responses(*statuses: str) -> JsonSchema:
    return {status: {"description": "Refused, with a code and words."} for status in statuses}
