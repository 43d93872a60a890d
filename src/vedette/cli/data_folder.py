"""The data folder that a command line names: opening it, its configuration, running commands on it.

What opens or changes a folder is imported where it is used: commands that only read should start at once.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from vedette.errors import UsageError
from vedette.model import Site

if TYPE_CHECKING:
    from vedette.adapters.crawl_store.store import SiteRow
    from vedette.api import CrawlOptions, DataFolder
    from vedette.config import Config
    from vedette.config.site_settings import SiteTable
    from vedette.runtime.cluster.client import ClusterClient
    from vedette.runtime.processes.settings import RuntimeSettings
    from vedette.web.commands.ads_commands import AdCommand
    from vedette.web.commands.commands import Command

ACTOR = "the command line"
CONFIG_FILE = "vedette.toml"


def load_config(options: argparse.Namespace) -> Config:
    """Load the configuration file that the command line names, else ``vedette.toml`` if there is one.

    Environment variables take precedence over the file.
    """
    from vedette.config import load, override_by_environment

    file = options.config or (Path(CONFIG_FILE) if Path(CONFIG_FILE).exists() else None)
    return override_by_environment(load(file), os.environ)


def open_data_folder(options: argparse.Namespace) -> DataFolder:
    """Open the data folder that the command line or the configuration names, for anything but a crawl."""
    from vedette.api import open_folder

    return open_folder(data_folder(options), actor=ACTOR)


def open_for_crawl(options: argparse.Namespace) -> DataFolder:
    """Open the data folder of the command line for a crawl, with all settings of the machine."""
    from vedette.api import open_folder

    return open_folder(options.data, config=load_config(options), actor=ACTOR)


def data_folder(options: argparse.Namespace) -> Path:
    """Return the path of the data folder that the command line or the configuration names."""
    return Path(options.data) if options.data is not None else load_config(options).store.data


def open_cluster(options: argparse.Namespace) -> ClusterClient | None:
    """Return the cluster that the command line uses instead of a data folder; None without ``--cluster``."""
    if not getattr(options, "cluster", False):
        return None
    from vedette.adapters.registry.database import DSN_ENV
    from vedette.runtime.cluster.client import ClusterClient

    if not (dsn := os.environ.get(DSN_ENV, "")):
        raise UsageError(
            f"--cluster: set {DSN_ENV} to the cluster's PostgreSQL connection string, postgresql://USER@HOST/DATABASE"
        )
    return ClusterClient(dsn)


def crawled_folder(options: argparse.Namespace) -> Path:
    """Return the path of the data folder; raise an error if it has no crawl, without creating it."""
    from vedette.runtime.commands.client import check_crawled

    return check_crawled(data_folder(options))


def read_sites(options: argparse.Namespace) -> tuple[Site, ...]:
    """Return the sites that the command line names, with the scope options that it gives."""
    from vedette.discover.urls.scope import read_site

    scope, include, exclude = options.scope, tuple(options.include), tuple(options.exclude)
    return tuple(read_site(text, scope=scope, include=include, exclude=exclude) for text in options.sites)


def crawl_options(options: argparse.Namespace) -> CrawlOptions:
    """Return the crawl options that the command line sets."""
    return {
        "contact": options.contact,
        "delay": options.delay,
        "allow_private": options.allow_private,
        "connect_to": [line for text in options.connect_to for line in read_detours(text)],
        "speed": options.speed,
    }


def crawl_settings(options: argparse.Namespace) -> RuntimeSettings:
    """Return the runtime settings of a process tree that runs on the data folder until it is stopped."""
    from vedette.api import build_settings

    return build_settings(open_for_crawl(options).config, (), **crawl_options(options))


def apply_configured_sites(options: argparse.Namespace) -> None:
    """Add the sites of ``vedette.toml`` that are new, and update settings that differ from the data folder."""
    config = load_config(options)
    existing = {row.site.start: row for row in open_data_folder(options).site_rows()} if config.sites else {}
    commands = [command for table in config.sites for command in _configure_site(table, existing.get(table.site.start))]
    _execute_offline(options, commands, str(options.config or CONFIG_FILE), config.crawl.delay_s)


def take_back_contact(options: argparse.Namespace) -> None:
    """Let a contact on the command line replace one that was set in the console or with ``vedette set``."""
    from vedette.adapters.crawl_store.reader import open_state_reader
    from vedette.runtime.commands.setting_commands import CONTACT, load_overrides
    from vedette.web.commands.commands import SetMachine

    folder = data_folder(options)
    if options.contact is None or not (folder / "format").exists():
        return
    with open_state_reader(folder) as view:
        chosen = load_overrides(view.store).get(CONTACT, options.contact)
    if chosen != options.contact:
        _execute_offline(options, [SetMachine({CONTACT: None})], ACTOR)


def _execute_offline(
    options: argparse.Namespace, commands: Sequence[Command], actor: str, delay_s: float = 1.0
) -> None:
    """Execute commands on the data folder before a crawl starts; it is opened only if there are any."""
    if commands:
        from vedette.adapters.crawl_store.data_folder import open_for_write
        from vedette.runtime.commands.executor import execute_command

        with open_for_write(data_folder(options), time.time()) as state:
            for command in commands:
                execute_command(command, state, time.time(), actor, delay_s)


def _configure_site(table: SiteTable, row: SiteRow | None) -> Iterator[Command]:
    from vedette.config.site_settings import describe_settings
    from vedette.web.commands.commands import AddSite, PauseSite, SetSite

    if row is None:
        yield AddSite(table.site, paused=table.paused)
        return
    if changes := table.find_changes(row.site):
        yield SetSite(table.site.start, changes, describe_settings(table.site))
    if "paused" in table.keys and table.paused != row.paused:
        yield PauseSite(table.site.start, paused=table.paused)


def read_detours(text: str) -> list[str]:
    """Read the connection overrides of one option: itself, or the lines of a file."""
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--connect-to {text}: {error}; use a file with one HOST:PORT=ADDR:PORT per line") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def read_exported_file(file: Path) -> str:
    """Read the text of a file that an ``export`` command wrote; ``-`` is standard input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file; choose a file written by export") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"cannot read {file} ({reason}); choose a file written by export") from None


