"""``vedette token new``: another token for the console, in place of a lost one."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.inner_verbs import add_inner
from vedette.errors import UsageError

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
The operator's token, which opens the console. It is shown once, when it is made: at the
first start, and here. Only its digest is kept. A new one replaces the one before, and
whoever is signed in is signed out.

  vedette token new
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its verb."""
    token = verbs.add_parser("token", help="what opens the console", description=DESCRIPTION)
    token.set_defaults(run=_say_what, parser=token)
    inner = token.add_subparsers(metavar="VERB", parser_class=type(token))
    add_inner(inner, "new", "make another token, and show it this once", "tokening")


def _say_what(_: argparse.Namespace) -> int:
    raise UsageError("say new; see vedette token --help")
