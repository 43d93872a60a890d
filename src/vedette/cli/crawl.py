"""``vedette crawl SITE…``: fetch what the sites link to, politely, until nothing is left or N pages are here."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add", "speed_of"]

DESCRIPTION = """\
Fetch the pages of the sites that you name, politely: robots.txt is obeyed, a host is
asked for one page at a time, with a pause after each answer. What was fetched is kept
in the data folder; the same command again goes on where it stopped.

  vedette crawl https://example.org/docs/ --scope prefix --pages 500 --contact me@example.org
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("crawl", help="fetch the pages of sites", description=DESCRIPTION)
    parser.add_argument("sites", metavar="SITE", nargs="+", help="an http(s) URL or a host name")
    parser.add_argument("--pages", metavar="N", type=_count, help="stop after N pages")
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
    parser.add_argument(
        "--contact", metavar="ADDRESS", help="e-mail address or URL where you can be reached; required for public hosts"
    )
    parser.add_argument(
        "--delay", metavar="TIME", help="pause after each answer of a host, such as 500ms (default: 1s)"
    )
    parser.add_argument("--data", metavar="DIR", help="the data folder (default: vedette-data)")
    parser.add_argument(
        "--config", metavar="FILE", type=Path, help="settings (default: vedette.toml, where there is one)"
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
        "--patience",
        metavar="TIME",
        default="5min",
        help="how long to wait for hosts in trouble when nothing else is left (default: 5min)",
    )
    parser.add_argument(
        "--speed", metavar="X", type=speed_of, default=1.0, help="for a made web: its time runs X times as fast"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--debug", action="store_true", help="show where an error comes from")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Crawl, show progress, sum up."""
    from vedette.cli.crawling import crawl  # heavy libraries load only when there is something to do

    return crawl(options)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of pages: write a whole number above 0, such as 100'
        )
    return int(text)


def speed_of(text: str) -> float:
    """What ``--speed`` says."""
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0 < speed <= 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is no speed: write a number above 0, such as 1000')
    return speed
