"""What ``vedette set`` does: through the keeper where one runs, else on the held folder; each change is logged."""

import argparse
import json
from pathlib import Path

from vedette.adapters.crawl_store.reader import open_view
from vedette.cli.data_folder import folder_of
from vedette.cli.ordering import ordered, sentence
from vedette.config import Config, format_rate, load
from vedette.errors import UsageError
from vedette.runtime.commands.setting_commands import chosen_settings, with_chosen
from vedette.web.commands.commands import SetMachine

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Say what holds, or change it."""
    if options.name is None:
        return _tell(options)
    if (options.value is None) is not options.as_configured:
        raise UsageError(f"say a value, as in vedette set {options.name} VALUE, or --as-configured")
    told = ordered(options, SetMachine({options.name: options.value}))
    print(json.dumps(told) if options.json else sentence(told, options))
    return 0


def _tell(options: argparse.Namespace) -> int:
    with open_view(folder_of(options)) as view:
        chosen, config = chosen_settings(view.book), with_chosen(_configured(options), view.book)
    held = {"crawl.budget": format_rate(config.crawl.budget), "refresh.policy": config.refresh.policy}
    held["serve.learn"] = "true" if config.serve.learn else "false"
    if options.json:
        print(json.dumps({"settings": held, "chosen": sorted(chosen)}))
        return 0
    for name, value in held.items():
        print(f"{name:<16} {value:<16} {'set here' if name in chosen else 'as configured'}")
    return 0


def _configured(options: argparse.Namespace) -> Config:
    path = options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None)
    return load(path)
