"""The description of the API (OpenAPI 3.1) as data, and the limits that it names.

It is written by hand, since it is a promise and not a by-product. ``tests/web/api/test_openapi.py`` asks the server
whatever this allows, and compares every answer.
"""

from typing import Any

from vedette.web.api.budget import BUDGET_EXAMPLES, budget_schemas, describe_budget_paths
from vedette.web.api.openapi_commands import COMMAND_EXAMPLES, command_schemas, describe_command_paths
from vedette.web.api.openapi_new_pages import NEW_EXAMPLES, describe_new_paths, new_schemas
from vedette.web.api.openapi_push import describe_push_paths, push_schemas
from vedette.web.auth.tokens import TOKEN_PATTERN

JsonSchema = dict[str, Any]

MAX_QUERY_LENGTH = 2000
MAX_PAGE_SIZE = 50
MAX_TOTAL_RESULTS = 1000
MAX_SUGGESTIONS = 20
MAX_PAGE_ID = 2**53 - 1  # beyond it readers of JSON do not agree on whole numbers
# Without ends: a parameter is matched whole, and may be empty.
PARAMETER_PATTERNS = {
    "site": r"[^\x00-\x20\x7f/]{1,253}(?:/[^\x00-\x20\x7f]{0,500})?",
    "type": r"[A-Za-z0-9]{1,16}",
    "lang": r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})?",
}

_INTRODUCTION = """\
Search the pages that this server keeps. Every result says why it stands where it stands, and when it was fetched.

Where a key is needed, send it in a header, Authorization: Bearer vk_…; a program that cannot set headers may add \
key=vk_… to the address. Times are UTC. Parameters that are not described here are refused, so that a misspelt one \
does not go unnoticed."""

_RESULT_EXAMPLE = {
    "id": 4711,
    "url": "https://docs.example.org/ops/monitoring",
    "title": "Monitoring consumer lag",
    "snippet": "The lag of each consumer group is exposed as a metric.",
    "highlights": [[4, 7], [16, 24]],
    "site": "docs.example.org",
    "type": "html",
    "language": "en",
    "fetched_at": "2026-01-31T09:26:53Z",
    "published_at": None,
    "score": 7.25,
    "why": [{"feature": "words in the title", "value": 2.0, "weight": 1.5, "contribution": 3.0}],
    "sentence": "High because the title has both words.",
    "note": "",
    "similar": 3,
    "cached_url": "/cached/4711",
}
_SLATE_EXAMPLE = "q83vASNFZ4mrze8BI0VniQGb_J7aAHm2Zk0p8sXyTq4uWc1d"
_EXAMPLES: dict[str, JsonSchema] = {
    "SearchAnswer": {
        "query": "consumer lag",
        "total": 128,
        "took_ms": 6.2,
        "results": [_RESULT_EXAMPLE],
        "notes": [],
        "did_you_mean": None,
        "relaxed": [],
        "slate": _SLATE_EXAMPLE,
    },
    "Event": {"slate": _SLATE_EXAMPLE, "kind": "click", "page": 4711},
    "SuggestAnswer": {"query": "consumer l", "suggestions": ["consumer lag", "consumer lag monitoring"]},
    "SitesAnswer": {"sites": [{"site": "docs.example.org", "pages": 812}], "newest_at": "2026-01-31T09:26:53Z"},
    "Health": {"status": "ok", "pages": 812, "behind": ""},
    **NEW_EXAMPLES,
    **COMMAND_EXAMPLES,
    **BUDGET_EXAMPLES,
    "Error": {"error": {"code": "wrong_parameter", "message": "n is a whole number from 1 to 50.", "parameter": "n"}},
}
_STATUS_TEXTS = {
    "400": "A parameter is wrong; the message says what is right.",
    "401": "A key is needed, or the one that was sent is unknown or revoked.",
    "403": "The key is not for this, or the request did not come through the proxy.",
    "404": "There is nothing of this name.",
    "409": "It cannot be done as things are, or this server keeps nothing of what is asked; the message says why.",
    "410": "The slate is older than a day.",
    "413": "More was sent than is read.",
    "415": "What was sent is no JSON.",
    "422": "The URLs are not the host's own, or belong to no site here.",
    "421": "The server is not known by the name that it was asked under.",
    "429": "Too many requests; ask again after the seconds in Retry-After.",
    "500": "The server failed; the operator finds the reason in its log.",
    "503": "It could not be written down or carried out now; send it again later.",
}
_COMMON_ERRORS = ("400", "401", "403", "429", "500")
_EVENT_ERRORS = ("400", "403", "409", "410", "413", "415", "429", "500", "503")


