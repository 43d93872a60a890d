"""``vedette set``: list or change settings of the machine while it runs; each change is logged."""

import argparse
import json

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.cli.data_folder import data_folder, execute_and_print, load_config
from vedette.cli.options import add_data_options, add_output_options
from vedette.config import format_rate
from vedette.errors import UsageError
from vedette.runtime.commands.setting_commands import apply_overrides, load_overrides
from vedette.web.commands.commands import SetMachine

DESCRIPTION = """\
Change a setting without a restart: crawl.budget, crawl.contact,
crawl.discovery_policy, refresh.policy, serve.learn or serve.promotion. The
change applies immediately and takes precedence over the environment and
vedette.toml until you revert it with --as-configured. Without NAME, print the
current settings. Changes are logged, and the console can undo them.

  vedette set refresh.policy nutch
  vedette set crawl.budget 50000/d
  vedette set crawl.budget --as-configured
  vedette set serve.learn false
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of ``vedette set``."""
    parser.add_argument(
        "name",
        metavar="NAME",
        nargs="?",
        help="crawl.budget, crawl.contact, crawl.discovery_policy, refresh.policy, serve.learn or serve.promotion",
    )
    parser.add_argument("value", metavar="VALUE", nargs="?", help="as in vedette.toml, without quotes")
    parser.add_argument("--as-configured", action="store_true", help="go back to the configured value")
    add_data_options(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette set``: print the current settings of the machine, or change one."""
    if options.name is None:
        return _print_settings(options)
    if (options.value is None) is not options.as_configured:
        raise UsageError(f"missing value: use vedette set {options.name} VALUE, or use --as-configured")
    return execute_and_print(options, SetMachine({options.name: options.value}))


def _print_settings(options: argparse.Namespace) -> int:
    with open_state_reader(data_folder(options)) as view:
        chosen, config = load_overrides(view.store), apply_overrides(load_config(options), view.store)
    held = {
        "crawl.budget": format_rate(config.crawl.budget),
        "crawl.contact": config.crawl.contact,
        "crawl.discovery_policy": config.crawl.discovery_policy,
        "refresh.policy": config.refresh.policy,
        "serve.learn": "true" if config.serve.learn else "false",
        "serve.promotion": config.serve.promotion,
    }
    if options.json:
        print(json.dumps({"settings": held, "chosen": sorted(chosen)}))
        return 0
    for name, value in held.items():
        print(f"{name:<22} {value or 'none':<24} {'set here' if name in chosen else 'as configured'}")
    return 0
