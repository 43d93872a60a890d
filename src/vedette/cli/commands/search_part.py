"""``vedette search WORDS``: find pages in a data folder, whether something runs on it or not."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Find pages, the best first. The folder is yours, so private sites are searched, too. Exit
code 1 where nothing is found.

  vedette search consumer lag
  vedette search '"consumer lag" -kafka' --site docs.example.org/ops/ --why
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("search", help="find pages", description=DESCRIPTION)
    parser.add_argument(
        "words",
        metavar="WORDS",
        nargs="+",
        help="what to look for, as in the search box; in single quotes where it has quotes or signs",
    )
    parser.add_argument("--n", metavar="N", help="how many results (default: 10)")
    parser.add_argument("--page", metavar="N", help="which page of them (default: 1)")
    parser.add_argument("--site", metavar="HOST", help="only this host, or the beginning of a path on it")
    parser.add_argument("--type", metavar="TYPE", help="only this kind of file, such as pdf")
    parser.add_argument("--lang", metavar="CODE", help="only this language, such as de")
    parser.add_argument("--after", metavar="DATE", help="only pages of this day or later, such as 2026-01-31")
    parser.add_argument("--before", metavar="DATE", help="only pages from before this day")
    parser.add_argument("--why", action="store_true", help="say of each result why it stands where it stands")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look, and say."""
    from vedette.cli.commands.search import search_folder  # heavy libraries load only when there is something to do

    return search_folder(options)
