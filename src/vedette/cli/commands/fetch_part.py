"""``vedette fetch URL…``: these pages next, whatever else waits; politeness is kept."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_asking, add_folder, add_output, add_patience

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Fetch pages now: each goes to the front of its host's queue, and is asked for as soon
as its host may be asked. Where "vedette up" runs, it does it; else it is done here.

  vedette fetch https://example.org/news/ https://example.org/about
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("fetch", help="fetch pages now", description=DESCRIPTION)
    parser.add_argument("urls", metavar="URL", nargs="+", help="an http(s) URL of a site that the folder has")
    parser.add_argument("--no-wait", action="store_true", help="do not wait for the results")
    add_patience(parser, "how long to wait for hosts that may not be asked yet")
    add_asking(parser)
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser, sites=(), pages=None, scope="host", include=(), exclude=())


def run(options: argparse.Namespace) -> int:
    """Ask for them, wait, and say what came."""
    from vedette.cli.commands.fetch import fetch_now  # heavy libraries load only when there is something to do

    return fetch_now(options)
