"""``vedette up [SITE…]``: the real job: serve all sites of the data folder until somebody says stop."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_asking, add_folder, add_output, add_scope

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Add the sites that you name, if they are new, and keep all sites of the data folder
fresh and findable: fetch what is new, fetch again what may have changed, serve search
pages and an API. Ends with Ctrl-C; the same command goes on where it stopped. "vedette sites" changes sites meanwhile.

  vedette up https://example.org/ --contact me@example.org
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("up", help="keep sites fresh until Ctrl-C", description=DESCRIPTION)
    parser.add_argument("sites", metavar="SITE", nargs="*", help="an http(s) URL or a host name, to be added")
    add_scope(parser)
    add_asking(parser)
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help="where pages and API are served, empty for nowhere (default: 127.0.0.1:8080)",
    )
    add_folder(parser)
    add_output(parser, "print one JSON object at the end, and nothing else")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.set_defaults(run=run, parser=parser, pages=None, patience="5min")


def run(options: argparse.Namespace) -> int:
    """Add, serve, show progress, sum up."""
    from vedette.cli.commands.up import serve  # heavy libraries load only when there is something to do

    return serve(options)
