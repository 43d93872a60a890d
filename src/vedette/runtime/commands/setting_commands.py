"""Settings that an operator changes while it runs: they hold at once, and before the configuration file.

They are kept in the state, so that a restart changes nothing; undone, the file holds again.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.config import Config, override
from vedette.engine.coordinator.state import CrawlRules
from vedette.errors import ConfigError, UsageError
from vedette.runtime.commands.recheck import load_blocked_domains
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.web.commands.commands import Command, SetMachine

SETTABLE = ("crawl.budget", "refresh.policy", "serve.learn")
OVERRIDES_KEY = "settings chosen"


def load_overrides(store: CrawlStore) -> dict[str, str]:
    """What was chosen, by name and as it was typed; what makes no sense is not heeded."""
    try:
        kept = json.loads(store.get_value(OVERRIDES_KEY) or "{}")
    except ValueError:
        return {}
    return {name: kept[name] for name in SETTABLE if isinstance(kept.get(name), str)} if isinstance(kept, dict) else {}


def apply_overrides(config: Config, store: CrawlStore) -> Config:
    """The configuration as it holds. A choice that this version does not know, as after a step back, holds not."""
    for name, value in load_overrides(store).items():
        try:
            config = override(config, {name: value})
        except ConfigError:
            continue
    return config


def is_learning_on(store: CrawlStore, *, configured: bool) -> bool:
    """Whether the order of results learns from clicks, as it holds."""
    return {"true": True, "false": False}.get(load_overrides(store).get("serve.learn", ""), configured)


def execute_setting_command(command: SetMachine, state: State, _now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Keep what was chosen; what was done, in one line, and the order that takes it back."""
    before = load_overrides(state.store)
    if others := [name for name in command.changes if name not in SETTABLE]:
        listed = f"{', '.join(SETTABLE[:-1])} and {SETTABLE[-1]}"
        raise UsageError(f"{others[0]} holds from the next start on; at once change {listed}")
    typed = {name: value for name, value in command.changes.items() if value is not None}
    override(Config(), typed)
    after = {name: value for name, value in before.items() if name not in command.changes} | typed
    if after == before:
        raise UsageError("nothing would change: it is set so already")
    state.store.set_value(OVERRIDES_KEY, json.dumps(after))
    return _describe_changes(command.changes), (SetMachine({name: before.get(name) for name in command.changes}),)


def _describe_changes(changes: Mapping[str, str | None]) -> str:
    said = (f"{name} to {value}" if value is not None else f"{name} as configured" for name, value in changes.items())
    return f"set {' and '.join(said)}"


def load_rules(settings: RuntimeSettings, state: State) -> CrawlRules:
    """What the operator decided, wherever that is written."""
    settings = replace(settings, config=apply_overrides(settings.config, state.store))
    return build_rules(settings, state.store.list_sites(), load_blocked_domains(state))
