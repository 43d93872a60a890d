"""Form helpers of the console: typed values, the problem of each field, runtime settings, and numbers."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from vedette.config import Config, override
from vedette.errors import ConfigError, VedetteError
from vedette.web.commands.commands import SetMachine
from vedette.web.formatting import sentence

_MAX_LENGTH = 100  # of a setting's value

FormValues = dict[str, str]  # the values of a form's fields, by name
Problems = dict[str, str]  # the problems of a form, by field name


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


def parse_settings(
    form: Mapping[str, str], fields: Mapping[str, str], before: Mapping[str, str]
) -> tuple[SetMachine | None, Problems]:
    """Parse a form of runtime settings into a command, or into the problem of each field.

    ``fields`` has the setting of each field, ``before`` its current value.

    >>> fields = {"policy": "refresh.policy", "budget": "crawl.budget"}
    >>> parse_settings({"policy": "nutch", "budget": "0"}, fields, {"policy": "uniform", "budget": "0"})
    (SetMachine(changes={'refresh.policy': 'nutch'}), {})
    >>> parse_settings({"policy": "nutch", "budget": "many"}, fields, {"policy": "nutch", "budget": "0"})[1]["budget"]
    'Expected a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0".'
    """
    if form.get("configured") in fields:
        return SetMachine({fields[form["configured"]]: None}), {}
    changes = {field: form[field][:_MAX_LENGTH] for field in fields if field in form and form[field] != before[field]}
    problems = {
        field: words for field, value in changes.items() if (words := find_setting_problem(fields[field], value))
    }
    if problems:
        return None, problems
    if not changes:
        return None, {"form": "Nothing to save: these are the current settings."}
    return SetMachine({fields[field]: value for field, value in changes.items()}), {}


def find_setting_problem(name: str, value: str) -> str:
    """Return what is wrong with a value typed for a runtime setting; empty if valid."""
    try:
        override(Config(), {name: value})
    except ConfigError as error:
        return sentence(str(error).partition(f"{name} = ")[2].partition('": ')[2] or str(error))
    return ""


class PolicyChoices(NamedTuple):
    """The policies that a form offers, each as value, label and hint: general ones, and those for research."""

    named: list[tuple[str, str, str]]
    research: list[tuple[str, str, str]]


def group_policies(descriptions: Mapping[str, str], named: Collection[str]) -> PolicyChoices:
    """Group policies with their descriptions into the named ones and those for research.

    >>> group_policies({"uniform": "in turn", "sbr": "as published"}, ["uniform"])
    PolicyChoices(named=[('uniform', 'uniform', 'in turn')], research=[('sbr', 'sbr', 'as published')])
    """
    options = [(name, name, words) for name, words in descriptions.items()]
    return PolicyChoices(
        [option for option in options if option[0] in named],
        [option for option in options if option[0] not in named],
    )


def parse_number(text: str, digits: int = 15) -> int | None:
    """Parse a form's non-negative integer of at most ``digits`` digits; None for anything else.

    >>> parse_number("42"), parse_number("-1"), parse_number("\N{SUPERSCRIPT TWO}"), parse_number("1234", digits=3)
    (42, None, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
