"""``vedette restore BACKUP``: a data folder out of a backup."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_folder, add_output

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser

__all__ = ["add"]

DESCRIPTION = """\
Make a data folder out of a backup. The folder must not exist yet, or be empty: nothing
is ever overwritten. The next crawl or "up" goes on where the backup was taken.

  vedette restore backups/monday --data vedette-data
"""


def add(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("restore", help="make a data folder out of a backup", description=DESCRIPTION)
    parser.add_argument("backup", metavar="BACKUP", type=Path, help="a folder that vedette backup wrote")
    add_folder(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Copy, show how far it is, sum up."""
    from vedette.adapters.files.backup import restore
    from vedette.cli.commands.backup import say
    from vedette.cli.data_folder import folder_of
    from vedette.cli.progress import Gauge

    folder = folder_of(options)
    with Gauge("archive files", quiet=options.json) as gauge:
        copied = restore(options.backup, folder, gauge.look_at)
    return say(copied, folder, as_json=options.json)
