"""Reading the parameters of a request to the API: strict, and every refusal says what is right."""

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from urllib.parse import parse_qsl

from vedette.suggest import did_you_mean

MAX_PARAMETERS = 40


class ParameterError(Exception):
    """A parameter that cannot be what was meant; the words say what to write."""

    def __init__(self, parameter: str, words: str) -> None:
        super().__init__(words)
        self.parameter = parameter
        self.message = words


def parse_parameters(query: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of a query string, each at most once. Bytes that are no UTF-8 become U+FFFD.

    >>> parse_parameters(b"q=caf%C3%A9&n=5", ("q", "n"))
    {'q': 'café', 'n': '5'}
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError:
        raise ParameterError("", f"Give at most {MAX_PARAMETERS} parameters.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise build_unknown_error(name, known)
        if name in found:
            raise ParameterError(name, f"Give {name} once.")
        found[name] = value
    return found


def parse_int(values: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number between two others."""
    if name not in values:
        return default
    text = values[name]
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise ParameterError(name, f"{name} is a whole number from {least} to {most}.")
    return int(text)


def parse_pattern(values: Mapping[str, str], name: str, shape: str, words: str) -> str:
    """A text of some shape; empty and missing are the same."""
    text = values.get(name, "")
    if text and not re.fullmatch(shape, text):
        raise ParameterError(name, words)
    return text


def parse_day_s(values: Mapping[str, str], name: str) -> float | None:
    """The second at which a day begins, in UTC; None where none is given.

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
    return f"{name} is a day that exists, written like 2026-01-31."


def build_unknown_error(name: str, known: tuple[str, ...]) -> ParameterError:
    """The complaint about a parameter that there is not; it names the nearest one that there is."""
    advice = did_you_mean(name, known, f"known are {', '.join(known)}.")
    return ParameterError(name[:100], f"There is no such parameter; {advice}")
