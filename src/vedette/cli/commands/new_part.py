"""``vedette new``: the pages that are new, now or from now on."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Shows the pages that are new, the oldest first, each once. A site's first crawl is silent;
what is found on it afterwards is new, unless it only moved or says what another page says.

  vedette new --follow
  vedette new --watch harbour --since 4711 --json
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    new = verbs.add_parser("new", help="which pages are new", description=DESCRIPTION)
    new.add_argument("--watch", metavar="NAME", default="", help="only what this watch looks for")
    new.add_argument("--since", metavar="CURSOR", help="only what came after this one (default: the latest)")
    new.add_argument("-n", metavar="N", type=int, default=20, help="how many at most (default: 20)")
    new.add_argument("--follow", action="store_true", help="go on with what comes, until Ctrl-C")
    add_folder(new)
    add_output(new, "print one JSON object; with --follow one a page, each on a line")
    new.set_defaults(run=_run, parser=new)


def _run(options: argparse.Namespace) -> int:
    from vedette.cli.commands.new import tell  # heavy libraries load only when there is something to do

    return tell(options)
