"""The keeper's rules as they hold: by settings and by what the state has of sites, blocked domains and choices."""

from dataclasses import replace

from vedette.edges.state import State
from vedette.live.concealing import blocked_domains
from vedette.live.setting_orders import with_chosen
from vedette.live.settings import LiveSettings, rules_for
from vedette.ring.kept import Rules

__all__ = ["rules_of"]


def rules_of(settings: LiveSettings, state: State) -> Rules:
    """What the operator decided, wherever that is written."""
    settings = replace(settings, config=with_chosen(settings.config, state.book))
    return rules_for(settings, state.book.sites(), blocked_domains(state))
