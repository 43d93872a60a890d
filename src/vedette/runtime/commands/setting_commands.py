"""Settings of the machine that an operator chooses while it runs: they hold at once, and before what the file says.

They are kept in the state, so that a restart changes nothing; taken back, the file holds again.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from vedette.adapters.crawl_store.data_folder import State
from vedette.adapters.crawl_store.store import StateBook
from vedette.config import Config, override
from vedette.engine.coordinator.state import Rules
from vedette.errors import ConfigError, UsageError
from vedette.runtime.commands.recheck import blocked_domains
from vedette.runtime.processes.settings import LiveSettings, rules_for
from vedette.web.commands.commands import Order, SetMachine

__all__ = ["SETTABLE", "carry_out_setting", "chosen_settings", "learns", "rules_of", "with_chosen"]

SETTABLE = ("crawl.budget", "refresh.policy", "serve.learn")
CHOSEN = "settings chosen"


def chosen_settings(book: StateBook) -> dict[str, str]:
    """What was chosen, by name and as it was typed; what makes no sense is not heeded."""
    try:
        kept = json.loads(book.life(CHOSEN) or "{}")
    except ValueError:
        return {}
    return {name: kept[name] for name in SETTABLE if isinstance(kept.get(name), str)} if isinstance(kept, dict) else {}


def with_chosen(config: Config, book: StateBook) -> Config:
    """The configuration as it holds. A choice that this version does not know, as after a step back, holds not."""
    for name, value in chosen_settings(book).items():
        try:
            config = override(config, {name: value})
        except ConfigError:
            continue
    return config


def learns(book: StateBook, *, configured: bool) -> bool:
    """Whether the order of results learns from clicks, as it holds."""
    return {"true": True, "false": False}.get(chosen_settings(book).get("serve.learn", ""), configured)


def carry_out_setting(order: SetMachine, state: State) -> tuple[str, tuple[Order, ...]]:
    """Keep what was chosen; what was done, in one line, and the order that takes it back."""
    before = chosen_settings(state.book)
    if others := [name for name in order.changes if name not in SETTABLE]:
        listed = f"{', '.join(SETTABLE[:-1])} and {SETTABLE[-1]}"
        raise UsageError(f"{others[0]} holds from the next start on; at once change {listed}")
    typed = {name: value for name, value in order.changes.items() if value is not None}
    override(Config(), typed)
    after = {name: value for name, value in before.items() if name not in order.changes} | typed
    if after == before:
        raise UsageError("nothing would change: it is set so already")
    state.book.set_life(CHOSEN, json.dumps(after))
    return _words(order.changes), (SetMachine({name: before.get(name) for name in order.changes}),)


def _words(changes: Mapping[str, str | None]) -> str:
    said = (f"{name} to {value}" if value is not None else f"{name} as configured" for name, value in changes.items())
    return f"set {' and '.join(said)}"


def rules_of(settings: LiveSettings, state: State) -> Rules:
    """What the operator decided, wherever that is written."""
    settings = replace(settings, config=with_chosen(settings.config, state.book))
    return rules_for(settings, state.book.sites(), blocked_domains(state))
