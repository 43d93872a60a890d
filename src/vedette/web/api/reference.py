"""The API documentation for people (``/api/docs``), rendered from the OpenAPI description."""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.rendering import Branding, render_page


def api_docs_route(description: dict[str, Any], look: Branding) -> Route:
    """Return the route of the API documentation page at ``/api/docs``."""
    paths = description["paths"].items()
    operations = [
        _describe_operation(path, method, told) for path, methods in paths for method, told in methods.items()
    ]
    about = description["info"]["description"].split("\n\n")

    async def show_docs(request: Request) -> Response:
        return render_page("reference.html", request, look, about=about, operations=operations)

    return Route("/api/docs", show_docs)


def _describe_operation(path: str, method: str, told: dict[str, Any]) -> dict[str, object]:
    parameters = told.get("parameters", [])
    examples = {each["name"]: each["example"] for each in parameters if each["name"] == "q"}
    example = _find_example(told)
    return {
        "path": path,
        "method": method.upper(),
        "summary": told["summary"],
        "description": told.get("description", ""),
        "try": "" if method != "get" else f"{path}?{urlencode(examples)}" if examples else path,
        "parameters": [{**each, "values": _describe_values(each["schema"])} for each in parameters],
        "statuses": [(status, answer["description"]) for status, answer in told["responses"].items()],
        "example": json.dumps(example, ensure_ascii=False, indent=2) if example else "",
    }


def _find_example(told: dict[str, Any]) -> object:
    """Return an example for the API documentation: the request body, else the response; None if it is not JSON."""
    told = told.get("requestBody") or told["responses"]["200"]
    return told["content"].get("application/json", {}).get("example")


def _describe_values(schema: dict[str, Any]) -> str:
    """Describe in words which values an API parameter may have, for the API documentation page."""
    if schema.get("type") == "integer":
        otherwise = f"; {schema['default']} by default" if "default" in schema else ""
        return f"{schema['minimum']} to {schema['maximum']}{otherwise}"
    return "a date, such as 2026-01-31" if "anyOf" in schema else "a text"
