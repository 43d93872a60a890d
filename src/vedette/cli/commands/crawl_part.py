"""``vedette crawl SITE…``: fetch what the sites link to, politely, until nothing is left or N pages are here."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_asking, add_folder, add_output, add_patience, add_scope

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

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
    add_scope(parser)
    add_asking(parser)
    add_patience(parser, "how long to wait for hosts in trouble when nothing else is left")
    add_folder(parser)
    add_output(parser, "print one JSON object at the end, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Crawl, show progress, sum up."""
    from vedette.cli.commands.crawl import crawl  # heavy libraries load only when there is something to do

    return crawl(options)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f'"{text}" is not a number of pages: write a whole number above 0, such as 100'
        )
    return int(text)
