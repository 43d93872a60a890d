"""``vedette status``: how a crawl stands, running or not."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
How the crawl of a data folder stands: pages, queue, hosts that wait and why, errors by
kind, sites, archive. When nothing runs, what the folder holds.

  vedette status --data vedette-data
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("status", help="how a crawl stands", description=DESCRIPTION)
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look, and say."""
    from vedette.cli.commands.status import show_status  # heavy libraries load only when there is something to do

    return show_status(options)
