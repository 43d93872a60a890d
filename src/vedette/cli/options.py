"""Options and subcommands that several commands share: data folder, site scope, fetching, output."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.errors import UsageError

if TYPE_CHECKING:  # argparse has no public name for it
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - see above
else:
    Subparsers = argparse._SubParsersAction  # noqa: SLF001 - see above

LOOPBACK = "127.0.0.1"


def add_subcommands(parser: argparse.ArgumentParser) -> Subparsers:
    """Add subcommands to a command's parser, such as those of ``vedette sites add``."""
    subparsers = parser.add_subparsers(metavar="COMMAND")
    parser.set_defaults(subcommands=subparsers.choices)
    return subparsers


def add_subcommand(
    subparsers: Subparsers,
    name: str,
    purpose: str,
    run: Callable[[argparse.Namespace], int],
    description: str | None = None,
) -> argparse.ArgumentParser:
    """Add a subcommand without options, with the function that runs it."""
    parser = subparsers.add_parser(name, help=purpose, description=description or f"{purpose[0].upper()}{purpose[1:]}.")
    parser.set_defaults(run=run, parser=parser)
    return parser


def add_folder_subcommand(
    subparsers: Subparsers, name: str, purpose: str, run: Callable[[argparse.Namespace], int]
) -> argparse.ArgumentParser:
    """Add a subcommand on a data folder, with the data and output options that all of these have."""
    parser = add_subcommand(subparsers, name, purpose, run)
    add_data_options(parser)
    add_output_options(parser)
    return parser


def add_cluster_options(subparsers: Subparsers) -> None:
    """Add the option that uses a cluster to all subcommands."""
    for parser in subparsers.choices.values():
        add_cluster_option(parser)


def require_subcommand(options: argparse.Namespace) -> int:
    """Refuse a command that was typed without a subcommand, and list its subcommands."""
    *names, last = options.subcommands
    words = f"{', '.join(names)} or {last}" if names else last
    raise UsageError(f"missing command: choose {words}; see {options.parser.prog} --help")


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the data folder and the configuration file."""
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: vedette-data)")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="the configuration file (default: vedette.toml, if it exists)"
    )


def add_cluster_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that uses all shards of a cluster instead of a data folder."""
    parser.add_argument(
        "--cluster", action="store_true", help="use the cluster set in VEDETTE_POSTGRES instead of a data folder"
    )


def add_listen_options(parser: argparse.ArgumentParser, listen_help: str) -> None:
    """Add the options that say where the search page is served: ``--listen``, or ``--port`` of the loopback address."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--listen", metavar="HOST:PORT", help=listen_help)
    where.add_argument(
        "--port",
        metavar="N",
        dest="listen",
        type=lambda text: f"{LOOPBACK}:{parse_port(text)}",
        help=f"the same as --listen {LOOPBACK}:N; 0 for any free port",
    )


def parse_port(text: str) -> int:
    """Parse a port number."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f'"{text}" is not a port: use a number up to 65535, or 0 for any free port')
    return int(text)


def add_output_options(
    parser: argparse.ArgumentParser, json_help: str = "print one JSON object and nothing else"
) -> None:
    """Add the output options ``--json`` and ``--debug``."""
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument("--debug", action="store_true", help="show the full traceback of an error")


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """Add the scope options, which say which URLs belong to a site."""
    parser.add_argument(
        "--scope",
        choices=("prefix", "host", "domain"),
        default="host",
        help="what belongs to a SITE: its URL's folder, its host or its registered domain (default: host)",
    )
    parser.add_argument(
        "--include",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only paths that match, such as /docs/* (may be repeated)",
    )
    parser.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="skip paths that match, such as *.zip$ (may be repeated)",
    )


def add_fetch_options(parser: argparse.ArgumentParser) -> None:
    """Add the fetch options: contact, delay, private addresses, ``--connect-to`` and ``--speed``."""
    parser.add_argument(
        "--contact", metavar="ADDRESS", help="email address or URL where you can be reached; required for public hosts"
    )
    parser.add_argument(
        "--delay", metavar="TIME", help="how long to pause after each response from a host, such as 500ms (default: 1s)"
    )
    parser.add_argument("--allow-private", action="store_true", help="also connect to private and loopback addresses")
    parser.add_argument(
        "--connect-to",
        metavar="HOST:PORT=ADDR:PORT",
        action="append",
        default=[],
        help="connect to ADDR:PORT instead; * matches any host or port, and @FILE reads a file (may be repeated)",
    )
    parser.add_argument(
        "--speed",
        metavar="X",
        type=parse_speed,
        default=1.0,
        help="for a synthetic web: the speed of its clock, as a multiple of real time",
    )


def add_patience_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option ``--patience``: how long a command waits."""
    parser.add_argument("--patience", metavar="TIME", default="5min", help=f"{what} (default: 5min)")


def parse_speed(text: str) -> float:
    """Parse the number of the ``--speed`` option."""
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is not a speed: use a number above 0, such as 1000')
    return speed
