"""The data folder that a command line names: opening it, its configuration, running commands on it."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from vedette.api import CrawlOptions, DataFolder, build_settings, open_folder
from vedette.config import Config, load
from vedette.discover.urls.scope import read_site
from vedette.errors import UsageError
from vedette.model import Site
from vedette.runtime.commands.client import check_crawled
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.commands.ads_commands import AdCommand
from vedette.web.commands.commands import Command

ACTOR = "the command line"


def load_config(options: argparse.Namespace) -> Config:
    """Load the configuration file that the command line names, else ``vedette.toml`` if there is one."""
    return load(options.config or (Path("vedette.toml") if Path("vedette.toml").exists() else None))


def open_data_folder(options: argparse.Namespace) -> DataFolder:
    """Open the data folder that the command line or the configuration names, for anything but a crawl."""
    return open_folder(data_folder(options), actor=ACTOR)


def open_for_crawl(options: argparse.Namespace) -> DataFolder:
    """Open the data folder of the command line for a crawl, with all settings of the machine."""
    return open_folder(options.data, config=load_config(options), actor=ACTOR)


def data_folder(options: argparse.Namespace) -> Path:
    """Return the path of the data folder that the command line or the configuration names."""
    return Path(options.data) if options.data is not None else load_config(options).store.data


def crawled_folder(options: argparse.Namespace) -> Path:
    """Return the path of the data folder; raise an error if it has no crawl, without creating it."""
    return check_crawled(data_folder(options))


def read_sites(options: argparse.Namespace) -> tuple[Site, ...]:
    """Return the sites that the command line names, with the scope options that it gives."""
    scope, include, exclude = options.scope, tuple(options.include), tuple(options.exclude)
    return tuple(read_site(text, scope=scope, include=include, exclude=exclude) for text in options.sites)


def crawl_options(options: argparse.Namespace) -> CrawlOptions:
    """Return the crawl options that the command line sets."""
    return {
        "contact": options.contact,
        "delay": options.delay,
        "allow_private": options.allow_private,
        "connect_to": [line for text in options.connect_to for line in _read_detours(text)],
        "speed": options.speed,
    }


def crawl_settings(options: argparse.Namespace) -> RuntimeSettings:
    """Return the runtime settings of a process tree that runs on the data folder until it is stopped."""
    return build_settings(open_for_crawl(options).config, (), **crawl_options(options))


def _read_detours(text: str) -> list[str]:
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise UsageError(f"--connect-to {text}: {error}; name a file with one HOST:PORT=ADDR:PORT a line") from None
    return [line for line in lines if line.strip() and not line.startswith("#")]


def read_exported_file(file: Path) -> str:
    """Read the text of a file that an ``export`` command wrote; ``-`` is standard input."""
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{file}: no such file; name one that export wrote") from None
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8 text"
        raise UsageError(f"{file}: cannot be read ({reason}); name a file that export wrote") from None


def format_command(command: str, options: argparse.Namespace) -> str:
    """Format a ``vedette`` command on the same data folder, as a hint on what to type next."""
    place = f" --data {options.data}" if options.data is not None else ""
    if command == "up":  # what is not kept in the folder has to be said again
        contact = getattr(options, "contact", None)
        place += f" --contact {contact}" if contact else ""
        place += " --allow-private" if getattr(options, "allow_private", False) else ""
    return f"vedette {command}{place}"


def execute(options: argparse.Namespace, command: Command | AdCommand) -> dict[str, Any]:
    """Execute an operator's command on the data folder; return what was done and whether it applies at once."""
    return open_data_folder(options).run_command(command)


def execute_and_print(options: argparse.Namespace, command: Command | AdCommand, *, when: bool = True) -> int:
    """Execute an operator's command on the data folder and print what was done, and when it applies."""
    done = execute(options, command)
    print(json.dumps(done) if options.json else format_done(done, options if when else None))
    return 0


def format_done(done: dict[str, Any], options: argparse.Namespace | None = None) -> str:
    """Format what a command on the data folder did; with ``options`` also when it takes effect."""
    when = "" if done["running"] or options is None else f"; holds from the next {format_command('up', options)} on"
    return f"{done['done'][0].upper()}{done['done'][1:]}{when}."


def print_note(text: str) -> None:
    """Print a note to people on standard error while a command runs."""
    print(text, file=sys.stderr)