def build_openapi(name: str, address: str, version: str) -> JsonSchema:
    """The description, as the server of this name and address shows it."""
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{name}: search API", "version": version, "description": _INTRODUCTION},
        "servers": [{"url": address.rstrip("/") or "/"}],
        "paths": {
            "/api/v1/search": {"get": _describe_search()},
            "/api/v1/suggest": {"get": _describe_suggest()},
            "/api/v1/sites": {"get": _describe_sites()},
            **describe_new_paths(_json_response, _error_responses),
            "/api/v1/events": {"post": _describe_events()},
            **describe_command_paths(_json_response, _error_responses),
            **describe_budget_paths(_json_response, _error_responses),
            **describe_push_paths(_error_responses),
            "/api/openapi.json": {"get": _describe_openapi()},
            "/opensearch.xml": {"get": _describe_opensearch()},
            "/healthz": {"get": _describe_health()},
            "/metrics": {"get": _describe_metrics()},
        },
        "components": {
            "schemas": _build_schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, as Authorization: Bearer vk_…"},
                "key": {"type": "apiKey", "in": "query", "name": "key", "description": "The same key, as key=vk_…"},
            },
        },
        "security": [{}, {"bearer": []}, {"key": []}],
    }


def _describe_search() -> JsonSchema:
    return _operation(
        "search",
        "Find pages",
        "SearchAnswer",
        _parameter(
            "q", f"What to look for, any text; {MAX_QUERY_LENGTH} characters of it count.", _STRING, "consumer lag"
        ),
        _parameter("n", "How many results.", _integer_schema(1, MAX_PAGE_SIZE, 10)),
        _parameter(
            "page",
            f"Which page of them; page times n is at most {MAX_TOTAL_RESULTS}.",
            _integer_schema(1, MAX_TOTAL_RESULTS, 1),
        ),
        _parameter("site", "Only this host, or this path on it.", _pattern_schema("site"), "docs.example.org/ops/"),
        _parameter("type", "Only this kind of file.", _pattern_schema("type"), "html"),
        _parameter("lang", "Only pages in this language.", _pattern_schema("lang"), "en"),
        _parameter("after", "Only pages of this day (UTC) or later.", _DAY, "2026-01-01"),
        _parameter("before", "Only pages of earlier days (UTC) than this.", _DAY, "2026-02-01"),
    )


def _describe_suggest() -> JsonSchema:
    return _operation(
        "suggest",
        "How a query that is being typed may go on",
        "SuggestAnswer",
        _parameter("q", "What was typed so far.", _STRING, "consumer l"),
        _parameter("n", "How many suggestions at most.", _integer_schema(1, MAX_SUGGESTIONS, 8)),
        _parameter(
            "site", "Only what this host, or this path on it, suggests.", _pattern_schema("site"), "docs.example.org"
        ),
    )


def _describe_sites() -> JsonSchema:
    return _operation("sites", "Which hosts can be searched, the largest first, at most a hundred", "SitesAnswer")


def _describe_events() -> JsonSchema:
    schema = {"$ref": "#/components/schemas/Event"}
    content = {"application/json": {"schema": schema, "example": _EXAMPLES["Event"]}}
    return {
        "operationId": "tell",
        "summary": "Tell that results were seen, or which of them was opened",
        "description": "No key is needed: the slate is the right to tell. Browsers may send the same as text/plain, "
        "with sendBeacon. The same event counts once, however often it is told.",
        "security": [{}],
        "requestBody": {"required": True, "content": content},
        "responses": {"204": {"description": "It is written down."}, **_error_responses(*_EVENT_ERRORS)},
    }


def _describe_health() -> JsonSchema:
    return {
        "operationId": "health",
        "summary": "Whether the server can search",
        "security": [{}],
        "responses": {
            "200": _json_response("It can.", "Health"),
            "503": _json_response("It cannot, for this reason.", "Health"),
        },
    }


def _describe_metrics() -> JsonSchema:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": "metrics",
        "summary": "Numbers about the server, for Prometheus",
        "responses": {"200": {"description": "The numbers.", "content": text}, **_error_responses("401", "403", "500")},
    }


def _describe_openapi() -> JsonSchema:
    return {
        "operationId": "description",
        "summary": "This description",
        "responses": {
            "200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}},
            **_error_responses("401", "403", "429", "500"),
        },
    }


def _describe_opensearch() -> JsonSchema:
    """A refusal is a page here: browsers ask."""
    kind = "application/opensearchdescription+xml"
    pages = {
        status: {"description": _STATUS_TEXTS[status], "content": _HTML_CONTENT}
        for status in ("401", "403", "429", "500")
    }
    return {
        "operationId": "opensearch",
        "summary": "How a browser searches here (OpenSearch)",
        "responses": {"200": {"description": "It.", "content": {kind: {"schema": {"type": "string"}}}}, **pages},
    }


