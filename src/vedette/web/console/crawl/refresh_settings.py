"""What an operator sets of refreshing while it runs: the policy, and the budget that everything shares."""

from collections.abc import Mapping
from typing import Final

from vedette.config import Config, override
from vedette.errors import ConfigError
from vedette.web.commands.commands import SetMachine
from vedette.web.console.ports.monitoring import Machine
from vedette.web.console.ui.layout import Problems
from vedette.web.formatting import sentence

__all__ = ["FIELDS", "POLICY_WORDS", "read_settings", "typed_of"]

# The fields of the form, and the settings that they are.
FIELDS: Final[Mapping[str, str]] = {"policy": "refresh.policy", "budget": "crawl.budget"}
LONGEST: Final = 100
POLICY_WORDS: Final[Mapping[str, str]] = {
    "expected-gain": "when what a fetch is expected to bring to search is worth its price; the one to use",
    "freshness": "when a page has probably changed, at rates pooled by site; all pages count alike",
    "lambdacrawl": "so that missed changes cost least, and no page is given up",
    "user-centric": "those first whose earlier changes did most for people who search",
    "nutch": "at an interval that shortens when a page has changed and grows when it has not",
    "stormcrawler": "at an interval that grows by half while a page stays the same, and halves when it changes",
    "uniform": "all pages in turn, equally often",
    "sbr": "so that copies are current as to changes of more than a small part of the text",
    "ebr": "so that nobody is shown a page that does not say any more what it is shown for",
    "greedy-c1": "when a page has most likely changed, one day at a time",
    "greedy-c2": "when a page has likely been out of date for longest, one day at a time",
    "n-day": "by a plan over several days ahead",
}


def typed_of(machine: Machine) -> dict[str, str]:
    """The form as it holds."""
    return {"policy": machine.policy, "budget": machine.budget}


def read_settings(form: Mapping[str, str], machine: Machine) -> tuple[SetMachine | None, Problems]:
    """The order that a form means; or what is wrong, by the name of its field.

    >>> read_settings({"policy": "nutch", "budget": "0"}, Machine("uniform", "0"))
    (SetMachine(changes={'refresh.policy': 'nutch'}), {})
    >>> read_settings({"policy": "nutch", "budget": "many"}, Machine("nutch", "0"))[1]["budget"]
    'Write a number of requests and a unit of time, such as "120/min" (s, min, h, d), or "0".'
    """
    if form.get("configured") in FIELDS:
        return SetMachine({FIELDS[form["configured"]]: None}), {}
    before = typed_of(machine)
    changes = {field: form[field][:LONGEST] for field in FIELDS if field in form and form[field] != before[field]}
    problems = {field: words for field, value in changes.items() if (words := _wrong(FIELDS[field], value))}
    if problems:
        return None, problems
    if not changes:
        return None, {"form": "Nothing would change: it is set so already."}
    return SetMachine({FIELDS[field]: value for field, value in changes.items()}), {}


def _wrong(name: str, value: str) -> str:
    """What is wrong with a value; nothing where it is right. Which one it is, its field says."""
    try:
        override(Config(), {name: value})
    except ConfigError as error:
        return sentence(str(error).partition(f"{name} = ")[2].partition('": ')[2] or str(error))
    return ""