def format_command(command: str, options: argparse.Namespace) -> str:
    """Format a whole ``vedette`` command on the same data folder, to be typed next.

    Options of ``up`` and ``crawl`` that the folder does not store are repeated.
    """
    places = {name: getattr(options, name, None) for name in ("config", "data", "cluster")}
    words = [*command.split(), *_list_words(places)]
    if command == "crawl":
        words += [*options.sites, *_list_words({"pages": options.pages, "patience": options.patience}, "5min")]
        scope = {name: getattr(options, name) for name in ("scope", "include", "exclude")}
        words += _list_words(scope, "host")
    if command in {"up", "crawl"}:
        names = ("listen", "contact", "delay", "allow_private", "connect_to", "speed")
        words += _list_words({name: getattr(options, name, None) for name in names}, 1.0)
    return shlex.join(["vedette", *words])


def _list_words(typed: Mapping[str, object], usual: object = None) -> Iterator[str]:
    """Yield options of the command line with their values, except those that are unset or ``usual``."""
    for name, value in typed.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value not in (None, False, usual):
            for one in value if isinstance(value, list) else [value]:
                yield from (option, f"{one:g}" if isinstance(one, float) else str(one))


def execute(options: argparse.Namespace, command: Command | AdCommand) -> dict[str, Any]:
    """Execute an operator's command on the data folder, or on all shards of the cluster that the options name.

    Return what was done and whether it applies at once.
    """
    if (cluster := open_cluster(options)) is not None:
        return cluster.run_command(cast("Command", command), ACTOR)
    return open_data_folder(options).run_command(command)


def execute_and_print(options: argparse.Namespace, command: Command | AdCommand, *, when: bool = True) -> int:
    """Execute an operator's command on the data folder and print what was done, and when it applies."""
    done = execute(options, command)
    print(json.dumps(done) if options.json else format_done(done, options if when else None))
    return 0


def format_done(done: dict[str, Any], options: argparse.Namespace | None = None) -> str:
    """Format what a command on the data folder did; with ``options`` also when it takes effect."""
    when = "" if done["running"] or options is None else f"; takes effect with the next {format_command('up', options)}"
    return f"{done['done'][0].upper()}{done['done'][1:]}{when}."


def print_note(text: str) -> None:
    """Print a note to people on standard error while a command runs."""
    print(text, file=sys.stderr)
