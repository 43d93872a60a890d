"""The OpenAPI 3.1 description of the API: as data, and for people (``/api/docs``).

It is assembled from the parts beside the handlers. Schemas of bodies are derived from msgspec structs, the same that
handlers build and parse. Paths are written by hand (see ``schema``). ``tests/web/api/test_openapi.py`` sends the server
whatever this allows, and compares every response.
"""

import json
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.api import schema
from vedette.web.api.ads import AdCommandDone, AdsReport, AdWhy, describe_ad_paths
from vedette.web.api.budget import Budget, describe_budget_path
from vedette.web.api.commands import Actions, Done, describe_command_paths
from vedette.web.api.schema import Answer, Count, Error, JsonSchema
from vedette.web.api.search import SEARCH_SCHEMAS, describe_search_paths
from vedette.web.commands.json_commands import command_schemas
from vedette.web.public.events import Event, describe_events_path
from vedette.web.public.new_pages import NewAnswer, describe_new_paths
from vedette.web.push.routes import PUSH_SCHEMAS, describe_push_paths
from vedette.web.rendering import Branding, render_page

_INTRODUCTION = """\
Search the pages on this server. Every result explains its rank and says when it was fetched.

If a key is required, send it in a header, Authorization: Bearer vk_…; programs that cannot set headers may add \
key=vk_… to the URL. Times are in UTC. Unknown parameters are rejected, so that a typo does not go unnoticed."""


class Health(Answer):
    """Whether the server can search."""

    status: Annotated[
        Literal["ok", "degraded", "failing"],
        Meta(description="Degraded: searches are answered, but something needs attention, or the index is repaired."),
    ]
    pages: Count
    behind: Annotated[str, Meta(description="Why results may be incomplete or missing; empty if all is well.")]
    failing: Annotated[tuple[str, ...], Meta(description="Processes that keep failing, by role.")] = ()
    over_limit: Annotated[int, Meta(description="Addresses and domains that reached the daily limit of requests.")] = 0


def build_openapi(name: str, address: str, version: str, *, with_ads: bool = False) -> JsonSchema:
    """Build the OpenAPI description of the API, for a server of this name and address."""
    answers = (*SEARCH_SCHEMAS, Event, NewAnswer, Done, Actions, Budget, AdsReport, AdWhy, AdCommandDone, Health, Error)
    return {
        "openapi": "3.1.0",
        "info": {"title": f"{name}: search API", "version": version, "description": _INTRODUCTION},
        "servers": [{"url": address.rstrip("/") or "/"}],
        "paths": {
            **describe_search_paths(),
            **describe_new_paths(),
            **describe_events_path(),
            **describe_command_paths(),
            **describe_budget_path(),
            **describe_push_paths(),
            **_describe_server_paths(),
            **(describe_ad_paths() if with_ads else {}),
        },
        "components": {
            "schemas": {**schema.build_components(*answers), **command_schemas(), **PUSH_SCHEMAS},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A key, as Authorization: Bearer vk_…"},
                "key": {"type": "apiKey", "in": "query", "name": "key", "description": "The same key, as key=vk_…"},
            },
        },
        "security": [{}, {"bearer": []}, {"key": []}],
    }


def _describe_server_paths() -> JsonSchema:
    itself = {"description": "The document.", "content": {"application/json": {"schema": {"type": "object"}}}}
    errors = schema.describe_errors("401", "403", "429", "500")
    health = {
        "200": schema.describe_answer("The server is ready.", Health("ok", 812, "")),
        "503": schema.describe_answer("The server is not ready, with the reason.", Health("ok", 812, "")),
    }
    numbers = {"200": schema.describe_text("The metrics."), **schema.describe_errors("401", "403", "500")}
    # A refusal is a page here: browsers request it.
    pages = {status: schema.describe_text(schema.STATUS_TEXTS[status], "text/html") for status in errors}
    browser = {"200": schema.describe_text("The document.", "application/opensearchdescription+xml"), **pages}
    return {
        "/api/openapi.json": {
            "get": schema.describe_operation("description", "This API description", {"200": itself, **errors})
        },
        "/opensearch.xml": {
            "get": schema.describe_operation("opensearch", "OpenSearch description for browsers", browser)
        },
        "/healthz": {
            "get": schema.describe_operation("health", "Check whether the server is ready", health, **schema.NO_KEY)
        },
        "/metrics": {"get": schema.describe_operation("metrics", "Metrics for Prometheus", numbers)},
    }


def api_docs_route(description: dict[str, Any], look: Branding) -> Route:
    """Return the route of the API documentation page at ``/api/docs``."""
    paths = description["paths"].items()
    operations = [
        _describe_operation(path, method, operation) for path, methods in paths for method, operation in methods.items()
    ]
    about = description["info"]["description"].split("\n\n")

    async def show_docs(request: Request) -> Response:
        return render_page("reference.html", request, look, about=about, operations=operations)

    return Route("/api/docs", show_docs)


def _describe_operation(path: str, method: str, operation: dict[str, Any]) -> dict[str, object]:
    parameters = operation.get("parameters", [])
    examples = {each["name"]: each["example"] for each in parameters if each["name"] == "q"}
    example = _find_example(operation)
    return {
        "path": path,
        "method": method.upper(),
        "summary": operation["summary"],
        "description": operation.get("description", ""),
        "try": "" if method != "get" else f"{path}?{urlencode(examples)}" if examples else path,
        "parameters": [{**each, "values": _describe_values(each["schema"])} for each in parameters],
        "statuses": [(status, answer["description"]) for status, answer in operation["responses"].items()],
        "example": json.dumps(example, ensure_ascii=False, indent=2) if example else "",
    }


def _find_example(operation: dict[str, Any]) -> object:
    """Return an example for the API documentation: the request body, else the response; None if it is not JSON."""
    part = operation.get("requestBody") or operation["responses"]["200"]
    return part["content"].get("application/json", {}).get("example")


def _describe_values(schema: dict[str, Any]) -> str:
    """Describe in words which values an API parameter may have, for the API documentation page."""
    if schema.get("type") == "integer":
        otherwise = f"; {schema['default']} by default" if "default" in schema else ""
        return f"{schema['minimum']} to {schema['maximum']}{otherwise}"
    return "a date, such as 2026-01-31" if "anyOf" in schema else "a text"
