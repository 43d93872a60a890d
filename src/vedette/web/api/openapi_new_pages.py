"""The part of the API's description that is about new pages."""

from typing import Any

from vedette.web.public.new_page_ports import ITEM_EXAMPLE

JsonSchema = dict[str, Any]

MAX_ITEMS = 100
ALERT_NAME_PATTERN = r"[a-z0-9][a-z0-9._-]{0,63}"
NEW_EXAMPLES: dict[str, JsonSchema] = {
    "NewAnswer": {"items": [ITEM_EXAMPLE], "cursor": "4711", "more": False, "missed": False}
}
_STRING: JsonSchema = {"type": "string"}
_TIME: JsonSchema = {"type": "string", "format": "date-time"}
_CURSOR: JsonSchema = {"type": "string", "pattern": "^[0-9]{1,15}$"}


def describe_new_paths(answer: Any, refusals: Any) -> JsonSchema:  # noqa: ANN401 - two functions of the description
    """The path; ``answer`` and ``refusals`` describe what comes back."""
    since = {"type": "string", "pattern": "^(?:[0-9]{1,15})?$"}
    watch = {"type": "string", "pattern": f"^(?:{ALERT_NAME_PATTERN})?$"}
    most = {"type": "integer", "minimum": 1, "maximum": MAX_ITEMS, "default": 20}
    return {
        "/api/v1/new": {
            "get": {
                "operationId": "new",
                "summary": "Which pages are new",
                "description": "Each page is told once, when it can be found. Ask again with the cursor of the last "
                "answer as since: nothing comes twice, and nothing is left out. Without since come the latest.",
                "parameters": [
                    _query_parameter("since", "The cursor of the last answer.", since, "4711"),
                    _query_parameter("watch", "Only what this watch looks for.", watch, "harbour"),
                    _query_parameter("n", "How many at most.", most),
                ],
                "responses": {
                    "200": answer("What is new, the oldest first.", "NewAnswer"),
                    **refusals("400", "401", "403", "404", "429", "500"),
                },
            }
        },
        "/new.atom": {
            "get": {
                "operationId": "newFeed",
                "summary": "The same as a feed (Atom), the latest first",
                "parameters": [_query_parameter("watch", "Only what this watch looks for.", watch, "harbour")],
                "responses": {
                    "200": {"description": "The feed.", "content": {"application/atom+xml": {"schema": _STRING}}},
                    **refusals("400", "401", "403", "404", "429", "500"),
                },
            }
        },
    }


def new_schemas() -> JsonSchema:
    """What comes back."""
    item = _object_schema(
        cursor={**_CURSOR, "description": "Its number."},
        url=_STRING,
        title=_STRING,
        snippet={**_STRING, "description": "A piece of its text: plain text, never HTML."},
        site={**_STRING, "description": "Its host."},
        first_seen_at={**_TIME, "description": "When a link to it was first seen."},
        found_via=_object_schema(
            how={**_STRING, "description": "On what it was found: page, feed, sitemap and the like."},
            url={**_STRING, "description": "Where."},
        ),
        published_at={"type": ["string", "null"], "format": "date-time", "description": "Its own date, if any."},
        told_at={**_TIME, "description": "When it could be found and was told."},
        delay_s={"type": "number", "minimum": 0, "description": "From birth to discovery, or from discovery on."},
        delay_from={"enum": ["birth", "first_seen"], "description": "What the delay counts from."},
    )
    return {
        "NewItem": item,
        "NewAnswer": _object_schema(
            items={"type": "array", "items": {"$ref": "#/components/schemas/NewItem"}},
            cursor={**_CURSOR, "description": "What to send as since next time."},
            more={"type": "boolean", "description": "Whether there are more at once."},
            missed={"type": "boolean", "description": "Whether some after since are not kept any more."},
        ),
    }


def _query_parameter(name: str, description: str, schema: JsonSchema, example: str | None = None) -> JsonSchema:
    shown = {} if example is None else {"example": example}
    return {"name": name, "in": "query", "description": description, "schema": schema, **shown}


def _object_schema(**properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}
