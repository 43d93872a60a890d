"""Reading the parameters of a request to the API: strict, and every refusal says what is right."""

import difflib
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from urllib.parse import parse_qsl

__all__ = ["WrongParameter", "day_s", "given", "shaped", "unknown", "whole"]

MOST_PARAMETERS = 40


class WrongParameter(Exception):
    """A parameter that cannot be what was meant; the words say what to write."""

    def __init__(self, parameter: str, words: str) -> None:
        super().__init__(words)
        self.parameter = parameter
        self.words = words


def given(query: bytes, known: tuple[str, ...]) -> dict[str, str]:
    """The parameters of a query string, each at most once. Bytes that are no UTF-8 become U+FFFD.

    >>> given(b"q=caf%C3%A9&n=5", ("q", "n"))
    {'q': 'café', 'n': '5'}
    """
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise WrongParameter("", f"Give at most {MOST_PARAMETERS} parameters.") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            raise unknown(name, known)
        if name in found:
            raise WrongParameter(name, f"Give {name} once.")
        found[name] = value
    return found


def whole(values: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    """A whole number between two others."""
    if name not in values:
        return default
    text = values[name]
    if not re.fullmatch(r"[0-9]{1,9}", text) or not least <= int(text) <= most:
        raise WrongParameter(name, f"{name} is a whole number from {least} to {most}.")
    return int(text)


def shaped(values: Mapping[str, str], name: str, shape: str, words: str) -> str:
    """A text of some shape; empty and missing are the same."""
    text = values.get(name, "")
    if text and not re.fullmatch(shape, text):
        raise WrongParameter(name, words)
    return text


def day_s(values: Mapping[str, str], name: str) -> float | None:
    """The second at which a day begins, in UTC; None where none is given.

    >>> day_s({"after": "1970-01-02"}, "after")
    86400.0
    """
    text = shaped(values, name, r"[0-9]{4}-[0-9]{2}-[0-9]{2}", _day_words(name))
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise WrongParameter(name, _day_words(name)) from None
    return datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()


def _day_words(name: str) -> str:
    return f"{name} is a day that exists, written like 2026-01-31."


def unknown(name: str, known: tuple[str, ...]) -> WrongParameter:
    """The complaint about a parameter that there is not; it names the nearest one that there is."""
    near = difflib.get_close_matches(name[:100], known, 1)
    advice = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
    return WrongParameter(name[:100], f"There is no such parameter; {advice}")
