"""``vedette forget``: delete what was recorded of searches, for good."""

import argparse
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Delete what was recorded of searches: of one query, of one visitor by the mark that the
privacy page shows, of all time before a day, or everything. It cannot be undone.
Backups that you made keep what is in them.

  vedette forget --query "time off"
  vedette forget --before 2026-01-31 --yes
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("forget", help="delete what was recorded of searches", description=DESCRIPTION)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--query", metavar="QUERY", help="every search with these words; case and accents do not matter")
    what.add_argument("--visitor", metavar="MARK", help="every search of the visitor with this mark")
    what.add_argument("--before", metavar="DATE", help="everything from before this day, such as 2026-01-31")
    what.add_argument("--all", action="store_true", help="everything; imported queries, too")
    parser.add_argument("--yes", action="store_true", help="do not ask whether it is meant")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=_run, parser=parser)


def _run(options: argparse.Namespace) -> int:
    # Heavy libraries load only when there is something to do.
    from vedette.cli.commands.forget import forget

    return forget(options)
