"""The description of the API (OpenAPI 3.1) as data, and the limits that it names.

It is written by hand, since it is a promise and not a by-product. ``tests/web/api/test_openapi.py`` asks the server
whatever this allows, and compares every answer.
"""

from typing import Any

from vedette.web.api.budget import BUDGET_EXAMPLES, budget_operations, budget_schemas
from vedette.web.api.openapi_commands import ORDER_EXAMPLES, order_operations, order_schemas
from vedette.web.api.openapi_new_pages import NEW_EXAMPLES, new_operations, new_schemas
from vedette.web.api.openapi_push import push_operations, push_schemas
from vedette.web.auth.tokens import SLATE_SHAPE

__all__ = ["LONGEST_QUERY", "MOST_AT_ONCE", "MOST_IN_ALL", "MOST_PAGE", "MOST_SUGGESTIONS", "SHAPES", "described"]

Described = dict[str, Any]

LONGEST_QUERY = 2000
MOST_AT_ONCE = 50
MOST_IN_ALL = 1000
MOST_SUGGESTIONS = 20
MOST_PAGE = 2**53 - 1  # beyond it readers of JSON do not agree on whole numbers
# Without ends: a parameter is matched whole, and may be empty.
SHAPES = {
    "site": r"[^\x00-\x20\x7f/]{1,253}(?:/[^\x00-\x20\x7f]{0,500})?",
    "type": r"[A-Za-z0-9]{1,16}",
    "lang": r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})?",
}

