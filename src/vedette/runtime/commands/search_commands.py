"""Execute commands on search: API keys, and rules for results; each returns the commands that undo it.

Only the digest of a key is stored, here as everywhere.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.search_store import RuleRow, UserKeyRow
from vedette.config import format_rate, parse_rate
from vedette.errors import StoreCorrupt, UsageError, VedetteError
from vedette.runtime.commands.recheck import DOMAIN_RULES, apply_rule_change
from vedette.suggest import did_you_mean
from vedette.web.auth.keys import Key
from vedette.web.commands.commands import AddRules, Command, CreateKey, RemoveRules, RestoreKey, RevokeKey, Rule

SearchCommand = CreateKey | RevokeKey | RestoreKey | AddRules | RemoveRules


def key_from_row(row: UserKeyRow) -> Key:
    """Convert a stored API key row to a search key; raise for a damaged row.

    >>> row = UserKeyRow("wiki", "00ff", {"scopes": ["search"], "rate": "60/min", "sites": []}, 0.0)
    >>> key_from_row(row).rate.requests
    60
    """
    settings: Any = row.settings
    try:
        rate = None if settings["rate"] is None else parse_rate(settings["rate"])
        scopes, sites = tuple(map(str, settings["scopes"])), tuple(map(str, settings["sites"]))
        return Key(row.name, bytes.fromhex(row.digest), scopes, rate, row.created_s, row.revoked_s, sites)
    except (LookupError, TypeError, ValueError, VedetteError) as error:
        raise StoreCorrupt(
            f"the row of key {row.name} in state.db cannot be read ({error}): restore a backup"
        ) from error


def row_from_key(key: Key) -> UserKeyRow:
    """Convert a search API key to its stored row.

    >>> row_from_key(Key("wiki", b"!")).settings
    {'scopes': ['search'], 'rate': None, 'sites': []}
    """
    rate = None if key.rate is None else format_rate(key.rate)
    settings: dict[str, object] = {"scopes": list(key.scopes), "rate": rate, "sites": list(key.sites)}
    return UserKeyRow(key.name, key.hash.hex(), settings, key.created_s, key.revoked_s)


def execute_search_command(command: SearchCommand, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Execute a command on API keys or search rules; return what was done, and the commands that undo it."""
    if isinstance(command, CreateKey):
        return _create_key(command.row._replace(created_s=now_s, revoked_s=None), state)
    if isinstance(command, RevokeKey | RestoreKey):
        return _set_revoked(command, state, now_s)
    if isinstance(command, AddRules):
        return _add_rules(command.rules, state, now_s)
    return _remove_rules(command.rules, state)


def _create_key(row: UserKeyRow, state: State) -> tuple[str, tuple[Command, ...]]:
    """Create a search API key; the name of a revoked key may be reused for a new one."""
    if any(key.name == row.name and key.revoked_s is None for key in state.store.list_user_keys()):
        raise UsageError(
            f'there is already a key "{row.name}": revoke it first ("vedette keys revoke {row.name}"), or choose '
            "another name"
        )
    state.store.save_user_key(row)
    return f'created the key "{row.name}" for {" and ".join(key_from_row(row).scopes)}', (RevokeKey(row.name),)


def _set_revoked(command: RevokeKey | RestoreKey, state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Revoke a search API key, or restore a revoked one."""
    rows = {row.name: row for row in state.store.list_user_keys()}
    is_out = isinstance(command, RevokeKey)
    if command.name not in rows:
        raise UsageError(f'there is no key "{command.name}"; {_suggest(command.name, rows)}')
    if (rows[command.name].revoked_s is not None) is is_out:
        raise UsageError(f'the key "{command.name}" is {"already revoked" if is_out else "not revoked"}')
    state.store.save_user_key(rows[command.name]._replace(revoked_s=now_s if is_out else None))
    if is_out:
        return f'revoked the key "{command.name}"', (RestoreKey(command.name),)
    return f'restored the key "{command.name}"', (RevokeKey(command.name),)


def _add_rules(rules: Sequence[Rule], state: State, now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Add search rules to the state; a synonym pair is stored once, and a domain's last rule replaces others."""
    rows = state.store.list_search_rules()
    keys = {_get_rule_key(row.kind, row.query, row.value) for row in rows}
    last = {rule.value: rule.kind for rule in rules if rule.kind in DOMAIN_RULES}
    new = {
        pair: rule
        for rule in rules
        if (pair := _get_rule_key(rule.kind, rule.query, rule.value)) not in keys
        and (rule.kind not in DOMAIN_RULES or last[rule.value] == rule.kind)
    }
    domains = {rule.value for rule in new.values() if rule.kind in DOMAIN_RULES}
    gone = tuple(
        Rule(row.kind, row.query, row.value)  # type: ignore[arg-type]  # as it was kept
        for row in rows
        if row.kind in DOMAIN_RULES and row.value in domains
    )
    for rule in gone:
        state.store.delete_search_rule(rule.kind, rule.query, rule.value)
    for rule in new.values():
        state.store.add_search_rule(RuleRow(rule.kind, rule.query, rule.value, now_s))
    apply_rule_change((*gone, *new.values()), state)
    inverse = (*((RemoveRules(tuple(new.values())),) if new else ()), *((AddRules(gone),) if gone else ()))
    return _describe_added(rules, new.values()), inverse


def _describe_added(rules: Sequence[Rule], new: Collection[Rule]) -> str:
    if len(rules) == 1:
        return f"{'rule added' if new else 'rule exists already'}: {rules[0]}"
    if len(new) == len(rules):
        return f"added {len(new)} rules"
    return f"added {len(new)} of {len(rules)} rules; the others already existed"


def _get_rule_key(kind: str, query: str, value: str) -> tuple[str, ...]:
    return (kind, *(sorted((query, value)) if kind == "synonym" else (query, value)))


def _remove_rules(rules: Sequence[Rule], state: State) -> tuple[str, tuple[Command, ...]]:
    for rule in rules:
        spellings = [(rule.query, rule.value)]
        if rule.kind == "synonym":
            spellings.append((rule.value, rule.query))
        if not any(state.store.delete_search_rule(rule.kind, *spelling) for spelling in spellings):
            raise UsageError(f'there is no such rule ({rule}); for a list, run "vedette rules list"')
    apply_rule_change(rules, state)
    done = f"rule removed: {rules[0]}" if len(rules) == 1 else f"removed {len(rules)} rules"
    return done, (AddRules(tuple(rules)),)


def _suggest(name: str, names: Iterable[str]) -> str:
    return did_you_mean(name, names, 'for a list, run "vedette keys list"', show='"{}"', cutoff=0.75)
