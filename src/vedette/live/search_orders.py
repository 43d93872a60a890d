"""What the operator does for those who search: keys that are given out and revoked, and rules for single queries.

The same orders, whether a running keeper carries them out or the command line. What was done is written into the
state's log of actions. A secret is never in an order: of a key only the digest is kept, here as everywhere.
"""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from vedette.config import format_rate, parse_rate
from vedette.edges.book import Action
from vedette.edges.search_book import KeyRow, RuleRow
from vedette.edges.state import State
from vedette.errors import StoreCorrupt, UsageError, VedetteError
from vedette.web.keys import Key

__all__ = [
    "KINDS",
    "AddRules",
    "NewKey",
    "RemoveRule",
    "RevokeKey",
    "Rule",
    "RuleKind",
    "SearchOrder",
    "carry_out_search",
    "key_of",
    "row_of",
]

RuleKind = Literal["synonym", "pin", "hide"]
KINDS: tuple[RuleKind, ...] = get_args(RuleKind)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for one query: another word for it, or a URL that it always or never shows."""

    kind: RuleKind
    query: str
    value: str

    def __str__(self) -> str:
        if self.kind == "synonym":
            return f'"{self.query}" and "{self.value}" mean the same'
        return f'"{self.query}" {"shows" if self.kind == "pin" else "hides"} {self.value}'


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key under a name that no valid key has."""

    row: KeyRow


@dataclass(frozen=True, slots=True)
class RevokeKey:
    """A key opens nothing from now on."""

    name: str


@dataclass(frozen=True, slots=True)
class AddRules:
    """Rules besides those that are there."""

    rules: tuple[Rule, ...]


@dataclass(frozen=True, slots=True)
class RemoveRule:
    """A rule holds no more."""

    rule: Rule


SearchOrder = NewKey | RevokeKey | AddRules | RemoveRule


def key_of(row: KeyRow) -> Key:
    """The key that a row keeps; a row that makes no sense is damage.

    >>> key_of(KeyRow("wiki", "00ff", {"scopes": ["search"], "rate": "60/min", "sites": []}, 0.0)).rate.requests
    60
    """
    settings: Any = row.settings
    try:
        rate = None if settings["rate"] is None else parse_rate(settings["rate"])
        scopes, sites = tuple(map(str, settings["scopes"])), tuple(map(str, settings["sites"]))
        return Key(row.name, bytes.fromhex(row.digest), scopes, rate, row.created_s, row.revoked_s, sites)
    except (LookupError, TypeError, ValueError, VedetteError) as error:
        raise StoreCorrupt(f"the key {row.name} is kept in a row that cannot be read ({error}): restore it") from error


def row_of(key: Key) -> KeyRow:
    """The row that keeps a key.

    >>> row_of(Key("wiki", b"!")).settings
    {'scopes': ['search'], 'rate': None, 'sites': []}
    """
    rate = None if key.rate is None else format_rate(key.rate)
    settings: dict[str, object] = {"scopes": list(key.scopes), "rate": rate, "sites": list(key.sites)}
    return KeyRow(key.name, key.hash.hex(), settings, key.created_s, key.revoked_s)


def carry_out_search(order: SearchOrder, state: State, now_s: float) -> str:
    """Write it into the state, as one change that the caller commits; what was done, in one line."""
    if not state.db.in_transaction:
        state.db.execute("BEGIN IMMEDIATE")
    if isinstance(order, NewKey | RevokeKey):
        what, done = "keys", _changed_key(order, state, now_s)
    elif isinstance(order, AddRules):
        what, done = "rules", _add_rules(order.rules, state, now_s)
    else:
        what, done = "rules", _remove_rule(order.rule, state)
    state.book.log_action(Action(now_s, f"{what}: {done}"))
    return done


def _changed_key(order: NewKey | RevokeKey, state: State, now_s: float) -> str:
    rows = {row.name: row for row in state.book.reader_keys()}
    if isinstance(order, NewKey):
        return _new_key(order.row._replace(created_s=now_s, revoked_s=None), rows.get(order.row.name), state)
    if order.name not in rows:
        raise UsageError(f'there is no key "{order.name}"; {_advice(order.name, rows)}')
    if rows[order.name].revoked_s is not None:
        raise UsageError(f'the key "{order.name}" is revoked already')
    state.book.keep_reader_key(rows[order.name]._replace(revoked_s=now_s))
    return f'revoked the key "{order.name}"'


def _new_key(row: KeyRow, before: KeyRow | None, state: State) -> str:
    """The name of a revoked key may be given again; it is another key then."""
    if before is not None and before.revoked_s is None:
        raise UsageError(
            f'there is a key "{row.name}" already: revoke it first ("vedette keys revoke {row.name}"), or take another '
            "name"
        )
    state.book.keep_reader_key(row)
    return f'made the key "{row.name}" for {" and ".join(key_of(row).scopes)}'


def _add_rules(rules: Sequence[Rule], state: State, now_s: float) -> str:
    """Two words that mean the same are kept once, whichever was named first."""
    kept = {_pair(row.kind, row.query, row.value) for row in state.book.search_rules()}
    new = {pair: rule for rule in rules if (pair := _pair(rule.kind, rule.query, rule.value)) not in kept}
    for rule in new.values():
        state.book.keep_search_rule(RuleRow(rule.kind, rule.query, rule.value, now_s))
    if len(rules) == 1:
        return f"{'added' if new else 'there already'}: {rules[0]}"
    if len(new) == len(rules):
        return f"added {len(new)} rules"
    return f"added {len(new)} of {len(rules)} rules; the others were there"


def _pair(kind: str, query: str, value: str) -> tuple[str, ...]:
    return (kind, *(sorted((query, value)) if kind == "synonym" else (query, value)))


def _remove_rule(rule: Rule, state: State) -> str:
    spellings = [(rule.query, rule.value)]
    if rule.kind == "synonym":
        spellings.append((rule.value, rule.query))
    if not any(state.book.drop_search_rule(rule.kind, *spelling) for spelling in spellings):
        raise UsageError(f'there is no such rule ({rule}); "vedette rules list" shows them')
    return f"removed: {rule}"


def _advice(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    return f'did you mean "{near[0]}"?' if near else '"vedette keys list" shows them'
