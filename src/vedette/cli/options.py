"""Options that several verbs share: where the data is, what belongs to a site, how hosts are asked, what is printed."""

import argparse
from pathlib import Path


def add_data_options(parser: argparse.ArgumentParser) -> None:
    """Which data folder."""
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: vedette-data)")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="settings (default: vedette.toml, where there is one)"
    )


def add_output_options(
    parser: argparse.ArgumentParser, json_help: str = "print one JSON object, and nothing else"
) -> None:
    """For machines, and for whoever looks for a fault."""
    parser.add_argument("--json", action="store_true", help=json_help)
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """What belongs to a site."""
    parser.add_argument(
        "--scope",
        choices=("prefix", "host", "domain"),
        default="host",
        help="what belongs to a SITE: the folder of the URL, its host, or its registered domain (default: host)",
    )
    parser.add_argument(
        "--include",
        metavar="PATTERN",
        action="append",
        default=[],
        help="only paths that fit, such as /docs/* (may be repeated)",
    )
    parser.add_argument(
        "--exclude",
        metavar="PATTERN",
        action="append",
        default=[],
        help="no paths that fit, such as *.zip$ (may be repeated)",
    )


def add_fetch_options(parser: argparse.ArgumentParser) -> None:
    """Who asks, how often, and where."""
    parser.add_argument(
        "--contact", metavar="ADDRESS", help="e-mail address or URL where you can be reached; required for public hosts"
    )
    parser.add_argument(
        "--delay", metavar="TIME", help="pause after each answer of a host, such as 500ms (default: 1s)"
    )
    parser.add_argument("--allow-private", action="store_true", help="private and loopback addresses may be asked, too")
    parser.add_argument(
        "--connect-to",
        metavar="HOST:PORT=ADDR:PORT",
        action="append",
        default=[],
        help="connect there instead; * for any host or port, @FILE for many (may be repeated)",
    )
    parser.add_argument(
        "--speed", metavar="X", type=parse_speed, default=1.0, help="for a made web: its time runs X times as fast"
    )


def add_patience_option(parser: argparse.ArgumentParser, what: str) -> None:
    """How long to wait."""
    parser.add_argument("--patience", metavar="TIME", default="5min", help=f"{what} (default: 5min)")


def parse_speed(text: str) -> float:
    """What ``--speed`` says."""
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is no speed: write a number above 0, such as 1000')
    return speed
