"""The part of the API's description that is about orders: what an operator's programs may change, and the log of it."""

from typing import Any

from vedette.web.commands.commands import RULE_KINDS
from vedette.web.commands.json_commands import MAX_ACTION, MAX_TEXT_LENGTH, MAX_URLS

JsonSchema = dict[str, Any]

COMMAND_EXAMPLES: dict[str, JsonSchema] = {
    "Done": {"done": "paused https://docs.example.org/", "action": 12},
    "Actions": {
        "actions": [
            {
                "action": 12,
                "at": "2026-01-31T09:26:53Z",
                "what": "paused https://docs.example.org/",
                "by": "the key wiki",
                "can_be_undone": True,
                "undone_at": None,
            }
        ]
    },
}
_STRING = {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_LENGTH}
_SITE = {**_STRING, "description": "The start of the site, or its host."}
_SETTINGS = {
    "type": "object",
    "description": "Settings by name, written as in the files of vedette sites export.",
}
_BOOLEAN = {"type": "boolean", "default": False}
_RULE = {
    "kind": {"enum": list(RULE_KINDS)},
    "query": {"type": "string", "maxLength": MAX_TEXT_LENGTH},
    "value": _STRING,
}
_ALERT: JsonSchema = {
    "name": {**_STRING, "description": "Letters, digits and -._ , 64 at most; it stands in the address of its feed."},
    "place": {
        "type": "string",
        "maxLength": MAX_TEXT_LENGTH,
        "description": "A host, or a path on one; * for everywhere. Place or query is needed.",
    },
    "query": {
        "type": "string",
        "maxLength": MAX_TEXT_LENGTH,
        "description": "New pages that a search for it would find.",
    },
    "webhook": {
        "type": "string",
        "maxLength": MAX_TEXT_LENGTH,
        "description": "A URL that is sent each new page, signed; the console shows with what.",
    },
}
# What each order takes: its fields, and those of them that may be left out.
_COMMANDS: dict[str, tuple[JsonSchema, tuple[str, ...]]] = {
    "add_site": ({"site": _SITE, "settings": _SETTINGS, "paused": _BOOLEAN}, ("settings", "paused")),
    "set_site": ({"site": _SITE, "settings": {**_SETTINGS, "minProperties": 1}}, ()),
    "pause_site": ({"site": _SITE}, ()),
    "resume_site": ({"site": _SITE}, ()),
    "remove_site": ({"site": _SITE, "with_pages": _BOOLEAN}, ("with_pages",)),
    "add_rule": (_RULE, ("query",)),
    "remove_rule": (_RULE, ("query",)),
    "fetch": ({"urls": {"type": "array", "items": _STRING, "minItems": 1, "maxItems": MAX_URLS}}, ()),
    "dismiss": ({"host": _STRING}, ()),
    "add_watch": (_ALERT, ("place", "query", "webhook")),
    "remove_watch": ({"name": _ALERT["name"]}, ()),
    "undo": ({"action": {"type": "integer", "minimum": 1, "maximum": MAX_ACTION}}, ()),
}


def describe_command_paths(answer: Any, refusals: Any) -> JsonSchema:  # noqa: ANN401 - two functions of the description
    """The paths; ``answer`` and ``refusals`` describe what comes back."""
    keyed: JsonSchema = {"security": [{"bearer": []}]}
    content = {"schema": {"$ref": "#/components/schemas/Order"}, "example": {"order": "undo", "action": 12}}
    return {
        "/api/v1/orders": {
            "post": {
                "operationId": "order",
                "summary": "Change something: sites, rules for results, watches, what is fetched now; or undo it",
                "description": "A key with the scope admin is needed, in the header Authorization. What was done is in "
                "the log of actions, and most of it can be undone.",
                **keyed,
                "requestBody": {"required": True, "content": {"application/json": content}},
                "responses": {
                    "200": answer("It is done.", "Done"),
                    **refusals("400", "401", "403", "409", "413", "415", "421", "429", "500", "503"),
                },
            }
        },
        "/api/v1/actions": {
            "get": {
                "operationId": "actions",
                "summary": "What was done lately, the last first",
                **keyed,
                "parameters": [
                    _query_parameter(
                        "n", "How many.", {"type": "integer", "minimum": 1, "maximum": 100, "default": 20}
                    ),
                    _query_parameter(
                        "before",
                        "Only those before this action.",
                        {"type": "integer", "minimum": 1, "maximum": 10**9 - 1},
                    ),
                ],
                "responses": {
                    "200": answer("The log.", "Actions"),
                    **refusals("400", "401", "403", "421", "429", "500", "503"),
                },
            }
        },
    }


def command_schemas() -> JsonSchema:
    """What is sent and answered."""
    action = {
        "action": {"type": "integer", "minimum": 1},
        "at": {"type": "string", "format": "date-time"},
        "what": {"type": "string"},
        "by": {"type": "string"},
        "can_be_undone": {"type": "boolean"},
        "undone_at": {"type": ["string", "null"], "format": "date-time"},
    }
    return {
        "Order": {"oneOf": [_command_schema(name, *told) for name, told in _COMMANDS.items()]},
        "Done": _object_schema({"done": {"type": "string"}, "action": {"type": "integer", "minimum": 0}}),
        "Actions": _object_schema({"actions": {"type": "array", "items": _object_schema(action)}}),
    }


def _command_schema(name: str, fields: JsonSchema, optional: tuple[str, ...]) -> JsonSchema:
    described = _object_schema({"order": {"const": name}, **fields})
    return {**described, "required": [field for field in described["required"] if field not in optional]}


def _object_schema(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _query_parameter(name: str, description: str, schema: JsonSchema) -> JsonSchema:
    return {"name": name, "in": "query", "description": description, "schema": schema}
