"""The page that explains the API to people, made from its description: so the two never differ."""

import json
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from vedette.web.look import Look
from vedette.web.rendering import page

__all__ = ["reference_route"]


def reference_route(description: dict[str, Any], look: Look) -> Route:
    """The page at ``/api/docs``."""
    operations = [_operation(path, methods["get"]) for path, methods in description["paths"].items()]
    about = description["info"]["description"].split("\n\n")

    async def shown(request: Request) -> Response:
        return page("reference.html", request, look, about=about, operations=operations)

    return Route("/api/docs", shown)


def _operation(path: str, told: dict[str, Any]) -> dict[str, object]:
    parameters = told.get("parameters", [])
    examples = {each["name"]: each["example"] for each in parameters if each["name"] == "q"}
    content = told["responses"]["200"]["content"].get("application/json", {})
    return {
        "path": path,
        "summary": told["summary"],
        "try": f"{path}?{urlencode(examples)}" if examples else path,
        "parameters": [{**each, "values": _values(each["schema"])} for each in parameters],
        "statuses": [(status, answer["description"]) for status, answer in told["responses"].items()],
        "example": json.dumps(content["example"], ensure_ascii=False, indent=2) if content else "",
    }


def _values(schema: dict[str, Any]) -> str:
    """What a parameter may be, in words."""
    if schema.get("type") == "integer":
        return f"{schema['minimum']} to {schema['maximum']}; {schema['default']} where it is not given"
    return "a day, such as 2026-01-31" if "anyOf" in schema else "a text"
