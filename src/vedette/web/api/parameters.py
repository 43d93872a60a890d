"""Strict parsing of API parameters and bodies: every error names the parameter and says what is right.

Query strings are parsed by hand, since msgspec reads numbers in them differently from what the API has always accepted:
``msgspec.convert("5.0", int, strict=False)`` is 5, "07" is refused, and so is "", which a form sends for an empty
field. Bodies in JSON are structs (``parse_struct``).
"""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import TypeVar
from urllib.parse import parse_qsl

import msgspec

from vedette.suggest import did_you_mean

MAX_PARAMETERS = 40
MAX_QUERY_LENGTH = 2000
MAX_PAGE_SIZE = 50
MAX_TOTAL_RESULTS = 1000
MAX_SUGGESTIONS = 20
MAX_PASSAGES, DEFAULT_PASSAGES = 20, 5
MIN_PASSAGE_LENGTH, MAX_PASSAGE_LENGTH, DEFAULT_PASSAGE_LENGTH = 100, 4000, 1000
MAX_PAGE_ID = 2**53 - 1  # beyond it JSON parsers disagree on integers
# Without anchors: a parameter is matched as a whole, and may be empty.
PARAMETER_PATTERNS = {
    "site": r"[^\x00-\x20\x7f/]{1,253}(?:/[^\x00-\x20\x7f]{0,500})?",
    "type": r"[A-Za-z0-9]{1,16}",
    "lang": r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})?",
    "version": r"[A-Za-z0-9][A-Za-z0-9._-]{0,40}",
}
S = TypeVar("S", bound=msgspec.Struct)


class ParameterError(Exception):
    """An invalid API parameter; its message says what to write."""

    def __init__(self, parameter: str, words: str) -> None:
        super().__init__(words)
        self.parameter = parameter
        self.message = words


def parse_parameters(query: bytes, names: tuple[str, ...]) -> dict[str, str]:
    """Parse the query string of an API request, each parameter at most once; invalid UTF-8 becomes U+FFFD.

    >>> parse_parameters(b"q=caf%C3%A9&n=5", ("q", "n"))
    {'q': 'café', 'n': '5'}
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise ParameterError("", f"Send at most {MAX_PARAMETERS} parameters.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in names:
            raise build_unknown_error(name, names)
        if name in found:
            raise ParameterError(name, f"Set {name} only once.")
        found[name] = value
    return found


def parse_int(values: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """Parse an API parameter that is a whole number within bounds."""
    if name not in values:
        return default
    text = values[name]
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise ParameterError(name, f"{name} must be an integer from {least} to {most}.")
    return int(text)


def parse_pattern(values: Mapping[str, str], name: str, shape: str, words: str) -> str:
    """Parse an API parameter that is a text matching a pattern; empty and missing are the same."""
    text = values.get(name, "")
    if text and not re.fullmatch(shape, text):
        raise ParameterError(name, words)
    return text


def parse_day_s(values: Mapping[str, str], name: str) -> float | None:
    """Parse an API parameter that is a day into the second at which it begins in UTC; None if it is missing.

    >>> parse_day_s({"after": "1970-01-02"}, "after")
    86400.0
    """
    text = parse_pattern(values, name, r"[0-9]{4}-[0-9]{2}-[0-9]{2}", _describe_bad_day(name))
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise ParameterError(name, _describe_bad_day(name)) from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _describe_bad_day(name: str) -> str:
    return f"{name} must be a valid date, such as 2026-01-31."


def build_unknown_error(name: str, names: tuple[str, ...]) -> ParameterError:
    """Build the error for an unknown API parameter; it names the nearest known one."""
    advice = did_you_mean(name, names, f"known parameters: {', '.join(names)}.")
    return ParameterError(name[:100], f"Unknown parameter; {advice}")


def parse_struct(kind: type[S], fields: Mapping[str, object], tag: str = "") -> S:
    """Parse a JSON object sent to the API into a struct; errors name the field and say what is right.

    Each field is converted separately, so that its name is known without reading it from an error of msgspec. ``tag``
    is a field that the caller has read already.
    """
    names = tuple(filter(None, (tag, *kind.__struct_fields__)))
    for name in fields:
        if name not in names:
            raise build_unknown_error(name, names)
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.name in fields or field.required:
            try:
                values[field.name] = msgspec.convert(_to_whole(fields.get(field.name)), field.type)
            except msgspec.ValidationError:
                raise ParameterError(field.name, _describe_field(field.name, field.type)) from None
    return kind(**values)


def _to_whole(value: object) -> object:
    """Convert a JSON number such as 7.0 to the whole number that an API field expects."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _describe_field(name: str, kind: object) -> str:
    """Describe what is valid for a field of an API body, from its type."""
    schema = msgspec.json.schema(kind)
    if "maxLength" in schema:
        return f"{name} must be a string of {schema.get('minLength', 0)} to {schema['maxLength']} characters."
    if "enum" in schema:
        return f"{name} must be one of {', '.join(schema['enum'])}."
    if schema.get("type") == "boolean":
        return f"{name} must be true or false."
    words: str = schema["description"]  # of all others: it continues where the name begins
    return f"{name} must be {words[0].lower()}{words[1:]}"
