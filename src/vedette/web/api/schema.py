"""Building blocks of the API's OpenAPI 3.1 description: responses, errors, parameters, components.

Schemas of JSON bodies come from msgspec structs. Paths, statuses and parameters are written by hand beside their
handlers, since msgspec describes values and not HTTP, and their description is a promise and not a by-product.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

JsonSchema = dict[str, Any]

_REFERENCE = "#/components/schemas/{name}"
STRING: JsonSchema = {"type": "string"}
BEARER_ONLY: JsonSchema = {"security": [{"bearer": []}]}
NO_KEY: JsonSchema = {"security": [{}]}
STATUS_TEXTS = {
    "400": "Invalid parameter; the message says what is valid.",
    "401": "A key is required, or the key is unknown or revoked.",
    "403": "The key does not allow this, or the request did not come through the proxy.",
    "404": "Not found.",
    "409": "Not possible in the current state, or this server does not record searches; the message says why.",
    "410": "The slate is older than a day.",
    "413": "The request body is too large.",
    "415": "The request body is not JSON.",
    "422": "The URLs are on another host, or no site covers them.",
    "421": "Unknown host name of the server.",
    "429": "Too many requests; retry after the seconds in Retry-After.",
    "500": "Internal error; the reason is in the server log.",
    "503": "Could not be recorded or run now; try again later.",
}


class Answer(Struct, forbid_unknown_fields=True):
    """An object of the API: its fields are the schema, its subclasses' names those of components."""


Count = Annotated[int, Meta(ge=0)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]


class ErrorDetail(Answer):
    """What was refused, and why."""

    code: Annotated[str, Meta(description="Stable code for programs.")]
    message: Annotated[str, Meta(description="Text for people.")]
    parameter: Annotated[str | None, Meta(description="The parameter in question.")]


class Error(Answer):
    """An error response."""

    error: ErrorDetail


_ERROR_EXAMPLE = Error(ErrorDetail("wrong_parameter", "n must be an integer from 1 to 50.", "n"))


def describe_operation(
    name: str, summary: str, responses: JsonSchema, *parameters: JsonSchema, **more: object
) -> JsonSchema:
    """Describe an operation of an OpenAPI path: its name, summary, responses and parameters."""
    given = {"parameters": list(parameters)} if parameters else {}
    return {"operationId": name, "summary": summary, **more, **given, "responses": responses}


def describe_answer(description: str, example: Answer) -> JsonSchema:
    """Describe a JSON response for OpenAPI by an example, whose type is its schema."""
    return {"description": description, "content": _describe_json(type(example).__name__, example)}


def describe_body(schema: str, example: object) -> JsonSchema:
    """Describe a JSON request body for OpenAPI, by the name of its schema and an example."""
    return {"requestBody": {"required": True, "content": _describe_json(schema, example)}}


def _describe_json(schema: str, example: object) -> JsonSchema:
    content = {"schema": {"$ref": _REFERENCE.format(name=schema)}, "example": msgspec.to_builtins(example)}
    return {"application/json": content}


def describe_text(description: str, media_type: str = "text/plain") -> JsonSchema:
    """Describe a response that is not JSON for OpenAPI."""
    return {"description": description, "content": {media_type: {"schema": STRING}}}


def describe_errors(*statuses: str) -> JsonSchema:
    """Describe the error responses of these statuses for OpenAPI."""
    return {status: describe_answer(STATUS_TEXTS[status], _ERROR_EXAMPLE) for status in statuses}


def query_parameter(
    name: str, description: str, schema: JsonSchema, example: str | None = None, *, required: bool = False
) -> JsonSchema:
    """Describe a parameter of the query string for OpenAPI."""
    shown = {} if example is None else {"example": example}
    needed = {"required": True} if required else {}
    return {"name": name, "in": "query", "description": description, **needed, "schema": schema, **shown}


def integer_schema(least: int, most: int, default: int | None = None) -> JsonSchema:
    """Return the OpenAPI schema of a whole number within bounds."""
    usual = {} if default is None else {"default": default}
    return {"type": "integer", "minimum": least, "maximum": most, **usual}


def pattern_schema(pattern: str) -> JsonSchema:
    """Return the OpenAPI schema of a text that is empty or matches a pattern as a whole."""
    return {"type": "string", "pattern": f"^(?:{pattern})?$"}


def build_components(*kinds: type[Struct]) -> JsonSchema:
    """Build the OpenAPI component schemas of structs, and of the structs that they contain, by name."""
    return msgspec.json.schema_components(kinds, ref_template=_REFERENCE)[1]
