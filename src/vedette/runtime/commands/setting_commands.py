"""Execute commands on settings at runtime: overrides that apply at once, before the configuration file.

They are stored in the state, so that they survive a restart; once undone, the file applies again.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from vedette.adapters.crawl_store.data_folder import State, read_state
from vedette.adapters.crawl_store.store import CrawlStore
from vedette.config import Config, override
from vedette.engine.coordinator.state import CrawlRules
from vedette.errors import ConfigError, StoreError, UsageError
from vedette.fetch.request import build_user_agent
from vedette.runtime.commands.recheck import load_blocked_domains, requeue_refused_addresses
from vedette.runtime.processes.settings import RuntimeSettings, build_rules
from vedette.serve.rank.reranking import PROMOTIONS
from vedette.version import __version__
from vedette.web.commands.commands import Command, SetMachine

CONTACT = "crawl.contact"
SETTABLE = (
    *("crawl.budget", CONTACT, "crawl.discovery_policy", "refresh.policy"),
    *("serve.learn", "serve.promotion", "serve.sponsored_policy"),
)
OVERRIDES_KEY = "settings chosen"


def load_overrides(store: CrawlStore) -> dict[str, str]:
    """Load the settings that the operator overrides at runtime, by name and as typed; invalid ones are ignored."""
    try:
        overrides = json.loads(store.get_value(OVERRIDES_KEY) or "{}")
    except ValueError:
        return {}
    return (
        {name: overrides[name] for name in SETTABLE if isinstance(overrides.get(name), str)}
        if isinstance(overrides, dict)
        else {}
    )


def apply_overrides(config: Config, store: CrawlStore) -> Config:
    """Return the configuration with the operator's runtime settings applied.

    A setting that this version does not know, as after a downgrade, is ignored.
    """
    for name, value in load_overrides(store).items():
        try:
            config = override(config, {name: value})
        except ConfigError:
            continue
    return config


def apply_to_settings(settings: RuntimeSettings, store: CrawlStore) -> RuntimeSettings:
    """Return the settings of a process tree with the operator's runtime settings applied."""
    config = apply_overrides(settings.config, store)
    if config.crawl.contact == settings.config.crawl.contact:
        return replace(settings, config=config)
    return replace(settings, config=config, agent=build_user_agent(__version__, config.crawl.contact))


def load_current(settings: RuntimeSettings) -> RuntimeSettings:
    """Load the current settings of a process tree from its data folder, for a process beside the coordinator."""
    try:
        with read_state(settings.folder) as db:
            return apply_to_settings(settings, CrawlStore(db))
    except StoreError:  # it is just being created
        return settings


def is_learning_on(store: CrawlStore, *, configured: bool) -> bool:
    """Check whether ranking learns from clicks, by runtime setting or configuration."""
    return {"true": True, "false": False}.get(load_overrides(store).get("serve.learn", ""), configured)


def find_promotion(store: CrawlStore, configured: str) -> str:
    """Find the rule for trying unproven results; one that this version does not know is ignored."""
    chosen = load_overrides(store).get("serve.promotion", configured)
    return chosen if chosen in PROMOTIONS else configured


def execute_setting_command(command: SetMachine, state: State, _now_s: float) -> tuple[str, tuple[Command, ...]]:
    """Execute a command on runtime settings; return what was done, and the command that undoes it."""
    before = load_overrides(state.store)
    typed = {name: value for name, value in command.changes.items() if value is not None}
    override(Config(), typed)  # an unknown setting or invalid value is reported first
    if others := [name for name in command.changes if name not in SETTABLE]:
        listed = f"{', '.join(SETTABLE[:-1])} and {SETTABLE[-1]}"
        raise UsageError(f"{others[0]} cannot be changed without a restart; these can: {listed}")
    after = {name: value for name, value in before.items() if name not in command.changes} | typed
    if after == before:
        raise UsageError("nothing to change: this is already the current setting")
    state.store.set_value(OVERRIDES_KEY, json.dumps(after))
    if CONTACT in command.changes:
        requeue_refused_addresses(state)
    return _describe_changes(command.changes), (SetMachine({name: before.get(name) for name in command.changes}),)


def _describe_changes(changes: Mapping[str, str | None]) -> str:
    parts = (f"{name} to {value}" if value is not None else f"{name} as configured" for name, value in changes.items())
    return f"set {' and '.join(parts)}"


def load_rules(settings: RuntimeSettings, state: State) -> CrawlRules:
    """Load the crawl rules from sites, blocked domains, and configuration with runtime settings."""
    return build_rules(apply_to_settings(settings, state.store), state.store.list_sites(), load_blocked_domains(state))