_HTML_CONTENT: JsonSchema = {"text/html": {"schema": {"type": "string"}}}


def _operation(name: str, summary: str, schema: str, *parameters: JsonSchema) -> JsonSchema:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": _json_response("What was found.", schema), **_error_responses(*_COMMON_ERRORS)},
    }


def _error_responses(*statuses: str) -> JsonSchema:
    return {status: _json_response(_STATUS_TEXTS[status], "Error") for status in statuses}


def _json_response(description: str, schema: str) -> JsonSchema:
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": _EXAMPLES[schema]}
    return {"description": description, "content": {"application/json": content}}


_STRING: JsonSchema = {"type": "string"}
_DAY: JsonSchema = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}


def _integer_schema(least: int, most: int, default: int) -> JsonSchema:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _pattern_schema(name: str) -> JsonSchema:
    return {"type": "string", "pattern": f"^(?:{PARAMETER_PATTERNS[name]})?$"}


def _parameter(name: str, description: str, schema: JsonSchema, example: str | None = None) -> JsonSchema:
    shown = {} if example is None else {"example": example}
    needed = {"required": True} if name == "q" else {}
    return {"name": name, "in": "query", "description": description, **needed, "schema": schema, **shown}


def _object_schema(**properties: JsonSchema) -> JsonSchema:
    """An object with exactly these properties, all of them always there."""
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _array_schema(items: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": items}


def _described_schema(kind: str | list[str], description: str, **more: object) -> JsonSchema:
    return {"type": kind, "description": description, **more}


def _build_schemas() -> JsonSchema:
    count = {"type": "integer", "minimum": 0}
    reference = "#/components/schemas/"
    return {
        "SearchAnswer": _object_schema(
            query=_described_schema("string", "What was looked for."),
            total=_described_schema("integer", "How many pages match.", minimum=0),
            took_ms=_described_schema("number", "How long it took, in milliseconds.", minimum=0),
            results=_array_schema({"$ref": f"{reference}Result"}),
            notes=_array_schema({"type": "string"}),
            did_you_mean=_described_schema(["string", "null"], "Another spelling of the query."),
            relaxed=_array_schema({"type": "string"}),
            slate=_described_schema(
                ["string", "null"], "By what views and clicks are told; null where nothing is kept."
            ),
        ),
        "Event": _object_schema(
            slate=_described_schema("string", "As the search answered it.", pattern=f"^{TOKEN_PATTERN}$"),
            kind={"enum": ["view", "click"]},
            page=_described_schema(
                "integer", "The id of the result that was opened; 0 for a view.", minimum=0, maximum=MAX_PAGE_ID
            ),
        ),
        "Result": _result_schema(),
        **new_schemas(),
        **command_schemas(),
        **budget_schemas(),
        **push_schemas(),
        "SuggestAnswer": _object_schema(query={"type": "string"}, suggestions=_array_schema({"type": "string"})),
        "SitesAnswer": _object_schema(
            sites=_array_schema(_object_schema(site={"type": "string"}, pages=count)),
            newest_at=_described_schema(["string", "null"], "When the latest page was fetched.", format="date-time"),
        ),
        "Health": _object_schema(
            status={"enum": ["ok", "failing"]},
            pages=count,
            behind=_described_schema(
                "string", "Why results may be incomplete, or why there are none; empty if all is well."
            ),
        ),
        "Error": _object_schema(
            error=_object_schema(
                code=_described_schema("string", "For programs; it stays the same."),
                message=_described_schema("string", "For people."),
                parameter=_described_schema(["string", "null"], "Which parameter is meant."),
            )
        ),
    }


def _result_schema() -> JsonSchema:
    pair = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
    amount = {"type": "number"}
    return _object_schema(
        id=_described_schema("integer", "The number of the page here."),
        url={"type": "string"},
        title={"type": "string"},
        snippet=_described_schema("string", "A piece of its text: plain text, never HTML."),
        highlights=_described_schema(
            "array", "Start and end of what to highlight in the snippet, in code points.", items=pair
        ),
        site=_described_schema("string", "Its host."),
        type=_described_schema("string", "What kind of file it is."),
        language=_described_schema("string", "ISO 639-1, or empty where nobody knows."),
        fetched_at=_described_schema("string", "When it was fetched last.", format="date-time"),
        published_at=_described_schema(["string", "null"], "The date that the page gives itself.", format="date-time"),
        score=amount,
        why=_array_schema(_object_schema(feature={"type": "string"}, value=amount, weight=amount, contribution=amount)),
        sentence=_described_schema("string", "The same in words."),
        note=_described_schema("string", "What is said beside it, such as why it was moved."),
        similar=_described_schema("integer", "How many pages are folded under it.", minimum=0),
        cached_url=_described_schema(["string", "null"], "Where the page can be seen as it was fetched."),
    )
