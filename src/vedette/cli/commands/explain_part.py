"""``vedette explain URL``: what is known of a URL, and why it is fetched when it is, or not at all."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Whether a URL is known, to which site it belongs, what robots.txt says of it, when it
was fetched, what was read there, which pages say the same, whether it is worth indexing,
when it is due again and by which rule; or what it waits for, or why it is held back.

  vedette explain https://example.org/docs/
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("explain", help="why a page is fetched, or not", description=DESCRIPTION)
    parser.add_argument("url", metavar="URL", help="an http(s) URL")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Look it up, and say."""
    from vedette.cli.commands.explain import explain_url  # heavy libraries load only when there is something to do

    return explain_url(options)
