"""``vedette restore BACKUP``: a data folder out of a backup."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from vedette.cli.options import add_data_options, add_output_options

if TYPE_CHECKING:
    from vedette.cli.arguments import Parser


DESCRIPTION = """\
Make a data folder out of a backup. The folder must not exist yet, or be empty: nothing
is ever overwritten. The next crawl or "up" goes on where the backup was taken.

  vedette restore backups/monday --data vedette-data
"""


def add_command(verbs: "argparse._SubParsersAction[Parser]") -> None:
    """The verb and its options."""
    parser = verbs.add_parser("restore", help="make a data folder out of a backup", description=DESCRIPTION)
    parser.add_argument("backup", metavar="BACKUP", type=Path, help="a folder that vedette backup wrote")
    add_data_options(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Copy, show how far it is, sum up."""
    from vedette.adapters.files.backup import restore_backup
    from vedette.cli.commands.backup import print_summary
    from vedette.cli.data_folder import data_folder
    from vedette.cli.progress import ProgressLine

    folder = data_folder(options)
    with ProgressLine("archive files", quiet=options.json) as gauge:
        copied = restore_backup(options.backup, folder, gauge.update_part)
    return print_summary(copied, folder, as_json=options.json)
