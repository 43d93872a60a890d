"""``vedette set``: settings of the machine that change while it runs."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Change a setting of the machine without a restart: crawl.budget, refresh.policy or
serve.learn. What is set here holds at once and before what vedette.toml says, until it is
given back to the file. Without NAME it says what holds. It is logged, and the console can undo it.

  vedette set refresh.policy nutch
  vedette set crawl.budget 50000/d
  vedette set crawl.budget --as-configured
  vedette set serve.learn false
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("set", help="change a setting while it runs", description=DESCRIPTION)
    parser.add_argument("name", metavar="NAME", nargs="?", help="crawl.budget, refresh.policy or serve.learn")
    parser.add_argument("value", metavar="VALUE", nargs="?", help="as in vedette.toml, without quotes")
    parser.add_argument("--as-configured", action="store_true", help="let the file's value hold again")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    from vedette.cli.commands.set_ import run  # heavy libraries load only when there is something to do

    return run(options)
