"""JSON responses and errors of the API: compact UTF-8 for any text."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import isfinite

from msgspec import to_builtins
from msgspec.json import encode as encode_json
from starlette.responses import Response

from vedette.errors import CommandPending, StoreError, UsageError
from vedette.web.api.schema import Error, ErrorDetail
from vedette.web.formatting import sentence

JSON_TYPE = "application/json"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years that ISO 8601 writes in four digits, with a day of margin.
_MIN_S = (datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds()
_MAX_S = (datetime(9999, 12, 30, tzinfo=UTC) - _EPOCH).total_seconds()


def json_response(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    r"""Return an API response in JSON. Structs become objects; half a surrogate pair becomes a question mark.

    ``msgspec.json.encode``, which is far faster, refuses the latter, and page titles may contain it.

    >>> json_response({"title": "caf\u00e9 \ud800"}).body.decode()
    '{"title":"café ?"}'
    """
    try:
        body = encode_json(value)
    except (UnicodeEncodeError, TypeError):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=to_builtins)
        body = text.encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), JSON_TYPE)


def error_response(
    status: int, code: str, words: str, parameter: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return an API error response: a code for programs, a message for people, and the parameter if any."""
    return json_response(Error(ErrorDetail(code, words, parameter)), status, headers)


class ApiError(Exception):
    """An API error that ends a request: the arguments of ``error_response``."""


@contextmanager
def refuse_failures() -> Iterator[None]:
    """Turn the failure of a command into an API error: it is not possible now, or no process can execute it."""
    try:
        yield
    except UsageError as error:
        raise ApiError(409, "cannot_be_done", sentence(str(error))) from None
    except CommandPending as error:
        raise ApiError(503, "not_yet", sentence(str(error))) from None
    except StoreError as error:
        raise ApiError(503, "no_crawler", sentence(str(error))) from None


def format_iso_time(seconds: float) -> str:
    """Format a time for the API in ISO 8601, in UTC; times beyond four-digit years are clamped.

    >>> format_iso_time(0.0), format_iso_time(1e300)
    ('1970-01-01T00:00:00Z', '9999-12-30T00:00:00Z')
    """
    inside = min(max(to_finite(seconds), _MIN_S), _MAX_S)
    return f"{_EPOCH + timedelta(seconds=int(inside)):%Y-%m-%dT%H:%M:%SZ}".rjust(20, "0")


def to_finite(value: float) -> float:
    """Return a number that an API response can write in JSON: NaN becomes 0, infinity a large number.

    >>> to_finite(0.25), to_finite(float("nan")), to_finite(float("inf")) > 1e300
    (0.25, 0.0, True)
    """
    value = float(value)
    if isfinite(value):
        return value
    return 0.0 if value != value else (1.7e308 if value > 0 else -1.7e308)  # noqa: PLR0124 - NaN is not equal to itself
