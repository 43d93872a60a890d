"""Form helpers of the console: typed values, the problem of each field, and numbers in query parameters."""

from collections.abc import Callable, Mapping

from vedette.errors import VedetteError
from vedette.web.formatting import sentence

FormValues = dict[str, str]  # what stands in the fields of a form, by their names
Problems = dict[str, str]  # what is wrong with a form, by the name of its field


def find_problem(parse: Callable[..., object], *values: object) -> str:
    """Return why a form's values cannot be parsed, as a sentence; empty if they can."""
    try:
        parse(*values)
    except VedetteError as error:
        return sentence(str(error))
    return ""


def find_problems(typed: FormValues, parsers: Mapping[str, Callable[[str], object]]) -> Problems:
    """Return the problem of each form field that has a parser."""
    return {name: words for name, parse in parsers.items() if (words := find_problem(parse, typed[name]))}


def parse_number(text: str, digits: int = 15) -> int | None:
    """Parse a form's non-negative integer of at most ``digits`` digits; None for anything else.

    >>> parse_number("42"), parse_number("-1"), parse_number("\N{SUPERSCRIPT TWO}"), parse_number("1234", digits=3)
    (42, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