_ABOUT = """\
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
_EXAMPLES: dict[str, Described] = {
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
    **ORDER_EXAMPLES,
    **BUDGET_EXAMPLES,
    "Error": {"error": {"code": "wrong_parameter", "message": "n is a whole number from 1 to 50.", "parameter": "n"}},
}
_STATUSES = {
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
_USUAL = ("400", "401", "403", "429", "500")
_OF_EVENTS = ("400", "403", "409", "410", "413", "415", "429", "500", "503")


def described(name: str, address: str, version: str) -> Described:
    """The description, as the server of this name and address shows it."""
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{name}: search API", "version": version, "description": _ABOUT},
        "servers": [{"url": address.rstrip("/") or "/"}],
        "paths": {
            "/api/v1/search": {"get": _search()},
            "/api/v1/suggest": {"get": _suggest()},
            "/api/v1/sites": {"get": _sites()},
            **new_operations(_answer, _refusals),
            "/api/v1/events": {"post": _events()},
            **order_operations(_answer, _refusals),
            **budget_operations(_answer, _refusals),
            **push_operations(_refusals),
            "/api/openapi.json": {"get": _itself()},
            "/opensearch.xml": {"get": _opensearch()},
            "/healthz": {"get": _health()},
            "/metrics": {"get": _metrics()},
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, as Authorization: Bearer vk_…"},
                "key": {"type": "apiKey", "in": "query", "name": "key", "description": "The same key, as key=vk_…"},
            },
        },
        "security": [{}, {"bearer": []}, {"key": []}],
    }


def _search() -> Described:
    return _operation(
        "search",
        "Find pages",
        "SearchAnswer",
        _parameter("q", f"What to look for, any text; {LONGEST_QUERY} characters of it count.", _TEXT, "consumer lag"),
        _parameter("n", "How many results.", _whole(1, MOST_AT_ONCE, 10)),
        _parameter("page", f"Which page of them; page times n is at most {MOST_IN_ALL}.", _whole(1, MOST_IN_ALL, 1)),
        _parameter("site", "Only this host, or this path on it.", _shape("site"), "docs.example.org/ops/"),
        _parameter("type", "Only this kind of file.", _shape("type"), "html"),
        _parameter("lang", "Only pages in this language.", _shape("lang"), "en"),
        _parameter("after", "Only pages of this day (UTC) or later.", _DAY, "2026-01-01"),
        _parameter("before", "Only pages of earlier days (UTC) than this.", _DAY, "2026-02-01"),
    )


def _suggest() -> Described:
    return _operation(
        "suggest",
        "How a query that is being typed may go on",
        "SuggestAnswer",
        _parameter("q", "What was typed so far.", _TEXT, "consumer l"),
        _parameter("n", "How many suggestions at most.", _whole(1, MOST_SUGGESTIONS, 8)),
        _parameter("site", "Only what this host, or this path on it, suggests.", _shape("site"), "docs.example.org"),
    )


def _sites() -> Described:
    return _operation("sites", "Which hosts can be searched, the largest first, at most a hundred", "SitesAnswer")


def _events() -> Described:
    schema = {"$ref": "#/components/schemas/Event"}
    content = {"application/json": {"schema": schema, "example": _EXAMPLES["Event"]}}
    return {
        "operationId": "tell",
        "summary": "Tell that results were seen, or which of them was opened",
        "description": "No key is needed: the slate is the right to tell. Browsers may send the same as text/plain, "
        "with sendBeacon. The same event counts once, however often it is told.",
        "security": [{}],
        "requestBody": {"required": True, "content": content},
        "responses": {"204": {"description": "It is written down."}, **_refusals(*_OF_EVENTS)},
    }


def _health() -> Described:
    return {
        "operationId": "health",
        "summary": "Whether the server can search",
        "security": [{}],
        "responses": {"200": _answer("It can.", "Health"), "503": _answer("It cannot, for this reason.", "Health")},
    }


def _metrics() -> Described:
    text = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "operationId": "metrics",
        "summary": "Numbers about the server, for Prometheus",
        "responses": {"200": {"description": "The numbers.", "content": text}, **_refusals("401", "403", "500")},
    }


def _itself() -> Described:
    return {
        "operationId": "description",
        "summary": "This description",
        "responses": {
            "200": {"description": "It.", "content": {"application/json": {"schema": {"type": "object"}}}},
            **_refusals("401", "403", "429", "500"),
        },
    }


def _opensearch() -> Described:
    """A refusal is a page here: browsers ask."""
    kind = "application/opensearchdescription+xml"
    pages = {status: {"description": _STATUSES[status], "content": _PAGE} for status in ("401", "403", "429", "500")}
    return {
        "operationId": "opensearch",
        "summary": "How a browser searches here (OpenSearch)",
        "responses": {"200": {"description": "It.", "content": {kind: {"schema": {"type": "string"}}}}, **pages},
    }


_PAGE: Described = {"text/html": {"schema": {"type": "string"}}}


def _operation(name: str, summary: str, schema: str, *parameters: Described) -> Described:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": _answer("What was found.", schema), **_refusals(*_USUAL)},
    }


def _refusals(*statuses: str) -> Described:
    return {status: _answer(_STATUSES[status], "Error") for status in statuses}


def _answer(description: str, schema: str) -> Described:
    content = {"schema": {"$ref": f"#/components/schemas/{schema}"}, "example": _EXAMPLES[schema]}
    return {"description": description, "content": {"application/json": content}}


_TEXT: Described = {"type": "string"}
_DAY: Described = {"anyOf": [{"type": "string", "format": "date"}, {"const": ""}]}


def _whole(least: int, most: int, default: int) -> Described:
    return {"type": "integer", "minimum": least, "maximum": most, "default": default}


def _shape(name: str) -> Described:
    return {"type": "string", "pattern": f"^(?:{SHAPES[name]})?$"}


def _parameter(name: str, description: str, schema: Described, example: str | None = None) -> Described:
    shown = {} if example is None else {"example": example}
    needed = {"required": True} if name == "q" else {}
    return {"name": name, "in": "query", "description": description, **needed, "schema": schema, **shown}


def _object(**properties: Described) -> Described:
    """An object with exactly these properties, all of them always there."""
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _list(items: Described) -> Described:
    return {"type": "array", "items": items}


def _told(kind: str | list[str], description: str, **more: object) -> Described:
    return {"type": kind, "description": description, **more}


def _schemas() -> Described:
    count = {"type": "integer", "minimum": 0}
    reference = "#/components/schemas/"
    return {
        "SearchAnswer": _object(
            query=_told("string", "What was looked for."),
            total=_told("integer", "How many pages match.", minimum=0),
            took_ms=_told("number", "How long it took, in milliseconds.", minimum=0),
            results=_list({"$ref": f"{reference}Result"}),
            notes=_list({"type": "string"}),
            did_you_mean=_told(["string", "null"], "Another spelling of the query."),
            relaxed=_list({"type": "string"}),
            slate=_told(["string", "null"], "By what views and clicks are told; null where nothing is kept."),
        ),
        "Event": _object(
            slate=_told("string", "As the search answered it.", pattern=f"^{SLATE_SHAPE}$"),
            kind={"enum": ["view", "click"]},
            page=_told("integer", "The id of the result that was opened; 0 for a view.", minimum=0, maximum=MOST_PAGE),
        ),
        "Result": _result_schema(),
        **new_schemas(),
        **order_schemas(),
        **budget_schemas(),
        **push_schemas(),
        "SuggestAnswer": _object(query={"type": "string"}, suggestions=_list({"type": "string"})),
        "SitesAnswer": _object(
            sites=_list(_object(site={"type": "string"}, pages=count)),
            newest_at=_told(["string", "null"], "When the latest page was fetched.", format="date-time"),
        ),
        "Health": _object(
            status={"enum": ["ok", "failing"]},
            pages=count,
            behind=_told("string", "Why results may be incomplete, or why there are none; empty if all is well."),
        ),
        "Error": _object(
            error=_object(
                code=_told("string", "For programs; it stays the same."),
                message=_told("string", "For people."),
                parameter=_told(["string", "null"], "Which parameter is meant."),
            )
        ),
    }


def _result_schema() -> Described:
    pair = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2}
    amount = {"type": "number"}
    return _object(
        id=_told("integer", "The number of the page here."),
        url={"type": "string"},
        title={"type": "string"},
        snippet=_told("string", "A piece of its text: plain text, never HTML."),
        highlights=_told("array", "Start and end of what to highlight in the snippet, in code points.", items=pair),
        site=_told("string", "Its host."),
        type=_told("string", "What kind of file it is."),
        language=_told("string", "ISO 639-1, or empty where nobody knows."),
        fetched_at=_told("string", "When it was fetched last.", format="date-time"),
        published_at=_told(["string", "null"], "The date that the page gives itself.", format="date-time"),
        score=amount,
        why=_list(_object(feature={"type": "string"}, value=amount, weight=amount, contribution=amount)),
        sentence=_told("string", "The same in words."),
        note=_told("string", "What is said beside it, such as why it was moved."),
        similar=_told("integer", "How many pages are folded under it.", minimum=0),
        cached_url=_told(["string", "null"], "Where the page can be seen as it was fetched."),
    )
