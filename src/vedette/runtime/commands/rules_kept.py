"""The keeper's rules as they hold: by settings and by what the state has of sites, blocked domains and choices."""

from dataclasses import replace

from vedette.adapters.crawl_store.data_folder import State
from vedette.engine.coordinator.state import Rules
from vedette.runtime.commands.recheck import blocked_domains
from vedette.runtime.commands.setting_commands import with_chosen
from vedette.runtime.processes.settings import LiveSettings, rules_for

__all__ = ["rules_of"]


def rules_of(settings: LiveSettings, state: State) -> Rules:
    """What the operator decided, wherever that is written."""
    settings = replace(settings, config=with_chosen(settings.config, state.book))
    return rules_for(settings, state.book.sites(), blocked_domains(state))
