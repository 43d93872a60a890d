"""``vedette set``: list or change settings of the machine while it runs; each change is logged."""

import argparse
import json

from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.cli.data_folder import data_folder, execute_and_print, load_config, open_cluster
from vedette.cli.options import add_cluster_option, add_data_options, add_output_options
from vedette.config import format_rate
from vedette.errors import UsageError
from vedette.runtime.commands.setting_commands import apply_overrides, load_overrides
from vedette.web.commands.commands import SetMachine
from vedette.web.console.ports.monitoring import RuntimeSettings

DESCRIPTION = """\
Change a setting without a restart: crawl.budget, crawl.contact,
crawl.discovery_policy, refresh.policy, serve.learn, serve.promotion or
serve.sponsored_policy. The change takes effect immediately and overrides the
environment and vedette.toml until you revert it with --as-configured. Without
NAME, print the current settings. Changes are logged and can be undone in the
console.

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
        help="crawl.budget, crawl.contact, crawl.discovery_policy, refresh.policy, serve.learn, serve.promotion "
        "or serve.sponsored_policy",
    )
    parser.add_argument("value", metavar="VALUE", nargs="?", help="the value, as in vedette.toml but without quotes")
    parser.add_argument("--as-configured", action="store_true", help="revert to the configured value")
    add_data_options(parser)
    add_cluster_option(parser)
    add_output_options(parser)


def run(options: argparse.Namespace) -> int:
    """Run ``vedette set``: print the current settings of the machine, or change one."""
    if options.name is None:
        return _print_settings(options)
    if (options.value is None) is not options.as_configured:
        raise UsageError(f"missing value: use vedette set {options.name} VALUE, or use --as-configured")
    return execute_and_print(options, SetMachine({options.name: options.value}))


def _print_settings(options: argparse.Namespace) -> int:
    now = _load_settings(options)
    held = {
        "crawl.budget": now.budget,
        "crawl.contact": now.contact,
        "crawl.discovery_policy": now.discovery,
        "refresh.policy": now.policy,
        "serve.learn": "true" if now.learn else "false",
        "serve.promotion": now.promotion,
        "serve.sponsored_policy": now.ads,
    }
    if options.json:
        print(json.dumps({"settings": held, "chosen": sorted(now.chosen)}))
        return 0
    for name, value in held.items():
        print(f"{name:<22} {value or 'none':<24} {'set here' if name in now.chosen else 'as configured'}")
    return 0


def _load_settings(options: argparse.Namespace) -> RuntimeSettings:
    if (cluster := open_cluster(options)) is not None:
        return cluster.get_settings()
    with open_state_reader(data_folder(options)) as view:
        chosen, config = load_overrides(view.store), apply_overrides(load_config(options), view.store)
    crawl, serve = config.crawl, config.serve
    return RuntimeSettings(
        policy=config.refresh.policy,
        budget=format_rate(crawl.budget),
        chosen=tuple(chosen),
        learn=serve.learn,
        contact=crawl.contact,
        promotion=serve.promotion,
        discovery=crawl.discovery_policy,
        ads=serve.sponsored_policy,
    )
