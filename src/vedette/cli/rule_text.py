"""Rules for single queries as people write them: words on a command line, ``[[rule]]`` tables in TOML."""

import difflib
import json
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from vedette.cli.asking import web_url
from vedette.config import format_size
from vedette.errors import UsageError
from vedette.live.search_orders import KINDS, Rule, RuleKind
from vedette.words import words_of

__all__ = ["read_rules_text", "rule_of", "write_rules"]

MOST_BYTES = 1 << 24
LONGEST_QUERY = 2000

_KEYS = ("kind", "query", "value")


def rule_of(kind: RuleKind, query: str, value: str) -> Rule:
    """The rule that was meant: words as searching folds them, URLs as they are known.

    >>> rule_of("synonym", "K8s!", "Kubernetes")
    Rule(kind='synonym', query='k8s', value='kubernetes')
    """
    folded = _folded(query)
    if kind != "synonym":
        return Rule(kind, folded, web_url(value))
    other = _folded(value)
    if folded == other:
        raise UsageError(f"{query[:100]!r} and {value[:100]!r} are the same words to a search: name another word")
    return Rule(kind, folded, other)


def write_rules(rules: Iterable[Rule]) -> str:
    r"""TOML for rules.

    >>> print(write_rules([Rule("pin", "time off", "https://example.org/holidays")]))
    [[rule]]
    kind = "pin"
    query = "time off"
    value = "https://example.org/holidays"
    <BLANKLINE>
    """
    return "\n".join(
        "\n".join(["[[rule]]", *(f"{key} = {_toml(getattr(rule, key))}" for key in _KEYS), ""]) for rule in rules
    )


def read_rules_text(text: str, source: str) -> tuple[Rule, ...]:
    """Rules from TOML; a ``UsageError`` names the place and what to write."""
    if len(text) > MOST_BYTES:
        raise UsageError(f"{source}: is larger than {format_size(MOST_BYTES)}: this is no list of rules")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{source}: is not TOML: {' '.join(str(error).split())[:200]}") from None
    unknown = next((key for key in tables if key != "rule"), None)
    rules = tables.get("rule", [])
    if unknown is not None or not isinstance(rules, list):
        raise UsageError(f"{source}: {(unknown or 'rule')[:40]!r} is no list of rules: write one [[rule]] table a rule")
    return tuple(_read_table(table, f"{source}, rule {number}") for number, table in enumerate(rules, 1))


def _read_table(table: object, place: str) -> Rule:
    if not isinstance(table, dict):
        raise UsageError(f"{place}: write one [[rule]] table a rule")
    unknown = next((key for key in table if key not in _KEYS), None)
    if unknown is not None:
        raise UsageError(f"{place}: unknown key {unknown[:40]!r}; {_near(unknown, _KEYS)}")
    kind, query, value = (_text(table, key, place) for key in _KEYS)
    if kind not in KINDS:
        raise UsageError(f"{place}: unknown kind {kind[:40]!r}; {_near(kind, KINDS)}")
    known: Any = kind
    try:
        return rule_of(known, query, value)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _text(table: dict[str, object], key: str, place: str) -> str:
    value = table.get(key)
    if not isinstance(value, str):
        raise UsageError(f'{place}: {key} is missing: write {key} = "…"')
    return value


def _near(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word[:40], known, 1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _folded(text: str) -> str:
    """By its words, as a query is compared."""
    folded = " ".join(words_of(text[:LONGEST_QUERY]))
    if not folded:
        raise UsageError(f"{text[:100]!r} has no word in it: write at least one")
    return folded


def _toml(text: str) -> str:
    """JSON's spelling of a text is TOML's too, but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
