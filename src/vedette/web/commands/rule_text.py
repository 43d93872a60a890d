"""Parsing of rules for search results as people type them: words in a form, ``[[rule]]`` tables in TOML."""

import json
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from vedette.config import format_size
from vedette.discover.urls.normalize import resolve
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.model import origin_of
from vedette.suggest import did_you_mean
from vedette.text import split_words
from vedette.web.commands.commands import QUERY_RULE_KINDS, RULE_KINDS, Rule, RuleKind

MAX_BYTES = 1 << 24
MAX_QUERY_LENGTH = 2000

_RULE_KEYS = ("kind", "query", "value")
_URL_PREFIX = re.compile(r"https?://[^/?#@\s]+/[^\s*]*\*")


def parse_rule(kind: RuleKind, query: str, value: str) -> Rule:
    """Parse a typed rule for search results: words folded as in a search, URLs and hosts normalized.

    >>> parse_rule("synonym", "K8s!", "Kubernetes")
    Rule(kind='synonym', query='k8s', value='kubernetes')
    >>> parse_rule("block", "", "https://Spam.example/x")
    Rule(kind='block', query='', value='spam.example')
    """
    if kind not in QUERY_RULE_KINDS:
        return Rule(kind, "", _parse_hidden_url(value) if kind == "conceal" else _parse_domain(value))
    folded = _fold_query(query)
    if kind != "synonym":
        return Rule(kind, folded, parse_web_url(value))
    other = _fold_query(value)
    if folded == other:
        raise UsageError(
            f"search already treats {query[:100]!r} and {value[:100]!r} as the same word: use a different one"
        )
    return Rule(kind, folded, other)


def parse_web_url(text: str) -> str:
    """Parse a URL that a person typed for a rule or command; a host with a path is enough."""
    url = resolve(text, None) if "://" in text else read_site(text).start
    if url is None:
        raise UsageError(f'"{text[:100]}" is not an http(s) URL; use a full URL, for example https://example.org/a')
    return url


def format_rules(rules: Iterable[Rule]) -> str:
    r"""Format rules for search results as ``[[rule]]`` tables in TOML.

    >>> print(format_rules([Rule("pin", "time off", "https://example.org/holidays")]))
    [[rule]]
    kind = "pin"
    query = "time off"
    value = "https://example.org/holidays"
    <BLANKLINE>
    """
    return "\n".join(
        "\n".join(
            [
                "[[rule]]",
                *(f"{key} = {_toml_string(getattr(rule, key))}" for key in _RULE_KEYS if getattr(rule, key)),
                "",
            ]
        )
        for rule in rules
    )


def parse_rules(text: str, source: str) -> tuple[Rule, ...]:
    """Parse ``[[rule]]`` tables in TOML into rules; a ``UsageError`` names the line and what to write."""
    if len(text) > MAX_BYTES:
        raise UsageError(f"{source}: too large for a list of rules (the maximum is {format_size(MAX_BYTES)})")
    try:
        tables = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise UsageError(f"{source}: not valid TOML: {' '.join(str(error).split())[:200]}") from None
    unknown = next((key for key in tables if key != "rule"), None)
    rules = tables.get("rule", [])
    if unknown is not None or not isinstance(rules, list):
        raise UsageError(
            f"{source}: {(unknown or 'rule')[:40]!r} is not a list of rules: use one [[rule]] table per rule"
        )
    return tuple(_parse_table(table, f"{source}, rule {number}") for number, table in enumerate(rules, 1))


def _parse_table(table: object, place: str) -> Rule:
    if not isinstance(table, dict):
        raise UsageError(f"{place}: use one [[rule]] table per rule")
    unknown = next((key for key in table if key not in _RULE_KEYS), None)
    if unknown is not None:
        raise UsageError(f"{place}: unknown key {unknown[:40]!r}; {_suggest(unknown, _RULE_KEYS)}")
    kind, value = (_get_text(table, key, place) for key in ("kind", "value"))
    if kind not in RULE_KINDS:
        raise UsageError(f"{place}: unknown kind {kind[:40]!r}; {_suggest(kind, RULE_KINDS)}")
    rule_kind: Any = kind
    try:
        return parse_rule(rule_kind, _get_text(table, "query", place) if kind in QUERY_RULE_KINDS else "", value)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None


def _get_text(table: dict[str, object], key: str, place: str) -> str:
    value = table.get(key)
    if not isinstance(value, str):
        raise UsageError(f'{place}: {key} is missing: add {key} = "…"')
    return value


def _suggest(word: str, choices: Sequence[str]) -> str:
    return did_you_mean(word[:40], choices, f"choose from {', '.join(choices)}")


def _parse_hidden_url(text: str) -> str:
    """Parse the URL of a rule that hides pages; a final star hides all URLs with that prefix."""
    typed = text.strip()
    if not typed.endswith("*"):
        return parse_web_url(typed)
    start = parse_web_url(typed.removesuffix("*"))
    if not _URL_PREFIX.fullmatch(f"{start}*"):
        raise UsageError(f"{text[:100]!r}: use * only at the end of a path, as in https://example.org/drafts/*")
    return f"{start}*"


def _parse_domain(text: str) -> str:
    """Parse the domain of a rule: a host name that covers itself and all names that end with it."""
    host = origin_of(read_site(text.strip().removeprefix("*.")).start).host
    if "." not in host and host != "localhost":
        raise UsageError(f"{text[:100]!r} is not a domain; use a domain name, for example example.org")
    return host


def _fold_query(text: str) -> str:
    """Fold the query of a rule into words, as queries are compared."""
    folded = " ".join(split_words(text[:MAX_QUERY_LENGTH]))
    if not folded:
        raise UsageError(f"{text[:100]!r} contains no words: enter at least one")
    return folded


def _toml_string(text: str) -> str:
    """Format a rule's text as a TOML string.

    JSON's spelling of a text is TOML's too, except for one control character.
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
